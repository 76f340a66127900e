package kafkaproto

// ListConfigResources (74), versions 0 and 1: the names of what has options.
//
//   - Version 0 is about client metrics alone, of which there are none.
//   - 1 takes kinds of resource, none for all: topics and this node. Client metrics,
//     groups and loggers are kinds of Kafka's too, but none has options of its own
//     here. Another kind is error 35, as in Kafka.

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func serveListConfigResources(c *call, req *kmsg.ListConfigResourcesRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
	resp.ConfigResources = []kmsg.ListConfigResourcesResponseConfigResource{}
	for _, kind := range req.ResourceTypes {
		switch kmsg.ConfigResourceType(kind) {
		case kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeClientMetrics, kmsg.ConfigResourceTypeGroupConfig:
		default:
			resp.ErrorCode = codeUnsupportedVersion
			return resp
		}
	}
	wanted := func(kind kmsg.ConfigResourceType) bool {
		return c.version >= 1 && (len(req.ResourceTypes) == 0 || slices.Contains(req.ResourceTypes, int8(kind)))
	}
	add := func(kind kmsg.ConfigResourceType, name string) {
		r := kmsg.NewListConfigResourcesResponseConfigResource()
		r.Name, r.Type = name, int8(kind)
		resp.ConfigResources = append(resp.ConfigResources, r)
	}
	if wanted(kmsg.ConfigResourceTypeTopic) {
		for _, t := range c.s.opts.Store.Topics() {
			add(kmsg.ConfigResourceTypeTopic, t.Name)
		}
	}
	if wanted(kmsg.ConfigResourceTypeBroker) {
		add(kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(c.s.opts.NodeID)))
	}
	return resp
}
