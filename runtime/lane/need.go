package lane

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
)

// need is what the stage needs of a row, and when it is late.
type need struct {
	keys    []int // may be no error
	notNull []int // may not be NULL either (keys of wide tables)
	time    int   // row time in use, -1: none
	windows *operator.Windows
	latency int64
	late    graph.ErrorPolicy
	aside   bool // late rows go to a table of their own
	never   bool // batch mode: nothing is late
	// given: the windows stand in columns, and a source row may have several.
	given bool
	open  []bool // by source row: one of its windows takes it
	// several: a row may be late for some of its windows, which the stage decides
	// by the watermark that goes over with it.
	several bool
	// args are what the stage evaluates; errors there fail a row where filters
	// let it through. Bare columns are in keys.
	args *expr.Program
	uses []argUse
	out  []batch.Vec
}

// argUse is an expression of args: filter is the index of its FILTER, -1.
type argUse struct {
	expr, filter int
	isFilter     bool
}

// newNeed reads it off the node behind the exchange. input says which of the
// node's inputs the exchange is.
func newNeed(job *graph.Job, exchange graph.NodeID, stage *graph.Node) (need, error) {
	n := need{time: -1, never: job.Batch}
	in := job.Nodes[exchange].Schema
	n.keys = slices.Clone(job.Nodes[exchange].Op.(*graph.Exchange).Keys)
	var aggs []graph.Aggregate
	var err error
	if stage == nil {
		return n, nil
	}
	switch op := stage.Op.(type) {
	case *graph.WindowAggregate:
		n.keys = append(n.keys, op.Keys...)
		aggs = op.Aggregates
		if op.Window.Processing {
			break // nothing is late
		}
		n.time, n.latency = op.Time, op.Lateness
		n.lateRows(op.Late)
		n.windows, err = operator.WindowsOver(op.Window, in, op.Time)
		n.given = op.Window.Kind == graph.Given
		n.several = n.given || op.Window.Kind == graph.Hop || op.Window.Kind == graph.Cumulate
		if n.given {
			n.keys = append(n.keys, op.Window.Start, op.Window.End)
		}
	case *graph.SessionAssign:
		n.whole(in)
		n.time, n.latency = op.Time, op.Lateness
		n.lateRows(op.Late)
		n.windows, err = operator.NewWindows(op.Window, in.Fields[op.Time].Type)
	case *graph.Rank:
		n.whole(in)
		if n.given = op.Window.Kind == graph.Given; n.given {
			n.several, n.late = true, op.Late.Policy
			n.windows, err = operator.WindowsOver(op.Window, in, -1)
		}
	case *graph.FirstRow:
		n.whole(in)
		err = n.instant(op.Time, op.Late, in)
	case *graph.Over:
		n.whole(in)
		if op.Time >= 0 {
			err = n.instant(op.Time, op.Late, in)
		}
	case *graph.GroupAggregate:
		n.keys = append(n.keys, op.Keys...)
		aggs = op.Aggregates
	case *graph.Join:
		side := slices.Index(stage.Inputs, exchange)
		n.keys = op.InputKeys(side)
		if side == 0 && op.Kind == graph.MarkJoin {
			n.keys = nil // an error of the operand is one of the mark
		}
		err = n.streamJoin(op, side, in)
	case *graph.WideMerge:
		err = n.wide(op, job, exchange, stage, in)
	default:
		n.whole(in) // sort, limit and normalize
	}
	if err != nil {
		return n, err
	}
	return n, n.aggregates(aggs, in)
}

// streamJoin says when a row is late for a window, an interval or a temporal join: for
// the latter two when its own partition had come to the row's time.
func (n *need) streamJoin(op *graph.Join, side int, in *batch.Schema) (err error) {
	if !op.Streams() {
		return nil
	}
	n.late = op.Late.Policy
	if op.Late.Table >= 0 && op.Late.Policy == graph.DeadLetter {
		return &graph.NotYetError{Feature: "window.late-rows into a table"}
	}
	if op.Windows != nil {
		w := op.Windows[side]
		n.given, n.several = true, true
		n.keys = append(n.keys, w.Start, w.End)
		n.windows, err = operator.WindowsOver(w, in, -1)
		return err
	}
	n.time = op.TimeColumn(side)
	n.windows, err = operator.NewWindows(operator.PointInTime(), in.Fields[n.time].Type)
	return err
}

// lateRows takes over what becomes of late rows.
func (n *need) lateRows(l graph.LateRows) {
	n.late, n.aside = l.Policy, l.Table >= 0 && l.Policy == graph.DeadLetter
}

// instant: a row is late when its partition had come to its time.
func (n *need) instant(time int, late graph.LateRows, in *batch.Schema) error {
	n.time, n.late = time, late.Policy
	var err error
	n.windows, err = operator.NewWindows(operator.PointInTime(), in.Fields[time].Type)
	return err
}

// whole: the stage keeps rows, so that no column may be an error.
func (n *need) whole(in *batch.Schema) {
	for i := range in.Fields {
		n.keys = append(n.keys, i)
	}
}

func (n *need) wide(op *graph.WideMerge, job *graph.Job, exchange graph.NodeID, stage *graph.Node, in *batch.Schema) error {
	k := slices.Index(stage.Inputs, exchange)
	if k < 0 {
		return fmt.Errorf("BUG: exchange %d is no input of node %d", exchange, stage.ID)
	}
	b := &op.Branches[k]
	n.keys = append(n.keys, b.Keys...)
	n.notNull = append(n.notNull, b.Keys...)
	if b.Version >= 0 {
		n.keys = append(n.keys, b.Version)
	}
	for i := range op.Columns {
		if c := &op.Columns[i]; c.Branch == b.Label && c.Input >= 0 {
			n.keys = append(n.keys, c.Input)
		}
	}
	n.time, n.latency = b.Time, op.Lateness
	n.lateRows(op.Late)
	var err error
	n.windows, err = operator.NewWindows(op.Window, in.Fields[b.Time].Type)
	return err
}

// aggregates compiles arguments and filters.
func (n *need) aggregates(aggs []graph.Aggregate, in *batch.Schema) error {
	var exprs []expr.Expr
	for i := range aggs {
		a, filter := &aggs[i], -1
		if a.Filter != nil {
			filter = len(exprs)
			exprs = append(exprs, a.Filter)
			n.uses = append(n.uses, argUse{expr: filter, filter: -1, isFilter: true})
		}
		n.keys = append(n.keys, a.Order...)
		for _, arg := range a.Args {
			if c, ok := arg.(*expr.Column); ok && filter < 0 {
				n.keys = append(n.keys, c.Index)
				continue
			}
			n.uses = append(n.uses, argUse{expr: len(exprs), filter: filter})
			exprs = append(exprs, arg)
		}
	}
	slices.Sort(n.keys)
	n.keys = slices.Compact(n.keys)
	if len(exprs) == 0 {
		return nil
	}
	p, err := expr.Compile(exprs, in, expr.Options{})
	if err != nil {
		return fmt.Errorf("compiling aggregate arguments: %w", err)
	}
	n.args, n.out = p, make([]batch.Vec, len(exprs))
	return nil
}
