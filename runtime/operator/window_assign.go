package operator

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// WindowAssign adds window_start, window_end and window_time, and gives a row
// once for each of its windows. A row whose time is an error or NULL fails
// (reason null_event_time).
type WindowAssign struct {
	windows *Windows
	time    int
	schema  *batch.Schema
	inputs  int

	sel   batch.Sel
	batch batch.Batch
	cols  []batch.Vec

	// Of windows that overlap.
	parent batch.Sel
	spans  []Span
	kinds  []batch.Kind
	origin []int32
	wide   batch.Batch
}

// NewWindowAssign assigns windows to the row time in a column of in.
func NewWindowAssign(w graph.Window, time int, in, out *batch.Schema) (*WindowAssign, error) {
	ws, err := NewWindows(w, in.Fields[time].Type)
	if err != nil {
		return nil, err
	}
	if len(out.Fields) != len(in.Fields)+3 {
		return nil, fmt.Errorf("window table of %d columns over %d", len(out.Fields), len(in.Fields))
	}
	for _, f := range out.Fields[len(in.Fields):] {
		if !f.Type.IsTimestamp() {
			return nil, fmt.Errorf("window column %s is %s", f.Name, f.Type)
		}
	}
	return &WindowAssign{windows: ws, time: time, schema: out, inputs: len(in.Fields),
		cols: make([]batch.Vec, len(out.Fields))}, nil
}

// Eval implements Operator.
func (w *WindowAssign) Eval(ctx *expr.Context, in *Rows, out *Rows) {
	out.inherit(in)
	if w.windows.kind != graph.Tumble {
		w.expand(ctx, in, out)
		return
	}
	n := w.inputs
	for i := range n {
		w.cols[i] = in.Batch.Cols[i]
	}
	bounds := w.cols[n:]
	for i := range bounds {
		bounds[i].Reset(w.schema.Fields[n+i].Type, in.Batch.Len)
		clear(bounds[i].I64)
	}
	w.sel = w.sel[:0]
	if w.sel == nil {
		w.sel = batch.Sel{}
	}
	v := &in.Batch.Cols[w.time]
	for _, row := range in.all(ctx) {
		if w.failed(in, out, v, row) {
			continue
		}
		put(bounds, int(row), w.windows.Of(v.Int64(int(row))))
		w.sel = append(w.sel, row)
	}
	w.batch = *in.Batch
	w.batch.Schema, w.batch.Cols = w.schema, w.cols
	out.Batch, out.Sel = &w.batch, w.sel
}

func (w *WindowAssign) failed(in, out *Rows, v *batch.Vec, row int32) bool {
	if !v.IsNull(int(row)) {
		return false
	}
	e := v.Err(int(row))
	if e == nil {
		e = NullEventTime(w.schema.Fields[w.time].Name)
	}
	out.fail(in, e, row)
	return true
}

// expand gives each row as often as it has windows.
func (w *WindowAssign) expand(ctx *expr.Context, in *Rows, out *Rows) {
	w.parent, w.spans, w.origin = w.parent[:0], w.spans[:0], w.origin[:0]
	if w.parent == nil {
		w.parent = batch.Sel{}
	}
	v := &in.Batch.Cols[w.time]
	for _, row := range in.all(ctx) {
		if w.failed(in, out, v, row) {
			continue
		}
		from := len(w.spans)
		w.spans = w.windows.All(w.spans, v.Int64(int(row)))
		for range w.spans[from:] {
			w.parent, w.origin = append(w.parent, row), append(w.origin, in.Source(row))
		}
	}
	b := &w.wide
	b.Reset(w.schema)
	b.Len = len(w.parent)
	if in.Batch.Kinds != nil {
		w.kinds = w.kinds[:0]
		for _, row := range w.parent {
			w.kinds = append(w.kinds, in.Batch.Kinds[row])
		}
		b.Kinds = w.kinds
	}
	for i := range w.inputs {
		b.Cols[i].Take(&in.Batch.Cols[i], w.parent)
	}
	bounds := b.Cols[w.inputs:]
	for i := range bounds {
		bounds[i].Reset(w.schema.Fields[w.inputs+i].Type, b.Len)
	}
	for i := range w.spans {
		put(bounds, i, w.spans[i])
	}
	takePositions(b, in.Batch, w.parent)
	out.Batch, out.Sel, out.Origin = b, nil, w.origin
}

// put writes the bounds of a window: the wall clock into TIMESTAMP, the instant
// into TIMESTAMP_LTZ columns.
func put(bounds []batch.Vec, row int, s Span) {
	walls := [3]int64{s.Start, s.End, s.End - 1}
	instants := [3]int64{s.EndTime - (s.End - s.Start), s.EndTime, s.EndTime - 1}
	for i := range bounds {
		x := walls[i]
		if bounds[i].Type.Kind == types.TimestampLTZ {
			x = instants[i]
		}
		bounds[i].I64[row] = x * (bounds[i].Type.UnitsPerSecond() / 1000)
	}
}

// NullEventTime is the error of a NULL row time in a window.
func NullEventTime(column string) *batch.ValueError {
	return &batch.ValueError{Code: batch.CodeNullEventTime, Where: column, Message: "row time is NULL"}
}
