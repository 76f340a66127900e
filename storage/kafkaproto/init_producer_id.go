package kafkaproto

// InitProducerId (22), versions 0 to 5: gives a producer its id and epoch.
//
//   - An idempotent producer gets an id that was never given before, also not
//     before a crash, with epoch 0. What it says of a former id (version 3) does not
//     matter: it raises its epoch by itself.
//   - A transactional id keeps its producer id and gets the next epoch. Whoever had
//     it is fenced: its open transaction is aborted, its requests fail from then on.
//     One that says who it was (version 3) is refused (error 90, before 4: 47) if
//     another has taken the id since. While the last transaction cannot be ended,
//     the answer is error 51. A timeout of 0 or beyond the bound is error 50.
//   - 2 is flexible, 4 and 5 add error codes.

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func serveInitProducerID(c *call, req *kmsg.InitProducerIDRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		who, err := c.s.opts.Store.InitTransaction(context.Background(), *req.TransactionalID,
			time.Duration(req.TransactionTimeoutMillis)*time.Millisecond, identity(req.ProducerID, req.ProducerEpoch))
		if resp.ErrorCode = transactionCode(err, c.version >= 4); err == nil {
			resp.ProducerID, resp.ProducerEpoch = who.ID, who.Epoch
		}
		return resp
	}
	id, err := c.s.opts.Store.AllocateProducerID(context.Background())
	if err != nil {
		c.s.opts.Logger.Error("allocating a producer id failed", "error", err)
		resp.ErrorCode = codeCoordinatorNotAvailable
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp
}
