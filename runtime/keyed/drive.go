package keyed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/state"
)

// drive is the driver's goroutine: it feeds the coordinator and does what it
// says, or gives it to whom it concerns.
func (r *Stages) drive() {
	r.step(checkpoint.Tick{NowMillis: r.millis()})
	for {
		e, ok := r.events.take(r.ctx)
		if !ok {
			break
		}
		switch e := e.(type) {
		case *acknowledgement:
			r.acks[e.task.number] = e
			for node, ws := range e.pending {
				r.corrections.hear(node, ws, r.millis())
			}
			var ids []connector.ArtifactID
			at := r.now().UnixMilli()
			for _, a := range e.sealed {
				r.known[a.Header.ID] = sealedArtifact{a, at}
				if r.tables[a.Header.ID.Table].overwrite {
					r.held = append(r.held, a.Header.ID)
				} else {
					ids = append(ids, a.Header.ID)
				}
			}
			r.step(checkpoint.Acked{Task: e.task.number, N: e.n, Sealed: ids})
		case checkpoint.Committed:
			for _, id := range e.IDs {
				delete(r.known, id)
			}
			r.step(e)
		case checkpoint.Tick:
			if r.opts.CheckpointInterval > 0 && r.gate.Quiet() && !r.stirred.Load() && r.Completed() == r.injected.Load() &&
				!r.corrections.due(e.NowMillis) {
				r.wake(e.NowMillis + r.opts.CheckpointInterval.Milliseconds())
				continue
			}
			r.step(e)
		case checkpoint.Event:
			r.step(e)
		}
	}
	if r.timer != nil {
		r.timer.Stop()
	}
}

// millis is monotonic.
func (r *Stages) millis() int64 { return r.now().Sub(r.began).Milliseconds() }

// step gives the coordinator the time, then the event.
func (r *Stages) step(e checkpoint.Event) {
	if _, tick := e.(checkpoint.Tick); !tick {
		r.step(checkpoint.Tick{NowMillis: r.millis()})
	}
	for _, a := range r.coord.Step(e) {
		r.do(a)
	}
}

func (r *Stages) do(a checkpoint.Action) {
	switch a := a.(type) {
	case checkpoint.Inject:
		clear(r.acks)
		r.injected.Store(a.N)
		r.stirred.Store(false)
		r.corrections.decide(r.millis())
		r.cursors = r.gate.Barrier(a.N)
	case checkpoint.Write:
		m, files := r.manifest(a)
		r.scribe.put(func(ctx context.Context) error { return r.write(ctx, m, files) })
	case checkpoint.Record:
		r.scribe.put(func(ctx context.Context) error {
			m := r.current
			if err := r.record(ctx, m); err != nil {
				return fmt.Errorf("recording checkpoint %d: %w", m.Number, err)
			}
			r.mu.Lock()
			r.completed, r.completeAt = m.Number, r.now()
			close(r.changed)
			r.changed = make(chan struct{})
			r.mu.Unlock()
			r.post(checkpoint.Recorded{N: m.Number})
			return nil
		})
	case checkpoint.Publish:
		byTable := map[connector.UUID][]connector.Artifact{}
		for _, id := range a.IDs {
			byTable[id.Table] = append(byTable[id.Table], r.known[id].Artifact)
		}
		for id, as := range byTable {
			r.tables[id].queue.put(publication{n: a.N, artifacts: as})
		}
	case checkpoint.PublishEnd:
		for _, t := range r.tablesInOrder() {
			if t.overwrite {
				t.queue.put(r.atEnd(t, a.N))
			}
		}
	case checkpoint.Remove:
		ns := a.Ns
		r.scribe.put(func(ctx context.Context) error { return r.remove(ctx, ns) })
	case checkpoint.Wake:
		r.wake(a.AtMillis)
	case checkpoint.Done:
		r.mu.Lock()
		r.finished = true
		r.mu.Unlock()
		r.gate.End()
		// The scribe may still have manifests to remove.
		r.scribe.put(func(context.Context) error { r.cancel(); return nil })
	case checkpoint.Fail:
		r.fail(a.Err)
	}
}

// atEnd is all that is published of an overwritten table: nothing more, where the
// restored checkpoint was that of the end.
func (r *Stages) atEnd(t *tableState, n uint64) publication {
	p := publication{n: n, end: !t.restored}
	for _, id := range r.held {
		if id.Table == t.handle.Table.ID && p.end {
			p.artifacts = append(p.artifacts, r.known[id].Artifact)
		}
	}
	return p
}

// wake sends the coordinator a tick at a time.
func (r *Stages) wake(at int64) {
	if r.timer != nil {
		r.timer.Stop()
	}
	d := time.Duration(at-r.millis()) * time.Millisecond
	r.timer = r.env.Clock.AfterFunc(max(d, time.Millisecond), func() { r.post(checkpoint.Tick{NowMillis: r.millis()}) })
}

// manifest puts together what the tasks have acknowledged.
func (r *Stages) manifest(a checkpoint.Write) (*checkpoint.Manifest, []checkpoint.File) {
	m := &checkpoint.Manifest{Number: a.N, Epoch: r.env.JobEpoch, TimeMillis: r.now().UnixMilli(), Scope: r.env.Book.Scope(), Cursors: r.cursors}
	var files []checkpoint.File
	for _, s := range r.stages {
		st := checkpoint.Stage{Name: s.plan.name, Watermark: batch.MaxWatermark}
		for _, t := range s.tasks {
			ack := r.acks[t.number]
			st.Watermark = min(st.Watermark, ack.watermark)
			name := fmt.Sprintf("s%d-%d", s.plan.id, t.subtask)
			blob, file := checkpoint.Blob{Name: name, Groups: state.RangeOf(t.subtask, s.plan.parallelism)}, checkpoint.File{Name: name, Data: ack.blob}
			if ack.body != nil {
				file.Body, blob.Bytes = ack.body, ack.body.Len() // write adds the checksum
			} else {
				blob.Bytes, blob.CRC = int64(len(ack.blob)), checkpoint.Checksum(ack.blob)
			}
			st.Blobs, files = append(st.Blobs, blob), append(files, file)
			m.Dead = append(m.Dead, ack.dead...)
			for table, c := range ack.counts {
				r.total(table).add(c)
			}
			for _, x := range ack.sealed {
				if r.tables[x.Header.ID.Table].overwrite {
					continue
				}
				m.Artifacts = append(m.Artifacts, x)
				m.SealedMillis = append(m.SealedMillis, r.known[x.Header.ID].at)
			}
		}
		m.Stages = append(m.Stages, st)
	}
	// What is held until the end is in every manifest until then.
	for _, id := range slices.Concat(a.Carry, r.held) {
		x := r.known[id]
		m.Artifacts, m.SealedMillis = append(m.Artifacts, x.Artifact), append(m.SealedMillis, x.at)
	}
	for table, c := range r.totals {
		m.Emitted = append(m.Emitted, ledger.Emitted{Table: table, Epoch: r.env.JobEpoch, Manifest: a.N, Rows: c.rows, Dead: slices.Clone(c.dead)})
	}
	slices.SortFunc(m.Emitted, func(x, y ledger.Emitted) int { return slices.Compare(x.Table[:], y.Table[:]) })
	return m, files
}

func (r *Stages) total(table connector.UUID) *emitted {
	c := r.totals[table]
	if c == nil {
		c = &emitted{}
		r.totals[table] = c
	}
	return c
}

func (e *emitted) add(o *emitted) {
	e.rows += o.rows
	e.dead.AddAll(o.dead)
}

// outTime is the watermark of what a stage has emitted up to a checkpoint.
func (r *Stages) outTime(m *checkpoint.Manifest, stage int) int64 {
	s := r.plan.stages[stage]
	for i := range m.Stages {
		if m.Stages[i].Name != s.name {
			continue
		}
		if w := m.Stages[i].Watermark; w != batch.NoWatermark && w != batch.MaxWatermark {
			return w - s.lateness
		} else {
			return w
		}
	}
	return batch.NoWatermark
}

// write makes a manifest and its state files durable; the scribe's.
func (r *Stages) write(ctx context.Context, m *checkpoint.Manifest, files []checkpoint.File) error {
	if err := sumBodies(m, files); err != nil {
		return fmt.Errorf("writing checkpoint %d: %w", m.Number, err)
	}
	files = append(files, checkpoint.File{Name: checkpoint.ManifestFile, Data: m.Encode()})
	if err := r.store.Write(ctx, m.Number, files); err != nil {
		return err
	}
	for i := range files {
		if b := files[i].Body; b != nil {
			b.Release()
		}
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

// sumBodies puts the checksums of bodies into the manifest.
func sumBodies(m *checkpoint.Manifest, files []checkpoint.File) error {
	k := 0
	for i := range m.Stages {
		for b := range m.Stages[i].Blobs {
			f := &files[k]
			if k++; f.Body == nil {
				continue
			}
			var err error
			if m.Stages[i].Blobs[b].CRC, err = checkpoint.ChecksumOf(f.Body); err != nil {
				return err
			}
		}
	}
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
