package operator

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
)

// Project computes the output columns from the input's. Errors of values stay
// in the columns.
type Project struct {
	prog   *expr.Program
	schema *batch.Schema
	cols   []batch.Vec
	batch  batch.Batch
}

// NewProject compiles the expressions over the columns of in.
func NewProject(exprs []expr.Expr, in, out *batch.Schema) (*Project, error) {
	prog, err := expr.Compile(exprs, in, expr.Options{})
	if err != nil {
		return nil, fmt.Errorf("compiling a projection: %w", err)
	}
	return &Project{prog: prog, schema: out, cols: make([]batch.Vec, len(exprs))}, nil
}

// Eval implements Operator.
func (p *Project) Eval(ctx *expr.Context, in *Rows, out *Rows) {
	out.inherit(in)
	p.prog.Eval(ctx, in.Batch, in.Sel, p.cols)
	p.batch = *in.Batch
	p.batch.Schema, p.batch.Cols = p.schema, p.cols
	out.Batch = &p.batch
}
