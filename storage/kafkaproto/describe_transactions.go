package kafkaproto

// DescribeTransactions (65), version 0: the state of transactional producers by
// their ids; one that is not known is error 105.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveDescribeTransactions(c *call, req *kmsg.DescribeTransactionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	var topics []topiclog.Topic
	for _, id := range req.TransactionalIDs {
		rt := kmsg.NewDescribeTransactionsResponseTransactionState()
		rt.TransactionalID = id
		info, err := c.s.opts.Store.Transaction(id)
		if err != nil {
			rt.ErrorCode, rt.ProducerID, rt.ProducerEpoch, rt.StartTimestamp = codeTransactionalIDNotFound, -1, -1, -1
			resp.TransactionStates = append(resp.TransactionStates, rt)
			continue
		}
		rt.State, rt.TimeoutMillis = info.State.String(), int32(info.Timeout.Milliseconds())
		rt.ProducerID, rt.ProducerEpoch, rt.StartTimestamp = info.Producer.ID, info.Producer.Epoch, -1
		if !info.Started.IsZero() {
			rt.StartTimestamp = info.Started.UnixMilli()
		}
		if topics == nil {
			topics = c.s.opts.Store.Topics()
		}
		rt.Topics = partitionsByTopic(topics, info.Partitions)
		resp.TransactionStates = append(resp.TransactionStates, rt)
	}
	return resp
}

// partitionsByTopic names partitions as the protocol does.
func partitionsByTopic(topics []topiclog.Topic, ids []topiclog.PartitionID) []kmsg.DescribeTransactionsResponseTransactionStateTopic {
	want := make(map[topiclog.PartitionID]bool, len(ids))
	for _, id := range ids {
		want[id] = true
	}
	var out []kmsg.DescribeTransactionsResponseTransactionStateTopic
	for i := range topics {
		rt := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
		rt.Topic = topics[i].Name
		for _, p := range topics[i].Partitions {
			if want[p.ID] {
				rt.Partitions = append(rt.Partitions, p.Index)
			}
		}
		if len(rt.Partitions) > 0 {
			out = append(out, rt)
		}
	}
	return out
}
