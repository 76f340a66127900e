package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
)

// subqueries are those in the expressions of a clause. Each becomes a join of the
// clause's input with the sub-query; the expression reads its result off the
// join's columns.
type subqueries struct {
	list []*subquery
	// ids are the columns that the joins add.
	ids map[int]bool
}

// subquery is a join to be made. What is correlated has been taken out of right.
type subquery struct {
	kind  graph.JoinKind
	right Node
	// keys and condition compare expressions over the clause's input (outer)
	// with columns of right.
	outer, inner []expr.Expr
	condition    expr.Expr
	nullAware    bool
	mark         *Column
	span         diag.Span
}

// bindSubquery binds a query whose names may be those of the clause around it.
func (eb *exprBinder) bindSubquery(q *syntax.Query, what string, at diag.Span) *Output {
	b := eb.b
	if eb.subs == nil {
		b.notYet(at, what+" in "+eb.clause)
		return nil
	}
	saved := b.outer
	b.outer = eb.sc
	out := b.query(q, eb.sc.ctes)
	b.outer = saved
	if out == nil || !b.noUntyped(out) {
		return nil
	}
	return out
}

// correlate takes the conditions that compare with the outer query out of a
// sub-query.
func (eb *exprBinder) correlate(n Node, at diag.Span) (Node, []expr.Expr, bool) {
	outer := columnSet(eb.sc.outerColumns())
	n, conds, ok := pullUp(n, outer)
	if ok {
		Walk(n, func(x Node) bool {
			ok = ok && !usesAny(outer, Exprs(x)...)
			return ok
		})
	}
	if !ok {
		eb.b.notYet(at, "a sub-query that refers to the query around it other than by conditions in its WHERE").
			WithHelp("write it as a join")
		return nil, nil, false
	}
	return n, conds, true
}

// add notes a join; conds are the correlated conditions.
func (eb *exprBinder) add(s *subquery, conds []expr.Expr) {
	outer, inner := columnSet(eb.sc.outerColumns()), columnSet(s.right.Columns())
	var rest []expr.Expr
	for _, c := range conds {
		l, r, nullSafe, ok := equality(c)
		switch {
		case ok && !nullSafe && within(l, outer) && within(r, inner):
			s.outer, s.inner = append(s.outer, l), append(s.inner, r)
		case ok && !nullSafe && within(r, outer) && within(l, inner):
			s.outer, s.inner = append(s.outer, r), append(s.inner, l)
		default:
			rest = append(rest, c)
		}
	}
	s.condition = conjunction(rest)
	if eb.subs.ids == nil {
		eb.subs.ids = map[int]bool{}
	}
	if s.mark != nil {
		eb.subs.ids[s.mark.ID] = true
	} else {
		for _, c := range s.right.Columns() {
			eb.subs.ids[c.ID] = true
		}
	}
	eb.subs.list = append(eb.subs.list, s)
}

// only makes a condition two-valued: a sub-query's WHERE keeps what is TRUE.
func (eb *exprBinder) only(e expr.Expr) expr.Expr {
	if e == nil || !e.Type().Nullable {
		return e
	}
	x, err := function.Call(eb.b.Functions, function.Is(syntax.IsTrue, false), e)
	if err != nil {
		return e
	}
	return x
}

// exists binds EXISTS (query).
func (eb *exprBinder) exists(e *syntax.Exists) expr.Expr {
	out := eb.bindSubquery(e.Query, "EXISTS", e.Span())
	if out == nil {
		return nil
	}
	if isGlobal(out.Node) {
		return expr.Bool(true) // an aggregate without keys gives a row always
	}
	n, conds, ok := eb.correlate(rowsOnly(out.Node), e.Span())
	if !ok {
		return nil
	}
	if len(conds) == 0 && eb.b.Batch {
		n = &Sort{Input: n, Limit: 1}
	}
	s := &subquery{kind: graph.MarkJoin, right: n, span: e.Span(), mark: &Column{ID: eb.b.id(), Name: "EXISTS", Type: rt.NewBoolean().NotNull()}}
	eb.add(s, conds)
	s.condition = eb.only(s.condition)
	return s.mark.Ref()
}

// rowsOnly leaves out what does not change whether there are rows.
func rowsOnly(n Node) Node {
	for {
		switch x := n.(type) {
		case *Project:
			n = x.Input
		case *Sort:
			if x.Offset > 0 || x.Limit == 0 {
				return n
			}
			n = x.Input
		default:
			return n
		}
	}
}

// isGlobal reports an aggregate without keys, perhaps below projections.
func isGlobal(n Node) bool {
	for {
		switch x := n.(type) {
		case *Project:
			n = x.Input
		case *Aggregate:
			return len(x.Keys) == 0 && x.Window == nil
		default:
			return false
		}
	}
}

// quantified binds = ANY and <> ALL, which are IN and NOT IN.
func (eb *exprBinder) quantified(e *syntax.Quantified) expr.Expr {
	switch {
	case e.Op == syntax.OpEq && !e.All:
		return eb.inQuery(e, e.Left, false, e.Query)
	case e.Op == syntax.OpNe && e.All:
		return eb.inQuery(e, e.Left, true, e.Query)
	}
	eb.b.notYet(e.Span(), "a comparison with ANY or ALL of a sub-query other than = ANY and <> ALL").
		WithHelp("compare with (SELECT MIN(x) ...) or (SELECT MAX(x) ...)")
	return nil
}

// scalarQuery binds (query) as a value.
func (eb *exprBinder) scalarQuery(e *syntax.Subquery) expr.Expr {
	out := eb.bindSubquery(e.Query, "a scalar sub-query", e.Span())
	if out == nil {
		return nil
	}
	if len(out.Columns()) != 1 {
		eb.b.errorf(diag.CodeColumnCount, e.Span(), "a scalar sub-query gives one column, this one %d", len(out.Columns()))
		return nil
	}
	if isGlobal(out.Node) && eb.refersOut(out.Node) {
		return eb.scalarAggregate(out, e.Span())
	}
	n, conds, ok := eb.correlate(out.Node, e.Span())
	if !ok {
		return nil
	}
	value, _ := ColumnByID(n.Columns(), out.Columns()[0].ID)
	eb.add(&subquery{kind: graph.SingleJoin, right: n, span: e.Span()}, conds)
	eb.onlyLast()
	return nullable(value)
}

// onlyLast makes the condition of the sub-query noted last two-valued.
func (eb *exprBinder) onlyLast() {
	s := eb.subs.list[len(eb.subs.list)-1]
	s.condition = eb.only(s.condition)
}

// nullable is a reference to a column that the join may pad.
func nullable(c *Column) *expr.Column {
	ref := c.Ref()
	ref.T = ref.T.WithNullable(true)
	return ref
}

func (eb *exprBinder) refersOut(n Node) bool {
	outer, found := columnSet(eb.sc.outerColumns()), false
	Walk(n, func(x Node) bool {
		found = found || usesAny(outer, Exprs(x)...)
		return !found
	})
	return found
}

// scalarAggregate binds a correlated aggregate without keys. It is grouped by what
// it is correlated with; where there is no group its calls are NULL, and COUNT 0,
// so that the expressions over them are evaluated above the join.
func (eb *exprBinder) scalarAggregate(out *Output, at diag.Span) expr.Expr {
	value := out.Columns()[0].Ref()
	var e expr.Expr = value
	n := out.Node
	for {
		p, ok := n.(*Project)
		if !ok {
			break
		}
		e, n = Substitute(e, p), p.Input
	}
	agg := n.(*Aggregate)
	right, conds, ok := eb.correlate(agg, at)
	if !ok {
		return nil
	}
	eb.add(&subquery{kind: graph.SingleJoin, right: right, span: at}, conds)
	eb.onlyLast()
	failed := false
	e = expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		c, is := x.(*expr.Column)
		if !is {
			return x
		}
		for i, call := range agg.Aggs {
			if agg.Cols[i].ID != c.Index {
				continue
			}
			ref := nullable(&agg.Cols[i])
			if call.Agg.Name != "COUNT" {
				return ref
			}
			zero, err := function.Call(eb.b.Functions, "COALESCE", ref, expr.Int(ref.T.NotNull(), 0))
			failed = failed || err != nil
			return zero
		}
		return x
	})
	if failed || usesAny(columnSet(eb.sc.outerColumns()), e) {
		eb.b.notYet(at, "a sub-query that computes with columns of the query around it").WithHelp("compute outside of the sub-query")
		return nil
	}
	return e
}

func usesAny(set map[int]bool, es ...expr.Expr) bool {
	for _, id := range expr.Columns(es...) {
		if set[id] {
			return true
		}
	}
	return false
}

// joinSubqueries joins a clause's input with its sub-queries. over rewrites what
// they compare with to the input's columns, nil where it cannot.
func (b *Binder) joinSubqueries(n Node, subs *subqueries, over func(expr.Expr) expr.Expr) Node {
	for _, s := range subs.list {
		j := &Join{Kind: s.kind, Left: n, Right: s.right, NullAware: s.nullAware, Span: s.span, TTL: [2]int64{b.StateTTL, b.StateTTL}}
		if s.mark != nil {
			j.Cols = []Column{*s.mark}
		}
		outer := make([]expr.Expr, len(s.outer))
		for i := range s.outer {
			if outer[i] = over(s.outer[i]); outer[i] == nil {
				return nil
			}
		}
		if s.condition != nil {
			if j.Condition = over(s.condition); j.Condition == nil {
				return nil
			}
		}
		if s.kind == graph.SingleJoin && !b.Batch && b.oneRow(s) {
			j.Kind, j.OneRow = graph.LeftJoin, true
		}
		j = b.keyedJoin(j, outer, s.inner, nil)
		if b.streaming() && !j.Streams() && !j.Changes {
			b.notYet(s.span, "a scalar sub-query in streaming mode that may give several rows").
				WithHelp("an aggregate gives one: (SELECT MAX(x) FROM ...)").
				WithHelp("where the inputs end, SET 'execution.runtime-mode' = 'batch'")
			return nil
		}
		n = j
	}
	return n
}

// oneRow reports a sub-query that gives at most one row for what it is compared with,
// so that a LEFT JOIN does.
func (b *Binder) oneRow(s *subquery) bool {
	var by []int
	for _, e := range s.inner {
		if c, ok := e.(*expr.Column); ok {
			by = append(by, c.Index)
		}
	}
	return slices.ContainsFunc(upsertKeys(s.right), func(k []int) bool { return contains(by, k) })
}

func asIs(e expr.Expr) expr.Expr { return e }
