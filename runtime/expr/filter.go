package expr

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Filter is a compiled predicate. Like a Program it is immutable and shared.
type Filter struct {
	prog *Program
	text string
}

// CompileFilter prepares a BOOLEAN predicate over the columns of input.
func CompileFilter(pred Expr, input *batch.Schema, opts Options) (*Filter, error) {
	if k := pred.Type().Kind; k != types.Boolean {
		return nil, fmt.Errorf("predicate %s is %s, not BOOLEAN", pred, pred.Type())
	}
	p, err := Compile([]Expr{pred}, input, opts)
	if err != nil {
		return nil, err
	}
	return &Filter{prog: p, text: pred.String()}, nil
}

// String is the text of the predicate.
func (f *Filter) String() string { return f.text }

// Eval returns, of the rows of sel (nil: all), those for which the predicate
// is TRUE, appended to pass, and those for which it is an error, appended to
// failed with Row set, both ascending. All other rows are FALSE or NULL. pass
// may not share memory with sel.
func (f *Filter) Eval(ctx *Context, in *batch.Batch, sel, pass batch.Sel, failed []batch.ValueError) (batch.Sel, []batch.ValueError) {
	if pass == nil {
		pass = batch.Sel{} // nil would mean all rows
	}
	var out [1]batch.Vec
	f.prog.Eval(ctx, in, sel, out[:])
	if sel == nil {
		sel = ctx.All(in.Len)
	}
	v := &out[0]
	if v.Enc == batch.Flat && v.Valid == nil {
		for _, i := range sel {
			if v.Bools.Get(int(i)) {
				pass = append(pass, i)
			}
		}
		return pass, failed
	}
	for _, i := range sel {
		switch truthOf(v, i) {
		case isTrue:
			pass = append(pass, i)
		case isError:
			e := *v.Err(int(i))
			e.Row = i
			failed = append(failed, e)
		}
	}
	return pass, failed
}

// Fold evaluates e if it is constant: built of literals and deterministic
// functions. An expression whose value would be an error is returned as it
// is, so that the error stays a value of the rows that need it.
func Fold(e Expr) Expr {
	if _, ok := e.(*Literal); ok || DeterminismOf(e) > 0 || len(Columns(e)) > 0 || dependsOnZone(e) {
		return e
	}
	p, err := Compile([]Expr{e}, &batch.Schema{}, Options{})
	if err != nil {
		return e
	}
	out := make([]batch.Vec, 1)
	p.Eval(NewContext(nil, 0), &batch.Batch{Schema: &batch.Schema{}, Len: 1}, nil, out)
	if out[0].HasDeepErrs() {
		return e
	}
	l := NewLiteral(&out[0])
	l.Value.Type = e.Type()
	return l
}

// FoldAll folds every constant part of e.
func FoldAll(e Expr) Expr { return Rewrite(e, Fold) }

// dependsOnZone reports whether the session zone can change the value of e.
func dependsOnZone(e Expr) bool {
	found := false
	Walk(e, func(n Expr) bool {
		found = found || n.Type().Kind == types.TimestampLTZ
		if c, ok := n.(*Call); ok && c.Fn.UsesZone {
			found = true
		}
		return !found
	})
	return found
}
