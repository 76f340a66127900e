package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/runtime/connector"
)

// sinkError is a failure of the sink with what to do about it.
type sinkError struct {
	err   error
	hint  string
	again bool
}

func (e *sinkError) Error() string {
	if e.hint == "" {
		return e.err.Error()
	}
	return e.err.Error() + "; " + e.hint
}

// Unwrap returns the cause.
func (e *sinkError) Unwrap() error { return e.err }

// Retryable implements connector.Retryable.
func (e *sinkError) Retryable() bool { return e.again }

func is(err error, any ...*kerr.Error) bool {
	for _, x := range any {
		if errors.Is(err, x) {
			return true
		}
	}
	return false
}

// outrun reports that another producer has taken a transactional id over, or that
// the broker has ended a transaction that took too long.
func outrun(err error) bool {
	return is(err, kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping, kerr.InvalidTxnState, kerr.UnknownProducerID,
		kerr.TransactionAbortable)
}

// tooLarge reports that a record is above a limit.
func tooLarge(err error) bool { return is(err, kerr.MessageTooLarge, kerr.RecordListTooLarge) }

// sinkFailed says what an error of the cluster means.
func sinkFailed(err error) *sinkError {
	var e *Error
	out := &sinkError{err: err, again: true}
	if errors.As(err, &e) {
		out.again = e.Retryable()
	}
	switch {
	case is(err, kerr.InvalidTransactionTimeout):
		out.hint = "lower 'properties.transaction.timeout.ms' to the brokers' transaction.max.timeout.ms"
	case is(err, kerr.InvalidReplicationFactor):
		out.hint = "create topic " + commitsTopic + " by hand"
	case outrun(err):
		out.again = true
		out.hint = "the broker has ended the transaction, after 'properties.transaction.timeout.ms' or because another producer has the same transactional id; it is looked whether the rows are there"
	case is(err, kerr.OperationNotAttempted, kerr.ConcurrentTransactions):
		out.again = true
	case tooLarge(err):
		out.again = true
		out.hint = "the topic's max.message.bytes has become smaller; the rows are written again"
	}
	return out
}

// refused says that an artefact is not visible and will not be.
func refused(err error) error { return errors.Join(err, connector.ErrRefused) }

// replacedError: the table's topic is another one than that which the job opened.
type replacedError struct{ topic string }

func (e *replacedError) Error() string {
	return fmt.Sprintf("topic %s was deleted and created again while the job wrote to it: what the job had written is gone with it; start the job again to write on to the new topic", e.topic)
}

// Retryable implements connector.Retryable.
func (e *replacedError) Retryable() bool { return false }

// same checks that the table's topic is still the one that was opened, and gives
// the number of its partitions.
func (s *sink) same(ctx context.Context) (partitions int, err error) {
	d, err := describeTopic(ctx, s.conn, s.topic, deletedAfter)
	if err != nil {
		return 0, sinkFailed(err)
	}
	if d.id != s.id {
		return 0, &replacedError{s.topic}
	}
	return len(d.partitions), nil
}
