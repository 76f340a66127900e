package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
)

// Book is the facts of one scope.
type Book struct {
	ledger *Ledger
	scope  Scope

	mu         sync.RWMutex
	epoch      uint64 // of the job
	tables     map[string]*Table
	byID       map[connector.UUID]*Table
	lanes      map[connector.LaneID]*Lane
	opens      map[connector.LaneID]*Open
	oldOpens   []*Open
	cursors    map[CursorKey]*Cursor
	oldCursors [][]byte // keys of superseded epochs, to be dropped
	hours      map[hourKey]*Hour
	heads      map[headKey]*Head
	intents    map[connector.ArtifactID]*Entry
	byTable    map[connector.UUID]map[connector.ArtifactID]*Entry // the same
	closes     map[CloseKey]*Close
	publishing map[uint64]*Publishing
	emitted    map[connector.UUID]*Emitted
	homes      homes
	voided     int
}

// CursorKey names a cursor.
type CursorKey struct {
	Output, Topic connector.UUID
	Partition     int32
}

type hourKey struct {
	CursorKey
	kind MinuteKind
	hour int64
}

type headKey struct {
	output connector.UUID
	lane   connector.LaneID
}

// CloseKey names a table partition.
type CloseKey struct {
	Table          connector.UUID
	TablePartition string
}

// Entry is an intent with its result.
type Entry struct {
	*Intent
	Result Result
	// EndedMillis is when the result was recorded, Reason why it is void.
	EndedMillis int64
	Reason      string

	endedBy Writer
}

func newBook(l *Ledger, s Scope) *Book {
	return &Book{
		ledger: l, scope: s,
		tables: map[string]*Table{}, byID: map[connector.UUID]*Table{},
		lanes: map[connector.LaneID]*Lane{}, opens: map[connector.LaneID]*Open{},
		cursors: map[CursorKey]*Cursor{}, hours: map[hourKey]*Hour{}, heads: map[headKey]*Head{},
		intents: map[connector.ArtifactID]*Entry{}, byTable: map[connector.UUID]map[connector.ArtifactID]*Entry{}, closes: map[CloseKey]*Close{},
		publishing: map[uint64]*Publishing{}, emitted: map[connector.UUID]*Emitted{}, homes: newHomes(),
	}
}

// Scope is the job and generation of the book.
func (b *Book) Scope() Scope { return b.scope }

// Append makes facts durable, as one atomic batch, and then visible in the
// book. connector.ErrFenced: a lane epoch among them is no longer the highest;
// nothing was written.
func (b *Book) Append(ctx context.Context, facts ...Fact) error {
	if len(facts) == 0 {
		return nil
	}
	return b.ledger.append(ctx, b, facts, nil)
}

// Broken is the error after which the ledger takes nothing more, or nil.
func (b *Book) Broken() error { return b.ledger.Broken() }

func (b *Book) fenced(facts []Fact) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, f := range facts {
		if lane, epoch, ok := epochOf(f); ok {
			if o := b.opens[lane]; o != nil && o.Epoch > epoch {
				return fmt.Errorf("lane epoch %d, now %d: %w", epoch, o.Epoch, connector.ErrFenced)
			}
		}
	}
	return nil
}

// stale refuses an announcement that a later commit has overtaken, also one in
// the same store batch.
func (b *Book) stale(facts []Fact, batch map[CloseKey]*Close) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, f := range facts {
		c, ok := f.(*Close)
		if !ok || c.Step != Announced {
			continue
		}
		k := CloseKey{c.Table, c.TablePartition}
		now := b.closes[k]
		if x := batch[k]; x != nil {
			now = x
		}
		if now == nil || now.Step != Closed || now.Version != c.Version {
			return fmt.Errorf("announcing %s: %w", c.TablePartition, ErrStale)
		}
	}
	return nil
}

// raise makes a lane epoch known before its record is applied, so that
// facts of lower ones which stand behind it in one store batch are refused.
func (b *Book) raise(o *Open) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open(o)
}

func (b *Book) open(o *Open) {
	old := b.opens[o.Lane]
	switch {
	case old == nil || old.Epoch < o.Epoch:
		b.opens[o.Lane] = o
		if old != nil {
			b.oldOpens = append(b.oldOpens, old)
		}
	case old.Epoch > o.Epoch:
		b.oldOpens = append(b.oldOpens, o)
	}
}

// apply folds a fact in, unless it is void.
func (b *Book) apply(f Fact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lane, epoch, ok := epochOf(f); ok {
		if o := b.opens[lane]; o != nil && o.Epoch > epoch {
			b.voided++ // Invariant 9
			return
		}
	}
	switch f := f.(type) {
	case *Start:
		b.epoch = max(b.epoch, f.Epoch)
	case *Table:
		b.tables[f.Name], b.byID[f.ID] = f, f
	case *Lane:
		b.lanes[f.ID] = f
	case *Open:
		b.open(f)
	case *Cursor:
		k := CursorKey{f.Output, f.Topic, f.Partition}
		if old := b.cursors[k]; old != nil && old.Epoch != f.Epoch {
			b.oldCursors = append(b.oldCursors, keyOf(b.scope, old))
		}
		b.cursors[k] = f
	case *Hour:
		k := hourKey{CursorKey{f.Output, f.Topic, f.Partition}, f.Kind, f.Hour}
		if old := b.hours[k]; old != nil && old.Epoch != f.Epoch {
			b.oldCursors = append(b.oldCursors, keyOf(b.scope, old))
		}
		b.hours[k] = f
	case *Head:
		b.heads[headKey{f.Output, f.Lane}] = f
	case *Intent:
		b.own(f)
		b.enter(&Entry{Intent: f})
		b.homes.settle(f)
	case *Outcome:
		b.end(f)
	case *Close:
		b.closes[CloseKey{f.Table, f.TablePartition}] = f
	case *Switch:
		b.homes.add(f)
	case *Moved:
		b.homes.move(b.scope, f)
	case *Publishing:
		b.publishing[f.Manifest] = f
	case *Emitted:
		b.emitted[f.Table] = f
	}
}

// own completes artefact ids with what the scope says.
func (b *Book) own(f *Intent) {
	for i := range f.Artifacts {
		id := &f.Artifacts[i].Header.ID
		id.Job, id.Generation = b.scope.Job, b.scope.Generation
	}
}

// end sets the result of an intent. An entry is replaced, never changed:
// readers may hold it.
func (b *Book) end(f *Outcome) {
	id := f.ID
	id.Job, id.Generation = b.scope.Job, b.scope.Generation
	e := b.intents[id]
	if e == nil || e.Result != Pending {
		return // the first result stands: a void intent is never completed
	}
	b.enter(&Entry{Intent: e.Intent, Result: f.Result, EndedMillis: f.TimeMillis, Reason: f.Reason, endedBy: f.Writer})
}

// enter puts an entry, or its successor, into both indexes.
func (b *Book) enter(e *Entry) {
	id := e.ID()
	b.intents[id] = e
	t := b.byTable[id.Table]
	if t == nil {
		t = map[connector.ArtifactID]*Entry{}
		b.byTable[id.Table] = t
	}
	t[id] = e
}

func (b *Book) dropIntent(id connector.ArtifactID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id.Job, id.Generation = b.scope.Job, b.scope.Generation
	delete(b.intents, id)
	delete(b.byTable[id.Table], id)
}

// JobEpoch is the highest job epoch started.
func (b *Book) JobEpoch() uint64 { b.mu.RLock(); defer b.mu.RUnlock(); return b.epoch }

// Table finds an output by name.
func (b *Book) Table(name string) (*Table, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t, ok := b.tables[name]
	return t, ok
}

// TableByID finds an output by id.
func (b *Book) TableByID(id connector.UUID) (*Table, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t, ok := b.byID[id]
	return t, ok
}

// Tables are the outputs, by name.
func (b *Book) Tables() []*Table {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make([]*Table, 0, len(b.tables))
	for _, t := range b.tables {
		out = append(out, t)
	}
	slices.SortFunc(out, func(x, y *Table) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// Lanes are the lanes, by topic name, source and set number.
func (b *Book) Lanes() []*Lane {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make([]*Lane, 0, len(b.lanes))
	for _, l := range b.lanes {
		out = append(out, l)
	}
	slices.SortFunc(out, func(x, y *Lane) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Source, y.Source),
			slices.Compare(x.ID.Topic[:], y.ID.Topic[:]), cmp.Compare(x.ID.Set, y.ID.Set))
	})
	return out
}

// LaneEpoch is the highest epoch opened for a lane, 0 for none, with the
// fingerprint of its chains.
func (b *Book) LaneEpoch(lane connector.LaneID) (epoch, fingerprint uint64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if o := b.opens[lane]; o != nil {
		return o.Epoch, o.Fingerprint
	}
	return 0, 0
}

// LaneOpen is how a lane was opened last, nil for never.
func (b *Book) LaneOpen(lane connector.LaneID) *Open {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.opens[lane]
}

// Cursor is the resume position of an output in a source partition.
func (b *Book) Cursor(k CursorKey) (*Cursor, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	c, ok := b.cursors[k]
	return c, ok
}

// Cursors are all cursors of an output (all outputs for the zero UUID), by
// output, topic and partition.
func (b *Book) Cursors(output connector.UUID) []*Cursor {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []*Cursor
	for k, c := range b.cursors {
		if k.Output == output || output == (connector.UUID{}) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(x, y *Cursor) int {
		return cmp.Or(slices.Compare(x.Output[:], y.Output[:]), slices.Compare(x.Topic[:], y.Topic[:]),
			cmp.Compare(x.Partition, y.Partition))
	})
	return out
}

// Hours are the counts by minute of a cursor, by kind and hour.
func (b *Book) Hours(k CursorKey) []*Hour {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []*Hour
	for hk, h := range b.hours {
		if hk.CursorKey == k {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(x, y *Hour) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Hour, y.Hour))
	})
	return out
}

// Hour is one hour of a cursor, or nil.
func (b *Book) Hour(k CursorKey, kind MinuteKind, hour int64) *Hour {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.hours[hourKey{k, kind, hour}]
}

// Head is how far an output of a lane had got, or nil.
func (b *Book) Head(output connector.UUID, lane connector.LaneID) *Head {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.heads[headKey{output, lane}]
}

// Intent finds an intent by its id.
func (b *Book) Intent(id connector.ArtifactID) (*Entry, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, ok := b.intents[id]
	return e, ok
}

// Intents are the intents that f accepts (nil: all), by epoch and sequence.
// Entries are immutable.
func (b *Book) Intents(f func(*Entry) bool) []*Entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return sorted(b.intents, f)
}

// IntentsOf is Intents of one table.
func (b *Book) IntentsOf(table connector.UUID, f func(*Entry) bool) []*Entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return sorted(b.byTable[table], f)
}

func sorted(entries map[connector.ArtifactID]*Entry, f func(*Entry) bool) []*Entry {
	var out []*Entry
	for _, e := range entries {
		if f == nil || f(e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(x, y *Entry) int {
		i, j := x.ID(), y.ID()
		return cmp.Or(slices.Compare(i.Table[:], j.Table[:]), cmp.Compare(i.Epoch, j.Epoch),
			cmp.Compare(i.Manifest, j.Manifest), slices.Compare(i.Lane.Topic[:], j.Lane.Topic[:]),
			cmp.Compare(i.Lane.Set, j.Lane.Set), cmp.Compare(i.Subtask, j.Subtask), cmp.Compare(i.Sequence, j.Sequence))
	})
	return out
}

// Closes are the table partitions of a table that have a close, by name.
func (b *Book) Closes(table connector.UUID) []*Close {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []*Close
	for k, c := range b.closes {
		if k.Table == table {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(x, y *Close) int { return cmp.Compare(x.TablePartition, y.TablePartition) })
	return out
}

// Close is the close of one table partition, or nil.
func (b *Book) Close(k CloseKey) *Close { b.mu.RLock(); defer b.mu.RUnlock(); return b.closes[k] }

// Publishing are the manifests above n that began to be published, ascending.
func (b *Book) Publishing(n uint64) []*Publishing {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []*Publishing
	for m, p := range b.publishing {
		if m > n {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y *Publishing) int { return cmp.Compare(x.Manifest, y.Manifest) })
	return out
}

// Emitted is the results that a keyed stage has given to a table, or nil.
func (b *Book) Emitted(table connector.UUID) *Emitted {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.emitted[table]
}

// Voided is the number of records that were void for their epoch.
func (b *Book) Voided() int { b.mu.RLock(); defer b.mu.RUnlock(); return b.voided }
