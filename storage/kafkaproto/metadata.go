package kafkaproto

// Metadata (3), versions 0 to 13: the broker, and topics with their partitions.
//
//   - No topics asked for means all in version 0, none from 1 on, where null
//     means all.
//   - Before version 4 a client cannot forbid to create a missing topic: it counts
//     as allowed, as the protocol's default has it. Topics are created only if the
//     server is told to.
//   - 9 is flexible; 10 adds topic ids, 12 asking by id alone.
//   - This node leads every partition. Its address is Options.Advertised, else the
//     one the client connected to.

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveMetadata(c *call, req *kmsg.MetadataRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	b := kmsg.NewMetadataResponseBroker()
	b.NodeID = c.s.opts.NodeID
	b.Host, b.Port = c.s.address(c.conn)
	resp.Brokers = append(resp.Brokers, b)
	resp.ControllerID = c.s.opts.NodeID
	cluster := c.s.clusterID()
	resp.ClusterID = &cluster

	if req.Topics == nil || (c.version == 0 && len(req.Topics) == 0) {
		for _, t := range c.s.opts.Store.Topics() {
			resp.Topics = append(resp.Topics, c.metadataTopic(&t))
		}
		return resp
	}
	create := c.s.opts.AutoCreatePartitions > 0 && (c.version < 4 || req.AllowAutoTopicCreation)
	for _, t := range req.Topics {
		resp.Topics = append(resp.Topics, c.askedTopic(t, create))
	}
	return resp
}

func (c *call) askedTopic(t kmsg.MetadataRequestTopic, create bool) kmsg.MetadataResponseTopic {
	missing := kmsg.NewMetadataResponseTopic()
	missing.Topic, missing.TopicID = t.Topic, t.TopicID
	if t.Topic == nil {
		topic, err := c.s.opts.Store.TopicByID(t.TopicID)
		if err != nil {
			missing.ErrorCode = codeUnknownTopicID
			return missing
		}
		return c.metadataTopic(&topic)
	}
	topic, err := c.s.opts.Store.Topic(*t.Topic)
	if errors.Is(err, topiclog.ErrTopicNotFound) && !validName(*t.Topic) {
		missing.ErrorCode = codeInvalidTopic
		return missing
	}
	if errors.Is(err, topiclog.ErrTopicNotFound) && create && !internalTopic(*t.Topic) {
		// A client that was promised a topic waits for it: not to be given up when
		// its connection drains.
		topic, err = c.s.opts.Store.CreateTopic(context.Background(), topiclog.TopicSpec{Name: *t.Topic, Partitions: c.s.opts.AutoCreatePartitions})
		if errors.Is(err, topiclog.ErrTopicExists) {
			topic, err = c.s.opts.Store.Topic(*t.Topic)
		}
	}
	if err != nil {
		missing.ErrorCode = codeOf(err)
		return missing
	}
	return c.metadataTopic(&topic)
}

func (c *call) metadataTopic(t *topiclog.Topic) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	name := t.Name
	out.Topic, out.TopicID, out.IsInternal = &name, t.ID, internalTopic(name)
	self := []int32{c.s.opts.NodeID}
	for _, p := range t.Partitions {
		rp := kmsg.NewMetadataResponseTopicPartition()
		rp.Partition, rp.Leader, rp.Replicas, rp.ISR = p.Index, c.s.opts.NodeID, self, self
		if st, err := c.s.opts.Store.State(p.ID); err == nil {
			rp.LeaderEpoch = st.LeaderEpoch
		}
		out.Partitions = append(out.Partitions, rp)
	}
	return out
}
