package kafkaproto

// IncrementalAlterConfigs (44), versions 0 to 1: changes single options of a topic:
// sets one, gives it its default again, or adds to and takes from a list.
//
//   - The only list among the options that mean something here is cleanup.policy;
//     adding to another kind of option is error 40.
//   - What else holds is in alter_configs.go. 1 is flexible.

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveIncrementalAlterConfigs(c *call, req *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	repeated := repeatedResources(req.Resources, func(r kmsg.IncrementalAlterConfigsRequestResource) resourceKey {
		return resourceKey{r.ResourceType, r.ResourceName}
	})
	for _, r := range req.Resources {
		rr := kmsg.NewIncrementalAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = r.ResourceType, r.ResourceName
		err := c.changeConfig(r, repeated, req.ValidateOnly)
		rr.ErrorCode, rr.ErrorMessage = adminCode(err), message(err)
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}

func (c *call) changeConfig(r kmsg.IncrementalAlterConfigsRequestResource, repeated map[resourceKey]bool, check bool) error {
	names := make([]string, 0, len(r.Configs))
	for _, o := range r.Configs {
		names = append(names, o.Name)
	}
	topic, err := c.alterable(resourceKey{r.ResourceType, r.ResourceName}, repeated, names)
	if err != nil || topic.Name == "" {
		return err
	}
	set := map[string]string{}
	var reset []string
	for _, o := range r.Configs {
		if o.Value == nil && o.Op != kmsg.IncrementalAlterConfigOpDelete {
			return coded(codeInvalidRequest, "option %s has no value", o.Name)
		}
		switch o.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			set[o.Name] = *o.Value
		case kmsg.IncrementalAlterConfigOpDelete:
			reset = append(reset, o.Name)
		case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
			if set[o.Name], err = changedList(&topic, o); err != nil {
				return err
			}
		default:
			return coded(codeInvalidRequest, "option %s: there is no operation %d", o.Name, o.Op)
		}
	}
	return c.alterTopic(&topic, set, reset, check)
}

// changedList adds to or takes from an option that is a list.
func changedList(topic *topiclog.Topic, o kmsg.IncrementalAlterConfigsRequestResourceConfig) (string, error) {
	for _, have := range topicOptions(topic) {
		if have.name != o.Name {
			continue
		}
		if !have.list {
			return "", coded(codeInvalidConfig, "option %s is not a list", o.Name)
		}
		items := splitList(have.value)
		for _, item := range splitList(*o.Value) {
			at := slices.Index(items, item)
			switch {
			case o.Op == kmsg.IncrementalAlterConfigOpAppend && at < 0:
				items = append(items, item)
			case o.Op == kmsg.IncrementalAlterConfigOpSubtract && at >= 0:
				items = slices.Delete(items, at, at+1)
			}
		}
		return strings.Join(items, ","), nil
	}
	// The store names the nearest option that there is.
	_, err := topiclog.ParseConfig(map[string]string{o.Name: *o.Value})
	return "", err
}

func splitList(v string) []string {
	var out []string
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
