package optimizer

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/plan"
)

// foldConstants evaluates constant parts of expressions, and drops filters
// that are TRUE. A constant that would be an error stays as it is.
func foldConstants(n plan.Node) plan.Node {
	n = mapExprs(n, func(e expr.Expr) expr.Expr { return expr.Rewrite(expr.FoldAll(e), shorten) })
	if f, ok := n.(*plan.Filter); ok && isTrue(f.Predicate) {
		return f.Input
	}
	return n
}

func isTrue(e expr.Expr) bool {
	l, ok := e.(*expr.Literal)
	return ok && !l.Value.IsNull(0) && l.Value.Bools.Get(0)
}

// shorten takes TRUE out of AND and FALSE out of OR. TRUE AND x is x, also
// when x is an error.
func shorten(e expr.Expr) expr.Expr {
	l, ok := e.(*expr.Logic)
	if !ok {
		return e
	}
	var keep []expr.Expr
	for _, a := range l.Args {
		if lit, ok := a.(*expr.Literal); ok && !lit.Value.IsNull(0) && lit.Value.Bools.Get(0) == (l.Op == expr.And) {
			continue
		}
		keep = append(keep, a)
	}
	switch {
	case len(keep) == len(l.Args):
		return e
	case len(keep) == 0:
		return expr.Bool(l.Op == expr.And)
	case l.Op == expr.And:
		return expr.NewAnd(keep...)
	}
	return expr.NewOr(keep...)
}
