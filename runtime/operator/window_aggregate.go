package operator

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// WindowAggregate is GROUP BY keys, window_start, window_end: one subtask. A
// window fires once, when the watermark is at or past its last millisecond plus
// the allowed lateness. NULL is a key like any other.
type WindowAggregate struct {
	op      *graph.WindowAggregate
	schema  *batch.Schema
	windows *Windows
	aggs    *aggSet
	panes   *panes
	cols    []*batch.Vec
	slots   []int32
	out     batch.Batch
	groups  []int32
}

// NewAggregateOver makes a subtask for any kind of windows, with no state.
func NewAggregateOver(op *graph.WindowAggregate, in, out *batch.Schema) (Keyed, error) {
	switch {
	case op.Firing.On() || op.Retracts:
		return NewWindowChanges(op, in, out)
	case op.Window.Kind == graph.Hop || op.Window.Kind == graph.Cumulate:
		return NewSliceAggregate(op, in, out)
	case op.Window.Kind == graph.Session:
		return NewSessionAggregate(op, in, out)
	}
	return NewWindowAggregate(op, in, out)
}

// NewWindowAggregate makes a subtask over the columns of in, with no state, for
// windows that do not overlap or are given.
func NewWindowAggregate(op *graph.WindowAggregate, in, out *batch.Schema) (*WindowAggregate, error) {
	ws, aggs, err := windowParts(op, in, out)
	if err != nil {
		return nil, err
	}
	w := &WindowAggregate{op: op, schema: out, windows: ws, aggs: aggs}
	keyTypes := typesAt(in, op.Keys)
	w.panes = newPanes(op.Window, op.Lateness, keyTypes, func() *aggTable {
		return newAggTable(keyTypes, aggs.accumulators(nil), 0, nil)
	})
	return w, nil
}

// windowParts checks the columns and compiles what every kind of window needs.
func windowParts(op *graph.WindowAggregate, in, out *batch.Schema) (*Windows, *aggSet, error) {
	ws, err := WindowsOver(op.Window, in, op.Time)
	if err != nil {
		return nil, nil, err
	}
	aggs, err := newAggSet(op.Aggregates, in, op.Time, "")
	if err != nil {
		return nil, nil, err
	}
	n := len(op.Keys) + len(op.Aggregates)
	if len(out.Fields) < n+2 || len(out.Fields) > n+3 {
		return nil, nil, fmt.Errorf("window aggregate of %d columns for %d keys and %d aggregates", len(out.Fields), len(op.Keys), len(op.Aggregates))
	}
	for _, f := range out.Fields[n:] {
		if !f.Type.IsTimestamp() {
			return nil, nil, fmt.Errorf("window column %s is %s", f.Name, f.Type)
		}
	}
	return ws, aggs, nil
}

// Fold implements Keyed.
func (w *WindowAggregate) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	sel := w.aggs.eval(ctx, in, out)
	var parts []paneRows
	var err error
	if w.op.Window.Kind == graph.Given {
		parts, err = w.panes.splitGiven(w.windows, in.Batch, sel)
	} else {
		parts, err = w.panes.split(w.windows, &in.Batch.Cols[w.op.Time], sel)
	}
	if err != nil {
		return err
	}
	w.cols = colsAt(in.Batch, w.op.Keys, w.cols)
	w.slots = slices.Grow(w.slots[:0], in.Batch.Len)[:in.Batch.Len]
	for _, x := range parts {
		x.p.keys.Find(w.cols, in.Hashes, x.sel, w.slots)
		x.p.resize()
		w.aggs.update(x.p.accs, w.slots, x.sel)
	}
	return nil
}

// Advance implements Keyed.
func (w *WindowAggregate) Advance(_ *expr.Context, time int64, out *Results) error {
	for _, p := range w.panes.due(time) {
		err := w.panes.spiller.each([]*aggTable{p.aggTable}, func(t *aggTable) error {
			for from := 0; from < t.keys.Len(); from += emitRows {
				if err := w.emit(p.Span, t, from, min(from+emitRows, t.keys.Len()), out); err != nil {
					return err
				}
			}
			return nil
		})
		p.release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *WindowAggregate) emit(s Span, t *aggTable, from, to int, out *Results) error {
	w.groups = slotsOf(from, to, w.groups)
	b := &w.out
	b.Reset(w.schema)
	b.Len = to - from
	emitTable(b.Cols, t, w.aggs, w.groups)
	n := len(w.op.Keys) + len(w.op.Aggregates)
	putBounds(b.Cols[n:], w.schema.Fields[n:], b.Len, s)
	return out.Emit(b)
}

// emitTable fills the columns of keys, then of aggregates, for slots.
func emitTable(cols []batch.Vec, t *aggTable, aggs *aggSet, slots []int32) {
	keys := t.keys.Columns()
	for i := range keys {
		cols[i].Take(&keys[i], slots)
	}
	for i, call := range aggs.outputs {
		v := &cols[len(keys)+i]
		t.accs[call].Emit(slots, aggs.calls[call].where, v)
	}
}

// Save implements Keyed.
func (w *WindowAggregate) Save() []byte { return w.panes.save(appendTexts(nil, w.aggs.texts())) }

// SpillTo implements Spilling.
func (w *WindowAggregate) SpillTo(s *spill.Store, budget int64) { w.panes.spiller.SpillTo(s, budget) }

// Spill implements Spilling.
func (w *WindowAggregate) Spill() error { return w.panes.spill() }

// Spilled implements Spilling.
func (w *WindowAggregate) Spilled() bool { return w.panes.spilled() }

// SaveTo implements Spilling.
func (w *WindowAggregate) SaveTo(p *state.Payload) error {
	w.panes.saveTo(p, appendTexts(nil, w.aggs.texts()))
	return nil
}

// Load implements Keyed.
func (w *WindowAggregate) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	to := readTexts(r, w.aggs.texts())
	if err := r.Err(); err != nil {
		return err
	}
	return w.panes.load(r, groups, to, nil)
}

// Kind implements Keyed.
func (*WindowAggregate) Kind() string { return "WindowAggregate" }

// Fingerprint implements Keyed.
func (w *WindowAggregate) Fingerprint() uint64 { return w.panes.fingerprint() }

// Bytes implements Keyed.
func (w *WindowAggregate) Bytes() int64 { return w.panes.bytes() }
