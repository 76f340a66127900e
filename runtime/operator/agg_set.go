package operator

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// aggSet is the aggregate calls of one input, compiled. Calls of equal text are
// one.
type aggSet struct {
	prog  *expr.Program
	out   []batch.Vec
	calls []aggCall
	// outputs are, by aggregate, the number of its call.
	outputs []int

	order  order
	schema *batch.Schema
	good   batch.Sel
	pass   batch.Sel
}

type aggCall struct {
	text, where string
	bound       fn.BoundAggregate
	from, to    int // arguments in out
	filter      int // in out, -1: none
	order       int // in aggSet.order, -1: not ordered
}

// newAggSet compiles calls over the columns of in; time is the row time column, -1
// when there is none. label is a wide table's branch, "" elsewhere.
func newAggSet(aggs []graph.Aggregate, in *batch.Schema, time int, label string) (*aggSet, error) {
	s := &aggSet{schema: in, order: order{time: time, label: label}}
	var exprs []expr.Expr
	byText := map[string]int{}
	for i := range aggs {
		a := &aggs[i]
		at, ok := byText[a.Text]
		if !ok {
			at = len(s.calls)
			byText[a.Text] = at
			c := aggCall{text: a.Text, where: a.Name, bound: a.Bound, from: len(exprs), filter: -1, order: -1}
			exprs = append(exprs, a.Args...)
			c.to = len(exprs)
			if a.Filter != nil {
				c.filter = len(exprs)
				exprs = append(exprs, a.Filter)
			}
			if a.Bound.Ordered {
				c.order = s.order.add(a.Order)
			}
			s.calls = append(s.calls, c)
		}
		s.outputs = append(s.outputs, at)
	}
	prog, err := expr.Compile(exprs, in, expr.Options{})
	if err != nil {
		return nil, fmt.Errorf("compiling aggregates: %w", err)
	}
	s.prog, s.out = prog, make([]batch.Vec, len(exprs))
	return s, nil
}

// texts identify the calls in saved state.
func (s *aggSet) texts() []string {
	out := make([]string, len(s.calls))
	for i := range s.calls {
		out[i] = s.calls[i].text
	}
	return out
}

// accumulators makes empty ones, one a call.
func (s *aggSet) accumulators(out []fn.Accumulator) []fn.Accumulator {
	for i := range s.calls {
		out = append(out, s.calls[i].bound.New())
	}
	return out
}

// retracting makes the accumulators such that take rows back.
func (s *aggSet) retracting() {
	for i := range s.calls {
		s.calls[i].bound = fn.Retracting(s.calls[i].bound)
	}
}

// eval computes arguments, filters and order keys, and gives the rows that all
// calls can take; the others are dead. An argument is looked at only where its
// filter lets the row through.
func (s *aggSet) eval(ctx *expr.Context, in *KeyedRows, out *Results) batch.Sel {
	s.prog.Eval(ctx, in.Batch, in.Sel, s.out)
	sel := in.Sel
	for i := range s.out {
		if s.out[i].HasDeepErrs() {
			sel = s.withoutErrors(in, out)
			break
		}
	}
	s.order.eval(in, sel)
	return sel
}

func (s *aggSet) withoutErrors(in *KeyedRows, out *Results) batch.Sel {
	s.good = s.good[:0]
	if s.good == nil {
		s.good = batch.Sel{}
	}
	for _, row := range in.Sel {
		if e := s.errorOf(row); e != nil {
			x := *e
			x.Row = row
			out.Dead(in.Batch, &x)
			continue
		}
		s.good = append(s.good, row)
	}
	return s.good
}

func (s *aggSet) errorOf(row int32) *batch.ValueError {
	for i := range s.calls {
		c := &s.calls[i]
		if c.filter >= 0 {
			if e := s.out[c.filter].Err(int(row)); e != nil {
				return e
			}
			if !isTrue(&s.out[c.filter], int(row)) {
				continue
			}
		}
		for a := c.from; a < c.to; a++ {
			if e := s.out[a].DeepErr(int(row)); e != nil {
				return e
			}
		}
	}
	return nil
}

func isTrue(v *batch.Vec, row int) bool {
	if v.IsNull(row) {
		return false
	}
	for v.Enc == batch.Dict {
		v, row = v.Dict, int(v.Codes[row])
	}
	return v.Bool(row)
}

// update folds rows of sel into accumulators; groups is by row.
func (s *aggSet) update(accs []fn.Accumulator, groups []int32, sel batch.Sel) {
	s.fold(sel, func(i int, args []batch.Vec, order *batch.Vec, rows batch.Sel) {
		accs[i].Update(groups, args, order, rows)
	})
}

// retract takes rows of sel back; the accumulators are fn.Retractors.
func (s *aggSet) retract(accs []fn.Accumulator, groups []int32, sel batch.Sel) {
	s.fold(sel, func(i int, args []batch.Vec, order *batch.Vec, rows batch.Sel) {
		accs[i].(fn.Retractor).Retract(groups, args, order, rows)
	})
}

// fold calls f for each call with the rows that its filter lets through.
func (s *aggSet) fold(sel batch.Sel, f func(i int, args []batch.Vec, order *batch.Vec, rows batch.Sel)) {
	for i := range s.calls {
		c := &s.calls[i]
		rows := sel
		if c.filter >= 0 {
			rows = s.pass[:0]
			if rows == nil {
				rows = batch.Sel{}
			}
			for _, r := range sel {
				if isTrue(&s.out[c.filter], int(r)) {
					rows = append(rows, r)
				}
			}
			s.pass = rows
		}
		if len(rows) > 0 {
			f(i, s.out[c.from:c.to], s.order.keys(c.order), rows)
		}
	}
}

// order makes the keys by which FIRST_VALUE and its like order rows: a total
// order that says nothing about arrival.
type order struct {
	time  int
	label string
	// whole appends the encoding of the row, which tells rows of one position
	// apart (one record may reach an exchange in two ways).
	whole bool
	specs [][]int
	vecs  []batch.Vec
	buf   []byte
	parts []int32
	offs  []int64
}

func (o *order) add(spec []int) int {
	for i := range o.specs {
		if slices.Equal(o.specs[i], spec) {
			return i
		}
	}
	o.specs = append(o.specs, spec)
	o.vecs = append(o.vecs, batch.Vec{})
	return len(o.specs) - 1
}

func (o *order) keys(i int) *batch.Vec {
	if i < 0 {
		return nil
	}
	return &o.vecs[i]
}

// eval fills the keys of the rows of sel.
func (o *order) eval(in *KeyedRows, sel batch.Sel) {
	if len(o.specs) == 0 {
		return
	}
	o.positions(in)
	for i, spec := range o.specs {
		v := &o.vecs[i]
		v.Reset(types.NewBytes(), in.Batch.Len)
		for _, row := range sel {
			o.buf = o.appendKey(o.buf[:0], in, spec, int(row))
			v.PutBytes(int(row), o.buf)
		}
		v.PadOffsets()
	}
}

func (o *order) appendKey(b []byte, in *KeyedRows, spec []int, row int) []byte {
	b = o.appendOrigin(b, in, spec, row)
	if in.Partitions != nil && !o.whole {
		return b
	}
	return appendRowValues(b, in.Batch, row)
}

// appendRowValues appends the encoding of a whole row.
func appendRowValues(b []byte, rows *batch.Batch, row int) []byte {
	for c := range rows.Cols {
		b = batch.AppendValue(b, &rows.Cols[c], row)
	}
	return b
}

// appendOrigin appends what a row is ordered by, then where it comes from.
func (o *order) appendOrigin(b []byte, in *KeyedRows, spec []int, row int) []byte {
	if len(spec) > 0 {
		for _, c := range spec {
			b = batch.AppendOrderValue(b, &in.Batch.Cols[c], row)
		}
	} else if o.time >= 0 {
		b = batch.AppendOrderValue(b, &in.Batch.Cols[o.time], row)
	}
	if in.Partitions != nil {
		return batch.AppendOrderPosition(b, o.label, in.Topic, o.parts[row], o.offs[row], in.Batch.Index(row))
	}
	return append(append(b, o.label...), 0)
}

// positions lists partition and offset by row.
func (o *order) positions(in *KeyedRows) {
	if in.Partitions == nil {
		return
	}
	n := in.Batch.Len
	o.parts, o.offs = slices.Grow(o.parts[:0], n)[:n], slices.Grow(o.offs[:0], n)[:n]
	for r := range in.Batch.Runs {
		run := &in.Batch.Runs[r]
		for i := run.FirstRow; i < run.FirstRow+run.Rows; i++ {
			o.parts[i] = in.Partitions[run.Partition]
			o.offs[i] = in.Batch.Offset(run, int(i))
		}
	}
}
