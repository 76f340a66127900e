package kafkaproto

// AddPartitionsToTxn (24), versions 0 to 3: adds partitions to a producer's
// transaction, which begins with the first.
//
//   - One partition that does not exist (error 3) keeps the others out, too (error
//     55). A producer that is not the one with the transactional id is error 49, one
//     of an older epoch error 90 (before 2: 47). While the last transaction is being
//     ended the answer is error 51.
//   - 3 is flexible. Versions 4 and 5 are for brokers among themselves.
//   - Producers that speak Produce version 12 do without.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveAddPartitionsToTxn(c *call, req *kmsg.AddPartitionsToTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	var ids []topiclog.PartitionID
	missing := false
	for _, t := range req.Topics {
		rt := kmsg.NewAddPartitionsToTxnResponseTopic()
		rt.Topic = t.Topic
		ref := topicRef{name: t.Topic}
		topic, code := ref.find(c.s.opts.Store)
		for _, index := range t.Partitions {
			rp := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			rp.Partition = index
			id, ok := partitionOf(&topic, index)
			switch {
			case code != codeNone || !ok:
				rp.ErrorCode = codeUnknownTopic
			case internalTopic(topic.Name):
				rp.ErrorCode = codeInvalidTopic
			}
			missing = missing || rp.ErrorCode != codeNone
			ids = append(ids, id)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	code := codeOperationNotAttempted
	if !missing {
		code = transactionCode(c.s.opts.Store.AddToTransaction(context.Background(), req.TransactionalID,
			identity(req.ProducerID, req.ProducerEpoch), ids), c.version >= 2)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if rp := &resp.Topics[i].Partitions[j]; rp.ErrorCode == codeNone {
				rp.ErrorCode = code
			}
		}
	}
	return resp
}
