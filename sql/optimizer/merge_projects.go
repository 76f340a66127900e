package optimizer

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/plan"
)

// mergeProjects makes one projection of two. Common subexpressions are
// evaluated once by the program; what depends on chance must not be evaluated
// at two places, so such projections stay apart.
func mergeProjects(n plan.Node) plan.Node {
	outer, ok := n.(*plan.Project)
	if !ok {
		return n
	}
	inner, ok := outer.Input.(*plan.Project)
	if !ok {
		return n
	}
	for _, e := range inner.Exprs {
		if expr.DeterminismOf(e) == fn.PerCall {
			return n
		}
	}
	p := &plan.Project{Input: inner.Input, Cols: outer.Cols}
	for _, e := range outer.Exprs {
		p.Exprs = append(p.Exprs, plan.Substitute(e, inner))
	}
	return mergeProjects(p)
}
