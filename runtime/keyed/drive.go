package keyed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
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
func (r *Stages) manifest(a checkpoint.Write) (*checkpoint.Manifest, []checkpoint.Body) {
	m := &checkpoint.Manifest{Number: a.N, Epoch: r.env.JobEpoch, TimeMillis: r.now().UnixMilli(), Scope: r.env.Book.Scope(), Cursors: r.cursors}
	var bodies []checkpoint.Body
	for _, s := range r.stages {
		st := checkpoint.Stage{Name: s.plan.name, Watermark: batch.MaxWatermark}
		for _, t := range s.tasks {
			ack := r.acks[t.number]
			st.Watermark = min(st.Watermark, ack.watermark)
			// Writing adds length and checksum.
			st.Blobs = append(st.Blobs, checkpoint.Blob{Name: fmt.Sprintf("s%d-%d", s.plan.id, t.subtask), Groups: state.RangeOf(t.subtask, s.plan.parallelism)})
			bodies = append(bodies, ack.body)
			ack.body = nil // until it is written, not until the next checkpoint
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
	return m, bodies
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
