package plan

import (
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
)

// callExpr binds f(args): an aggregate where one may stand, else a scalar
// function.
func (eb *exprBinder) callExpr(c *syntax.Call) expr.Expr {
	if len(c.Name.Parts) > 1 {
		eb.b.notYet(c.Name.Span(), "a function of a catalog")
		return nil
	}
	name := c.Name.String()
	if x, is := eb.auxiliary(c); is {
		return x
	}
	if x, is := eb.groupingCall(c); is {
		return x
	}
	if groupWindows[strings.ToUpper(name)] != nil {
		eb.b.errorf(diag.CodeBadWindow, c.Span(), "%s stands in GROUP BY or in FROM TABLE(...)", strings.ToUpper(name)).
			WithHelp("its bounds are window_start and window_end, of GROUP BY %s_START(...) and %s_END(...)", strings.ToUpper(name), strings.ToUpper(name))
		return nil
	}
	if c.Over != nil {
		return eb.overExpr(c)
	}
	if agg, ok := eb.b.Functions.Aggregate(name); ok {
		return eb.aggregate(agg, c)
	}
	if _, needs := rankFuncs[strings.ToUpper(name)]; needs {
		eb.b.errorf(diag.CodeBadArgument, c.Span(), "%s needs OVER (ORDER BY ...)", strings.ToUpper(name))
		return nil
	}
	switch {
	case c.Star:
		eb.b.errorf(diag.CodeBadArgument, c.Span(), "%s(*) has no meaning; only COUNT takes *", strings.ToUpper(name))
		return nil
	case c.Distinct || c.Filter != nil || len(c.OrderBy) > 0 || len(c.WithinGroup) > 0:
		if _, err := function.Lookup(eb.b.Functions, name); err == nil {
			eb.b.errorf(diag.CodeBadArgument, c.Span(), "%s is not an aggregate; DISTINCT, FILTER and ORDER BY belong to aggregates", strings.ToUpper(name))
			return nil
		}
	}
	if f, ok := eb.b.Functions.Lookup(name); ok && f.Table {
		eb.b.errorf(diag.CodeBadArgument, c.Span(), "%s gives rows, not a value: it stands in FROM", f.Name).
			WithHelp("FROM t, LATERAL TABLE(%s(...)) AS x", f.Name)
		return nil
	}
	args, ok := eb.callArgs(c.Args)
	if !ok {
		// Say what is wrong with the name as well.
		if _, err := function.Lookup(eb.b.Functions, name); err != nil {
			eb.apply(name, c.Name.Span(), c.Args, nil)
		}
		return nil
	}
	if _, err := function.Lookup(eb.b.Functions, name); err != nil {
		return eb.apply(name, c.Name.Span(), c.Args, args)
	}
	x := eb.apply(name, c.Span(), c.Args, args)
	if x != nil {
		eb.lintPattern(name, c)
	}
	return x
}

// callArgs binds arguments; a unit of time becomes a string literal.
func (eb *exprBinder) callArgs(args []syntax.Expr) ([]expr.Expr, bool) {
	out := make([]expr.Expr, len(args))
	ok := true
	for i, a := range args {
		switch a := a.(type) {
		case *syntax.UnitArg:
			out[i] = expr.Text(function.Unit(a.Unit))
		case *syntax.NamedArg:
			eb.b.notYet(a.Span(), "an argument by name in a scalar function")
			ok = false
		case *syntax.TableArg, *syntax.Descriptor, *syntax.DefaultArg:
			eb.b.errorf(diag.CodeBadArgument, a.Span(), "this argument belongs to table functions such as TUMBLE")
			ok = false
		default:
			if out[i] = eb.bind(a); out[i] == nil {
				ok = false
			}
		}
	}
	return out, ok
}

func (eb *exprBinder) aggregate(agg *fn.Aggregate, c *syntax.Call) expr.Expr {
	if eb.group != nil {
		return eb.group.call(eb, agg, c)
	}
	d := eb.b.errorf(diag.CodeMisplacedAggregate, c.Span(), "an aggregate cannot stand in %s", eb.clause)
	switch eb.clause {
	case "WHERE":
		d.WithHelp("a condition on an aggregate goes into HAVING")
	case "an aggregate":
		d.WithHelp("aggregate in a sub-query first")
	}
	return nil
}

// special binds the forms with a syntax of their own.
func (eb *exprBinder) special(e syntax.Expr) expr.Expr {
	span := e.Span()
	switch e := e.(type) {
	case *syntax.Extract:
		return eb.withText("EXTRACT", span, function.Unit(e.Unit.Unit), true, e.From)
	case *syntax.RoundTime:
		name := "FLOOR"
		if e.Ceil {
			name = "CEIL"
		}
		return eb.withText(name, span, function.Unit(e.Unit.Unit), false, e.Expr)
	case *syntax.Trim:
		name := [...]string{syntax.TrimBoth: "TRIM", syntax.TrimLeading: "LTRIM", syntax.TrimTrailing: "RTRIM"}[e.Side]
		if e.Chars == nil {
			return eb.call(name, span, e.From)
		}
		return eb.call(name, span, e.From, e.Chars)
	case *syntax.Position:
		if e.From != nil {
			return eb.call("LOCATE", span, e.Needle, e.In, e.From)
		}
		return eb.call("POSITION", span, e.Needle, e.In)
	case *syntax.Substring:
		if e.For == nil {
			return eb.call("SUBSTRING", span, e.Expr, e.From)
		}
		return eb.call("SUBSTRING", span, e.Expr, e.From, e.For)
	case *syntax.Overlay:
		if _, err := function.Lookup(eb.b.Functions, "OVERLAY"); err != nil {
			eb.b.notYet(span, "OVERLAY").WithHelp("LEFT(s, n) || t || SUBSTRING(s FROM n)")
			return nil
		}
		if e.For == nil {
			return eb.call("OVERLAY", span, e.Expr, e.Placing, e.From)
		}
		return eb.call("OVERLAY", span, e.Expr, e.Placing, e.From, e.For)
	case *syntax.RowExpr:
		args, ok := eb.bindAll(e.Items)
		if !ok || !eb.typed(e.Items, args) {
			return nil
		}
		return expr.NewRow(nil, args...)
	case *syntax.ArrayExpr:
		return eb.array(e)
	case *syntax.MapExpr:
		return eb.mapExpr(e)
	case *syntax.JSONValue, *syntax.JSONQuery, *syntax.JSONExists:
		return eb.json(e)
	case *syntax.JSONObject:
		return eb.jsonObject(e)
	case *syntax.JSONArray:
		return eb.jsonArray(e)
	case *syntax.Subquery, *syntax.Exists, *syntax.Quantified:
		eb.b.notYet(span, "a sub-query inside an expression")
	case *syntax.UnitArg:
		eb.b.errorf(diag.CodeBadArgument, span, "a unit of time cannot stand here")
	default:
		eb.b.notYet(span, "this kind of expression")
	}
	return nil
}

// withText calls a function with a keyword as a string literal, before or
// after the argument.
func (eb *exprBinder) withText(name string, span diag.Span, word string, first bool, arg syntax.Expr) expr.Expr {
	x := eb.bind(arg)
	if x == nil {
		return nil
	}
	if first {
		return eb.apply(name, span, []syntax.Expr{nil, arg}, []expr.Expr{expr.Text(word), x})
	}
	return eb.apply(name, span, []syntax.Expr{arg, nil}, []expr.Expr{x, expr.Text(word)})
}

// typed reports bare NULLs, which have no type inside a constructor.
func (eb *exprBinder) typed(asts []syntax.Expr, args []expr.Expr) bool {
	for i, a := range args {
		if expr.ArgsOf(a)[0].Type.String() == "NULL" {
			eb.b.errorf(diag.CodeUntypedNull, asts[i].Span(), "NULL has no type here").WithHelp("write CAST(NULL AS <type>)")
			return false
		}
	}
	return true
}

func (eb *exprBinder) array(e *syntax.ArrayExpr) expr.Expr {
	args, ok := eb.bindAll(e.Items)
	if !ok {
		return nil
	}
	x, err := expr.NewArray(args...)
	if err != nil {
		eb.b.errorf(diag.CodeTypeMismatch, e.Span(), "%s", err)
		return nil
	}
	return x
}

func (eb *exprBinder) mapExpr(e *syntax.MapExpr) expr.Expr {
	args, ok := eb.bindAll(e.Items)
	if !ok {
		return nil
	}
	var keys, values []expr.Expr
	for i := 0; i+1 < len(args); i += 2 {
		keys, values = append(keys, args[i]), append(values, args[i+1])
	}
	x, err := expr.NewMap(keys, values)
	if err != nil {
		eb.b.errorf(diag.CodeTypeMismatch, e.Span(), "%s", err)
		return nil
	}
	return x
}
