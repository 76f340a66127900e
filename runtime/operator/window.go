package operator

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// Windows finds the tumbling window of a row time. It belongs to one
// goroutine.
type Windows struct {
	size, offset int64
	units        int64
	zone         *types.Zone // of TIMESTAMP_LTZ row time, else nil
}

// NewWindows returns the windows over a row time column of type t.
func NewWindows(w graph.Window, t types.Type) (*Windows, error) {
	if w.Size <= 0 {
		return nil, fmt.Errorf("window size of %d ms", w.Size)
	}
	if !t.IsTimestamp() {
		return nil, fmt.Errorf("row time is %s", t)
	}
	ws := &Windows{size: w.Size, offset: w.Offset, units: t.UnitsPerSecond()}
	if t.Kind == types.TimestampLTZ {
		ws.zone = types.UTC()
		if w.Zone != nil {
			z, err := types.LoadZone(w.Zone.String())
			if err != nil {
				return nil, fmt.Errorf("window's zone: %w", err)
			}
			ws.zone = z
		}
	}
	return ws, nil
}

// Span is a window in milliseconds: by the wall clock of the session zone (for
// TIMESTAMP row time: its own), and its end in event time, which watermarks
// are compared with.
type Span struct{ Start, End, EndTime int64 }

// Of is the window of a row time in the column's unit. Windows over
// TIMESTAMP_LTZ align to the session zone's wall clock.
func (w *Windows) Of(ts int64) Span {
	local := ts
	if w.zone != nil {
		local = w.zone.ToLocal(ts, w.units)
	}
	ms := types.FloorDiv(local, w.units/1000)
	start := types.FloorDiv(ms-w.offset, w.size)*w.size + w.offset
	s := Span{Start: start, End: start + w.size, EndTime: start + w.size}
	if w.zone != nil {
		s.EndTime = w.zone.ToInstant(s.End, 1000)
	}
	return s
}

// WindowAssign adds window_start, window_end and window_time. A row whose time
// is an error or NULL fails (reason null_event_time).
type WindowAssign struct {
	windows *Windows
	time    int
	schema  *batch.Schema
	inputs  int

	sel   batch.Sel
	batch batch.Batch
	cols  []batch.Vec
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
		if v.IsNull(int(row)) {
			e := v.Err(int(row))
			if e == nil {
				e = NullEventTime(w.schema.Fields[w.time].Name)
			}
			out.fail(in, e, row)
			continue
		}
		s := w.windows.Of(v.Int64(int(row)))
		w.put(&bounds[0], row, s.Start, s.EndTime-w.windows.size)
		w.put(&bounds[1], row, s.End, s.EndTime)
		w.put(&bounds[2], row, s.End-1, s.EndTime-1)
		w.sel = append(w.sel, row)
	}
	w.batch = *in.Batch
	w.batch.Schema, w.batch.Cols = w.schema, w.cols
	out.Batch, out.Sel = &w.batch, w.sel
}

// put writes a bound: the wall clock into TIMESTAMP, the instant into
// TIMESTAMP_LTZ columns.
func (w *WindowAssign) put(v *batch.Vec, row int32, wall, instant int64) {
	if v.Type.Kind == types.TimestampLTZ {
		wall = instant
	}
	v.I64[row] = wall * (v.Type.UnitsPerSecond() / 1000)
}

// NullEventTime is the error of a NULL row time in a window.
func NullEventTime(column string) *batch.ValueError {
	return &batch.ValueError{Code: batch.CodeNullEventTime, Where: column, Message: "row time is NULL"}
}
