package kafkaproto

// AlterConfigs (33), versions 0 to 2: sets the options of a topic, all of them:
// what is not named gets its default.
//
//   - Options are those of the store; an unknown one or a bad value is error 40
//     with the reason. A topic changes whole or not at all, durably.
//   - The options of this node are given when it is started: changing them is error
//     42, as Kafka answers for options that need a restart. Other kinds of resource
//     are error 42 too.
//   - 2 is flexible.

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveAlterConfigs(c *call, req *kmsg.AlterConfigsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	repeated := repeatedResources(req.Resources, func(r kmsg.AlterConfigsRequestResource) resourceKey {
		return resourceKey{r.ResourceType, r.ResourceName}
	})
	for _, r := range req.Resources {
		rr := kmsg.NewAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = r.ResourceType, r.ResourceName
		err := c.replaceConfig(r, repeated, req.ValidateOnly)
		rr.ErrorCode, rr.ErrorMessage = adminCode(err), message(err)
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}

// resourceKey names what has options.
type resourceKey struct {
	kind kmsg.ConfigResourceType
	name string
}

// repeatedResources are those that a request names more than once.
func repeatedResources[T any](all []T, key func(T) resourceKey) map[resourceKey]bool {
	seen, repeated := map[resourceKey]bool{}, map[resourceKey]bool{}
	for _, r := range all {
		k := key(r)
		repeated[k] = seen[k]
		seen[k] = true
	}
	maps.DeleteFunc(repeated, func(_ resourceKey, twice bool) bool { return !twice })
	return repeated
}

// alterable checks what does not depend on the options and returns the topic.
func (c *call) alterable(k resourceKey, repeated map[resourceKey]bool, names []string) (topiclog.Topic, error) {
	slices.Sort(names)
	switch {
	case repeated[k]:
		return topiclog.Topic{}, coded(codeInvalidRequest, "each resource must appear at most once")
	case len(slices.Compact(slices.Clone(names))) != len(names):
		return topiclog.Topic{}, coded(codeInvalidRequest, "an option is named more than once")
	case k.kind == kmsg.ConfigResourceTypeBroker:
		return topiclog.Topic{}, c.alterBroker(k.name, names)
	case k.kind != kmsg.ConfigResourceTypeTopic:
		return topiclog.Topic{}, coded(codeInvalidRequest, "not_yet: options of %s", k.kind)
	case internalTopic(k.name):
		return topiclog.Topic{}, coded(codeInvalidTopic, "topic %s is the store's own", k.name)
	}
	return c.s.opts.Store.Topic(k.name)
}

func (c *call) replaceConfig(r kmsg.AlterConfigsRequestResource, repeated map[resourceKey]bool, check bool) error {
	set := map[string]string{}
	names := make([]string, 0, len(r.Configs))
	for _, o := range r.Configs {
		if names = append(names, o.Name); o.Value == nil {
			return coded(codeInvalidRequest, "option %s has no value", o.Name)
		}
		set[o.Name] = *o.Value
	}
	topic, err := c.alterable(resourceKey{r.ResourceType, r.ResourceName}, repeated, names)
	if err != nil || topic.Name == "" {
		return err
	}
	var reset []string
	for name := range topic.Config {
		if _, ok := set[name]; !ok {
			reset = append(reset, name)
		}
	}
	return c.alterTopic(&topic, set, reset, check)
}

// alterTopic changes options of a topic, or only checks that it could.
func (c *call) alterTopic(topic *topiclog.Topic, set map[string]string, reset []string, check bool) error {
	if !check {
		_, err := c.s.opts.Store.AlterConfig(context.Background(), topic.Name, set, reset)
		return err
	}
	config := maps.Clone(topic.Config)
	if config == nil {
		config = map[string]string{}
	}
	for _, name := range reset {
		delete(config, name)
	}
	maps.Copy(config, set)
	_, err := topiclog.ParseConfig(config)
	return err
}
