package optimizer

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/plan"
)

// semiJoin makes SEMI and ANTI joins of marks that a filter above asks for: they
// run in parallel and drop rows at once. A mark that may be unknown stays where
// other conditions decide with it, and under NOT.
func semiJoin(n plan.Node) plan.Node {
	f, ok := n.(*plan.Filter)
	if !ok {
		return n
	}
	conds := plan.Conjuncts(f.Predicate)
	node, changed := semiBelow(f.Input, conds)
	if !changed {
		return n
	}
	return &plan.Filter{Input: node, Predicate: f.Predicate}
}

// semiBelow looks through the chain of joins that the sub-queries of one filter
// made.
func semiBelow(n plan.Node, conds []expr.Expr) (plan.Node, bool) {
	switch n := n.(type) {
	case *plan.Project:
		// One that adds keys.
		if in, ok := semiBelow(n.Input, conds); ok {
			return n.With(in), true
		}
	case *plan.Join:
		if n.Kind != graph.MarkJoin {
			return n, false
		}
		left, changed := semiBelow(n.Left, conds)
		out := n.With(left, n.Right).(*plan.Join)
		if kind, ok := markUse(out, conds); ok {
			return asSemi(out, kind), true
		}
		return out, changed
	}
	return n, false
}

// markUse is the kind of join that a mark stands for.
func markUse(n *plan.Join, conds []expr.Expr) (graph.JoinKind, bool) {
	mark := n.Cols[len(n.Cols)-1]
	for _, c := range conds {
		if isRef(c, mark.ID) && (!mark.Type.Nullable || len(conds) == 1) {
			return graph.SemiJoin, true
		}
		if call, ok := c.(*expr.Call); ok && call.Fn.Name == "NOT" && isRef(call.Args[0], mark.ID) && !mark.Type.Nullable {
			return graph.AntiJoin, true
		}
	}
	return 0, false
}

func isRef(e expr.Expr, id int) bool {
	c, ok := e.(*expr.Column)
	return ok && c.Index == id
}

// asSemi gives the rows whose mark the filter lets through, with the mark, which
// is known then.
func asSemi(n *plan.Join, kind graph.JoinKind) plan.Node {
	mark := n.Cols[len(n.Cols)-1]
	c := *n
	c.Kind, c.NullAware = kind, false
	j := c.With(n.Left, n.Right)
	p := &plan.Project{Input: j, Cols: append(slices.Clone(j.Columns()), mark)}
	for i := range j.Columns() {
		p.Exprs = append(p.Exprs, j.Columns()[i].Ref())
	}
	p.Exprs = append(p.Exprs, expr.Bool(kind == graph.SemiJoin))
	return p
}
