package kafkaproto

// DescribeConfigs (32), versions 1 to 4: a topic's options with their defaults.
//
//   - A broker (this node, or the default named by an empty name) has no options
//     that can be read through the protocol: the list is empty. Other kinds of
//     resource are error 42.
//   - 3 adds documentation, 4 is flexible.

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// topicOption is an option with its value in one topic.
type topicOption struct {
	name, value, def, doc string
	set                   bool
}

func (o *topicOption) source() kmsg.ConfigSource {
	if o.set {
		return kmsg.ConfigSourceDynamicTopicConfig
	}
	return kmsg.ConfigSourceDefaultConfig
}

func topicOptions(t *topiclog.Topic) []topicOption {
	var out []topicOption
	for _, k := range topiclog.ConfigKeys() {
		o := topicOption{name: k.Name, value: k.Default, def: k.Default, doc: k.Doc}
		if v, ok := t.Config[k.Name]; ok {
			o.value, o.set = v, true
		}
		out = append(out, o)
	}
	return out
}

func serveDescribeConfigs(c *call, req *kmsg.DescribeConfigsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for _, r := range req.Resources {
		rr := kmsg.NewDescribeConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = r.ResourceType, r.ResourceName
		rr.Configs = []kmsg.DescribeConfigsResponseResourceConfig{}
		err := c.describeConfigs(req, r, &rr)
		rr.ErrorCode, rr.ErrorMessage = adminCode(err), message(err)
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}

func (c *call) describeConfigs(req *kmsg.DescribeConfigsRequest, r kmsg.DescribeConfigsRequestResource, out *kmsg.DescribeConfigsResponseResource) error {
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
	case kmsg.ConfigResourceTypeBroker:
		if r.ResourceName != "" && r.ResourceName != strconv.Itoa(int(c.s.opts.NodeID)) {
			return coded(codeInvalidRequest, "there is no broker %q", r.ResourceName)
		}
		return nil
	default:
		return coded(codeInvalidRequest, "not_yet: options of %s", r.ResourceType)
	}
	topic, err := c.s.opts.Store.Topic(r.ResourceName)
	if err != nil {
		return err
	}
	for _, o := range topicOptions(&topic) {
		// null asks for all, as an empty list does.
		if len(r.ConfigNames) > 0 && !slices.Contains(r.ConfigNames, o.name) {
			continue
		}
		out.Configs = append(out.Configs, describedOption(req, o))
	}
	return nil
}

func describedOption(req *kmsg.DescribeConfigsRequest, o topicOption) kmsg.DescribeConfigsResponseResourceConfig {
	rc := kmsg.NewDescribeConfigsResponseResourceConfig()
	rc.Name, rc.Value, rc.Source, rc.IsDefault = o.name, &o.value, o.source(), !o.set
	if req.IncludeDocumentation {
		rc.Documentation = &o.doc
	}
	if req.IncludeSynonyms {
		add := func(v string, source kmsg.ConfigSource) {
			s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			s.Name, s.Value, s.Source = o.name, &v, source
			rc.ConfigSynonyms = append(rc.ConfigSynonyms, s)
		}
		if o.set {
			add(o.value, kmsg.ConfigSourceDynamicTopicConfig)
		}
		add(o.def, kmsg.ConfigSourceDefaultConfig)
	}
	return rc
}
