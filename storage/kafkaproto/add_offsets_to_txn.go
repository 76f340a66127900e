package kafkaproto

// AddOffsetsToTxn (25), versions 0 to 4: says that a producer's transaction will
// commit positions of a group. The errors are those of AddPartitionsToTxn.
//
//   - 3 is flexible, 4 adds an error code.
//   - Producers that speak TxnOffsetCommit version 5 do without.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func serveAddOffsetsToTxn(c *call, req *kmsg.AddOffsetsToTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	if req.Group == "" || len(req.Group) > maxGroupName {
		resp.ErrorCode = codeInvalidGroupID
		return resp
	}
	resp.ErrorCode = transactionCode(c.s.opts.Store.AddGroupToTransaction(context.Background(), req.TransactionalID,
		identity(req.ProducerID, req.ProducerEpoch), req.Group), c.version >= 2)
	return resp
}
