package kafkaproto

// CreatePartitions (37), versions 0 to 3: raises the number of a topic's
// partitions.
//
//   - The number can only grow (error 37); an assignment by hand may only name
//     this node, once for each new partition (error 39).
//   - 2 is flexible.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveCreatePartitions(c *call, req *kmsg.CreatePartitionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewCreatePartitionsResponseTopic()
		rt.Topic = t.Topic
		err := c.addPartitions(t, req.ValidateOnly)
		rt.ErrorCode, rt.ErrorMessage = adminCode(err), message(err)
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (c *call) addPartitions(t kmsg.CreatePartitionsRequestTopic, check bool) error {
	topic, err := c.s.opts.Store.Topic(t.Topic)
	if err != nil {
		return err
	}
	have := len(topic.Partitions)
	switch {
	case internalTopic(topic.Name):
		return coded(codeInvalidTopic, "topic %s is the store's own", topic.Name)
	case int(t.Count) <= have || t.Count > topiclog.MaxPartitions:
		return coded(codeInvalidPartitions, "topic %s has %d partitions, cannot have %d", t.Topic, have, t.Count)
	case len(t.Assignment) > 0 && len(t.Assignment) != int(t.Count)-have:
		return coded(codeInvalidAssignment, "%d partitions are new, %d are assigned", int(t.Count)-have, len(t.Assignment))
	}
	for _, a := range t.Assignment {
		if len(a.Replicas) != 1 || a.Replicas[0] != c.s.opts.NodeID {
			return coded(codeInvalidAssignment, "the only node is %d", c.s.opts.NodeID)
		}
	}
	if check {
		return nil
	}
	_, err = c.s.opts.Store.AddPartitions(context.Background(), t.Topic, int(t.Count))
	return err
}
