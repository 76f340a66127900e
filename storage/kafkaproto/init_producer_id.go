package kafkaproto

// InitProducerId (22), versions 0 to 5: gives a producer its id and epoch.
//
//   - An idempotent producer gets an id that was never given before, also not
//     before a crash, with epoch 0. What it says of a former id (version 3) does not
//     matter: it raises its epoch by itself.
//   - Transactional ids are refused by name (error 42).
//   - 2 is flexible, 3 tells the former id and epoch, 4 and 5 add error codes.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func serveInitProducerID(c *call, req *kmsg.InitProducerIDRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		c.s.opts.Logger.Warn("a producer was refused", "error", notYet("transactions"))
		resp.ErrorCode = codeInvalidRequest
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
