package kafkaproto

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
)

func guardInitProducerID(c *call, req *kmsg.InitProducerIDRequest, serve func() *kmsg.InitProducerIDResponse) *kmsg.InitProducerIDResponse {
	code := codeNone
	switch {
	case req.TransactionalID != nil:
		if !c.onTransaction(acl.Write, *req.TransactionalID) {
			code = codeTransactionDenied
		}
	case !c.mayWriteAny() && !c.onCluster(acl.IdempotentWrite):
		code = codeClusterDenied
	}
	if code == codeNone {
		return serve()
	}
	resp := fresh[*kmsg.InitProducerIDResponse](req)
	resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = code, -1, -1
	return resp
}

// mayWriteAny: who may write to some topic may do so idempotently.
func (c *call) mayWriteAny() bool {
	if c.peer.trusted {
		return true
	}
	rules := c.s.opts.Security.Access.Rules()
	return c.s.opts.Security.AllowUnruled && !rules.RuledAll(acl.Topic) || rules.AllowedAny(c.peer.principal, c.peer.host, acl.Write, acl.Topic)
}

// mayUseTransaction asks for a Produce with a transactional id, nil for none.
func (c *call) mayUseTransaction(id []byte) bool {
	return id == nil || c.onTransaction(acl.Write, string(id))
}

// guardAddPartitionsToTxn adds all or nothing: beside a topic that is denied the
// others get code 55 (operation not attempted). The batched form, from version 4
// on, is for brokers.
func guardAddPartitionsToTxn(c *call, req *kmsg.AddPartitionsToTxnRequest, serve func() *kmsg.AddPartitionsToTxnResponse) *kmsg.AddPartitionsToTxnResponse {
	resp := fresh[*kmsg.AddPartitionsToTxnResponse](req)
	if c.version >= 4 {
		if c.onCluster(acl.ClusterAction) {
			return serve()
		}
		resp.ErrorCode = codeClusterDenied
		return resp
	}
	mayUse := c.onTransaction(acl.Write, req.TransactionalID)
	codes := make([]int16, len(req.Topics))
	bad := !mayUse
	for i, t := range req.Topics {
		switch {
		case !mayUse:
			codes[i] = codeTransactionDenied
		case !c.onTopic(acl.Write, t.Topic):
			codes[i], bad = codeTopicDenied, true
		default:
			codes[i] = codeNotAttempted
		}
	}
	if !bad {
		return serve()
	}
	for i, t := range req.Topics {
		rt := kmsg.NewAddPartitionsToTxnResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p, codes[i]
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardAddOffsetsToTxn(c *call, req *kmsg.AddOffsetsToTxnRequest, serve func() *kmsg.AddOffsetsToTxnResponse) *kmsg.AddOffsetsToTxnResponse {
	resp := fresh[*kmsg.AddOffsetsToTxnResponse](req)
	switch {
	case !c.onTransaction(acl.Write, req.TransactionalID):
		resp.ErrorCode = codeTransactionDenied
	case !c.onGroup(acl.Read, req.Group):
		resp.ErrorCode = codeGroupDenied
	default:
		return serve()
	}
	return resp
}

func guardEndTxn(c *call, req *kmsg.EndTxnRequest, serve func() *kmsg.EndTxnResponse) *kmsg.EndTxnResponse {
	if c.onTransaction(acl.Write, req.TransactionalID) {
		return serve()
	}
	resp := fresh[*kmsg.EndTxnResponse](req)
	resp.ErrorCode = codeTransactionDenied
	return resp
}

func guardWriteTxnMarkers(c *call, req *kmsg.WriteTxnMarkersRequest, serve func() *kmsg.WriteTxnMarkersResponse) *kmsg.WriteTxnMarkersResponse {
	if c.allowedQuietly(acl.Alter, acl.Cluster, acl.ClusterName) || c.onCluster(acl.ClusterAction) {
		return serve()
	}
	resp := fresh[*kmsg.WriteTxnMarkersResponse](req)
	for _, m := range req.Markers {
		rm := kmsg.NewWriteTxnMarkersResponseMarker()
		rm.ProducerID = m.ProducerID
		for _, t := range m.Topics {
			rt := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
				rp.Partition, rp.ErrorCode = p, codeClusterDenied
				rt.Partitions = append(rt.Partitions, rp)
			}
			rm.Topics = append(rm.Topics, rt)
		}
		resp.Markers = append(resp.Markers, rm)
	}
	return resp
}

func guardTxnOffsetCommit(c *call, req *kmsg.TxnOffsetCommitRequest, serve func() *kmsg.TxnOffsetCommitResponse) *kmsg.TxnOffsetCommitResponse {
	code, denied := codeTopicDenied, req.Topics
	resp := fresh[*kmsg.TxnOffsetCommitResponse](req)
	switch {
	case !c.onTransaction(acl.Write, req.TransactionalID):
		code = codeTransactionDenied
	case !c.onGroup(acl.Read, req.Group):
		code = codeGroupDenied
	default:
		req.Topics, denied = split(req.Topics, func(t *kmsg.TxnOffsetCommitRequestTopic) bool {
			return c.onTopic(acl.Read, t.Topic)
		})
		resp = serve()
	}
	for _, t := range denied {
		rt := kmsg.NewTxnOffsetCommitResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func guardDescribeTransactions(c *call, req *kmsg.DescribeTransactionsRequest, serve func() *kmsg.DescribeTransactionsResponse) *kmsg.DescribeTransactionsResponse {
	var denied []string
	req.TransactionalIDs, denied = split(req.TransactionalIDs, func(id *string) bool { return c.onTransaction(acl.Describe, *id) })
	resp := serve()
	for i := range resp.TransactionStates {
		s := &resp.TransactionStates[i]
		s.Topics = slices.DeleteFunc(s.Topics, func(t kmsg.DescribeTransactionsResponseTransactionStateTopic) bool {
			return !c.allowedQuietly(acl.Describe, acl.Topic, t.Topic)
		})
	}
	for _, id := range denied {
		s := kmsg.NewDescribeTransactionsResponseTransactionState()
		s.TransactionalID, s.ErrorCode = id, codeTransactionDenied
		resp.TransactionStates = append(resp.TransactionStates, s)
	}
	return resp
}

func guardListTransactions(c *call, _ *kmsg.ListTransactionsRequest, serve func() *kmsg.ListTransactionsResponse) *kmsg.ListTransactionsResponse {
	resp := serve()
	resp.TransactionStates = slices.DeleteFunc(resp.TransactionStates, func(s kmsg.ListTransactionsResponseTransactionState) bool {
		return !c.allowedQuietly(acl.Describe, acl.TransactionalID, s.TransactionalID)
	})
	return resp
}
