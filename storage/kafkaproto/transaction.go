package kafkaproto

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// Error codes of transactions.
const (
	codeNotEnoughReplicas       int16 = 19
	codeUnknownProducerMapping  int16 = 49
	codeInvalidTxnTimeout       int16 = 50
	codeConcurrentTransactions  int16 = 51
	codeCoordinatorFenced       int16 = 52
	codeOperationNotAttempted   int16 = 55
	codeUnstableOffsetCommit    int16 = 88
	codeProducerFenced          int16 = 90
	codeTransactionalIDNotFound int16 = 105
	codeTransactionAbortable    int16 = 120
)

// Versions from which a producer adds partitions and groups to its transaction by
// using them (KIP-890), and gets a new epoch with each end.
const (
	versionProduceJoins      = 12
	versionOffsetCommitJoins = 5
	versionEndTxnBumps       = 5
)

// transactionCode maps an error of a request to the coordinator. fenced says that
// the request's version knows error 90 (producer fenced); older ones know 47
// (invalid producer epoch).
func transactionCode(err error, fenced bool) int16 {
	switch {
	case err == nil:
		return codeNone
	case errors.Is(err, topiclog.ErrInvalidTransaction):
		return codeInvalidRequest
	case errors.Is(err, topiclog.ErrTransactionUnknown):
		return codeUnknownProducerMapping
	case errors.Is(err, topiclog.ErrProducerFenced) && fenced:
		return codeProducerFenced
	case errors.Is(err, topiclog.ErrProducerFenced):
		return codeInvalidProducerEpoch
	case errors.Is(err, topiclog.ErrTransactionBusy):
		return codeConcurrentTransactions
	case errors.Is(err, topiclog.ErrTooManyTransactions):
		return codeCoordinatorNotAvailable
	case errors.Is(err, topiclog.ErrTransactionTimeout):
		return codeInvalidTxnTimeout
	}
	return commitCode(err)
}

// produceCode maps an error of an append of a producer.
func produceCode(err error, version int16) int16 {
	switch {
	case errors.Is(err, topiclog.ErrNotInTransaction) && version >= 11:
		return codeTransactionAbortable
	case errors.Is(err, topiclog.ErrNotInTransaction):
		return codeInvalidTxnState
	case errors.Is(err, topiclog.ErrTransactionUnknown):
		return codeUnknownProducerMapping
	case errors.Is(err, topiclog.ErrProducerFenced):
		return codeInvalidProducerEpoch
	case errors.Is(err, topiclog.ErrTransactionBusy) && version < versionProduceJoins:
		// Older clients do not know better what to try again on.
		return codeNotEnoughReplicas
	case errors.Is(err, topiclog.ErrTransactionBusy):
		return codeConcurrentTransactions
	}
	return codeOf(err)
}

func identity(id int64, epoch int16) topiclog.ProducerIdentity {
	return topiclog.ProducerIdentity{ID: id, Epoch: epoch}
}

// stableOffsets holds back the positions that transactions under way may change, if
// the client asks for stable ones.
func (c *call) stableOffsets(stable bool, out kmsg.OffsetFetchResponseGroup) kmsg.OffsetFetchResponseGroup {
	if !stable {
		return out
	}
	pending := c.s.opts.Store.PendingCursors(out.Group)
	if len(pending) == 0 {
		return out
	}
	for i := range out.Topics {
		t := &out.Topics[i]
		ref := topicRef{name: t.Topic, id: t.TopicID, byID: t.Topic == ""}
		topic, _ := ref.find(c.s.opts.Store)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if id, ok := partitionOf(&topic, p.Partition); ok && pending[id] {
				p.ErrorCode, p.Offset, p.LeaderEpoch = codeUnstableOffsetCommit, -1, -1
			}
		}
	}
	return out
}
