package optimizer

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/plan"
)

// pushFilter moves a filter below projections and into the branches of a
// union, nearer to the source.
func pushFilter(n plan.Node) plan.Node {
	f, ok := n.(*plan.Filter)
	if !ok || expr.DeterminismOf(f.Predicate) != fn.Deterministic {
		return n
	}
	switch in := f.Input.(type) {
	case *plan.Project:
		pred := plan.Substitute(f.Predicate, in)
		if expr.DeterminismOf(pred) != fn.Deterministic {
			return n
		}
		return in.With(pushFilter(&plan.Filter{Input: in.Input, Predicate: pred}))
	case *plan.Union:
		branches := make([]plan.Node, len(in.In))
		for i, b := range in.In {
			pred := renumber(f.Predicate, in.Cols, b.Columns())
			branches[i] = pushFilter(&plan.Filter{Input: b, Predicate: pred})
		}
		return in.With(branches...)
	}
	return n
}

// renumber replaces references to columns by references to the columns at the
// same places of another list.
func renumber(e expr.Expr, from, to []plan.Column) expr.Expr {
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		c, ok := n.(*expr.Column)
		if !ok {
			return n
		}
		for i := range from {
			if from[i].ID == c.Index {
				ref := to[i].Ref()
				return ref
			}
		}
		return n
	})
}
