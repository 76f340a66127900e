package kafkaproto

// CreateTopics (19), versions 0 to 7: makes topics, each on its own.
//
//   - -1 partitions (version 4) means the server's default. The replication factor
//     is 1 or -1; an assignment by hand may only name this node.
//   - Options are those of the store (topics ... configs); an unknown one or a bad
//     value is error 40 with the reason, never ignored.
//   - 1 adds checking without doing, 5 is flexible and answers with the options, 7
//     with the topic's id.
//   - Names that begin with two underscores are the store's own.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// internalTopic says that a topic is the store's own: clients may read it, and
// not write, create or delete it.
func internalTopic(name string) bool { return strings.HasPrefix(name, "__") }

// codedError is an error that has its code already.
type codedError struct {
	code int16
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func coded(code int16, format string, args ...any) error {
	return &codedError{code, fmt.Errorf(format, args...)}
}

// adminCode is codeOf that knows coded errors.
func adminCode(err error) int16 {
	var c *codedError
	if errors.As(err, &c) {
		return c.code
	}
	return codeOf(err)
}

func serveCreateTopics(c *call, req *kmsg.CreateTopicsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	times := map[string]int{}
	for _, t := range req.Topics {
		times[t.Topic]++
	}
	for _, t := range req.Topics {
		n := times[t.Topic]
		if n == 0 {
			continue // answered with its first mention
		}
		times[t.Topic] = 0
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic = t.Topic
		err := coded(codeInvalidRequest, "topic %s is named %d times", t.Topic, n)
		if n == 1 {
			err = c.createTopic(t, req.ValidateOnly, &rt)
		}
		rt.ErrorCode, rt.ErrorMessage = adminCode(err), message(err)
		if err != nil {
			rt.NumPartitions, rt.ReplicationFactor = -1, -1
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (c *call) createTopic(t kmsg.CreateTopicsRequestTopic, check bool, out *kmsg.CreateTopicsResponseTopic) error {
	spec, err := c.topicSpec(t)
	if err != nil {
		return err
	}
	settings, err := topiclog.ParseConfig(spec.Config)
	if err != nil {
		return err
	}
	topic := topiclog.Topic{Name: spec.Name, Config: spec.Config, Settings: settings}
	if _, err := c.s.opts.Store.Topic(spec.Name); err == nil {
		return coded(codeTopicExists, "topic %s exists already", spec.Name)
	}
	if !check {
		// Not to be given up half way when the server drains.
		if topic, err = c.s.opts.Store.CreateTopic(context.Background(), spec); err != nil {
			return err
		}
	}
	out.TopicID = topic.ID
	out.NumPartitions, out.ReplicationFactor = int32(spec.Partitions), 1
	out.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	for _, o := range topicOptions(&topic) {
		rc := kmsg.NewCreateTopicsResponseTopicConfig()
		rc.Name, rc.Value, rc.Source = o.name, &o.value, int8(o.source)
		out.Configs = append(out.Configs, rc)
	}
	return nil
}

// topicSpec checks what the store does not: it knows one node.
func (c *call) topicSpec(t kmsg.CreateTopicsRequestTopic) (topiclog.TopicSpec, error) {
	spec := topiclog.TopicSpec{Name: t.Topic, Partitions: int(t.NumPartitions), Config: map[string]string{}}
	switch {
	case !validName(t.Topic):
		return spec, coded(codeInvalidTopic, "the name %q must have 1 to 249 letters, digits, dots, underscores and hyphens, and not be . or ..", t.Topic)
	case internalTopic(t.Topic):
		return spec, coded(codeInvalidTopic, "the name %s is reserved: it begins with two underscores", t.Topic)
	case len(t.ReplicaAssignment) > 0:
		if t.NumPartitions != -1 || t.ReplicationFactor != -1 {
			return spec, coded(codeInvalidRequest, "an assignment goes with neither a number of partitions nor a replication factor")
		}
		if err := c.checkAssignment(t.ReplicaAssignment); err != nil {
			return spec, err
		}
		spec.Partitions = len(t.ReplicaAssignment)
	case t.ReplicationFactor != -1 && t.ReplicationFactor != 1:
		return spec, coded(codeInvalidReplication, "replication factor %d: there is one node", t.ReplicationFactor)
	case t.NumPartitions == -1:
		spec.Partitions = c.s.opts.DefaultPartitions
	}
	if spec.Partitions < 1 || spec.Partitions > topiclog.MaxPartitions {
		return spec, coded(codeInvalidPartitions, "%d partitions, want 1 to %d", spec.Partitions, topiclog.MaxPartitions)
	}
	for _, o := range t.Configs {
		if o.Value == nil {
			return spec, coded(codeInvalidConfig, "option %s has no value", o.Name)
		}
		spec.Config[o.Name] = *o.Value
	}
	return spec, nil
}

// checkAssignment wants partitions 0 to n-1 once each, on this node.
func (c *call) checkAssignment(as []kmsg.CreateTopicsRequestTopicReplicaAssignment) error {
	seen := make(map[int32]bool, len(as))
	for _, a := range as {
		if a.Partition < 0 || int(a.Partition) >= len(as) || seen[a.Partition] {
			return coded(codeInvalidAssignment, "partitions must be 0 to %d, each once", len(as)-1)
		}
		seen[a.Partition] = true
		if len(a.Replicas) != 1 || a.Replicas[0] != c.s.opts.NodeID {
			return coded(codeInvalidAssignment, "partition %d: the only node is %d", a.Partition, c.s.opts.NodeID)
		}
	}
	return nil
}

func validName(name string) bool {
	if n := len(name); n == 0 || n > 249 || name == "." || name == ".." {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	}) < 0
}
