package optimizer

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/plan"
)

// foldConstants evaluates constant parts of expressions, and drops filters
// that are TRUE. A constant that would be an error stays as it is.
func foldConstants(n plan.Node) plan.Node {
	n = mapExprs(n, expr.FoldAll)
	if f, ok := n.(*plan.Filter); ok && isTrue(f.Predicate) {
		return f.Input
	}
	return n
}

func isTrue(e expr.Expr) bool {
	l, ok := e.(*expr.Literal)
	return ok && !l.Value.IsNull(0) && l.Value.Bools.Get(0)
}
