package kafka

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ending is the newest transactions of a lane whose commits were answered. Whether their
// partitions know of the end is asked when the lane's producer connects to a broker, which
// may have started again and lost it, and before anything else is written there. As long as
// the connections live there is nothing to ask.
type ending struct {
	mu       sync.Mutex
	producer int64
	// rows and commit are the offsets behind their last records: in the partitions of the
	// table's topic, and in that of commits. 0: there are none.
	rows   []int64
	commit int64
	stop   context.CancelCauseFunc // of the transaction after them; nil: there is none
	hangs  *hangsError             // what was found
}

// hangsError: a transaction whose commit was answered has no end in some partition.
type hangsError struct {
	txn string
	at  []openIn
}

func (e *hangsError) Error() string {
	return fmt.Sprintf("the brokers lost the end of the last transaction of transactional id %s, which was committed (%v): it is ended again before anything else is written", e.txn, e.at)
}

// Retryable implements connector.Retryable.
func (e *hangsError) Retryable() bool { return true }

// committed notes a transaction whose commit was answered.
func (e *ending) committed(rows []kgo.Record, commit *kgo.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.commit == 0 || e.producer != commit.ProducerID {
		e.rows = e.rows[:0]
	} // else some of those before it may hang where this one has no rows
	e.producer, e.commit = commit.ProducerID, commit.Offset+1
	for i := range rows {
		r := &rows[i]
		for len(e.rows) <= int(r.Partition) {
			e.rows = append(e.rows, 0)
		}
		e.rows[r.Partition] = max(e.rows[r.Partition], r.Offset+1)
	}
}

// forget is called when no partition has it open any more.
func (e *ending) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commit, e.rows, e.hangs = 0, e.rows[:0], nil
}

// covers reports whether what is open in a partition began with one of these transactions.
func (e *ending) covers(o openIn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.commit == 0 || o.start < 0 || o.producer != e.producer:
		return false
	case o.topic == commitsTopic:
		return o.start < e.commit
	}
	return int(o.partition) < len(e.rows) && o.start < e.rows[o.partition]
}

// due is whose transactions are to be asked for, and up to which; at 0 there are none.
func (e *ending) due() (producer, at int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.producer, e.commit
}

// settled notes that those up to the one that was due at this offset are over everywhere.
func (e *ending) settled(at int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.commit == at && e.hangs == nil {
		e.commit = 0
	}
}

// found ends the transaction after them, which must not end in their partitions.
func (e *ending) found(h *hangsError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hangs = h
	if e.stop != nil {
		e.stop(h)
	}
}

// next is the context of the next transaction, which is over where something was found since
// the last one: brokers that are connected would take its rows. end gives what was found.
func (e *ending) next(ctx context.Context) (_ context.Context, end func() *hangsError) {
	ctx, stop := context.WithCancelCause(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stop = stop; e.hangs != nil {
		stop(e.hangs)
	}
	return ctx, func() *hangsError {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stop = nil
		return e.hangs
	}
}

// connection opens connections of a lane's producer. What is sent over it comes after what
// hangs was found.
func (s *sink) connection(st *laneState) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := s.told(ctx, st); err != nil {
			return nil, err
		}
		return s.dial(ctx, network, addr)
	}
}

// told looks whether the partitions have been told of the end of a lane's newest transaction.
func (s *sink) told(ctx context.Context, st *laneState) error {
	producer, at := st.ending.due()
	if at == 0 {
		return nil
	}
	// In this order: what is open after the coordinator is done with it stays so.
	if _, err := s.stateOf(ctx, st.txn); err != nil {
		return err
	}
	var hanging []openIn
	err := s.persist(ctx, millis(s.table.Options, keyAPITimeout), func(ctx context.Context) error {
		open, err := s.openOf(ctx, producer)
		hanging = nil
		for _, o := range open {
			if st.ending.covers(o) {
				hanging = append(hanging, o)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(hanging) == 0 {
		st.ending.settled(at)
		return nil
	}
	h := &hangsError{st.txn, hanging}
	st.ending.found(h)
	return h
}
