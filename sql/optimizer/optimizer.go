package optimizer

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/plan"
)

// rule rewrites one node whose inputs have been rewritten already; it returns
// the node itself where it has nothing to do.
type rule struct {
	name  string
	apply func(n plan.Node) plan.Node
}

var rules = [...]rule{
	{"flatten_unions", flattenUnions},
	{"semi_join", semiJoin},
	{"push_filter", pushFilter},
	{"merge_projects", mergeProjects},
	{"fold_constants", foldConstants},
	{"prune_partitions", prunePartitions},
}

// Run applies all rules.
func Run(n plan.Node) plan.Node {
	for _, r := range rules {
		n = bottomUp(n, r.apply)
	}
	return Needed(n)
}

// Needed leaves out the columns that nobody looks at, and no more: an error in one of
// them must not matter where an operator keeps rows, so that this is part of what a
// query means.
func Needed(n plan.Node) plan.Node { return bottomUp(pruneColumns(n), dropIdentity) }

func bottomUp(n plan.Node, f func(plan.Node) plan.Node) plan.Node {
	in := n.Inputs()
	if len(in) > 0 {
		out := make([]plan.Node, len(in))
		changed := false
		for i := range in {
			out[i] = bottomUp(in[i], f)
			changed = changed || out[i] != in[i]
		}
		if changed {
			n = n.With(out...)
		}
	}
	return f(n)
}

// mapExprs rewrites the expressions of a node.
func mapExprs(n plan.Node, f func(expr.Expr) expr.Expr) plan.Node {
	all := func(in []expr.Expr) []expr.Expr {
		out := make([]expr.Expr, len(in))
		for i := range in {
			out[i] = f(in[i])
		}
		return out
	}
	switch n := n.(type) {
	case *plan.Project:
		c := *n
		c.Exprs = all(n.Exprs)
		return &c
	case *plan.Filter:
		c := *n
		c.Predicate = f(n.Predicate)
		return &c
	case *plan.Unnest:
		c := *n
		c.Value = f(n.Value)
		if n.Condition != nil {
			c.Condition = f(n.Condition)
		}
		return &c
	case *plan.Lookup:
		c := *n
		c.Keys = slices.Clone(n.Keys)
		for i := range c.Keys {
			c.Keys[i].Value = f(n.Keys[i].Value)
		}
		if n.Condition != nil {
			c.Condition = f(n.Condition)
		}
		return &c
	case *plan.Join:
		if n.Condition == nil {
			return n
		}
		c := *n
		c.Condition = f(n.Condition)
		return &c
	case *plan.Values:
		c := *n
		c.Rows = nil
		for _, r := range n.Rows {
			c.Rows = append(c.Rows, all(r))
		}
		return &c
	case *plan.Scan:
		if n.Watermark == nil {
			return n
		}
		c := *n
		c.Watermark = f(n.Watermark)
		return &c
	}
	return n
}
