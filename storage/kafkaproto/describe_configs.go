package kafkaproto

// DescribeConfigs (32), versions 1 to 4: options with their defaults, of topics and
// of this node.
//
//   - A topic has the options of the store. What is Kafka's and changes nothing here
//     says so in its documentation.
//   - This node's options (its number, or the default named by an empty name) are
//     those that it was started with, under Kafka's names; they can only be read.
//   - The options of a group are the defaults, under Kafka's names, and can only be
//     read. Other kinds of resource are error 42.
//   - 3 adds documentation and types, 4 is flexible.

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// option is an option with its value in one resource.
type option struct {
	name, value, def, doc string
	kind                  kmsg.ConfigType
	source                kmsg.ConfigSource
	list, readOnly        bool
}

func configType(k topiclog.ConfigKind) kmsg.ConfigType {
	switch k {
	case topiclog.KindBool:
		return kmsg.ConfigTypeBoolean
	case topiclog.KindInt:
		return kmsg.ConfigTypeInt
	case topiclog.KindLong:
		return kmsg.ConfigTypeLong
	case topiclog.KindDouble:
		return kmsg.ConfigTypeDouble
	case topiclog.KindList:
		return kmsg.ConfigTypeList
	}
	return kmsg.ConfigTypeString
}

func topicOptions(t *topiclog.Topic) []option {
	var out []option
	for _, k := range topiclog.ConfigKeys() {
		o := option{name: k.Name, value: k.Default, def: k.Default, doc: k.Doc, kind: configType(k.Kind), list: k.Kind == topiclog.KindList,
			source: kmsg.ConfigSourceDefaultConfig}
		if v, ok := t.Config[k.Name]; ok {
			o.value, o.source = v, kmsg.ConfigSourceDynamicTopicConfig
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
		options, err := c.options(r)
		for _, o := range options {
			// null asks for all, as an empty list does.
			if len(r.ConfigNames) == 0 || slices.Contains(r.ConfigNames, o.name) {
				rr.Configs = append(rr.Configs, describedOption(req, o))
			}
		}
		rr.ErrorCode, rr.ErrorMessage = adminCode(err), message(err)
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}

func (c *call) options(r kmsg.DescribeConfigsRequestResource) ([]option, error) {
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		topic, err := c.s.opts.Store.Topic(r.ResourceName)
		if err != nil {
			return nil, err
		}
		return topicOptions(&topic), nil
	case kmsg.ConfigResourceTypeBroker:
		switch r.ResourceName {
		case "":
			return nil, nil // what is set for all nodes alike: nothing
		case strconv.Itoa(int(c.s.opts.NodeID)):
			return c.nodeOptions(), nil
		}
		return nil, coded(codeInvalidRequest, "there is no broker %q", r.ResourceName)
	case kmsg.ConfigResourceTypeGroupConfig:
		if r.ResourceName == "" {
			return nil, coded(codeInvalidRequest, "the group's name is empty")
		}
		return c.s.groupOptions(), nil
	}
	return nil, coded(codeInvalidRequest, "not_yet: options of %s", r.ResourceType)
}

func describedOption(req *kmsg.DescribeConfigsRequest, o option) kmsg.DescribeConfigsResponseResourceConfig {
	rc := kmsg.NewDescribeConfigsResponseResourceConfig()
	rc.Name, rc.Value, rc.Source, rc.ReadOnly, rc.ConfigType = o.name, &o.value, o.source, o.readOnly, o.kind
	rc.IsDefault = o.source == kmsg.ConfigSourceDefaultConfig
	if req.IncludeDocumentation {
		rc.Documentation = &o.doc
	}
	if req.IncludeSynonyms {
		add := func(v string, source kmsg.ConfigSource) {
			s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			s.Name, s.Value, s.Source = o.name, &v, source
			rc.ConfigSynonyms = append(rc.ConfigSynonyms, s)
		}
		if !rc.IsDefault {
			add(o.value, o.source)
		}
		add(o.def, kmsg.ConfigSourceDefaultConfig)
	}
	return rc
}
