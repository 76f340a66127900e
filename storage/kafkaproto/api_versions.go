package kafkaproto

// ApiVersions (18), versions 0 to 4: which keys are served in which versions,
// exactly the dispatch table. Clients send it first.
//
//   - A version that is not served is answered with error 35 in the layout of
//     version 0, which every client reads; it then asks again.
//   - From version 3 the request names the client's software; it is not used.
//   - The features are those of features(); none for the layout of version 0.
//   - Produce is advertised from 0, because clients take a higher minimum for a
//     broker without modern compression; what 0 to 2 carry is refused (produce.go).

import (
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const apiVersions int16 = 18

func serveApiVersions(_ *call, req *kmsg.ApiVersionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	resp.ApiKeys = apiKeys()
	for _, f := range features() {
		have, on := kmsg.NewApiVersionsResponseSupportedFeature(), kmsg.NewApiVersionsResponseFinalizedFeature()
		have.Name, have.MaxVersion = f.name, f.level
		on.Name, on.MaxVersionLevel, on.MinVersionLevel = f.name, f.level, f.level
		resp.SupportedFeatures, resp.FinalizedFeatures = append(resp.SupportedFeatures, have), append(resp.FinalizedFeatures, on)
		resp.FinalizedFeaturesEpoch = 0
	}
	return resp
}

// feature is something that clients must know to be switched on.
type feature struct {
	name  string
	level int16
}

// features lists what is switched on, in every store and for good: KIP-848 groups
// and KIP-890 transactions.
func features() []feature { return []feature{{"group.version", 1}, {"transaction.version", 2}} }

func apiKeys() []kmsg.ApiVersionsResponseApiKey {
	var keys []kmsg.ApiVersionsResponseApiKey
	for _, a := range Supported() {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = a.Key, a.Min, a.Max
		keys = append(keys, k)
	}
	return keys
}

// unsupportedApiVersions answers a version from the future.
func (c *call) unsupportedApiVersions() *reply {
	return &reply{build: func() (net.Buffers, error) {
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ErrorCode, resp.ApiKeys = codeUnsupportedVersion, apiKeys()
		w := newWriter(c.correlation, false, false)
		w.cur = resp.AppendTo(w.cur)
		return w.frame(), nil
	}}
}
