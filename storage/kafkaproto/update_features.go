package kafkaproto

// UpdateFeatures (57), versions 0 to 1: switches features of the cluster.
//
//   - What ApiVersions lists is always on: setting it to the level it has changes
//     nothing, any other level and any other feature is error 95.
//   - 1 adds checking without doing.

import "github.com/twmb/franz-go/pkg/kmsg"

func serveUpdateFeatures(_ *call, req *kmsg.UpdateFeaturesRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.UpdateFeaturesResponse)
	for _, f := range req.FeatureUpdates {
		err := coded(codeInvalidUpdateVersion, "there is no feature %s", f.Feature)
		for _, have := range features() {
			switch {
			case have.name != f.Feature:
			case have.level == f.MaxVersionLevel:
				err = nil
			default:
				err = coded(codeInvalidUpdateVersion, "feature %s is at level %d, which cannot be changed", f.Feature, have.level)
			}
		}
		rr := kmsg.NewUpdateFeaturesResponseResult()
		rr.Feature, rr.ErrorCode, rr.ErrorMessage = f.Feature, adminCode(err), message(err)
		resp.Results = append(resp.Results, rr)
	}
	return resp
}
