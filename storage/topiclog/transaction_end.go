package topiclog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/wal"
)

// EndTransaction commits or aborts the producer's transaction. When it returns
// without an error the outcome is durable; mostly the markers and positions are
// there, too, else they follow as soon as the disk lets them.
//
// With bump the producer gets a new epoch, so that a late request of this
// transaction cannot become part of the next one; the returned identity is the
// one to go on with.
func (s *Store) EndTransaction(ctx context.Context, id string, who ProducerIdentity, commit, bump bool) (ProducerIdentity, error) {
	if err := ctx.Err(); err != nil {
		return NoProducer, err
	}
	t, err := s.lockTransaction(id, false)
	if err != nil {
		return NoProducer, err
	}
	defer t.mu.Unlock()
	if t.state == nil {
		return NoProducer, fmt.Errorf("%w: %q", ErrTransactionUnknown, id)
	}
	again := bump && t.isRetry(who)
	if !again {
		if err := t.mayEnd(who); err != nil {
			return NoProducer, err
		}
	}
	st := t.state
	refused := fmt.Errorf("%w: %q is in state %s", ErrTransactionState, id, st.state)
	switch st.state {
	case TransactionPrepareCommit, TransactionPrepareAbort:
		if commit != (st.state == TransactionPrepareCommit) || bump && !again {
			return NoProducer, refused
		}
		return st.next, s.settle(ctx, t)
	case TransactionCompleteCommit, TransactionCompleteAbort:
		same := commit == (st.state == TransactionCompleteCommit)
		switch {
		case same && (again || !bump):
			return st.who, nil
		case again || commit || !bump:
			return NoProducer, refused
		}
	case TransactionEmpty:
		if commit || !bump {
			return NoProducer, refused
		}
	}
	if err := s.prepare(t, commit, bump); err != nil {
		return NoProducer, err
	}
	decided := t.state.next
	if err := s.settle(ctx, t); err != nil {
		s.opts.Logger.Warn("ending a transaction waits", "transaction", id, "error", err)
	}
	return decided, nil
}

// isRetry says that the producer has ended this transaction already and did not
// get the answer: its epoch has been raised since.
func (t *transaction) isRetry(who ProducerIdentity) bool {
	st := t.state
	return st.former == who && who.ID >= 0 && (st.state.prepared() || st.state >= TransactionCompleteCommit)
}

// mayEnd checks who wants to end a transaction, in whatever state.
func (t *transaction) mayEnd(who ProducerIdentity) error {
	err := t.current(who)
	if errors.Is(err, ErrTransactionBusy) {
		return nil
	}
	return err
}

// prepare decides the outcome of a transaction, durably; t.mu is held. bump gives
// the producer, and the markers, a new epoch.
func (s *Store) prepare(t *transaction, commit, bump bool) error {
	next := t.state.clone()
	if next.state != TransactionOngoing {
		next.clear()
	}
	if commit {
		// A commit that survives must find all of its records.
		if err := s.syncPartitions(next.parts); err != nil {
			return fmt.Errorf("committing transaction %q: %w", t.id, err)
		}
	}
	next.state = TransactionPrepareAbort
	if commit {
		next.state = TransactionPrepareCommit
	}
	if bump {
		next.former = next.who
		if exhausted(next.who.Epoch) {
			fresh, err := s.AllocateProducerID(context.Background())
			if err != nil {
				return err
			}
			next.who.Epoch++
			next.next = ProducerIdentity{ID: fresh}
		} else {
			next.who.Epoch++
			next.next = next.who
		}
	}
	return s.saveTransaction(t, next)
}

// syncPartitions waits until what was appended to os partitions is durable.
func (s *Store) syncPartitions(parts map[PartitionID]bool) error {
	shards := map[*shard]*partition{}
	s.mu.RLock()
	for id := range parts {
		if p := s.part(id); p != nil && p.topic.settings.Durability == OS {
			shards[p.shard] = p
		}
	}
	s.mu.RUnlock()
	errs := make(chan error, len(shards))
	for sh, p := range shards {
		// Positions of no group: their group of entries must be synced, and with
		// it all before.
		var none enc
		none.u(0)
		err := sh.enqueue(&request{part: p, kind: wal.KindCursor, batches: none.b, done: func(_ AppendResult, err error) { errs <- err }})
		if err != nil {
			errs <- err
		}
	}
	var first error
	for range shards {
		first = errors.Join(first, <-errs)
	}
	return first
}

// settle finishes a transaction whose outcome is decided: the markers, then the
// positions, then the state. Each step may be done again after a crash. t.mu is
// held.
func (s *Store) settle(ctx context.Context, t *transaction) error {
	st := t.state
	if st == nil || !st.state.prepared() {
		return nil
	}
	commit := st.state == TransactionPrepareCommit
	if err := s.writeMarkers(st, commit); err != nil {
		return fmt.Errorf("%w: writing the markers of %q: %w", ErrTransactionBusy, t.id, err)
	}
	var groups []string
	if commit {
		groups = slices.Sorted(maps.Keys(st.offsets))
	}
	// Nobody commits positions of these groups until it is written down that
	// these were: a crash in between writes them once more.
	unlock := s.lockGroups(groups)
	defer unlock()
	for _, g := range groups {
		var cursors []Cursor
		for _, p := range slices.Sorted(maps.Keys(st.offsets[g])) {
			if s.part0(p) != nil {
				cursors = append(cursors, st.offsets[g][p])
			}
		}
		if err := s.commitCursors(ctx, g, cursors); err != nil {
			return fmt.Errorf("%w: storing positions of %q: %w", ErrTransactionBusy, t.id, err)
		}
	}
	next := st.clone()
	next.clear()
	next.who = next.next
	next.state = TransactionCompleteAbort
	if commit {
		next.state = TransactionCompleteCommit
	}
	if err := s.saveTransaction(t, next); err != nil {
		return fmt.Errorf("%w: %w", ErrTransactionBusy, err)
	}
	return nil
}

// writeMarkers ends the transaction in its partitions and waits until that is
// durable. A partition without an open transaction of the producer gets no marker.
func (s *Store) writeMarkers(st *transactionState, commit bool) error {
	errs := make(chan error, len(st.parts))
	n := 0
	for id := range st.parts {
		p := s.part0(id)
		if p == nil {
			continue // deleted
		}
		n++
		s.appendMarker(p, st.who, commit, 0, func(_ AppendResult, err error) { errs <- err })
	}
	var first error
	for range n {
		err := <-errs
		switch {
		case err == nil, errors.Is(err, ErrPartitionNotFound):
		case errors.Is(err, ErrProducerEpoch), errors.Is(err, ErrCoordinatorEpoch):
			// What is open there is not of this transaction.
			s.opts.Logger.Warn("a marker was not needed", "error", err)
		case first == nil:
			first = err
		}
	}
	return first
}

// AppendMarker ends the transaction that a producer has open in one partition, as
// a coordinator of the epoch would: for tools that end what no coordinator knows.
func (s *Store) AppendMarker(ctx context.Context, id PartitionID, who ProducerIdentity, commit bool, coordinatorEpoch int32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := s.partition(id)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	s.appendMarker(p, who, commit, coordinatorEpoch, func(_ AppendResult, err error) { done <- err })
	return <-done
}

func (s *Store) appendMarker(p *partition, who ProducerIdentity, commit bool, coordinatorEpoch int32, done func(AppendResult, error)) {
	kind := record.ControlAbort
	if commit {
		kind = record.ControlCommit
	}
	now := s.nowMs()
	raw, err := record.EndTransaction(kind, who.ID, who.Epoch, coordinatorEpoch, now)
	if err == nil {
		// Never os: what a marker decides must not come undone.
		err = p.shard.enqueue(&request{part: p, kind: wal.KindBatch, batches: raw, records: 1, maxTs: now, producers: true,
			marker: true, coordinatorEpoch: coordinatorEpoch, done: done})
	}
	if err != nil {
		done(AppendResult{}, err)
	}
}

// finishTransactions ends, at opening, the transactions whose outcome was decided.
func (s *Store) finishTransactions() {
	s.txns.mu.Lock()
	all := slices.Collect(maps.Values(s.txns.byID))
	s.txns.mu.Unlock()
	for _, t := range all {
		t.mu.Lock()
		if err := s.settle(context.Background(), t); err != nil {
			s.opts.Logger.Warn("ending a transaction waits", "transaction", t.id, "error", err)
		}
		t.mu.Unlock()
	}
}

// runTransactions ends what has waited too long.
func (s *Store) runTransactions() {
	defer s.workers.Done()
	t := time.NewTicker(s.opts.TransactionInterval)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.ExpireTransactions()
		}
	}
}

// ExpireTransactions aborts transactions that are open for longer than their
// timeout, and fences their producers; goes on with those whose end could not be
// written; and forgets transactional ids that were not used for
// Options.TransactionalIDExpiration. It returns how many it aborted. The store does
// so by itself every TransactionInterval.
func (s *Store) ExpireTransactions() int {
	s.txns.mu.Lock()
	all := slices.Collect(maps.Values(s.txns.byID))
	s.txns.mu.Unlock()
	n := 0
	for _, t := range all {
		if s.closed.Load() {
			break
		}
		if aborted, err := s.expireTransaction(t); err != nil {
			s.opts.Logger.Warn("ending a transaction failed", "transaction", t.id, "error", err)
		} else if aborted {
			n++
		}
	}
	return n
}

func (s *Store) expireTransaction(t *transaction) (aborted bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.state
	if st == nil {
		// Its first state could not be saved.
		s.txns.mu.Lock()
		delete(s.txns.byID, t.id)
		s.txns.mu.Unlock()
		return false, nil
	}
	now := s.nowMs()
	switch {
	case st.state.prepared():
		return false, s.settle(context.Background(), t)
	case st.state == TransactionOngoing && now-st.startMs >= st.timeoutMs:
		s.opts.Logger.Warn("transaction aborted after its timeout", "transaction", t.id, "producer", st.who.ID, "timeoutMs", st.timeoutMs)
		if err := s.prepare(t, false, true); err != nil {
			return false, err
		}
		// Its producer is not to learn its new epoch by asking again.
		return true, s.settle(context.Background(), t)
	case st.state != TransactionOngoing && now-st.updateMs >= s.opts.TransactionalIDExpiration.Milliseconds():
		return false, s.meta.commit(func() {
			s.txns.mu.Lock()
			t.state = nil
			delete(s.txns.byID, t.id)
			s.txns.mu.Unlock()
		}, transactionGoneEdit(t.id))
	}
	return false, nil
}
