package operator

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// Windows finds the windows of a row time. It belongs to one goroutine.
type Windows struct {
	kind         graph.WindowKind
	size, offset int64
	step         int64
	slice        int64 // greatest length that no window's bound divides
	units        int64
	zone         *types.Zone // of TIMESTAMP_LTZ row time, else nil
	start, end   int         // columns of Given
}

// NewWindows returns the windows over a row time column of type t.
func NewWindows(w graph.Window, t types.Type) (*Windows, error) {
	switch {
	case w.Kind == graph.Given:
	case w.Size <= 0:
		return nil, fmt.Errorf("window size of %d ms", w.Size)
	case (w.Kind == graph.Hop || w.Kind == graph.Cumulate) && (w.Step <= 0 || w.Step > w.Size):
		return nil, fmt.Errorf("window step of %d ms for a size of %d ms", w.Step, w.Size)
	}
	if !t.IsTimestamp() {
		return nil, fmt.Errorf("row time is %s", t)
	}
	ws := &Windows{kind: w.Kind, size: w.Size, offset: w.Offset, step: w.Step, units: t.UnitsPerSecond(), start: w.Start, end: w.End}
	switch w.Kind {
	case graph.Hop:
		ws.slice = gcd(w.Size, w.Step)
	case graph.Cumulate:
		ws.slice = w.Step
	}
	if t.Kind == types.TimestampLTZ || w.Kind == graph.Given && w.Zone != nil {
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

// WindowsOver returns the windows of an operator with the columns of in.
func WindowsOver(w graph.Window, in *batch.Schema, time int) (*Windows, error) {
	if w.Kind == graph.Given {
		time = w.End
	}
	return NewWindows(w, in.Fields[time].Type)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Span is a window in milliseconds: by the wall clock of the session zone (for
// TIMESTAMP row time: its own), and its end in event time, which watermarks
// are compared with.
type Span struct{ Start, End, EndTime int64 }

// Compare orders windows by when they are over.
func (s Span) Compare(o Span) int { return compareSpans(s, o) }

// String is the window by its wall clock.
func (s Span) String() string {
	t := types.NewTimestamp(3)
	return string(types.AppendTimestamp(nil, s.Start*1000, t, ' ')) + " to " + string(types.AppendTimestamp(nil, s.End*1000, t, ' '))
}

// append writes the window into a saved state, from where readSpan reads it.
func (s Span) append(dst []byte) []byte {
	return binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(dst, s.Start), s.End), s.EndTime)
}

func readSpan(r *state.Reader) Span {
	return Span{Start: r.Varint(), End: r.Varint(), EndTime: r.Varint()}
}

// local is a row time as wall clock in ms.
func (w *Windows) local(ts int64) int64 {
	if w.zone != nil {
		ts = w.zone.ToLocal(ts, w.units)
	}
	return types.FloorDiv(ts, w.units/1000)
}

// instant is a wall clock in ms as event time.
func (w *Windows) instant(wall int64) int64 {
	if w.zone != nil {
		return w.zone.ToInstant(wall, 1000)
	}
	return wall
}

// floor is the last wall clock at or before ms at which a window of the given
// distance begins.
func (w *Windows) floor(ms, distance int64) int64 {
	return types.FloorDiv(ms-w.offset, distance)*distance + w.offset
}

// Of is the tumbling window of a row time in the column's unit. Windows over
// TIMESTAMP_LTZ align to the session zone's wall clock.
func (w *Windows) Of(ts int64) Span {
	start := w.floor(w.local(ts), w.size)
	return Span{Start: start, End: start + w.size, EndTime: w.instant(start + w.size)}
}

// Latest is the window of a row time that ends last: a row is late when it is
// late for this one. The session of a row alone ends the gap behind it.
func (w *Windows) Latest(ts int64) Span {
	switch w.kind {
	case graph.Hop, graph.Cumulate:
		s := w.sliceOf(ts)
		_, last := w.ends(s)
		return w.span(s, last)
	case graph.Session:
		return w.session(types.FloorDiv(ts, w.units/1000), types.FloorDiv(ts, w.units/1000)+w.size)
	}
	return w.Of(ts)
}

// All appends the windows of a row time, by their ends.
func (w *Windows) All(out []Span, ts int64) []Span {
	if w.kind == graph.Tumble {
		return append(out, w.Of(ts))
	}
	s := w.sliceOf(ts)
	first, last := w.ends(s)
	for end := first; end <= last; end += w.step {
		out = append(out, w.span(s, end))
	}
	return out
}

// session is a session between two instants.
func (w *Windows) session(start, end int64) Span {
	if w.zone == nil {
		return Span{start, end, end}
	}
	return Span{w.zone.ToLocal(start, 1000), w.zone.ToLocal(end, 1000), end}
}

// sliceOf is the beginning of the slice of a row time: the part of time that
// belongs to the same windows.
func (w *Windows) sliceOf(ts int64) int64 { return w.floor(w.local(ts), w.slice) }

// ends are the first and the last end of the windows that a slice belongs to;
// the others lie a step apart.
func (w *Windows) ends(slice int64) (first, last int64) {
	if w.kind == graph.Cumulate {
		base := w.floor(slice, w.size)
		return base + (slice-base)/w.step*w.step + w.step, base + w.size
	}
	last = w.floor(slice, w.step) + w.size
	return last - (last-slice-1)/w.step*w.step, last
}

// span is the window that has a slice and ends at a wall clock.
func (w *Windows) span(slice, end int64) Span {
	s := Span{Start: end - w.size, End: end, EndTime: w.instant(end)}
	if w.kind == graph.Cumulate {
		s.Start = w.floor(slice, w.size)
	}
	return s
}

// given is the window in a row's columns.
func (w *Windows) given(b *batch.Batch, row int) Span {
	start, end := wallOf(&b.Cols[w.start], row), wallOf(&b.Cols[w.end], row)
	return Span{Start: start, End: end, EndTime: w.instant(end)}
}

func wallOf(v *batch.Vec, row int) int64 {
	for v.Enc == batch.Dict {
		v, row = v.Dict, int(v.Codes[row])
	}
	return types.FloorDiv(v.Int64(row), v.Type.UnitsPerSecond()/1000)
}

// EndTimeOf is the end, in event time, of the window in the columns of a row.
// ok is false for rows without one: the columns are NULL or errors.
func (w *Windows) EndTimeOf(b *batch.Batch, row int) (end int64, ok bool) {
	if b.Cols[w.start].IsNull(row) || b.Cols[w.end].IsNull(row) {
		return 0, false
	}
	return w.given(b, row).EndTime, true
}

// refuses reports that a row, whose own partition had come to a watermark, is
// late for the window that ends at an instant.
func refuses(b *batch.Batch, row int32, endTime, lateness int64) bool {
	return b.Watermark != nil && watermark.Late(b.Watermark[row], endTime, lateness)
}
