package lane

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/watermark"
)

// exchangeState is an output that hands over to a keyed stage.
type exchangeState struct {
	inlet Inlet
	need  need
	// idle decides which partitions no longer hold the stage's watermark;
	// bound is, by partition, what the stage had fired when it rejoined.
	idle  *watermark.Idleness
	bound []int64
	ids   []int32
}

// processExchange takes a batch into the output: classify, check, decide
// lateness, bury, hand over, count.
func (o *output) processExchange(ctx context.Context, d *drive, in *input) error {
	if err := o.rejoin(ctx, d, in); err != nil {
		return err
	}
	o.failNotes(in)
	o.gather(d)
	for _, p := range o.parts {
		o.checkNeeds(d.ctx, p)
	}
	o.checkGiven()
	o.settle(folded)
	if err := o.buryDead(ctx, d); err != nil {
		return err
	}
	h := &Handover{Batch: o.handed()}
	o.mu.Lock()
	o.rows.begin(o.tracker)
	o.rows.finish(o.tracker, o.count, o.note)
	h.Moved = o.moved(in)
	o.mu.Unlock()
	return o.handOver(ctx, d, h)
}

// moved are the positions behind a batch, with all counts below them.
func (o *output) moved(in *input) []Moved {
	var out []Moved
	for _, run := range in.batch.Runs {
		p := run.Partition
		if slices.ContainsFunc(out, func(m Moved) bool { return m.Partition == p }) {
			continue
		}
		out = append(out, Moved{Partition: p, Watermark: o.tracker.Next(p).Watermark, Cursor: o.position(p)})
	}
	return out
}

// position is the cursor as it would be at the first offset not processed.
func (o *output) position(part int32) ledger.Cursor {
	t := o.tracker
	c := *t.Cursor(part)
	at := t.Next(part)
	c.Counts, _ = t.Live(part)
	c.Lane, c.Epoch = o.lane.cfg.Fact.ID, o.att.epoch
	c.Offset, c.LeaderEpoch, c.Watermark = at.Offset, at.LeaderEpoch, at.Watermark
	return c
}

func (o *output) handOver(ctx context.Context, d *drive, h *Handover) error {
	if len(h.Moved) == 0 && h.Batch.Len == 0 {
		return nil
	}
	err := d.wait(ctx, o, func(ctx context.Context) error { return o.exch.inlet.HandOver(ctx, h) })
	if err != nil {
		return fmt.Errorf("handing over to %s: %w", o.cfg.Table.Name, err)
	}
	return nil
}

// handed copies the rows that go over: the stage owns them from then on.
func (o *output) handed() *batch.Batch {
	out := new(batch.Batch)
	switch n := len(o.parts); {
	case n == 0:
		out.Reset(o.lane.cfg.Job.Nodes[o.cfg.Nodes[0]].Schema)
	case n == 1:
		out.Take(o.parts[0].Batch, o.sels[0])
	default:
		out.Take(o.parts[0].Batch, o.sels[0])
		for k := 1; k < n; k++ {
			more := new(batch.Batch)
			more.Take(o.parts[k].Batch, o.sels[k])
			appendBatch(out, more)
		}
	}
	out.Schema = o.lane.cfg.Job.Nodes[o.cfg.Nodes[0]].Schema
	out.Watermark, out.Notes = o.bounds(out), nil
	for i := range out.Runs {
		out.Runs[i].FirstNote, out.Runs[i].Notes = 0, 0
	}
	return out
}

// bounds are, by row, what decides for which of its windows a row is late; nil
// where a row has but one.
func (o *output) bounds(b *batch.Batch) []int64 {
	if !o.exch.need.several || o.exch.need.never || o.rows.in.batch.Watermark == nil {
		return nil
	}
	out := make([]int64, 0, b.Len)
	for k, p := range o.parts {
		for _, i := range o.sels[k] {
			bound, idle := o.passed(p.Source(i))
			out = append(out, max(bound, idle))
		}
	}
	return out
}

// passed is how far a source row's own partition had come before it, and what
// the stage had fired when the partition came back from idleness.
func (o *output) passed(src int32) (own, idle int64) {
	part := o.rows.in.batch.Runs[o.rows.runOf(src, 0)].Partition
	return o.own(src), o.exch.bound[part]
}

// appendBatch adds the rows of b behind those of a; runs keep their order, so
// a partition may have several.
func appendBatch(a, b *batch.Batch) {
	delta := make([]int32, 0, a.Len+b.Len)
	index := make([]int32, 0, a.Len+b.Len)
	positions := func(x *batch.Batch) {
		for r := range x.Runs {
			run := &x.Runs[r]
			for i := int(run.FirstRow); i < int(run.FirstRow+run.Rows); i++ {
				delta = append(delta, int32(x.Offset(run, i)-run.BaseOffset))
				index = append(index, x.Index(i))
			}
		}
	}
	positions(a)
	positions(b)
	if a.Kinds != nil || b.Kinds != nil {
		kinds := make([]batch.Kind, 0, a.Len+b.Len)
		for _, x := range [...]*batch.Batch{a, b} {
			for i := range x.Len {
				kinds = append(kinds, x.KindOf(i))
			}
		}
		a.Kinds = kinds
	}
	for c := range a.Cols {
		a.Cols[c].AppendVec(&b.Cols[c])
		a.Cols[c].PadOffsets()
	}
	for _, run := range b.Runs {
		run.FirstRow += int32(a.Len)
		a.Runs = append(a.Runs, run)
	}
	a.Len += b.Len
	a.OffsetDelta, a.RowIndex = delta, index
}

// checkNeeds rejects what the stage cannot take and what is late.
func (o *output) checkNeeds(ctx *expr.Context, p *operator.Rows) {
	n := &o.exch.need
	names := p.Batch.Schema.Fields
	for _, c := range n.keys {
		v := &p.Batch.Cols[c]
		if !v.HasDeepErrs() {
			continue
		}
		each(p, func(i int32) {
			if e := v.DeepErr(int(i)); e != nil {
				o.reject(p.Source(i), e, o.policyOf(e, false))
			}
		})
	}
	for _, c := range n.notNull {
		v := &p.Batch.Cols[c]
		if !v.HasNulls() {
			continue
		}
		each(p, func(i int32) {
			if v.IsNull(int(i)) {
				e := &batch.ValueError{Code: batch.CodeNullKey, Where: names[c].Name, Message: "NULL in a key of a wide table"}
				o.reject(p.Source(i), e, o.policyOf(e, false))
			}
		})
	}
	o.checkArgs(ctx, p)
	if n.time < 0 || n.given {
		return
	}
	v := &p.Batch.Cols[n.time]
	each(p, func(i int32) { o.checkTime(p, v, i) })
}

func (o *output) checkArgs(ctx *expr.Context, p *operator.Rows) {
	n := &o.exch.need
	if n.args == nil {
		return
	}
	n.args.Eval(ctx, p.Batch, p.Sel, n.out)
	for _, u := range n.uses {
		v := &n.out[u.expr]
		if !v.HasDeepErrs() {
			continue
		}
		each(p, func(i int32) {
			if u.filter >= 0 {
				if f := &n.out[u.filter]; f.IsNull(int(i)) || !truth(f, int(i)) {
					return
				}
			}
			if e := v.DeepErr(int(i)); e != nil {
				o.reject(p.Source(i), e, o.policyOf(e, false))
			}
		})
	}
}

func truth(v *batch.Vec, i int) bool {
	if v.Enc == batch.Dict {
		return v.Dict.Bool(int(v.Codes[i]))
	}
	return v.Bool(i)
}

// checkTime decides lateness: by the row's own partition's watermark before
// it, or, the one case that depends on time, by what the stage had fired when
// an idle partition came back.
func (o *output) checkTime(p *operator.Rows, v *batch.Vec, i int32) {
	n := &o.exch.need
	src := p.Source(i)
	if o.rows.fate[src] != live {
		return
	}
	if v.IsNull(int(i)) {
		e := v.Err(int(i))
		if e == nil {
			e = operator.NullEventTime(p.Batch.Schema.Fields[n.time].Name)
		}
		o.reject(src, e, o.policyOf(e, false))
		return
	}
	if n.windows == nil || n.never {
		return
	}
	end := n.windows.Latest(v.Int64(int(i))).EndTime
	own, idle := o.passed(src)
	switch {
	case watermark.Late(own, end, n.latency):
		o.tooLate(src, batch.CodeLate)
	case watermark.Late(idle, end, n.latency):
		o.tooLate(src, batch.CodeLateIdle)
	}
}

func (o *output) tooLate(src int32, code batch.Code) {
	why := rowReason{code: code}
	// A table of its own takes those that are late by their own partition.
	if n := &o.exch.need; n.late == graph.DeadLetter && !(n.aside && code == batch.CodeLate) {
		why.letter, why.message = true, "the row's window had ended"
	}
	o.rows.set(src, late, why)
}

// checkGiven decides lateness where rows carry their window: a source row is late
// when it is for all windows that it was given.
func (o *output) checkGiven() {
	n := &o.exch.need
	if !n.given || n.never {
		return
	}
	n.open = resizeTo(n.open, len(o.rows.fate))
	clear(n.open)
	o.givenEnds(func(src int32, end int64) {
		own, idle := o.passed(src)
		if !watermark.Late(max(own, idle), end, n.latency) {
			n.open[src] = true
		}
	})
	o.givenEnds(func(src int32, end int64) {
		if n.open[src] {
			return
		}
		code := batch.CodeLate
		if own, _ := o.passed(src); !watermark.Late(own, end, n.latency) {
			code = batch.CodeLateIdle
		}
		o.tooLate(src, code)
	})
}

// givenEnds gives the ends of the windows that live source rows carry.
func (o *output) givenEnds(f func(src int32, end int64)) {
	for _, p := range o.parts {
		each(p, func(i int32) {
			src := p.Source(i)
			if o.rows.fate[src] != live {
				return
			}
			if end, ok := o.exch.need.windows.EndTimeOf(p.Batch, int(i)); ok {
				f(src, end)
			}
		})
	}
}

// rejoin makes idle partitions of the batch active again before anything of
// them is handed over.
func (o *output) rejoin(ctx context.Context, d *drive, in *input) error {
	e := o.exch
	for _, run := range in.batch.Runs {
		o.observe(run.Partition, false)
		if !e.idle.Idle(run.Partition) {
			continue
		}
		err := d.wait(ctx, o, func(ctx context.Context) error {
			bound, err := e.inlet.Rejoin(ctx, run.Partition)
			if err == nil {
				e.bound[run.Partition] = bound
				e.idle.Rejoined(run.Partition)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("rejoining %s: %w", o.cfg.Table.Name, err)
		}
	}
	return nil
}

// quiet looks for partitions that have become idle.
func (o *output) quiet(ctx context.Context, d *drive) error {
	e := o.exch
	e.ids = e.idle.Due(o.lane.millis(), e.ids[:0])
	for _, p := range e.ids {
		err := d.wait(ctx, o, func(ctx context.Context) error { return e.inlet.Idle(ctx, p) })
		if err != nil {
			return fmt.Errorf("telling %s that a partition is idle: %w", o.cfg.Table.Name, err)
		}
	}
	return nil
}

// finishExchange says that every partition has ended.
func (o *output) finishExchange(ctx context.Context, d *drive) error {
	h := &Handover{Batch: new(batch.Batch)}
	h.Batch.Reset(o.lane.cfg.Job.Nodes[o.cfg.Nodes[0]].Schema)
	o.mu.Lock()
	for p := range o.tracker.parts {
		c := o.position(int32(p))
		h.Moved = append(h.Moved, Moved{Partition: int32(p), Watermark: batch.MaxWatermark, Cursor: c})
	}
	o.mu.Unlock()
	return o.handOver(ctx, d, h)
}
