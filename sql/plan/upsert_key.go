package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
)

// maxKeys bounds the keys that are followed through a plan: those of a join are
// pairs of its inputs' keys.
const maxKeys = 16

// upsertKeys are the keys, as ids of columns, by which the rows of a node change:
// at most one row has their values at a time, and all changes of that row come from
// one task, in order. An empty key: there is at most one row.
func upsertKeys(n Node) [][]int {
	switch n := n.(type) {
	case *Project:
		return projectKeys(n)
	case *Filter:
		return upsertKeys(n.Input)
	case *Aggregate:
		if n.Window == nil {
			return [][]int{n.Keys}
		}
		return windowUpsertKeys(n)
	case *Normalize:
		return [][]int{n.Keys}
	case *Rank:
		return rankKeys(n)
	case *Over:
		return keysWith(n.Input, n.Keys)
	case *Join:
		return joinUpsertKeys(n)
	}
	return nil
}

// projectKeys follows columns that pass a projection as they are.
func projectKeys(n *Project) [][]int {
	var out [][]int
	for _, k := range upsertKeys(n.Input) {
		to := []int{}
		for _, id := range k {
			at := slices.IndexFunc(n.Exprs, func(e expr.Expr) bool { return passes(e, id) })
			if at < 0 {
				break
			}
			to = append(to, n.Cols[at].ID)
		}
		if len(to) == len(k) {
			out = append(out, to)
		}
	}
	return out
}

// passes reports an expression that gives a column as it is, or in a type that holds
// all its values.
func passes(e expr.Expr, id int) bool {
	if c, ok := e.(*expr.Cast); ok && c.Arg.Type().IsInteger() && c.To.IsInteger() && c.To.Kind >= c.Arg.Type().Kind ||
		ok && c.Arg.Type().IsString() && c.To.IsString() {
		e = c.Arg
	}
	c, ok := e.(*expr.Column)
	return ok && c.Index == id
}

func rankKeys(n *Rank) [][]int {
	if n.N == 1 {
		return [][]int{n.Keys}
	}
	var out [][]int
	if n.Number {
		out = append(out, append(slices.Clone(n.Keys), n.Cols[len(n.Cols)-1].ID))
	}
	return append(out, keysWith(n.Input, n.Keys)...)
}

// keysWith are the keys of an input that hold those by which it is divided: all rows of
// one are in one task.
func keysWith(in Node, by []int) (out [][]int) {
	for _, k := range upsertKeys(in) {
		if contains(k, by) {
			out = append(out, k)
		}
	}
	return out
}

// joinUpsertKeys pairs the keys of both sides. A key that does not hold the join's
// is none: its rows may come from several tasks.
func joinUpsertKeys(n *Join) [][]int {
	var left, right []int
	for _, k := range n.Keys {
		left, right = append(left, k.Left), append(right, k.Right)
	}
	ours, theirs := upsertKeys(n.Left), upsertKeys(n.Right)
	if n.Temporal != nil {
		if ChangelogOf(n.Left).By == nil {
			return nil // rows are all new; versions have no key
		}
		theirs = [][]int{right} // a row has at most one version
	}
	var out [][]int
	add := func(k []int) {
		for i := range n.Keys {
			if !slices.Contains(k, left[i]) && !slices.Contains(k, right[i]) {
				return
			}
		}
		if len(out) < maxKeys {
			out = append(out, k)
		}
	}
	switch n.Kind {
	case graph.SemiJoin, graph.AntiJoin, graph.MarkJoin, graph.SingleJoin:
		for _, k := range ours {
			add(k)
		}
		return out
	}
	one := func(keys [][]int, by []int) bool {
		return slices.ContainsFunc(keys, func(k []int) bool { return contains(by, k) })
	}
	// A side of which a pair has at most one row adds nothing to the key.
	if one(theirs, right) && (n.Kind == graph.InnerJoin || n.Kind == graph.LeftJoin) {
		for _, k := range ours {
			add(k)
		}
	}
	if one(ours, left) && (n.Kind == graph.InnerJoin || n.Kind == graph.RightJoin) {
		for _, k := range theirs {
			add(k)
		}
	}
	for _, l := range ours {
		for _, r := range theirs {
			add(append(slices.Clone(l), r...))
		}
	}
	return out
}

// contains reports a list that has all of another one.
func contains(list, all []int) bool {
	return !slices.ContainsFunc(all, func(id int) bool { return !slices.Contains(list, id) })
}

func subset(ids []int, of map[int]bool) bool {
	return !slices.ContainsFunc(ids, func(id int) bool { return !of[id] })
}
