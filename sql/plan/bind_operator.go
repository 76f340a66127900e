package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
)

func (eb *exprBinder) unary(e *syntax.Unary) expr.Expr {
	switch e.Op {
	case syntax.OpNot:
		return eb.call("NOT", e.Span(), e.Expr)
	case syntax.OpNeg:
		if n, ok := e.Expr.(*syntax.NumberLit); ok {
			return eb.number(n, true)
		}
		return eb.call("NEGATE", e.Span(), e.Expr)
	}
	x := eb.bind(e.Expr)
	if x == nil {
		return nil
	}
	if t := x.Type(); !t.IsNumeric() && t.Kind != rt.IntervalDaySecond && t.Kind != rt.IntervalYearMonth && t.Kind != rt.Null {
		eb.b.errorf(diag.CodeTypeMismatch, e.Span(), "+ takes a number, this is %s", t.WithNullable(true))
		return nil
	}
	return x
}

func (eb *exprBinder) binary(e *syntax.Binary) expr.Expr {
	if e.Op == syntax.OpOverlaps {
		return eb.overlaps(e)
	}
	if e.Op != syntax.OpAnd && e.Op != syntax.OpOr {
		if l, r, ok := rowPair(e); ok {
			return eb.rowsEqual(l.Items, nil, r.Items, e.Span())
		}
		return eb.call(function.Binary(e.Op), e.Span(), e.Left, e.Right)
	}
	// A chain of AND or OR is one flat node, however long.
	var parts []syntax.Expr
	chain(e, e.Op, &parts)
	bound := make([]expr.Expr, len(parts))
	ok := true
	for i, p := range parts {
		x := eb.bind(p)
		switch {
		case x == nil:
			ok = false
		case x.Type().Kind == rt.Null:
			bound[i] = expr.Null(rt.NewBoolean())
		case x.Type().Kind != rt.Boolean:
			eb.b.errorf(diag.CodeTypeMismatch, p.Span(), "%s takes conditions, this is %s", function.Binary(e.Op), x.Type().WithNullable(true))
			ok = false
		default:
			bound[i] = x
		}
	}
	if !ok {
		return nil
	}
	if e.Op == syntax.OpAnd {
		return expr.NewAnd(bound...)
	}
	return expr.NewOr(bound...)
}

// chain collects the operands of a left-deep chain of one operator.
func chain(e syntax.Expr, op syntax.BinaryOp, out *[]syntax.Expr) {
	var right []syntax.Expr
	for {
		b, ok := e.(*syntax.Binary)
		if !ok || b.Op != op {
			break
		}
		right = append(right, b.Right)
		e = b.Left
	}
	*out = append(*out, e)
	for i := len(right) - 1; i >= 0; i-- {
		*out = append(*out, right[i])
	}
}

func (eb *exprBinder) between(e *syntax.Between) expr.Expr {
	args, ok := eb.bindAll([]syntax.Expr{e.Expr, e.Low, e.High})
	if !ok {
		return nil
	}
	asts := []syntax.Expr{e.Expr, e.Low, e.High}
	x := eb.apply("BETWEEN", e.Span(), asts, args)
	if x != nil && e.Symmetric {
		y := eb.apply("BETWEEN", e.Span(), asts, []expr.Expr{args[0], args[2], args[1]})
		if y == nil {
			return nil
		}
		x = expr.NewOr(x, y)
	}
	return eb.negate(x, e.Not, e.Span())
}

// is binds IS [NOT] NULL and the like; IS JSON takes its kind as an argument.
func (eb *exprBinder) is(e *syntax.Is) expr.Expr {
	kind, ok := function.JSONKind(e.Kind)
	if !ok {
		return eb.call(function.Is(e.Kind, e.Not), e.Span(), e.Expr)
	}
	x := eb.bind(e.Expr)
	if x == nil {
		return nil
	}
	return eb.negate(eb.apply("IS JSON", e.Span(), []syntax.Expr{e.Expr}, []expr.Expr{x, expr.Text(kind)}), e.Not, e.Span())
}

func (eb *exprBinder) negate(x expr.Expr, not bool, span diag.Span) expr.Expr {
	if x == nil || !not {
		return x
	}
	return eb.apply("NOT", span, nil, []expr.Expr{x})
}

func (eb *exprBinder) like(e *syntax.LikeExpr) expr.Expr {
	name := "LIKE"
	if e.Kind == syntax.SimilarTo {
		name = "SIMILAR TO"
	}
	asts := []syntax.Expr{e.Expr, e.Pattern}
	if e.Escape != nil {
		asts = append(asts, e.Escape)
	}
	return eb.negate(eb.call(name, e.Span(), asts...), e.Not, e.Span())
}
