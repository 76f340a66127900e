package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
)

// Rows is what an operator gives to the next.
type Rows struct {
	// Batch has the columns. Its Runs are the source batch's where Origin is
	// nil, else of the rows as they are now.
	Batch *batch.Batch
	// Sel are the rows that are there, ascending; nil: all.
	Sel batch.Sel
	// Origin is, by row, the row of the source batch; nil: the row itself.
	Origin []int32
	// Failed are the source rows that failed on the way, in no order; a row
	// may be there more than once, and may still have rows in Sel.
	Failed []batch.ValueError
	// Empty are source rows that gave nothing to an UNNEST, ascending.
	Empty []int32
	// Err is why an operator could not ask what it had to ask. Nothing else counts
	// then: the same rows are to be tried again.
	Err error
}

// Source is the source row of row i.
func (r *Rows) Source(i int32) int32 {
	if r.Origin == nil {
		return i
	}
	return r.Origin[i]
}

// Len is the number of rows that are there.
func (r *Rows) Len() int {
	if r.Sel == nil {
		return r.Batch.Len
	}
	return len(r.Sel)
}

// fail appends an error of row i as one of its source row.
func (r *Rows) fail(in *Rows, e *batch.ValueError, i int32) {
	f := *e
	f.Row = in.Source(i)
	r.Failed = append(r.Failed, f)
}

// inherit makes r show the same rows as in, with what in has failed.
func (r *Rows) inherit(in *Rows) {
	r.Batch, r.Sel, r.Origin = in.Batch, in.Sel, in.Origin
	r.Failed = append(r.Failed[:0], in.Failed...)
	r.Empty = append(r.Empty[:0], in.Empty...)
	r.Err = nil
}

// all gives the selection of in as numbers.
func (r *Rows) all(ctx *expr.Context) batch.Sel {
	if r.Sel == nil {
		return ctx.All(r.Batch.Len)
	}
	return r.Sel
}

// Operator is a stateless operator: it computes out of in and keeps its memory
// for the next call.
type Operator interface {
	Eval(ctx *expr.Context, in *Rows, out *Rows)
}
