package ledger

import (
	"context"
	"slices"

	"github.com/millrace/millrace/runtime/connector"
)

// PruneOptions say what may be dropped.
type PruneOptions struct {
	// NowMillis is the wall clock.
	NowMillis int64
	// KeepMillis is 'ledger.keep': how long artefacts stay after their result.
	KeepMillis int64
	// Closed says whether a table partition is closed; tables without a
	// commit policy have no open ones. nil: every one is.
	Closed func(CloseKey) bool
}

// Prune drops what is no longer needed: lane epochs and cursors that newer
// epochs supersede, and artefacts that every cursor has passed. It returns how
// many records it dropped.
func (b *Book) Prune(ctx context.Context, o PruneOptions) (int, error) {
	keys := b.prunable(o)
	if len(keys) == 0 {
		return 0, nil
	}
	if err := b.ledger.append(ctx, b, nil, keys); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.oldOpens, b.oldCursors = nil, nil
	return len(keys), nil
}

func (b *Book) prunable(o PruneOptions) [][]byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var keys [][]byte
	for _, old := range b.oldOpens {
		keys = append(keys, keyOf(b.scope, old))
	}
	keys = append(keys, b.oldCursors...)
	for _, e := range b.intents {
		if e.Result == Pending || o.NowMillis-e.EndedMillis < o.KeepMillis || !b.passed(e, o) {
			continue
		}
		keys = append(keys, keyOf(b.scope, e.Intent))
		// The outcome may have been written by this or a later epoch; its own
		// key is dropped with the intent, since an outcome without its intent
		// says nothing.
		keys = append(keys, keyOf(b.scope, &Outcome{ID: e.ID(), Writer: e.endedBy}))
	}
	return keys
}

// passed reports whether the durable resume position of every source
// partition that the intent names is past it and its table partitions are
// closed.
func (b *Book) passed(e *Entry, o PruneOptions) bool {
	if e.Rewrite || slices.ContainsFunc(e.Artifacts, func(a connector.Artifact) bool { return b.homes.void[a.Header.ID] != nil }) {
		return false // they say what was moved, and that all of it was
	}
	for i := range e.Inputs {
		in := &e.Inputs[i]
		c := b.cursors[CursorKey{e.ID().Table, in.Topic, in.Partition}]
		if c == nil || c.Offset < in.Offsets.End() {
			return false
		}
	}
	for i := range e.Artifacts {
		if tp := e.Artifacts[i].Header.TablePartition; o.Closed != nil && !o.Closed(CloseKey{e.ID().Table, tp}) {
			return false
		}
	}
	return true
}

// RollUp makes one row of the minutes of each hour that ended before a time, and
// returns how many hours it changed. The sums stay, so it may run beside lanes.
func (b *Book) RollUp(ctx context.Context, beforeMillis int64) (int, error) {
	const hourMillis = 3_600_000
	n := 0
	err := b.ledger.appendMade(ctx, b, func() []Fact {
		b.mu.RLock()
		defer b.mu.RUnlock()
		var facts []Fact
		for k, h := range b.hours {
			if k.hour == OtherHour || (k.hour+1)*hourMillis > beforeMillis || len(h.Minutes) == 1 && h.Minutes[0].Minute == -1 {
				continue
			}
			sum := *h
			if o := b.opens[h.Lane]; o != nil {
				sum.Epoch = o.Epoch // what an older one wrote is taken over
			}
			sum.Minutes = []Minute{{Minute: -1}}
			for i := range h.Minutes {
				sum.Minutes[0].Counts.Add(&h.Minutes[i].Counts)
			}
			facts = append(facts, &sum)
		}
		n = len(facts)
		return facts
	})
	return n, err
}
