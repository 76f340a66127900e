package ledger

import (
	"context"
	"slices"

	"github.com/millrace/millrace/runtime/connector"
)

// SwitchOptions describe a switch.
type SwitchOptions struct {
	Table connector.UUID
	To    uint8
	// Edge: partitions that have begun stay where they are.
	Edge       bool
	TimeMillis int64
	Reason     string
	// Stay are table partitions whose committed rows cannot be read again: these
	// stay where they are, and what comes later goes to the other home.
	Stay map[string]bool
}

// Switched is what a switch did.
type Switched struct {
	Number uint32
	// Moved and Stayed are table partitions with rows that are not announced; of
	// those that stayed only what comes later is at the new home.
	Moved, Stayed []string
	// Artifacts and Rows became void.
	Artifacts int
	Rows      int64
}

// Switch moves a table to another home, as one batch: its partitions that are not
// announced, with what is pending anywhere, whose outcome nobody can or need know.
// No lane of the table runs meanwhile. A table that is there already stays.
func (b *Book) Switch(ctx context.Context, o SwitchOptions) (Switched, error) {
	var done Switched
	err := b.ledger.appendMade(ctx, b, func() []Fact {
		b.mu.RLock()
		defer b.mu.RUnlock()
		var facts []Fact
		facts, done = b.switchFacts(o)
		return facts
	})
	return done, err
}

func (b *Book) switchFacts(o SwitchOptions) ([]Fact, Switched) {
	number, active := b.homes.last(o.Table)
	if active == o.To {
		return nil, Switched{Number: number}
	}
	done := Switched{Number: number + 1}
	facts := []Fact{&Switch{Table: o.Table, Number: done.Number, To: o.To, Edge: o.Edge, TimeMillis: o.TimeMillis, Reason: o.Reason}}
	if o.Edge {
		return facts, done
	}
	moves := b.toMove(o)
	for _, tp := range sortedKeys(moves) {
		// Whatever is pending is above the resume position, where the log has it.
		ids := moves[tp].pending
		if o.Stay[tp] {
			done.Stayed = append(done.Stayed, tp)
		} else {
			done.Moved = append(done.Moved, tp)
			ids = append(ids, moves[tp].committed...)
		}
		done.Artifacts += len(ids)
		facts = append(facts, &Moved{Table: o.Table, TablePartition: tp, Number: done.Number, To: o.To, IDs: ids})
		for _, id := range ids {
			if e := b.holding(id); e != nil && e.Result == Pending {
				// Invariant 3 is not touched: whatever became of it is void, and
				// the rows are read again for the other home alone.
				if !slices.ContainsFunc(facts, func(f Fact) bool { x, ok := f.(*Outcome); return ok && x.ID == e.ID() }) {
					w := Writer{Lane: e.ID().Lane, Epoch: e.ID().Epoch}
					if open := b.opens[w.Lane]; open != nil {
						w.Epoch = open.Epoch
					}
					facts = append(facts, &Outcome{ID: e.ID(), Writer: w, Result: Committed, TimeMillis: o.TimeMillis, Reason: reasonMoved})
				}
			}
		}
		if c := b.closes[CloseKey{o.Table, tp}]; c != nil && c.Step == Closed {
			// It is to be closed again when its rows are there.
			f := *c
			f.Step, f.Version, f.TimeMillis = Closing, c.Version+1, o.TimeMillis
			facts = append(facts, &f)
		}
	}
	return facts, done
}

// reasonMoved is the reason of outcomes that a switch gives to what is pending.
const reasonMoved = "moved to the other home"

// Unread are the first offsets of moved table partitions of which nothing has been
// written anew, by partition: what the log must still have.
func (b *Book) Unread(table connector.UUID) map[string]map[SourceKey]int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := map[string]map[SourceKey]int64{}
	for _, m := range b.moves(table, nil) {
		if m.LiveRows > 0 || m.Complete() {
			continue
		}
		first := map[SourceKey]int64{}
		for k, s := range m.Need {
			if at, ok := s.First(); ok {
				first[k] = at
			}
		}
		out[m.TablePartition] = first
	}
	return out
}

// Keep takes back that what was committed of a table partition is void: the log does
// not have it any more, so it stays where it is. It is too late when readers do not
// see it any more there: ok is false then.
func (b *Book) Keep(ctx context.Context, table connector.UUID, tablePartition string) (ok bool, err error) {
	b.mu.RLock()
	var facts []Fact
	ok = true
	for _, f := range b.homes.moved[table] {
		if f.TablePartition != tablePartition {
			continue
		}
		g := *f
		g.IDs = nil
		for _, id := range f.IDs {
			if e := b.holding(id); e != nil && e.Reason == reasonMoved {
				g.IDs = append(g.IDs, id)
			}
		}
		ok = ok && (!f.Retracted || len(g.IDs) == len(f.IDs))
		facts = append(facts, &g)
	}
	b.mu.RUnlock()
	if !ok {
		return false, nil
	}
	return true, b.Append(ctx, facts...)
}

// WouldMove are the table partitions that a switch moves, with the first offsets that
// are read again then.
func (b *Book) WouldMove(o SwitchOptions) map[string]map[SourceKey]int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	first := map[string]map[SourceKey]int64{}
	for tp, m := range b.toMove(o) {
		first[tp] = m.first
	}
	return first
}

// moving is what a switch makes void of a table partition.
type moving struct {
	committed, pending []connector.ArtifactID
	first              map[SourceKey]int64 // offsets of what is committed
}

// toMove are the artefacts that a switch makes void, by table partition.
func (b *Book) toMove(o SwitchOptions) map[string]*moving {
	out := map[string]*moving{}
	for _, e := range sorted(b.byTable[o.Table], func(e *Entry) bool { return e.Result != Void && !e.ID().Keyed }) {
		for i := range e.Artifacts {
			a := &e.Artifacts[i]
			tp := a.Header.TablePartition
			c := b.closes[CloseKey{o.Table, tp}]
			if e.Result != Pending && (a.Home == o.To || c != nil && c.Step == Announced) || b.homes.void[a.Header.ID] != nil {
				continue
			}
			m := out[tp]
			if m == nil {
				m = &moving{first: map[SourceKey]int64{}}
				out[tp] = m
			}
			if e.Result == Pending {
				m.pending = append(m.pending, a.Header.ID)
				continue
			}
			m.committed = append(m.committed, a.Header.ID)
			for _, in := range a.Header.Inputs {
				k := SourceKey{in.Topic, in.Partition}
				at, ok := in.Offsets.First()
				if old, have := m.first[k]; ok && (!have || at < old) {
					m.first[k] = at
				}
			}
		}
	}
	return out
}

// holding is the intent of an artefact.
func (b *Book) holding(id connector.ArtifactID) *Entry {
	if e := b.intents[id]; e != nil {
		return e
	}
	for _, e := range b.byTable[id.Table] {
		if slices.ContainsFunc(e.Artifacts, func(a connector.Artifact) bool { return a.Header.ID == id }) {
			return e
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
