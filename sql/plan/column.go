package plan

import (
	"strconv"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
)

// Column is an output column of a node.
type Column struct {
	// ID is unique in the job; expr.Column.Index refers to it. Columns with
	// one id, in one node or in several, have the same values.
	ID   int
	Name string
	Type rt.Type

	// RowTime: the values are the rows' event time, watermarks run along.
	RowTime bool
	// Changing: the values are row times of rows that change, or come in no order.
	Changing ChangingTime
	// ProcTime: the column is PROCTIME(), the time of processing.
	ProcTime bool
	// Lookup: what a table said when it was looked up is behind the column; a replay
	// may get another answer.
	Lookup bool
	// Window is set for window_start, window_end and window_time.
	Window *WindowColumn
	// Determinism is the weakest of all calls behind the column.
	Determinism fn.Determinism
	// Narrow is the type Flink would give, for a SUM widened here; else nil.
	Narrow *rt.Type
	// WindowOnly: computed from window bounds and constants alone.
	WindowOnly bool
}

// forgetTime leaves a column without row time, of either sort.
func (c *Column) forgetTime() { c.RowTime, c.Changing = false, NoTime }

// ChangingTime says how a column without watermarks came by row times.
type ChangingTime uint8

// The ways. AS OF takes either, windows take RowTimes.
const (
	NoTime ChangingTime = iota
	// GroupTime is MAX or MIN of row times, RowTimes are those of rows as they came.
	GroupTime
	RowTimes
)

// WindowRole says which bound of a window a column is.
type WindowRole uint8

// The roles.
const (
	WindowStart WindowRole = iota
	WindowEnd
	WindowTime
)

// WindowColumn says that a column is a bound of a window.
type WindowColumn struct {
	Role   WindowRole
	Window *Window
	// Time is the id of the column whose time the windows divide.
	Time int
}

// WindowKind is how time is divided into windows.
type WindowKind uint8

// The kinds.
const (
	TumbleWindow WindowKind = iota
	HopWindow
	CumulateWindow
	SessionWindow
)

// Window is how time is divided into windows.
type Window struct {
	Kind WindowKind
	// Size and Offset in ms; of a session Size is the gap.
	Size, Offset int64
	// Step is the slide of HOP and the step of CUMULATE, in ms.
	Step int64
	// LTZ: the time is an instant, windows align to the session's wall clock.
	LTZ bool
	// RowTime: the time is row time, so that window_time is too.
	RowTime bool
	// Changing: the rows change, each has its windows by itself.
	Changing bool
	// Processing: the time is that at which a row is aggregated, in streaming mode.
	Processing bool
}

// String is the window as EXPLAIN prints it.
func (w *Window) String() string {
	var s string
	switch w.Kind {
	case HopWindow:
		s = "HOP(slide=" + millis(w.Step) + ", size=" + millis(w.Size)
	case CumulateWindow:
		s = "CUMULATE(step=" + millis(w.Step) + ", size=" + millis(w.Size)
	case SessionWindow:
		s = "SESSION(gap=" + millis(w.Size)
	default:
		s = "TUMBLE(size=" + millis(w.Size)
	}
	if w.Offset != 0 {
		s += ", offset=" + millis(w.Offset)
	}
	if w.Processing {
		s += ", by the clock"
	}
	return s + ")"
}

func millis(ms int64) string {
	for _, u := range []struct {
		ms   int64
		name string
	}{{86_400_000, "d"}, {3_600_000, "h"}, {60_000, "min"}, {1000, "s"}} {
		if ms != 0 && ms%u.ms == 0 {
			return strconv.FormatInt(ms/u.ms, 10) + " " + u.name
		}
	}
	return strconv.FormatInt(ms, 10) + " ms"
}

// Ref is a reference to the column.
func (c *Column) Ref() *expr.Column {
	return &expr.Column{Index: c.ID, Name: c.Name, T: c.Type}
}

// ColumnByID finds a column of a list.
func ColumnByID(cols []Column, id int) (*Column, bool) {
	for i := range cols {
		if cols[i].ID == id {
			return &cols[i], true
		}
	}
	return nil, false
}

// SchemaOf is the columns as a batch schema.
func SchemaOf(cols []Column) *batch.Schema {
	s := &batch.Schema{}
	for _, c := range cols {
		s.Fields = append(s.Fields, rt.Field{Name: c.Name, Type: c.Type})
	}
	return s
}

// Key is a text that is equal for equal expressions over column ids.
func Key(e expr.Expr) string {
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		if c, ok := n.(*expr.Column); ok {
			return &expr.Column{Index: c.Index, T: c.T}
		}
		return n
	}).String()
}

// derive makes the output column for an expression over input columns. A bare
// reference keeps everything, the id included; else newID gives the id.
func derive(newID func() int, name string, e expr.Expr, input []Column) Column {
	if ref, ok := e.(*expr.Column); ok {
		if c, ok := ColumnByID(input, ref.Index); ok {
			out := *c
			out.Name = name
			return out
		}
	}
	out := Column{ID: newID(), Name: name, Type: e.Type(), Determinism: expr.DeterminismOf(e), WindowOnly: true}
	if c, ok := e.(*expr.Call); ok {
		out.ProcTime = c.Fn.Name == "PROCTIME"
	}
	for _, ref := range expr.Columns(e) {
		if c, ok := ColumnByID(input, ref); ok {
			out.Lookup = out.Lookup || c.Lookup
			out.Determinism = max(out.Determinism, c.Determinism)
			out.WindowOnly = out.WindowOnly && (c.WindowOnly || c.Window != nil)
		}
	}
	return out
}
