package plan

import (
	"strconv"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
)

// rowPair finds ROW(a, ...) = ROW(b, ...) with as many fields on both sides.
func rowPair(e *syntax.Binary) (l, r *syntax.RowExpr, ok bool) {
	if e.Op != syntax.OpEq {
		return nil, nil, false
	}
	l, left := e.Left.(*syntax.RowExpr)
	r, right := e.Right.(*syntax.RowExpr)
	return l, r, left && right && len(l.Items) == len(r.Items) && len(l.Items) > 0
}

// rowsEqual compares rows that are written out field by field, as SQL:2023 and
// Flink do: unknown where a field is NULL and the others are equal. Values of type
// ROW, and <>, take NULL fields for equal, as Flink does. bound are the left fields
// if they are bound already.
func (eb *exprBinder) rowsEqual(left []syntax.Expr, bound []expr.Expr, right []syntax.Expr, at diag.Span) expr.Expr {
	if bound == nil {
		var ok bool
		if bound, ok = eb.bindFields(left); !ok {
			return nil
		}
	}
	all := make([]expr.Expr, 0, len(left))
	for i := range left {
		if x := eb.fieldEqual(left[i], bound[i], right[i], at); x != nil {
			all = append(all, x)
		}
	}
	if len(all) < len(left) {
		return nil
	}
	return conjunction(all)
}

// bindFields binds the fields of a row; those that are rows themselves are compared
// field by field, and stay nil.
func (eb *exprBinder) bindFields(items []syntax.Expr) ([]expr.Expr, bool) {
	out, ok := make([]expr.Expr, len(items)), true
	for i, it := range items {
		if _, row := it.(*syntax.RowExpr); !row {
			out[i] = eb.bind(it)
			ok = ok && out[i] != nil
		}
	}
	return out, ok
}

func (eb *exprBinder) fieldEqual(left syntax.Expr, bound expr.Expr, right syntax.Expr, at diag.Span) expr.Expr {
	if bound == nil {
		return eb.binary(&syntax.Binary{Loc: syntax.Loc{Src: at}, Op: syntax.OpEq, Left: left, Right: right, OpLoc: syntax.Loc{Src: at}})
	}
	y := eb.bind(right)
	if y == nil {
		return nil
	}
	return eb.apply("=", at, []syntax.Expr{left, right}, []expr.Expr{bound, y})
}

func (eb *exprBinder) in(e *syntax.In) expr.Expr {
	if e.Query != nil {
		return eb.inQuery(e, e.Expr, e.Not, e.Query)
	}
	if row, is := e.Expr.(*syntax.RowExpr); is {
		return eb.negate(eb.rowIn(row, e), e.Not, e.Span())
	}
	asts := append([]syntax.Expr{e.Expr}, e.List...)
	args, ok := eb.bindAll(asts)
	if !ok {
		return nil
	}
	return eb.negate(eb.apply("IN", e.Span(), asts, args), e.Not, e.Span())
}

// rowIn binds (a, b) IN ((1, 2), (3, 4)): some row of the list is equal.
func (eb *exprBinder) rowIn(left *syntax.RowExpr, e *syntax.In) expr.Expr {
	bound, ok := eb.bindFields(left.Items)
	if !ok {
		return nil
	}
	var any []expr.Expr
	for _, it := range e.List {
		row, is := it.(*syntax.RowExpr)
		if !is || len(row.Items) != len(left.Items) {
			eb.b.errorf(diag.CodeTypeMismatch, it.Span(), "IN compares rows of %d values, this is none", len(left.Items)).
				WithHelp("(a, b) IN ((1, 2), (3, 4))")
			return nil
		}
		x := eb.rowsEqual(left.Items, bound, row.Items, it.Span())
		if x == nil {
			return nil
		}
		any = append(any, x)
	}
	if len(any) == 1 {
		return any[0]
	}
	return expr.NewOr(any...)
}

// filters are the operands of the AND that a condition is.
func filters(e syntax.Expr) map[syntax.Expr]bool {
	out := map[syntax.Expr]bool{}
	var parts []syntax.Expr
	chain(e, syntax.OpAnd, &parts)
	for _, p := range parts {
		out[p] = true
	}
	return out
}

// inQuery binds x [NOT] IN (query) and (x, y) [NOT] IN (query).
func (eb *exprBinder) inQuery(whole, left syntax.Expr, not bool, q *syntax.Query) expr.Expr {
	at, asts := whole.Span(), []syntax.Expr{left}
	if row, is := left.(*syntax.RowExpr); is {
		asts = row.Items
	}
	xs, bound := eb.bindAll(asts)
	out := eb.bindSubquery(q, "IN with a sub-query", at)
	if !bound || out == nil {
		return nil
	}
	if n := len(out.Columns()); n != len(xs) {
		what := "one column"
		if len(xs) > 1 {
			what = "rows of " + strconv.Itoa(len(xs)) + " columns"
		}
		eb.b.errorf(diag.CodeColumnCount, q.Span(), "IN compares with %s, the sub-query gives %d", what, n)
		return nil
	}
	n, conds, ok := eb.correlate(out.Node, at)
	if !ok {
		return nil
	}
	same := make([]expr.Expr, len(xs))
	for i, x := range xs {
		value, _ := ColumnByID(n.Columns(), out.Columns()[i].ID)
		var err error
		if same[i], err = function.Call(eb.b.Functions, "=", x, value.Ref()); err != nil {
			eb.b.errorf(diag.CodeTypeMismatch, at, "IN compares %s with %s", x.Type().WithNullable(true), value.Type.WithNullable(true)).
				WithHelp("CAST one of them")
			return nil
		}
	}
	s := &subquery{kind: graph.MarkJoin, right: n, span: at, mark: &Column{ID: eb.b.id(), Name: "IN", Type: rt.NewBoolean()}}
	eb.add(s, conds)
	if len(same) == 1 {
		eb.compareOne(s, same[0])
	} else {
		eb.compareRows(s, same, !not && eb.filters[whole])
	}
	return eb.negate(s.mark.Ref(), not, at)
}

// compareOne makes the comparison of IN a key where it is all that decides.
func (eb *exprBinder) compareOne(s *subquery, same expr.Expr) {
	l, r, _, simple := equality(same)
	switch {
	case s.condition == nil && simple:
		s.outer, s.inner = append(s.outer, l), append(s.inner, r)
		s.nullAware = l.Type().Nullable || r.Type().Nullable
	case s.condition == nil:
		s.condition = same
	default:
		s.condition = expr.NewAnd(eb.only(s.condition), same)
	}
	if !same.Type().Nullable {
		s.mark.Type = s.mark.Type.NotNull()
	}
}

// compareRows makes keys of the fields that say TRUE or FALSE, of all of them where
// unknown is as good as FALSE (known). Of the others one alone is the operand of a
// null-aware join; several may be unknown each for itself, so that a condition
// looks at every pair.
func (eb *exprBinder) compareRows(s *subquery, same []expr.Expr, known bool) {
	var rest []expr.Expr
	for _, x := range same {
		l, r, _, simple := equality(x)
		if simple && (known || !x.Type().Nullable) {
			s.outer, s.inner = append(s.outer, l), append(s.inner, r)
			continue
		}
		rest = append(rest, x)
	}
	if known {
		for i := range rest {
			rest[i] = eb.only(rest[i])
		}
	}
	if len(rest) == 1 && s.condition == nil {
		eb.compareOne(s, rest[0])
		return
	}
	if s.condition != nil {
		rest = append([]expr.Expr{eb.only(s.condition)}, rest...)
	}
	if s.condition = conjunction(rest); s.condition == nil || !s.condition.Type().Nullable {
		s.mark.Type = s.mark.Type.NotNull()
	}
}
