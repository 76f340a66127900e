package kafkaproto

// EndTxn (26), versions 0 to 5: commits or aborts a producer's transaction.
//
//   - The answer comes when the outcome is durable, and mostly also the markers in
//     the partitions and the positions of groups. Asking again for the same outcome
//     is answered like the first time; for another one with error 48.
//   - 3 is flexible. From 5 (KIP-890) the producer gets a new epoch, so that nothing
//     late of this transaction gets into the next; and an abort without a
//     transaction is allowed, which raises the epoch only.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func serveEndTxn(c *call, req *kmsg.EndTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.EndTxnResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	who, err := c.s.opts.Store.EndTransaction(context.Background(), req.TransactionalID, identity(req.ProducerID, req.ProducerEpoch),
		req.Commit, c.version >= versionEndTxnBumps)
	if resp.ErrorCode = transactionCode(err, c.version >= 2); err == nil {
		resp.ProducerID, resp.ProducerEpoch = who.ID, who.Epoch
	}
	return resp
}
