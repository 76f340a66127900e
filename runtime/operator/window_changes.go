package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/watermark"
)

// WindowChanges is GROUP BY keys, window_start, window_end of windows that give their
// rows more than once: before they end, and again while late rows come; or whose
// input takes rows back. It is one subtask, of windows that overlap, too: a row is
// folded into each of its windows, since each has rows of its own out.
//
// A row goes out as +I; where it changes it is taken back as it went out (-U) and
// followed by the new one (+U); where it stays the same nothing is said. When the
// watermark passes the end of a window all its rows are out as they are, and when
// its lateness has passed they are so for good. So what the changes leave of a key
// depends on the rows alone, however often and whenever it fires in between.
// Invariant 7.
type WindowChanges struct {
	op      *graph.WindowAggregate
	schema  *batch.Schema
	values  *batch.Schema // a column for each call
	windows *Windows
	aggs    *aggSet
	panes   *panes
	// next is the first instant at which a window fires by the clock, 0: none.
	next   int64
	cols   []*batch.Vec
	slots  []int32
	groups []int32
	all    []int32
	kept   batch.Batch
	was    batch.Batch
	before []batch.Vec // the values of was
	is     batch.Batch
	out    changeRows
	come   batch.Sel
	back   batch.Sel
}

// shownRows are the rows of a window that are out.
type shownRows struct {
	// marks are by slot.
	marks []byte
	// rows are, by slot, how many the key has, where they can be taken back.
	rows []int64
	// changed are the slots whose row is out and not as it is now, with the values
	// that went out, by place; fresh are those whose row is not out.
	changed []int32
	was     rowStore
	fresh   []int32
	// over: the watermark has passed the end.
	over bool
	// due is the instant, in ms of the clock, at which what has changed goes out; 0:
	// not by the clock.
	due int64
}

// Marks of a slot.
const (
	isOut   = 1 << iota // its row is out
	isDirty             // it is in changed or fresh
)

// NewWindowChanges makes a subtask over the columns of in, with no state.
func NewWindowChanges(op *graph.WindowAggregate, in, out *batch.Schema) (*WindowChanges, error) {
	ws, aggs, err := windowParts(op, in, out)
	if err != nil {
		return nil, err
	}
	if op.Retracts {
		aggs.retracting()
	}
	w := &WindowChanges{op: op, schema: out, values: &batch.Schema{}, windows: ws, aggs: aggs, before: make([]batch.Vec, len(aggs.outputs))}
	for call := range aggs.calls {
		w.values.Fields = append(w.values.Fields, out.Fields[len(op.Keys)+slices.Index(aggs.outputs, call)])
	}
	keyTypes := typesAt(in, op.Keys)
	w.panes = newPanes(op.Window, op.Lateness, keyTypes, func() *aggTable {
		return newAggTable(keyTypes, aggs.accumulators(nil), 0, nil)
	})
	return w, nil
}

// Fold implements Keyed.
func (w *WindowChanges) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	sel := w.aggs.eval(ctx, in, out)
	parts, err := w.split(in.Batch, sel)
	if err != nil {
		return err
	}
	w.cols = colsAt(in.Batch, w.op.Keys, w.cols)
	w.slots = slices.Grow(w.slots[:0], in.Batch.Len)[:in.Batch.Len]
	for _, x := range parts {
		w.add(x.p, in, x.sel)
		if err := w.schedule(x.p, ctx.Now/1000, out); err != nil {
			return err
		}
	}
	return nil
}

// add folds the rows of one window.
func (w *WindowChanges) add(p *pane, in *KeyedRows, sel batch.Sel) {
	come := sel
	w.back = w.back[:0]
	if w.op.Retracts && in.Batch.Kinds != nil {
		w.come, w.back = splitKinds(in.Batch, sel, w.come[:0], w.back)
		come = w.come
	}
	p.keys.Find(w.cols, in.Hashes, come, w.slots)
	back := w.back[:0]
	for _, row := range w.back {
		// A row of a key that is not known is not missed.
		if w.slots[row] = p.keys.Slot(w.cols, in.Hashes[row], int(row)); w.slots[row] >= 0 {
			back = append(back, row)
		}
	}
	p.resize()
	w.touch(p, come)
	w.touch(p, back)
	w.aggs.update(p.accs, w.slots, come)
	if !w.op.Retracts {
		return
	}
	// What comes first: a row may come and go in one batch.
	w.aggs.retract(p.accs, w.slots, back)
	for _, row := range come {
		p.shown.rows[w.slots[row]]++
	}
	for _, row := range back {
		p.shown.rows[w.slots[row]]--
	}
}

// vanished reports a key that has no rows left.
func (w *WindowChanges) vanished(s *shownRows, slot int32) bool {
	return w.op.Retracts && s.rows[slot] <= 0
}

// split divides rows by window.
func (w *WindowChanges) split(b *batch.Batch, sel batch.Sel) ([]paneRows, error) {
	switch w.op.Window.Kind {
	case graph.Given:
		return w.panes.splitGiven(w.windows, b, sel)
	case graph.Tumble:
		return w.panes.split(w.windows, &b.Cols[w.op.Time], sel)
	}
	return w.panes.splitAll(w.windows, b, w.op.Time, sel)
}

// shownOf is what is out of a pane, with room for its slots.
func (w *WindowChanges) shownOf(p *pane) *shownRows {
	if p.shown == nil {
		p.shown = &shownRows{was: newRowStore(w.values), over: watermark.Late(w.panes.fired, p.EndTime, 0)}
	}
	for len(p.shown.marks) < p.keys.Len() {
		p.shown.marks = append(p.shown.marks, 0)
	}
	for w.op.Retracts && len(p.shown.rows) < p.keys.Len() {
		p.shown.rows = append(p.shown.rows, 0)
	}
	return p.shown
}

// touch notes the rows of slots that are about to change, before they do.
func (w *WindowChanges) touch(p *pane, sel batch.Sel) {
	s := w.shownOf(p)
	w.groups = w.groups[:0]
	for _, row := range sel {
		slot := w.slots[row]
		switch m := s.marks[slot]; {
		case m&isDirty != 0:
			continue
		case m&isOut != 0:
			w.groups = append(w.groups, slot)
		default:
			s.fresh = append(s.fresh, slot)
		}
		s.marks[slot] |= isDirty
	}
	w.keep(p, w.groups)
}

// keep notes rows that are out as they are now.
func (w *WindowChanges) keep(p *pane, slots []int32) {
	s := p.shown
	for from := 0; from < len(slots); from += emitRows {
		chunk := slots[from:min(from+emitRows, len(slots))]
		w.kept.Reset(w.values)
		for call := range w.aggs.calls {
			p.accs[call].Emit(chunk, w.aggs.calls[call].where, &w.kept.Cols[call])
		}
		w.kept.Len, w.all = len(chunk), slotsOf(0, len(chunk), w.all)
		s.changed = append(s.changed, chunk...)
		s.was.add(&w.kept, w.all)
	}
}

// schedule says when what has changed goes out: now, by the clock, or when the
// watermark comes to the window's end.
func (w *WindowChanges) schedule(p *pane, now int64, out *Results) error {
	on, delay := w.firing(p)
	switch {
	case !on:
		return nil
	case delay == 0:
		return w.give(p, out)
	}
	// A clock that was set back puts nothing off.
	if at := now + delay; p.shown.due == 0 || p.shown.due > at {
		p.shown.due = at
	}
	if w.next == 0 || p.shown.due < w.next {
		w.next = p.shown.due
	}
	return nil
}

// firing is what holds for a window at this time.
func (w *WindowChanges) firing(p *pane) (on bool, delay int64) {
	if p.shown.over {
		return w.op.Firing.Late, w.op.Firing.LateDelay
	}
	return w.op.Firing.Early, w.op.Firing.EarlyDelay
}

// reschedule looks for the next instant.
func (w *WindowChanges) reschedule() {
	w.next = 0
	for _, p := range w.panes.open {
		if due := p.shown.due; due != 0 && (w.next == 0 || due < w.next) {
			w.next = due
		}
	}
}

// Advance implements Keyed.
func (w *WindowChanges) Advance(_ *expr.Context, time int64, out *Results) error {
	for _, p := range w.panes.due(time) {
		if err := w.give(p, out); err != nil {
			return err
		}
	}
	for _, p := range w.panes.open {
		if !watermark.Late(time, p.EndTime, 0) {
			break
		}
		if p.shown.over {
			continue
		}
		p.shown.over = true
		if err := w.give(p, out); err != nil {
			return err
		}
	}
	w.reschedule()
	return nil
}

// NextFiring implements Timed.
func (w *WindowChanges) NextFiring() (at int64, ok bool) { return w.next, w.next != 0 }

// Fire implements Timed.
func (w *WindowChanges) Fire(now int64, out *Results) error {
	for _, p := range w.panes.open {
		if p.shown.due == 0 || p.shown.due > now {
			continue
		}
		if err := w.give(p, out); err != nil {
			return err
		}
	}
	w.reschedule()
	return nil
}

// Due implements Clocked.
func (w *WindowChanges) Due() (at int64, ok bool) {
	if len(w.panes.open) == 0 {
		return 0, false
	}
	return w.panes.open[0].EndTime, true
}

// Fired implements Clocked.
func (w *WindowChanges) Fired() int64 { return w.panes.fired }

// give lets all rows of a window go out as they are now.
func (w *WindowChanges) give(p *pane, out *Results) error {
	s := p.shown
	w.out.start(w.schema)
	for from := 0; from < len(s.changed); from += emitRows {
		to := min(from+emitRows, len(s.changed))
		w.rows(p, s.changed[from:to])
		w.wentOut(s, from, to)
		for i := range to - from {
			switch {
			case w.vanished(s, s.changed[from+i]):
				w.out.add(&w.was, i, batch.Delete)
			case sameRow(&w.was, &w.is, i, len(w.op.Keys)):
				continue
			default:
				w.out.add(&w.was, i, batch.UpdateBefore)
				w.out.add(&w.is, i, batch.UpdateAfter)
			}
			if err := w.out.flush(out, false); err != nil {
				return err
			}
		}
	}
	for from := 0; from < len(s.fresh); from += emitRows {
		to := min(from+emitRows, len(s.fresh))
		w.rows(p, s.fresh[from:to])
		for i := range to - from {
			if w.vanished(s, s.fresh[from+i]) {
				continue
			}
			w.out.add(&w.is, i, batch.Insert)
			if err := w.out.flush(out, false); err != nil {
				return err
			}
		}
	}
	w.clean(s)
	return w.out.flush(out, true)
}

// clean says that all rows are out as they are.
func (w *WindowChanges) clean(s *shownRows) {
	for _, slots := range [...][]int32{s.changed, s.fresh} {
		for _, slot := range slots {
			s.marks[slot] = isOut
			if w.vanished(s, slot) {
				s.marks[slot] = 0
			}
		}
	}
	if len(s.changed) > 0 {
		resetRows(&s.was.rows, w.values)
	}
	s.changed, s.fresh, s.due = s.changed[:0], s.fresh[:0], 0
}

// rows fills w.is with the rows of slots as they are now.
func (w *WindowChanges) rows(p *pane, slots []int32) {
	b := &w.is
	b.Reset(w.schema)
	b.Len = len(slots)
	emitTable(b.Cols, p.aggTable, w.aggs, slots)
	n := len(w.op.Keys) + len(w.op.Aggregates)
	putBounds(b.Cols[n:], w.schema.Fields[n:], b.Len, p.Span)
}

// wentOut fills w.was with the rows that went out for the changed slots of w.is.
func (w *WindowChanges) wentOut(s *shownRows, from, to int) {
	b := &w.was
	b.Reset(w.schema)
	b.Len = to - from
	copy(b.Cols, w.is.Cols)
	w.all = slotsOf(from, to, w.all)
	for i, call := range w.aggs.outputs {
		// Memory of its own: that of w.is holds the new value.
		w.before[i].Take(&s.was.rows.Cols[call], w.all)
		b.Cols[len(w.op.Keys)+i] = w.before[i]
	}
}

// Bytes implements Keyed.
func (w *WindowChanges) Bytes() int64 {
	n := w.panes.bytes()
	for _, p := range w.panes.open {
		s := p.shown
		n += s.was.bytes() + int64(cap(s.marks)+8*cap(s.rows)+4*cap(s.changed)+4*cap(s.fresh))
	}
	return n
}
