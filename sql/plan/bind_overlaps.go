package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// overlaps binds (a, b) OVERLAPS (c, d): each period ends no earlier than the
// other begins. The ends of a period come in any order, and the second may be
// an interval from the first.
func (eb *exprBinder) overlaps(e *syntax.Binary) expr.Expr {
	from1, to1, ok1 := eb.period(e.Left)
	from2, to2, ok2 := eb.period(e.Right)
	if !ok1 || !ok2 {
		return nil
	}
	asts := []syntax.Expr{e.Left, e.Right}
	x := eb.apply(">=", e.Span(), asts, []expr.Expr{to1, from2})
	y := eb.apply(">=", e.Span(), asts, []expr.Expr{to2, from1})
	if x == nil || y == nil {
		return nil
	}
	return expr.NewAnd(x, y)
}

// period is the earlier and the later end of a pair.
func (eb *exprBinder) period(e syntax.Expr) (from, to expr.Expr, ok bool) {
	row, is := e.(*syntax.RowExpr)
	if !is || len(row.Items) != 2 {
		eb.b.errorf(diag.CodeTypeMismatch, e.Span(), "OVERLAPS takes two periods").
			WithHelp("write (start, end) or (start, INTERVAL ...) on both sides")
		return nil, nil, false
	}
	ends, ok := eb.bindAll(row.Items)
	if !ok {
		return nil, nil, false
	}
	if t := ends[0].Type(); t.Kind != rt.Date && t.Kind != rt.Time && !t.IsTimestamp() {
		eb.b.errorf(diag.CodeTypeMismatch, row.Items[0].Span(), "a period begins with a date, time or timestamp, this is %s", t.WithNullable(true))
		return nil, nil, false
	}
	if k := ends[1].Type().Kind; k == rt.IntervalDaySecond || k == rt.IntervalYearMonth {
		if ends[1] = eb.apply("+", e.Span(), row.Items, []expr.Expr{ends[0], ends[1]}); ends[1] == nil {
			return nil, nil, false
		}
	}
	ordered := eb.apply("<=", e.Span(), row.Items, ends)
	if ordered == nil {
		return nil, nil, false
	}
	from = eb.apply("CASE", e.Span(), nil, []expr.Expr{ordered, ends[0], ends[1]})
	to = eb.apply("CASE", e.Span(), nil, []expr.Expr{ordered, ends[1], ends[0]})
	return from, to, from != nil && to != nil
}
