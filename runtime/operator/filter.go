package operator

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
)

// Filter keeps the rows for which a predicate is TRUE; where it is an error
// the row fails.
type Filter struct {
	filter *expr.Filter
	pass   batch.Sel
	failed []batch.ValueError
}

// NewFilter compiles the predicate over the columns of in.
func NewFilter(predicate expr.Expr, in *batch.Schema) (*Filter, error) {
	f, err := expr.CompileFilter(predicate, in, expr.Options{})
	if err != nil {
		return nil, fmt.Errorf("compiling a filter: %w", err)
	}
	return &Filter{filter: f}, nil
}

// Eval implements Operator.
func (f *Filter) Eval(ctx *expr.Context, in *Rows, out *Rows) {
	out.inherit(in)
	f.pass, f.failed = f.filter.Eval(ctx, in.Batch, in.Sel, f.pass[:0], f.failed[:0])
	for i := range f.failed {
		out.fail(in, &f.failed[i], f.failed[i].Row)
	}
	if f.pass == nil {
		f.pass = batch.Sel{}
	}
	out.Sel = f.pass
}
