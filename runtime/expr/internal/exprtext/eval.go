package exprtext

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
)

// Eval evaluates e over row i of a batch and shows the result: its text with
// TIMESTAMP_LTZ in the session zone, "NULL", or "error:<code>".
func Eval(ctx *expr.Context, e expr.Expr, in *batch.Batch, row int) string {
	p, err := expr.Compile([]expr.Expr{e}, in.Schema, expr.Options{})
	if err != nil {
		return "compile: " + err.Error()
	}
	defer ctx.Forget(p)
	out := make([]batch.Vec, 1)
	p.Eval(ctx, in, batch.Sel{int32(row)}, out)
	return Show(ctx, &out[0], row)
}

// Show is the text of a row as Eval gives it.
func Show(ctx *expr.Context, v *batch.Vec, row int) string {
	if e := v.DeepErr(row); e != nil {
		return "error:" + string(e.Code)
	}
	return string(batch.AppendText(nil, v, row, ctx.Zone))
}

// OneRow is a batch of one row without columns.
func OneRow() *batch.Batch { return &batch.Batch{Schema: &batch.Schema{}, Len: 1} }
