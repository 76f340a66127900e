package kafkaproto

// DescribeProducers (61), version 0: the producers that partitions know, with their
// open transactions: for tools that look for one that hangs.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveDescribeProducers(c *call, req *kmsg.DescribeProducersRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewDescribeProducersResponseTopic()
		rt.Topic = t.Topic
		ref := topicRef{name: t.Topic}
		topic, code := ref.find(c.s.opts.Store)
		for _, index := range t.Partitions {
			rp := kmsg.NewDescribeProducersResponseTopicPartition()
			rp.Partition, rp.ErrorCode = index, code
			if code == codeNone {
				c.describeProducers(&topic, &rp)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (c *call) describeProducers(t *topiclog.Topic, out *kmsg.DescribeProducersResponseTopicPartition) {
	id, ok := partitionOf(t, out.Partition)
	if !ok {
		out.ErrorCode = codeUnknownTopic
		return
	}
	ps, err := c.s.opts.Store.Producers(id)
	if err != nil {
		out.ErrorCode, out.ErrorMessage = codeOf(err), message(err)
		return
	}
	for _, p := range ps {
		a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		a.ProducerID, a.ProducerEpoch, a.LastSequence = p.ProducerID, int32(p.Epoch), p.LastSequence
		a.LastTimestamp, a.CoordinatorEpoch, a.CurrentTxnStartOffset = p.LastAppend.UnixMilli(), p.CoordinatorEpoch, p.TransactionStart
		out.ActiveProducers = append(out.ActiveProducers, a)
	}
}
