package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
)

// Ledger is the facts of every job in a store.
type Ledger struct {
	store Store

	mu    sync.Mutex
	books map[Scope]*Book

	// Appends queue here; the first in line writes for all.
	queueMu sync.Mutex
	queue   []*pending
	writing bool
	broken  error
}

type pending struct {
	book  *Book
	facts []Fact
	drop  [][]byte
	// make gives the facts when it is the record's turn, from what the book
	// holds then; such a record is written by itself.
	make func() []Fact
	done chan error
}

// ErrBroken is returned by appends after one has failed: what the store holds
// is not known before the ledger is opened again (Invariant 3).
var ErrBroken = errors.New("ledger must be opened again")

// ErrStale is returned for a Close that says Announced of a version which has
// been opened again: what came late is not announced yet.
var ErrStale = errors.New("the table partition was opened again")

// OpenLedger replays a store.
func OpenLedger(ctx context.Context, store Store) (*Ledger, error) {
	l := &Ledger{store: store, books: map[Scope]*Book{}}
	err := store.Load(ctx, func(r Record) error {
		if r.Value == nil {
			l.forget(r.Key)
			return nil
		}
		s, f, err := DecodeFact(r)
		if err != nil {
			return err
		}
		l.Book(s).apply(f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	return l, nil
}

// Book gives the book of a scope, empty when the store has none.
func (l *Ledger) Book(s Scope) *Book {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.books[s]
	if b == nil {
		b = newBook(l, s)
		l.books[s] = b
	}
	return b
}

// Scopes are the scopes that have facts, in no order.
func (l *Ledger) Scopes() []Scope {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Scope, 0, len(l.books))
	for s := range l.books {
		out = append(out, s)
	}
	return out
}

// forget applies a tombstone. Only what is superseded or fully counted in
// cursors is ever dropped, so nothing but intents matters in memory.
func (l *Ledger) forget(key []byte) {
	if len(key) < scopeBytes {
		return
	}
	var s Scope
	copy(s.Job[:], key[1:17])
	d := &decoder{b: key[17:]}
	s.Generation = d.u32()
	if kind(key[0]) == kindIntent {
		id := d.id()
		if !d.bad {
			l.Book(s).dropIntent(id)
		}
	}
}

// append writes facts and tombstones durably, together with those of
// concurrent callers.
func (l *Ledger) append(ctx context.Context, b *Book, facts []Fact, drop [][]byte) error {
	return l.enqueue(ctx, &pending{book: b, facts: facts, drop: drop, done: make(chan error, 1)})
}

// appendMade appends facts that are made of the book as it is when they are
// written.
func (l *Ledger) appendMade(ctx context.Context, b *Book, f func() []Fact) error {
	return l.enqueue(ctx, &pending{book: b, make: f, done: make(chan error, 1)})
}

func (l *Ledger) enqueue(ctx context.Context, p *pending) error {
	l.queueMu.Lock()
	if l.broken != nil {
		err := l.broken
		l.queueMu.Unlock()
		return err
	}
	l.queue = append(l.queue, p)
	lead := !l.writing
	l.writing = true
	l.queueMu.Unlock()
	if lead {
		l.drain(ctx)
	}
	// The record may become durable whatever happens to the caller's context,
	// so the outcome is always waited for.
	return <-p.done
}

// drain writes the queue until it is empty. The leader's cancellation must not
// fail the others' records, so the write itself cannot be cancelled.
func (l *Ledger) drain(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for {
		l.queueMu.Lock()
		batch := l.queue
		l.queue = nil
		if len(batch) == 0 {
			l.writing = false
			l.queueMu.Unlock()
			return
		}
		broken := l.broken
		l.queueMu.Unlock()
		if broken != nil {
			for _, p := range batch {
				p.done <- broken
			}
			continue
		}
		var plain []*pending
		for _, p := range batch {
			if p.make == nil {
				plain = append(plain, p)
			}
		}
		if len(plain) > 0 {
			l.write(ctx, plain)
		}
		for _, p := range batch {
			if p.make != nil {
				p.facts = p.make()
				l.write(ctx, []*pending{p})
			}
		}
	}
}

// batchBytes bounds a store batch: appends beyond it go into the next one. One
// append alone is never cut.
const batchBytes = 256 << 10

// write makes store batches of appends, in order.
func (l *Ledger) write(ctx context.Context, queue []*pending) {
	var (
		records []Record
		kept    []*pending
		size    int
		closes  map[*Book]map[CloseKey]*Close // of this batch
	)
	flush := func() {
		l.storeBatch(ctx, records, kept)
		records, kept, size, closes = nil, nil, 0, map[*Book]map[CloseKey]*Close{}
	}
	closes = map[*Book]map[CloseKey]*Close{}
	for _, p := range queue {
		if size >= batchBytes {
			flush()
		}
		// Invariant 9: a lane that lost its epoch writes nothing.
		err := p.book.fenced(p.facts)
		if err == nil {
			err = p.book.stale(p.facts, closes[p.book])
		}
		if err != nil {
			p.done <- err
			continue
		}
		kept = append(kept, p)
		for _, f := range p.facts {
			r := EncodeFact(p.book.scope, f)
			records = append(records, r)
			size += len(r.Key) + len(r.Value)
			// A new epoch fences what stands behind it in the same batch, too.
			switch f := f.(type) {
			case *Open:
				p.book.raise(f)
			case *Close:
				if closes[p.book] == nil {
					closes[p.book] = map[CloseKey]*Close{}
				}
				closes[p.book][CloseKey{f.Table, f.TablePartition}] = f
			}
		}
		for _, k := range p.drop {
			records = append(records, Record{Key: k})
			size += len(k)
		}
	}
	flush()
}

// storeBatch writes one batch and tells those whose records it has.
func (l *Ledger) storeBatch(ctx context.Context, records []Record, kept []*pending) {
	var err error
	if len(records) > 0 {
		if err = l.Broken(); err == nil {
			err = l.store.Append(ctx, records)
			if err != nil {
				err = fmt.Errorf("appending to the ledger: %w", errors.Join(err, ErrBroken))
				l.queueMu.Lock()
				l.broken = err
				l.queueMu.Unlock()
			}
		}
	}
	for _, p := range kept {
		if err == nil {
			for _, f := range p.facts {
				p.book.apply(f)
			}
			for _, k := range p.drop {
				l.forget(k)
			}
		}
		p.done <- err
	}
}

// Broken is the error after which the ledger takes nothing more, or nil.
func (l *Ledger) Broken() error {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	return l.broken
}

// epochOf says which lane epoch a fact claims; ok is false for facts that no
// lane writes.
func epochOf(f Fact) (lane connector.LaneID, epoch uint64, ok bool) {
	switch f := f.(type) {
	case *Cursor:
		return f.Lane, f.Epoch, true
	case *Hour:
		return f.Lane, f.Epoch, true
	case *Head:
		return f.Lane, f.Epoch, true
	case *Intent:
		return f.Writer.Lane, f.Writer.Epoch, !f.Writer.Keyed
	case *Outcome:
		return f.Writer.Lane, f.Writer.Epoch, !f.Writer.Keyed
	}
	return lane, 0, false
}
