package topiclog

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/storage/manifest"
)

// Errors of transactions that callers branch on.
var (
	// ErrTransactionUnknown says that no producer has the transactional id, or
	// another one than claimed.
	ErrTransactionUnknown = errors.New("no such transactional producer")
	// ErrProducerFenced says that a newer producer has taken the transactional id.
	ErrProducerFenced = errors.New("producer was fenced by a newer one")
	// ErrTransactionBusy says that an earlier transaction of the producer is being
	// ended; it may be tried again.
	ErrTransactionBusy = errors.New("the last transaction is still being ended")
	// ErrTransactionTimeout says that a transaction timeout is not allowed.
	ErrTransactionTimeout = errors.New("transaction timeout out of range")
	// ErrTooManyTransactions says that no more transactional ids are taken until
	// some are forgotten.
	ErrTooManyTransactions = errors.New("too many transactional ids")
	// ErrNotInTransaction says that a partition was not added to the transaction:
	// the producer must abort it.
	ErrNotInTransaction = errors.New("partition is not in the transaction")
)

// TransactionState is where a producer's transaction is in its life.
type TransactionState uint8

// The states. From a prepared state on, the outcome is decided.
const (
	TransactionEmpty TransactionState = iota
	TransactionOngoing
	TransactionPrepareCommit
	TransactionPrepareAbort
	TransactionCompleteCommit
	TransactionCompleteAbort
)

// String is the name that Kafka's tools show.
func (s TransactionState) String() string {
	names := []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("TransactionState(%d)", uint8(s))
}

func (s TransactionState) prepared() bool {
	return s == TransactionPrepareCommit || s == TransactionPrepareAbort
}

// ProducerIdentity is a producer's id and epoch.
type ProducerIdentity struct {
	ID    int64
	Epoch int16
}

// NoProducer is the identity of nobody.
var NoProducer = ProducerIdentity{-1, -1}

// exhausted says that an epoch is the last that a producer is given: one more is
// kept for the marker that fences it.
func exhausted(epoch int16) bool { return epoch >= math.MaxInt16-1 }

// transaction is a transactional producer. mu is held for a whole operation on it,
// also while it waits for the disk and while it hands batches to the shards: so
// every batch of a transaction is queued before the markers that end it.
type transaction struct {
	id string
	mu sync.Mutex
	// state is what the manifest says, nil before anything is. It is never
	// changed, only replaced: with transactions.mu held, by the committer.
	state *transactionState
}

// transactionState is all that is durable of a transactional producer.
type transactionState struct {
	// who is the producer. While a transaction is prepared, markers carry it, and
	// next is the producer after them.
	who, next ProducerIdentity
	// former is who the producer was before its last change of epoch or id, if it
	// may ask for that change again.
	former ProducerIdentity
	state  TransactionState
	// timeoutMs is how long a transaction may take.
	timeoutMs int64
	startMs   int64 // of the open transaction, 0 without one
	updateMs  int64
	parts     map[PartitionID]bool
	groups    map[string]bool
	offsets   map[string]map[PartitionID]Cursor // by group, visible after a commit
}

// clone copies the state for a change.
func (st *transactionState) clone() *transactionState {
	c := *st
	c.parts, c.groups = maps.Clone(st.parts), maps.Clone(st.groups)
	c.offsets = map[string]map[PartitionID]Cursor{}
	for g, m := range st.offsets {
		c.offsets[g] = maps.Clone(m)
	}
	if c.parts == nil {
		c.parts = map[PartitionID]bool{}
	}
	if c.groups == nil {
		c.groups = map[string]bool{}
	}
	return &c
}

// clear forgets the transaction that has ended.
func (st *transactionState) clear() {
	st.parts, st.groups, st.offsets, st.startMs = nil, nil, nil, 0
}

// transactions are the transactional producers of a store.
type transactions struct {
	mu   sync.Mutex
	byID map[string]*transaction
}

// lockTransaction finds a transactional producer, or makes room for a new one, and
// locks it.
func (s *Store) lockTransaction(id string, create bool) (*transaction, error) {
	switch {
	case s.closed.Load():
		return nil, ErrClosed
	case id == "" || len(id) > maxTransactionalID:
		return nil, fmt.Errorf("%w: a transactional id has 1 to %d bytes, not %d", ErrInvalidTransaction, maxTransactionalID, len(id))
	}
	for {
		s.txns.mu.Lock()
		t := s.txns.byID[id]
		if t == nil && create && len(s.txns.byID) >= s.opts.MaxTransactionalIDs {
			s.txns.mu.Unlock()
			return nil, fmt.Errorf("%w: %d", ErrTooManyTransactions, s.opts.MaxTransactionalIDs)
		}
		if t == nil && create {
			t = &transaction{id: id}
			s.txns.byID[id] = t
		}
		s.txns.mu.Unlock()
		if t == nil {
			return nil, fmt.Errorf("%w: %q", ErrTransactionUnknown, id)
		}
		t.mu.Lock()
		s.txns.mu.Lock()
		same := s.txns.byID[id] == t
		s.txns.mu.Unlock()
		if same {
			return t, nil
		}
		t.mu.Unlock() // it was forgotten while it was waited for
	}
}

// maxTransactionalID bounds a transactional id, in bytes.
const maxTransactionalID = 1 << 10

// ErrInvalidTransaction says that a request about a transaction makes no sense.
var ErrInvalidTransaction = errors.New("invalid transactional request")

// maxTransactionBytes bounds what is written down of one transaction: partitions,
// groups and positions.
const maxTransactionBytes = 8 << 20

// saveTransaction makes a new state of a transaction durable. t.mu is held.
func (s *Store) saveTransaction(t *transaction, next *transactionState) error {
	next.updateMs = s.nowMs()
	edit := transactionEdit(t.id, next)
	if n := len(edit.Payload); n > maxTransactionBytes {
		return fmt.Errorf("%w: transaction %q takes %d bytes with its partitions and positions, at most %d", ErrInvalidTransaction, t.id, n, maxTransactionBytes)
	}
	err := s.meta.commit(func() {
		s.txns.mu.Lock()
		t.state = next
		s.txns.mu.Unlock()
	}, edit)
	if err != nil {
		return fmt.Errorf("saving transaction %q: %w", t.id, err)
	}
	return nil
}

// current checks that a producer is the one with the transactional id now.
func (t *transaction) current(who ProducerIdentity) error {
	switch st := t.state; {
	case st == nil || st.who.ID != who.ID:
		return fmt.Errorf("%w: %q is not producer %d", ErrTransactionUnknown, t.id, who.ID)
	case st.who.Epoch != who.Epoch:
		return fmt.Errorf("%w: %q has epoch %d, not %d", ErrProducerFenced, t.id, st.who.Epoch, who.Epoch)
	case st.state.prepared():
		return fmt.Errorf("%w: %q", ErrTransactionBusy, t.id)
	}
	return nil
}

func transactionEdit(id string, st *transactionState) manifest.Edit {
	var e enc
	e.s(id)
	for _, who := range []ProducerIdentity{st.who, st.next, st.former} {
		e.i(who.ID)
		e.i(int64(who.Epoch))
	}
	e.u(uint64(st.state))
	e.i(st.timeoutMs)
	e.i(st.startMs)
	e.i(st.updateMs)
	e.u(uint64(len(st.parts)))
	for _, p := range slices.Sorted(maps.Keys(st.parts)) {
		e.u(uint64(p))
	}
	e.u(uint64(len(st.groups)))
	for _, g := range slices.Sorted(maps.Keys(st.groups)) {
		e.s(g)
	}
	n := 0
	for _, m := range st.offsets {
		n += len(m)
	}
	e.u(uint64(n))
	for _, g := range slices.Sorted(maps.Keys(st.offsets)) {
		for _, p := range slices.Sorted(maps.Keys(st.offsets[g])) {
			c := st.offsets[g][p]
			encodeCursor(&e, g, &c)
		}
	}
	return e.edit(editTransaction)
}

func decodeTransaction(d *dec) (id string, st *transactionState) {
	id = d.s()
	st = &transactionState{}
	for _, who := range []*ProducerIdentity{&st.who, &st.next, &st.former} {
		*who = ProducerIdentity{ID: d.i(), Epoch: int16(d.i())}
	}
	st.state = TransactionState(d.u())
	if st.state > TransactionCompleteAbort {
		d.fail("the state of a transaction")
	}
	st.timeoutMs, st.startMs, st.updateMs = d.i(), d.i(), d.i()
	st = st.clone()
	for range d.count() {
		st.parts[PartitionID(d.u())] = true
	}
	for range d.count() {
		st.groups[d.s()] = true
	}
	for range d.count() {
		g, c := decodeCursor(d)
		if st.offsets[g] == nil {
			st.offsets[g] = map[PartitionID]Cursor{}
		}
		st.offsets[g][c.Partition] = c
	}
	return id, st
}

func transactionGoneEdit(id string) manifest.Edit {
	var e enc
	e.s(id)
	return e.edit(editTransactionGone)
}

// dumpTransactions appends the transactions for a rewrite of the manifest.
func (s *Store) dumpTransactions(all *[]manifest.Edit) {
	s.txns.mu.Lock()
	defer s.txns.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.txns.byID)) {
		if st := s.txns.byID[id].state; st != nil {
			*all = append(*all, transactionEdit(id, st))
		}
	}
}

// TransactionInfo describes a transactional producer.
type TransactionInfo struct {
	ID       string
	Producer ProducerIdentity
	State    TransactionState
	Timeout  time.Duration
	// Started is when the open transaction began; zero without one.
	Started time.Time
	// Partitions and Groups are in the open transaction.
	Partitions []PartitionID
	Groups     []string
}

func (t *transaction) info() TransactionInfo {
	st := t.state
	return TransactionInfo{ID: t.id, Producer: st.who, State: st.state, Timeout: time.Duration(st.timeoutMs) * time.Millisecond,
		Started: timeOf(st.startMs), Partitions: slices.Sorted(maps.Keys(st.parts)), Groups: slices.Sorted(maps.Keys(st.groups))}
}

// Transactions describes all transactional producers, by their ids.
func (s *Store) Transactions() []TransactionInfo {
	s.txns.mu.Lock()
	defer s.txns.mu.Unlock()
	var out []TransactionInfo
	for _, id := range slices.Sorted(maps.Keys(s.txns.byID)) {
		if t := s.txns.byID[id]; t.state != nil {
			out = append(out, t.info())
		}
	}
	return out
}

// Transaction describes one transactional producer.
func (s *Store) Transaction(id string) (TransactionInfo, error) {
	s.txns.mu.Lock()
	defer s.txns.mu.Unlock()
	if t := s.txns.byID[id]; t != nil && t.state != nil {
		return t.info(), nil
	}
	return TransactionInfo{}, fmt.Errorf("%w: %q", ErrTransactionUnknown, id)
}
