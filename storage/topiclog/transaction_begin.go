package topiclog

import (
	"context"
	"fmt"
	"time"
)

// InitTransaction gives a transactional producer its id and epoch, and fences the
// one that had them: its open transaction is aborted, and its later requests fail.
// timeout is how long each transaction may take. was is who the producer was, for
// one that goes on with a new epoch; NoProducer for one that starts.
//
// It fails with ErrTransactionBusy while the last transaction cannot be ended, and
// with ErrProducerFenced when another producer has taken the id.
func (s *Store) InitTransaction(ctx context.Context, id string, timeout time.Duration, was ProducerIdentity) (ProducerIdentity, error) {
	if err := ctx.Err(); err != nil {
		return NoProducer, err
	}
	if timeout < time.Millisecond || timeout > s.opts.MaxTransactionTimeout {
		return NoProducer, fmt.Errorf("%w: %s, at most %s", ErrTransactionTimeout, timeout, s.opts.MaxTransactionTimeout)
	}
	t, err := s.lockTransaction(id, true)
	if err != nil {
		return NoProducer, err
	}
	defer t.mu.Unlock()
	if t.state == nil {
		return s.newTransactional(ctx, t, timeout)
	}
	if err := s.settle(ctx, t); err != nil {
		return NoProducer, err
	}
	st := t.state
	known := was.ID == st.who.ID || was.ID == st.former.ID && exhausted(was.Epoch)
	if was.ID >= 0 && !known {
		return NoProducer, fmt.Errorf("%w: %q is not producer %d any more", ErrProducerFenced, id, was.ID)
	}
	if st.state == TransactionOngoing {
		if was.ID >= 0 && was != st.who {
			return NoProducer, fmt.Errorf("%w: %q has epoch %d, not %d", ErrProducerFenced, id, st.who.Epoch, was.Epoch)
		}
		if err := s.prepare(t, false, true); err != nil {
			return NoProducer, err
		}
		if err := s.settle(ctx, t); err != nil {
			return NoProducer, err
		}
		// For one that goes on, asking again after a lost answer gives the same epoch.
		st = t.state
	}
	next := st.clone()
	next.timeoutMs = timeout.Milliseconds()
	switch {
	case was.ID >= 0 && was == st.former:
		// It has asked before and did not get the answer.
	case was.ID >= 0 && was != st.who:
		return NoProducer, fmt.Errorf("%w: %q has epoch %d, not %d", ErrProducerFenced, id, st.who.Epoch, was.Epoch)
	case exhausted(st.who.Epoch):
		fresh, err := s.AllocateProducerID(ctx)
		if err != nil {
			return NoProducer, err
		}
		next.who, next.former = ProducerIdentity{fresh, 0}, was
	default:
		next.who, next.former = ProducerIdentity{st.who.ID, st.who.Epoch + 1}, was
	}
	next.next, next.state = next.who, TransactionEmpty
	next.clear()
	if err := s.saveTransaction(t, next); err != nil {
		return NoProducer, err
	}
	return next.who, nil
}

// newTransactional begins with a transactional id; t.mu is held.
func (s *Store) newTransactional(ctx context.Context, t *transaction, timeout time.Duration) (ProducerIdentity, error) {
	fresh, err := s.AllocateProducerID(ctx)
	if err != nil {
		return NoProducer, err
	}
	who := ProducerIdentity{ID: fresh}
	st := &transactionState{who: who, next: who, former: NoProducer, timeoutMs: timeout.Milliseconds()}
	return who, s.saveTransaction(t, st)
}

// AddToTransaction adds partitions to the producer's transaction, which begins if
// none is open.
func (s *Store) AddToTransaction(ctx context.Context, id string, who ProducerIdentity, parts []PartitionID) error {
	return s.extend(ctx, id, who, func(st *transactionState) bool {
		changed := false
		for _, p := range parts {
			changed = changed || !st.parts[p]
			st.parts[p] = true
		}
		return changed
	})
}

// AddGroupToTransaction says that the transaction will commit positions of a
// group.
func (s *Store) AddGroupToTransaction(ctx context.Context, id string, who ProducerIdentity, group string) error {
	return s.extend(ctx, id, who, func(st *transactionState) bool {
		changed := !st.groups[group]
		st.groups[group] = true
		return changed
	})
}

// extend changes the open transaction, or a new one. change reports whether there
// is anything to save.
func (s *Store) extend(ctx context.Context, id string, who ProducerIdentity, change func(*transactionState) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := s.lockTransaction(id, false)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	return s.extendLocked(t, who, change)
}

func (s *Store) extendLocked(t *transaction, who ProducerIdentity, change func(*transactionState) bool) error {
	if err := t.current(who); err != nil {
		return err
	}
	next := t.state.clone()
	if t.state.state != TransactionOngoing {
		next.clear()
		next = next.clone()
	}
	changed := change(next)
	if t.state.state == TransactionOngoing && !changed {
		return nil
	}
	if t.state.state != TransactionOngoing {
		next.state, next.startMs = TransactionOngoing, s.nowMs()
	}
	// From here on nobody asks again for what made the producer what it is.
	next.former = NoProducer
	return s.saveTransaction(t, next)
}

// CommitCursorsInTransaction stores positions of a group that become visible when
// the transaction is committed. With join the group is added to the transaction;
// without it must have been.
func (s *Store) CommitCursorsInTransaction(ctx context.Context, id string, who ProducerIdentity, group string, cursors []Cursor, join bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.checkCursors(group, cursors); err != nil {
		return err
	}
	t, err := s.lockTransaction(id, false)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	if err := t.current(who); err != nil {
		return err
	}
	if st := t.state; !join && (st.state != TransactionOngoing || !st.groups[group]) {
		return fmt.Errorf("%w: group %s was not added to the transaction of %q", ErrTransactionState, group, id)
	}
	return s.extendLocked(t, who, func(st *transactionState) bool {
		st.groups[group] = true
		m := st.offsets[group]
		if m == nil {
			m = map[PartitionID]Cursor{}
			st.offsets[group] = m
		}
		for _, c := range cursors {
			m[c.Partition] = c
		}
		return true
	})
}

// PendingCursors says for which partitions transactions hold positions of a group
// that are not decided yet.
func (s *Store) PendingCursors(group string) map[PartitionID]bool {
	s.txns.mu.Lock()
	defer s.txns.mu.Unlock()
	var out map[PartitionID]bool
	for _, t := range s.txns.byID {
		if t.state == nil {
			continue
		}
		for p := range t.state.offsets[group] {
			if out == nil {
				out = map[PartitionID]bool{}
			}
			out[p] = true
		}
	}
	return out
}

// appendInTransaction queues an append of a transactional producer if its
// transaction has the partition. The transaction is locked until the batches are
// queued, so that no marker gets before them.
func (s *Store) appendInTransaction(id string, r *request) error {
	t, err := s.lockTransaction(id, false)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	if err := t.current(ProducerIdentity{r.head.ProducerID, r.head.ProducerEpoch}); err != nil {
		return err
	}
	if t.state.state != TransactionOngoing || !t.state.parts[r.part.id] {
		return fmt.Errorf("%w: topic %s partition %d, %q", ErrNotInTransaction, r.part.topic.name, r.part.index, id)
	}
	return r.part.shard.enqueue(r)
}
