package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
)

// pullUp takes the conditions that refer to outer columns out of a sub-query's
// plan, so that it can be joined by them. The node it gives has the columns of n,
// and those of its own that the conditions need. ok is false where a condition
// cannot leave its place.
func pullUp(n Node, outer map[int]bool) (out Node, conds []expr.Expr, ok bool) {
	if !refers(n, outer) {
		return n, nil, true
	}
	switch n := n.(type) {
	case *Filter:
		return pullFilter(n, outer)
	case *Project:
		return pullProject(n, outer)
	case *Aggregate:
		return pullAggregate(n, outer)
	case *Join:
		return pullJoin(n, outer)
	case *Sort:
		// The order of a sub-query's rows has no meaning; their number has.
		if n.Limit < 0 && n.Offset == 0 {
			return pullUp(n.Input, outer)
		}
	}
	return nil, nil, false
}

// refers reports outer columns anywhere in a plan.
func refers(n Node, outer map[int]bool) bool {
	found := false
	Walk(n, func(x Node) bool {
		found = found || usesAny(outer, Exprs(x)...)
		return !found
	})
	return found
}

func pullFilter(n *Filter, outer map[int]bool) (Node, []expr.Expr, bool) {
	in, conds, ok := pullUp(n.Input, outer)
	if !ok || len(conds) > 0 && isGlobal(n.Input) {
		return nil, nil, false // HAVING over a group that may not exist
	}
	var keep []expr.Expr
	for _, c := range Conjuncts(n.Predicate) {
		if usesAny(outer, c) {
			conds = append(conds, c)
		} else {
			keep = append(keep, c)
		}
	}
	if p := conjunction(keep); p != nil {
		in = &Filter{Input: in, Predicate: p}
	}
	return in, conds, true
}

// inner are the ids of a sub-query's own columns that conditions need.
func inner(conds []expr.Expr, outer map[int]bool) []int {
	var out []int
	for _, id := range expr.Columns(conds...) {
		if !outer[id] && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func pullProject(n *Project, outer map[int]bool) (Node, []expr.Expr, bool) {
	in, conds, ok := pullUp(n.Input, outer)
	if !ok || usesAny(outer, n.Exprs...) || len(conds) > 0 && isGlobal(n.Input) {
		return nil, nil, false
	}
	p := &Project{Input: in, Exprs: slices.Clone(n.Exprs), Cols: slices.Clone(n.Cols)}
	for _, id := range inner(conds, outer) {
		if _, there := ColumnByID(p.Cols, id); there {
			continue
		}
		c, found := ColumnByID(in.Columns(), id)
		if !found {
			return nil, nil, false
		}
		p.Exprs, p.Cols = append(p.Exprs, c.Ref()), append(p.Cols, *c)
	}
	return p, conds, true
}

// pullAggregate makes what the conditions compare further keys: they have to be
// equalities of an expression of the sub-query with one of the outer query.
func pullAggregate(n *Aggregate, outer map[int]bool) (Node, []expr.Expr, bool) {
	in, conds, ok := pullUp(n.Input, outer)
	if !ok || n.Window != nil {
		return nil, nil, false
	}
	own := columnSet(in.Columns())
	a := *n
	a.Keys, a.Cols = slices.Clone(n.Keys), nil
	var keyCols []Column
	for _, c := range conds {
		l, r, nullSafe, is := equality(c)
		if is && within(r, own) {
			l, r = r, l
		}
		if !is || nullSafe || !within(l, own) || !within(r, outer) {
			return nil, nil, false
		}
		for _, id := range expr.Columns(l) {
			col, _ := ColumnByID(in.Columns(), id)
			if !slices.Contains(a.Keys, id) {
				a.Keys = append(a.Keys, id)
				keyCols = append(keyCols, *col)
			}
		}
		if _, bare := l.(*expr.Column); !bare {
			return nil, nil, false // grouping by its columns would make finer groups
		}
	}
	a.Input = in
	old := len(n.Keys)
	a.Cols = append(slices.Clone(n.Cols[:old]), keyCols...)
	for i := range keyCols {
		a.Cols[old+i].RowTime = false
	}
	a.Cols = append(a.Cols, n.Cols[old:]...)
	return &a, conds, true
}

// pullJoin takes conditions out of a join's own condition where it is an inner
// one, and out of the sides whose rows the join does not pad.
func pullJoin(n *Join, outer map[int]bool) (Node, []expr.Expr, bool) {
	left, conds, ok := pullUp(n.Left, outer)
	if !ok || n.Kind == graph.RightJoin && len(conds) > 0 || n.Kind == graph.FullJoin {
		return nil, nil, false
	}
	right, more, ok := pullUp(n.Right, outer)
	if !ok || len(more) > 0 && n.Kind != graph.InnerJoin && n.Kind != graph.RightJoin {
		return nil, nil, false
	}
	conds = append(conds, more...)
	j := *n
	var keep []expr.Expr
	for _, c := range Conjuncts(n.Condition) {
		if usesAny(outer, c) {
			conds = append(conds, c)
		} else {
			keep = append(keep, c)
		}
	}
	if len(keep) < len(Conjuncts(n.Condition)) && n.Kind != graph.InnerJoin {
		return nil, nil, false
	}
	j.Condition = conjunction(keep)
	return j.With(left, right), conds, true
}
