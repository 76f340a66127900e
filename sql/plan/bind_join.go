package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

func (b *Binder) join(j *syntax.Join, sc *scope) Node {
	if b.seesLeft(j.Right) {
		return b.joinRows(j, sc)
	}
	if t, ok := j.Right.(*syntax.TableRef); ok && t.AsOf != nil {
		return b.joinAsOf(j, t, sc)
	}
	first, firstMerged := len(sc.rels), len(sc.merged)
	left := b.from(j.Left, sc)
	mid, midMerged := len(sc.rels), len(sc.merged)
	right := b.from(j.Right, sc)
	if left == nil || right == nil {
		return nil
	}
	ls, rs := sc.part(first, mid, firstMerged, midMerged), sc.part(mid, len(sc.rels), midMerged, len(sc.merged))
	on, shared, ok := b.joinCondition(j, ls, rs, sc.part(first, len(sc.rels), firstMerged, len(sc.merged)))
	if !ok {
		return nil
	}
	n := b.newJoin(joinKinds[j.Kind], left, right, Conjuncts(on), j.Op.Span())
	n.TTL = [2]int64{b.ttlOf(ls.rels), b.ttlOf(rs.rels)}
	for i := first; i < len(sc.rels); i++ {
		sc.rels[i].cols = retyped(sc.rels[i].cols, n.Cols)
	}
	for i := firstMerged; i < len(sc.merged); i++ {
		sc.merged[i].col = retyped([]Column{sc.merged[i].col}, n.Cols)[0]
	}
	if len(shared) == 0 {
		return n
	}
	return b.mergeColumns(n, n.Kind, shared, sc, firstMerged)
}

var joinKinds = map[syntax.JoinKind]graph.JoinKind{
	syntax.CrossJoin: graph.InnerJoin, syntax.InnerJoin: graph.InnerJoin, syntax.LeftJoin: graph.LeftJoin,
	syntax.RightJoin: graph.RightJoin, syntax.FullJoin: graph.FullJoin,
}

// retyped takes over what a join made of columns.
func retyped(cols, joined []Column) []Column {
	out := slices.Clone(cols)
	for i := range out {
		if c, ok := ColumnByID(joined, out[i].ID); ok {
			out[i].Type, out[i].RowTime, out[i].Changing, out[i].Window, out[i].WindowOnly = c.Type, c.RowTime, c.Changing, c.Window, c.WindowOnly
		}
	}
	return out
}

func joinName(j *syntax.Join) string {
	switch j.Kind {
	case syntax.InnerJoin:
		return "JOIN"
	case syntax.LeftJoin:
		return "LEFT JOIN"
	case syntax.RightJoin:
		return "RIGHT JOIN"
	case syntax.FullJoin:
		return "FULL JOIN"
	}
	if j.Comma {
		return "a list of tables in FROM"
	}
	return "CROSS JOIN"
}

// newJoin makes a join of conditions: equalities between the sides become keys.
func (b *Binder) newJoin(kind graph.JoinKind, left, right Node, conds []expr.Expr, at diag.Span) *Join {
	ls, rs := columnSet(left.Columns()), columnSet(right.Columns())
	var lk, rk, rest []expr.Expr
	var safe []bool
	for _, c := range conds {
		l, r, nullSafe, ok := equality(c)
		switch {
		case ok && within(l, ls) && within(r, rs):
		case ok && within(r, ls) && within(l, rs):
			l, r = r, l
		default:
			rest = append(rest, c)
			continue
		}
		lk, rk, safe = append(lk, l), append(rk, r), append(safe, nullSafe)
	}
	return b.keyedJoin(&Join{Kind: kind, Left: left, Right: right, Condition: conjunction(rest), Span: at}, lk, rk, safe)
}

// keyedJoin completes a join with keys, which are expressions of each side.
func (b *Binder) keyedJoin(n *Join, lk, rk []expr.Expr, safe []bool) *Join {
	var lids, rids []int
	n.Left, lids = b.withExprs(n.Left, lk)
	n.Right, rids = b.withExprs(n.Right, rk)
	for i := range lids {
		n.Keys = append(n.Keys, JoinKey{Left: lids[i], Right: rids[i], NullSafe: safe != nil && safe[i]})
	}
	n.Path = n.statePath(b.path("join"))
	if !b.Batch && n.Temporal == nil {
		n.findWindows()
		n.findInterval()
		n.Changes = !n.Streams() && n.Kind <= graph.MarkJoin
	}
	n.Cols = n.columnsOver(n.Left, n.Right)
	return n
}

// withExprs gives a node that has the expressions as columns, with their ids.
func (b *Binder) withExprs(n Node, es []expr.Expr) (Node, []int) {
	cols := n.Columns()
	p := &Project{Input: n}
	ids := make([]int, len(es))
	for i, e := range es {
		if c, ok := e.(*expr.Column); ok {
			if _, there := ColumnByID(cols, c.Index); there {
				ids[i] = c.Index
				continue
			}
		}
		c := derive(b.id, e.String(), e, cols)
		p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, c)
		ids[i] = c.ID
	}
	if len(p.Cols) == 0 {
		return n, ids
	}
	var exprs []expr.Expr
	for i := range cols {
		exprs = append(exprs, cols[i].Ref())
	}
	p.Exprs, p.Cols = append(exprs, p.Exprs...), append(slices.Clone(cols), p.Cols...)
	return p, ids
}

// placeKeys makes keys of the equalities in WHERE that compare two sides of an
// inner join, and gives what is left. So a list of tables in FROM is the same as
// JOIN ... ON.
func (b *Binder) placeKeys(n Node, conds []expr.Expr) (Node, []expr.Expr) {
	var rest []expr.Expr
	for _, c := range conds {
		if l, r, safe, ok := equality(c); ok {
			if out := b.placeKey(n, l, r, safe); out != nil {
				n = out
				continue
			}
		}
		if !b.Batch {
			if out := placeBound(n, c); out != nil {
				n = out
				continue
			}
		}
		rest = append(rest, c)
	}
	return n, rest
}

// placeBound gives the node with a condition on the distance of two row times in
// the inner join of them, nil if it is none.
func placeBound(n Node, c expr.Expr) Node {
	switch n := n.(type) {
	case *Project:
		for _, id := range expr.Columns(c) {
			if _, ok := ColumnByID(n.Input.Columns(), id); !ok {
				return nil
			}
		}
		if in := placeBound(n.Input, c); in != nil {
			return n.With(in)
		}
	case *Join:
		if n.Temporal != nil {
			// Versions are chosen from all of a key: a condition may go to the left alone.
			if in := placeBound(n.Left, c); in != nil {
				return n.With(in, n.Right)
			}
			return nil
		}
		if n.Kind != graph.InnerJoin {
			return nil
		}
		t := &JoinInterval{LeftTime: -1, RightTime: -1}
		t.bound(c, n)
		if t.LeftTime < 0 {
			if in := placeBound(n.Left, c); in != nil {
				return n.With(in, n.Right)
			}
			if in := placeBound(n.Right, c); in != nil {
				return n.With(n.Left, in)
			}
			return nil
		}
		out := *n
		out.Condition = conjunction(append(Conjuncts(n.Condition), c))
		out.findInterval()
		out.Changes = !out.Streams()
		out.Cols = out.columnsOver(out.Left, out.Right)
		return &out
	}
	return nil
}

// placeKey gives the node with the key, nil if it has no place there.
func (b *Binder) placeKey(n Node, l, r expr.Expr, safe bool) Node {
	switch n := n.(type) {
	case *Project:
		// One that adds keys of a join passes everything else on.
		cols := columnSet(n.Input.Columns())
		if !within(l, cols) || !within(r, cols) {
			return nil
		}
		for _, id := range expr.Columns(l, r) {
			if _, ok := ColumnByID(n.Cols, id); !ok {
				return nil
			}
		}
		if in := b.placeKey(n.Input, l, r, safe); in != nil {
			return n.With(in)
		}
	case *Join:
		if n.Kind != graph.InnerJoin {
			return nil
		}
		ls, rs := columnSet(n.Left.Columns()), columnSet(n.Right.Columns())
		switch {
		case within(l, ls) && within(r, ls):
			if in := b.placeKey(n.Left, l, r, safe); in != nil {
				return n.With(in, n.Right)
			}
			return nil
		case n.Temporal != nil:
			return nil // it would choose among other versions
		case within(l, rs) && within(r, rs):
			if in := b.placeKey(n.Right, l, r, safe); in != nil {
				return n.With(n.Left, in)
			}
			return nil
		case within(r, ls) && within(l, rs):
			l, r = r, l
		case !within(l, ls) || !within(r, rs):
			return nil
		}
		c := *n
		c.Keys = slices.Clone(n.Keys)
		c.Cols, c.Windows, c.Interval, c.Changes = nil, nil, nil, false
		return b.keyedJoin(&c, []expr.Expr{l}, []expr.Expr{r}, []bool{safe})
	}
	return nil
}
