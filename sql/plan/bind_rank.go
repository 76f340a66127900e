package plan

import (
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/diag"
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
	r := b.rank(over, limit)
	if r == nil {
		return rebuild(n, projects), conds
	}
	return rebuild(r, projects), rest
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

// rank is the first rows of a numbered table; nil where that would change rows that
// have been given, which was reported.
func (b *Binder) rank(over *Over, n int64) *Rank {
	in := over.Input.Columns()
	r := &Rank{Input: over.Input, Order: over.Order, N: n, Number: true, Cols: over.Cols, Path: over.Path, Span: over.Span}
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
	switch {
	case start != nil && end != nil && start.Window == end.Window && (b.Batch || b.declaring || start.Window.RowTime):
		r.Window, r.Given = start.Window, given
		return r
	case b.Batch || b.declaring:
		r.Keys = over.Keys
		return r
	case over.Time >= 0 && n == 1:
		r.Keys, r.First = over.Keys, true
		return r
	}
	what := "Top-N without a window"
	if n == 1 {
		what = "keeping the last row of a key"
	}
	if b.sink != nil && b.sink.Spec != nil && b.sink.Spec.Changelog == connector.InsertOnly {
		b.errorf(diag.CodeUpdatingIntoAppend, over.Span, "%s updates rows it has already given, and table %q (connector %q) only takes new ones",
			what, b.sink.Name, b.sink.Spec.Name).
			WithNote(b.sink.Span, "the table is declared here").
			WithHelp("PARTITION BY window_start, window_end as well: the rows of a window come once, when it is over").
			WithHelp("or ORDER BY the row time, ascending, with = 1: the first row of a key never changes").
			WithHelp("where the input ends, SET 'execution.runtime-mode' = 'batch'")
	} else {
		b.notYet(over.Span, what+" in streaming mode").
			WithHelp("PARTITION BY window_start, window_end as well: the rows of a window come once, when it is over").
			WithHelp("where the input ends, SET 'execution.runtime-mode' = 'batch'")
	}
	over.Refuse = ""
	return nil
}
