package kafkaproto

// DeleteRecords (21), versions 0 to 2: removes the records below an offset.
//
//   - -1 means all there are now. Beyond the end is error 1; a topic that is only
//     compacted keeps its records (error 44), and so do the store's own (error 17).
//   - The answer is the offset from which records can be read, and comes when that
//     is durable. 2 is flexible.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func serveDeleteRecords(c *call, req *kmsg.DeleteRecordsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewDeleteRecordsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewDeleteRecordsResponseTopicPartition()
			rp.Partition = p.Partition
			rp.LowWatermark, rp.ErrorCode = c.deleteRecords(t.Topic, p.Partition, p.Offset)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (c *call) deleteRecords(name string, index int32, before int64) (int64, int16) {
	ref := topicRef{name: name}
	topic, code := ref.find(c.s.opts.Store)
	if code != codeNone {
		return -1, code
	}
	id, ok := partitionOf(&topic, index)
	switch {
	case !ok:
		return -1, codeUnknownTopic
	case internalTopic(name):
		return -1, codeInvalidTopic
	case !topic.Settings.Delete:
		return -1, codePolicyViolation
	case before < -1:
		return -1, codeOffsetOutOfRange
	}
	start, err := c.s.opts.Store.DeleteRecords(context.Background(), id, before)
	if err != nil {
		return -1, codeOf(err)
	}
	return start, codeNone
}
