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
	subs *subqueries
	// filters are the operands of the AND at the top of a WHERE: of them FALSE and
	// unknown are the same.
	filters map[syntax.Expr]bool
	depth   int
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
