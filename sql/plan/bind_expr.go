package plan

import (
	"errors"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
	sqltypes "github.com/millrace/millrace/sql/types"
)

// exprBinder binds expressions of one clause over one scope.
type exprBinder struct {
	b      *Binder
	sc     *scope
	clause string
	// group takes aggregate calls; nil: they are an error here.
	group *grouping
	// over takes calls with OVER; nil: they are an error here.
	over *selection
	// spans, if not nil, gets the place of each column reference.
	spans map[*expr.Column]diag.Span
	// subs takes sub-queries; nil: they cannot stand here.
	subs  *subqueries
	depth int
}

// maxDepth bounds the nesting of expressions.
const maxDepth = 500

// scalar binds an expression without aggregates.
func (b *Binder) scalar(e syntax.Expr, sc *scope, clause string) expr.Expr {
	return (&exprBinder{b: b, sc: sc, clause: clause}).bind(e)
}

// predicate binds a condition without aggregates.
func (b *Binder) predicate(e syntax.Expr, sc *scope, clause string) expr.Expr {
	return (&exprBinder{b: b, sc: sc, clause: clause}).predicate(e)
}

func (eb *exprBinder) predicate(e syntax.Expr) expr.Expr {
	p := eb.bind(e)
	if p == nil {
		return nil
	}
	switch p.Type().Kind {
	case rt.Boolean:
		return p
	case rt.Null:
		return expr.Null(rt.NewBoolean())
	}
	eb.b.errorf(diag.CodeTypeMismatch, e.Span(), "%s takes a condition, this is %s", eb.clause, p.Type().WithNullable(true))
	return nil
}

// bind binds an expression; nil means that something was reported.
func (eb *exprBinder) bind(e syntax.Expr) expr.Expr {
	if eb.depth++; eb.depth > maxDepth {
		eb.depth--
		eb.b.errorf(diag.CodeNotYet, e.Span(), "an expression nested deeper than %d levels is not supported yet", maxDepth)
		return nil
	}
	defer func() { eb.depth-- }()
	x := eb.bindNode(e)
	eb.b.Index.expr(e, x)
	return x
}

func (eb *exprBinder) bindNode(e syntax.Expr) expr.Expr {
	switch e := e.(type) {
	case *syntax.ColumnRef:
		return eb.column(e)
	case *syntax.FieldAccess:
		base := eb.bind(e.Base)
		if base == nil {
			return nil
		}
		return eb.field(base, e.Field)
	case *syntax.Index:
		return eb.call("ITEM", e.Span(), e.Base, e.Key)
	case *syntax.Unary:
		return eb.unary(e)
	case *syntax.Binary:
		return eb.binary(e)
	case *syntax.Is:
		return eb.is(e)
	case *syntax.IsDistinct:
		name := "IS DISTINCT FROM"
		if e.Not {
			name = "IS NOT DISTINCT FROM"
		}
		return eb.call(name, e.Span(), e.Left, e.Right)
	case *syntax.Between:
		return eb.between(e)
	case *syntax.In:
		return eb.in(e)
	case *syntax.LikeExpr:
		return eb.like(e)
	case *syntax.Case:
		return eb.caseExpr(e)
	case *syntax.Cast:
		return eb.cast(e)
	case *syntax.Call:
		return eb.callExpr(e)
	case *syntax.Exists:
		return eb.exists(e)
	case *syntax.Quantified:
		return eb.quantified(e)
	case *syntax.Subquery:
		return eb.scalarQuery(e)
	}
	if x, ok := eb.literal(e); ok {
		return x
	}
	return eb.special(e)
}

// literal binds literals; ok is false for anything else.
func (eb *exprBinder) literal(e syntax.Expr) (x expr.Expr, ok bool) {
	switch e := e.(type) {
	case *syntax.NumberLit:
		return eb.number(e, false), true
	case *syntax.StringLit:
		return expr.Text(e.Value), true
	case *syntax.BinaryLit:
		return expr.Bytes(e.Value), true
	case *syntax.BoolLit:
		return expr.Bool(e.Value), true
	case *syntax.UnknownLit:
		return expr.Null(rt.NewBoolean()), true
	case *syntax.NullLit:
		return expr.Null(rt.Simple(rt.Null)), true
	case *syntax.DateTimeLit:
		return eb.dateTime(e), true
	case *syntax.IntervalLit:
		return eb.interval(e), true
	}
	return nil, false
}

func (eb *exprBinder) column(e *syntax.ColumnRef) expr.Expr {
	c, fields, ok := eb.sc.resolve(eb.b, e)
	if !ok {
		return nil
	}
	eb.b.Index.column(e, c, fields)
	ref := c.Ref()
	if eb.spans != nil {
		eb.spans[ref] = e.Span()
	}
	var out expr.Expr = ref
	for _, f := range fields {
		if out = eb.field(out, f); out == nil {
			return nil
		}
	}
	return out
}

func (eb *exprBinder) field(base expr.Expr, f *syntax.Ident) expr.Expr {
	t := base.Type()
	if t.Kind != rt.Row {
		d := eb.b.errorf(diag.CodeUnknownField, f.Span(), "there is no field %q: %s is %s", f.Name, base, t.WithNullable(true))
		switch t.Kind {
		case rt.Map:
			d.WithHelp("a value of a MAP is %s['%s']", base, f.Name)
		case rt.Array:
			d.WithHelp("an element of an ARRAY is %s[1]", base)
		}
		return nil
	}
	var names []string
	for i := range t.Fields {
		if t.Fields[i].Name == f.Name {
			x, err := expr.NewField(base, i)
			if err != nil {
				eb.b.errorf(diag.CodeUnknownField, f.Span(), "%s", err)
				return nil
			}
			return x
		}
		names = append(names, t.Fields[i].Name)
	}
	eb.b.errorf(diag.CodeUnknownField, f.Span(), "%s has no field %q", base, f.Name).WithNearest(f.Name, names)
	return nil
}

// bindAll binds several expressions and reports the faults of all.
func (eb *exprBinder) bindAll(es []syntax.Expr) ([]expr.Expr, bool) {
	out := make([]expr.Expr, len(es))
	ok := true
	for i, e := range es {
		if out[i] = eb.bind(e); out[i] == nil {
			ok = false
		}
	}
	return out, ok
}

// call binds a function or operator over syntax arguments.
func (eb *exprBinder) call(name string, span diag.Span, args ...syntax.Expr) expr.Expr {
	bound, ok := eb.bindAll(args)
	if !ok {
		return nil
	}
	return eb.apply(name, span, args, bound)
}

// apply calls a function over bound arguments; asts are the places of the
// arguments, for messages.
func (eb *exprBinder) apply(name string, span diag.Span, asts []syntax.Expr, args []expr.Expr) expr.Expr {
	x, err := function.Call(eb.b.Functions, name, args...)
	if err == nil {
		return x
	}
	var unknown *function.UnknownError
	if errors.As(err, &unknown) {
		eb.unknownFunction(unknown, span)
		return nil
	}
	eb.argError(err, span, asts)
	return nil
}

func (eb *exprBinder) unknownFunction(u *function.UnknownError, span diag.Span) {
	if u.Later {
		d := eb.b.errorf(diag.CodeNotYet, span, "%s", u)
		if h := function.LaterHelp(u.Name); h != "" {
			d.WithHelp("%s", h)
		}
		return
	}
	d := eb.b.errorf(diag.CodeUnknownFunction, span, "%s", u)
	if u.Use != "" {
		d.WithHelp("write %s", u.Use)
	}
	if u.Near != "" {
		d.WithHelp("did you mean %q?", u.Near)
	}
}

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
			return eb.rowsEqual(e, l, r)
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
// ROW, and <>, take NULL fields for equal, as Flink does.
func (eb *exprBinder) rowsEqual(e *syntax.Binary, l, r *syntax.RowExpr) expr.Expr {
	var all []expr.Expr
	for i := range l.Items {
		if x := eb.binary(&syntax.Binary{Loc: e.Loc, Op: syntax.OpEq, Left: l.Items[i], Right: r.Items[i], OpLoc: e.OpLoc}); x != nil {
			all = append(all, x)
		}
	}
	if len(all) < len(l.Items) {
		return nil
	}
	if len(all) == 1 {
		return all[0]
	}
	return expr.NewAnd(all...)
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

func (eb *exprBinder) in(e *syntax.In) expr.Expr {
	if e.Query != nil {
		return eb.inQuery(e.Expr, e.Not, e.Query, e.Span())
	}
	if _, row := e.Expr.(*syntax.RowExpr); row {
		eb.b.notYet(e.Expr.Span(), "IN over rows of values")
		return nil
	}
	asts := append([]syntax.Expr{e.Expr}, e.List...)
	args, ok := eb.bindAll(asts)
	if !ok {
		return nil
	}
	return eb.negate(eb.apply("IN", e.Span(), asts, args), e.Not, e.Span())
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

func (eb *exprBinder) caseExpr(e *syntax.Case) expr.Expr {
	var operand expr.Expr
	ok := true
	if e.Operand != nil {
		if operand = eb.bind(e.Operand); operand == nil {
			ok = false
		}
	}
	var args []expr.Expr
	var asts []syntax.Expr
	for _, w := range e.Whens {
		var cond expr.Expr
		if e.Operand == nil {
			cond = (&exprBinder{b: eb.b, sc: eb.sc, clause: "WHEN", group: eb.group, spans: eb.spans, subs: eb.subs, depth: eb.depth}).predicate(w.Cond)
		} else if v := eb.bind(w.Cond); v != nil && operand != nil {
			cond = eb.apply("=", w.Cond.Span(), []syntax.Expr{e.Operand, w.Cond}, []expr.Expr{operand, v})
		}
		then := eb.bind(w.Result)
		ok = ok && cond != nil && then != nil
		args, asts = append(args, cond, then), append(asts, w.Cond, w.Result)
	}
	if e.Else != nil {
		x := eb.bind(e.Else)
		ok = ok && x != nil
		args, asts = append(args, x), append(asts, e.Else)
	}
	if !ok {
		return nil
	}
	return eb.apply("CASE", e.Span(), asts, args)
}

func (eb *exprBinder) cast(e *syntax.Cast) expr.Expr {
	x := eb.bind(e.Expr)
	t, ok := sqltypes.FromAST(e.Type, eb.b.Diags)
	if x == nil || !ok {
		return nil
	}
	out, err := expr.NewCast(x, t, e.Try)
	if err != nil {
		eb.b.errorf(diag.CodeTypeMismatch, e.Span(), "%s cannot be cast to %s", x.Type().WithNullable(true), t.WithNullable(true)).
			WithHelp("%s", castHelp(x.Type(), t))
		return nil
	}
	return out
}

// castHelp names the function that does what a forbidden cast would.
func castHelp(from, to rt.Type) string {
	switch {
	case from.IsNumeric() && to.IsTimestamp():
		return "TO_TIMESTAMP_LTZ(number, 3) takes milliseconds, TO_TIMESTAMP_LTZ(number, 0) seconds"
	case from.IsTimestamp() && to.IsNumeric():
		return "UNIX_TIMESTAMP(CAST(ts AS STRING)) gives seconds"
	case from.Kind == rt.Row || to.Kind == rt.Row:
		return "cast each field by itself: ROW(CAST(r.a AS ...), ...)"
	}
	return "there is no such cast in SQL"
}
