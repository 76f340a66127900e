package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
)

// rankFilter makes a Rank of an Over that numbers rows and of the condition above it
// that keeps the first ones. The other conditions stay above.
func (b *Binder) rankFilter(n Node, conds []expr.Expr) (Node, []expr.Expr) {
	var projects []*Project
	below := conds
	for {
		p, ok := n.(*Project)
		if !ok {
			break
		}
		next := make([]expr.Expr, len(below))
		for i, e := range below {
			if next[i] = expr.FoldAll(Substitute(e, p)); expr.DeterminismOf(next[i]) != fn.Deterministic {
				return rebuild(n, projects), conds
			}
		}
		projects, below, n = append(projects, p), next, p.Input
	}
	over, ok := n.(*Over)
	if !ok || len(over.Calls) != 1 || !over.Calls[0].RowNumber {
		return rebuild(n, projects), conds
	}
	number := over.Cols[len(over.Cols)-1]
	limit, rest := int64(-1), []expr.Expr(nil)
	for i, e := range below {
		if k, is := atMost(expr.FoldAll(e), number.ID); is && (limit < 0 || k < limit) {
			limit = k
			// = k with k above 1 does more than to keep the first.
			if k <= 1 || !isEqual(e) {
				continue
			}
		}
		rest = append(rest, conds[i])
	}
	if limit < 1 {
		return rebuild(n, projects), conds
	}
	return rebuild(b.rank(over, limit), projects), rest
}

// unprojected takes the projections on top off a node; rebuild puts them back.
func unprojected(n Node) ([]*Project, Node) {
	var projects []*Project
	for {
		p, ok := n.(*Project)
		if !ok {
			return projects, n
		}
		projects, n = append(projects, p), p.Input
	}
}

// rebuild puts projections back on a node.
func rebuild(n Node, projects []*Project) Node {
	for i := len(projects) - 1; i >= 0; i-- {
		if projects[i].Input == n {
			n = projects[i]
		} else {
			n = projects[i].With(n)
		}
	}
	return n
}

// atMost reads n <= k, n < k, n = k and the same turned around.
func atMost(e expr.Expr, number int) (int64, bool) {
	c, ok := e.(*expr.Call)
	if !ok || len(c.Args) != 2 {
		return 0, false
	}
	op, left, right := c.Fn.Name, c.Args[0], c.Args[1]
	if _, lit := left.(*expr.Literal); lit {
		left, right = right, left
		op = map[string]string{"=": "=", ">=": "<=", ">": "<"}[op]
	}
	lit, ok := right.(*expr.Literal)
	if !ok || lit.Value.IsNull(0) || !lit.Type().IsInteger() || !refersTo(left, number) {
		return 0, false
	}
	k := lit.Value.Int64(0)
	switch op {
	case "=", "<=":
		return k, true
	case "<":
		return k - 1, true
	}
	return 0, false
}

func isEqual(e expr.Expr) bool {
	c, ok := expr.FoldAll(e).(*expr.Call)
	return ok && c.Fn.Name == "="
}

func refersTo(e expr.Expr, id int) bool {
	if c, ok := e.(*expr.Cast); ok && c.Arg.Type().IsInteger() && c.To.IsInteger() {
		e = c.Arg
	}
	c, ok := e.(*expr.Column)
	return ok && c.Index == id
}

// rank is the first rows of a numbered table: of a stream without windows such that
// change.
func (b *Binder) rank(over *Over, n int64) *Rank {
	in := over.Input.Columns()
	r := &Rank{Input: over.Input, Order: over.Order, N: n, Number: true, TTL: b.StateTTL, Cols: over.Cols, Path: over.Path, Span: over.Span}
	var start, end *WindowColumn
	given := &GivenWindow{}
	for _, id := range over.Keys {
		c, _ := ColumnByID(in, id)
		switch {
		case c == nil || c.Window == nil:
			r.Keys = append(r.Keys, id)
		case c.Window.Role == WindowStart:
			start, given.Start = c.Window, id
		case c.Window.Role == WindowEnd:
			end, given.End = c.Window, id
		}
	}
	changing := !b.Batch && ChangelogOf(over.Input).By != nil
	if n == 1 && len(r.Order) == 1 && r.Order[0].Desc {
		if c, ok := ColumnByID(in, r.Order[0].ID); ok {
			r.Latest = c.RowTime
		}
	}
	switch {
	case start != nil && end != nil && start.Window == end.Window && (!b.streaming() || start.Window.RowTime) && !changing:
		r.Window, r.Given = start.Window, given
	case !b.streaming():
		r.Keys = over.Keys
	case over.Time >= 0 && n == 1 && !changing:
		r.Keys, r.First = over.Keys, true
	default:
		r.Keys, r.Changes = over.Keys, true
		r.Cols = inNoOrder(over.Cols)
	}
	return r
}
