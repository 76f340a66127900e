package keyed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

// write makes a manifest and its state files durable; the scribe's.
func (r *Stages) write(ctx context.Context, m *checkpoint.Manifest, bodies []checkpoint.Body) error {
	if err := r.store.Write(ctx, m.Number, checkpoint.Files(m, bodies)); err != nil {
		return err
	}
	for _, b := range bodies {
		b.Release()
	}
	r.current = m
	floor := m.Number
	for i := range m.Artifacts {
		if id := m.Artifacts[i].Header.ID; id.Epoch < r.env.JobEpoch {
			floor = 0 // held since a run before: nothing is settled while it is
		} else {
			floor = min(floor, id.Manifest)
		}
	}
	r.floors[m.Number] = floor
	r.post(checkpoint.Written{N: m.Number})
	return nil
}

// record writes what a durable manifest says into the dead letter and the ledger.
// It may be done again: every entry and fact has its own name. Invariant 1: the
// positions move only now.
func (r *Stages) record(ctx context.Context, m *checkpoint.Manifest) error {
	if err := r.bury(ctx, m); err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		err := r.env.Book.Append(ctx, r.facts(m)...)
		// A lane may have begun an attempt since its epoch was read.
		if !errors.Is(err, connector.ErrFenced) || tries == 100 {
			return err
		}
	}
}

// facts are one ledger batch: positions, what was emitted, intents, publishing.
func (r *Stages) facts(m *checkpoint.Manifest) []ledger.Fact {
	book := r.env.Book
	var facts []ledger.Fact
	for i := range m.Cursors {
		c := m.Cursors[i]
		if epoch, _ := book.LaneEpoch(c.Lane); epoch > 0 {
			c.Epoch = epoch
		}
		// Of a thousand partitions few move between two checkpoints.
		if old, ok := book.Cursor(ledger.CursorKey{Output: c.Output, Topic: c.Topic, Partition: c.Partition}); ok && sameCursor(old, &c) {
			continue
		}
		facts = append(facts, &c)
	}
	for i := range m.Emitted {
		e := m.Emitted[i]
		if old := book.Emitted(e.Table); old != nil && old.Rows == e.Rows && slices.Equal(old.Dead, e.Dead) {
			continue
		}
		facts = append(facts, &e)
	}
	var ids []connector.ArtifactID
	end := ended(m)
	for _, in := range m.Intents() {
		if _, known := book.Intent(in.ID()); known {
			continue // carried over, or recorded before a crash
		}
		if t := r.tables[in.ID().Table]; t != nil && t.overwrite && !end {
			continue // nothing of it is published before the end
		}
		facts = append(facts, in)
		ids = append(ids, in.ID())
	}
	for _, t := range r.tablesInOrder() {
		facts = append(facts, t.closing(m)...)
	}
	if len(ids) > 0 {
		facts = append(facts, &ledger.Publishing{Epoch: m.Epoch, Manifest: m.Number, IDs: ids})
	}
	return facts
}

func sameCursor(a, b *ledger.Cursor) bool {
	return a.Epoch == b.Epoch && a.Offset == b.Offset && a.LeaderEpoch == b.LeaderEpoch && a.Watermark == b.Watermark &&
		a.Lane == b.Lane && a.LostRanges.Equal(b.LostRanges) && sameCounts(&a.Counts, &b.Counts)
}

func sameCounts(a, b *ledger.Counts) bool {
	return a.Records == b.Records && a.Lost == b.Lost && a.Read == b.Read && a.Written == b.Written && a.Folded == b.Folded &&
		a.Late == b.Late && a.Expanded == b.Expanded && slices.Equal(a.Filtered, b.Filtered) && slices.Equal(a.Dead, b.Dead)
}

func (r *Stages) tablesInOrder() []*tableState {
	var out []*tableState
	for _, t := range r.tables {
		out = append(out, t)
	}
	slices.SortFunc(out, func(x, y *tableState) int { return cmp.Compare(x.handle.Table.Name, y.handle.Table.Name) })
	return out
}

// bury writes the dead results of a manifest, unless the ledger has its counts
// already, which come after.
func (r *Stages) bury(ctx context.Context, m *checkpoint.Manifest) error {
	if len(m.Dead) == 0 {
		return nil
	}
	scope := r.env.Book.Scope()
	var entries []lane.DeadEntry
	for i := range m.Dead {
		d := &m.Dead[i]
		if e := r.env.Book.Emitted(d.Table); e != nil && e.Manifest >= m.Number {
			continue
		}
		entries = append(entries, lane.DeadEntry{Job: scope.Job, Generation: scope.Generation, Table: d.Table, TableName: d.TableName,
			// What names the row in place of a topic: written again, it is the
			// same entry.
			TopicID: d.Table, Topic: "stage " + d.Stage, Partition: int32(d.Subtask), Offset: int64(m.Number)<<24 | int64(d.Sequence),
			Rows: []int32{0}, Reason: batch.Code(d.Reason), Column: d.Column, Message: d.Message,
			Raw: connector.RawRecord{Value: d.Row, TimestampMillis: m.TimeMillis, Headers: []connector.RecordHeader{{Key: "stage", Value: []byte("keyed")}}}})
	}
	if len(entries) == 0 {
		return nil
	}
	if err := r.env.DeadLetters.Write(ctx, entries); err != nil {
		return fmt.Errorf("writing %d dead results: %w", len(entries), err)
	}
	return nil
}

// remove drops old manifests and tells the sinks whose artefacts no restorable
// manifest lists any more; the scribe's.
func (r *Stages) remove(ctx context.Context, ns []uint64) error {
	for _, n := range ns {
		if err := r.store.Remove(ctx, n); err != nil {
			if errors.Is(err, connector.ErrFenced) || ctx.Err() != nil {
				return err
			}
			// It is garbage: the next start or removal finds it again.
			r.env.Log.Warn("removing a checkpoint failed", "checkpoint", n, "error", err)
		}
		delete(r.floors, n)
	}
	floor := uint64(1<<64 - 1)
	for _, f := range r.floors {
		floor = min(floor, f)
	}
	if floor == 0 || floor == 1<<64-1 {
		return nil
	}
	for _, t := range r.tasks {
		for _, s := range t.sinks {
			st, ok := s.handle.Sink.(connector.Settler)
			if !ok {
				continue
			}
			id := s.id
			id.Manifest = floor
			if err := st.Settled(ctx, id); err != nil && ctx.Err() == nil {
				r.env.Log.Warn("settling published artefacts failed", "table", s.handle.Table.Name, "error", err)
			}
		}
	}
	return nil
}
