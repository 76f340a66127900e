package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
	sqltypes "github.com/millrace/millrace/sql/types"
)

// json binds JSON_VALUE, JSON_QUERY and JSON_EXISTS. Their clauses are string
// literals behind the path.
func (eb *exprBinder) json(e syntax.Expr) expr.Expr {
	switch e := e.(type) {
	case *syntax.JSONValue:
		return eb.jsonValue(e)
	case *syntax.JSONQuery:
		if e.Returning != nil {
			eb.b.notYet(e.Returning.Span(), "JSON_QUERY with RETURNING")
			return nil
		}
		wrapper := "WITHOUT"
		switch e.Wrapper {
		case syntax.JSONWithConditionalWrapper:
			wrapper = "CONDITIONAL"
		case syntax.JSONWithUnconditionalWrapper:
			wrapper = "UNCONDITIONAL"
		}
		return eb.jsonCall("JSON_QUERY", e.Span(), e.Expr, e.Path,
			expr.Text(wrapper), expr.Text(behavior(e.OnEmpty, "NULL")), expr.Text(behavior(e.OnError, "NULL")))
	case *syntax.JSONExists:
		return eb.jsonCall("JSON_EXISTS", e.Span(), e.Expr, e.Path, expr.Text(behavior(e.OnError, "FALSE")))
	}
	return nil
}

var behaviors = map[syntax.JSONBehaviorKind]string{
	syntax.JSONNull: "NULL", syntax.JSONError: "ERROR", syntax.JSONDefault: "DEFAULT", syntax.JSONEmptyArray: "EMPTY ARRAY",
	syntax.JSONEmptyObject: "EMPTY OBJECT", syntax.JSONTrue: "TRUE", syntax.JSONFalse: "FALSE", syntax.JSONUnknown: "UNKNOWN",
}

func behavior(b *syntax.JSONBehavior, def string) string {
	if b == nil {
		return def
	}
	return behaviors[b.Kind]
}

func (eb *exprBinder) jsonCall(name string, span diag.Span, doc, path syntax.Expr, clauses ...expr.Expr) expr.Expr {
	args, ok := eb.bindAll([]syntax.Expr{doc, path})
	if !ok {
		return nil
	}
	return eb.apply(name, span, []syntax.Expr{doc, path}, append(args, clauses...))
}

// jsonValue binds JSON_VALUE. It gives a STRING; RETURNING another type casts
// it: a text that does not fit is NULL, or an error with ERROR ON ERROR.
func (eb *exprBinder) jsonValue(e *syntax.JSONValue) expr.Expr {
	onEmpty, ok1 := eb.jsonDefault(e.OnEmpty)
	onError, ok2 := eb.jsonDefault(e.OnError)
	if !ok1 || !ok2 {
		return nil
	}
	x := eb.jsonCall("JSON_VALUE", e.Span(), e.Expr, e.Path,
		expr.Text(behavior(e.OnEmpty, "NULL")), onEmpty, expr.Text(behavior(e.OnError, "NULL")), onError)
	if x == nil || e.Returning == nil {
		return x
	}
	t, ok := sqltypes.FromAST(e.Returning, eb.b.Diags)
	if !ok {
		return nil
	}
	switch t.Kind {
	case rt.Varchar, rt.Char:
	case rt.Boolean, rt.Int, rt.Double:
		if e.OnError != nil && e.OnError.Kind == syntax.JSONDefault {
			eb.b.notYet(e.OnError.Span(), "DEFAULT ... ON ERROR together with RETURNING "+t.WithNullable(true).String())
			return nil
		}
	default:
		eb.b.notYet(e.Returning.Span(), "JSON_VALUE RETURNING "+t.WithNullable(true).String()).
			WithHelp("RETURNING takes BOOLEAN, INT, DOUBLE and STRING; CAST gives the others")
		return nil
	}
	try := e.OnError == nil || e.OnError.Kind != syntax.JSONError
	c, err := expr.NewCast(x, t, try)
	if err != nil {
		eb.b.notYet(e.Returning.Span(), "JSON_VALUE RETURNING "+t.WithNullable(true).String())
		return nil
	}
	return c
}

// jsonDefault is the value of DEFAULT as a STRING, empty where there is none.
func (eb *exprBinder) jsonDefault(b *syntax.JSONBehavior) (expr.Expr, bool) {
	if b == nil || b.Kind != syntax.JSONDefault {
		return expr.Text(""), true
	}
	v := eb.bind(b.Default)
	if v == nil {
		return nil, false
	}
	if v.Type().Kind == rt.Null {
		return expr.Null(rt.NewString()), true
	}
	c, err := expr.NewCast(v, rt.NewString(), false)
	if err != nil {
		eb.b.errorf(diag.CodeTypeMismatch, b.Default.Span(), "%s cannot be the default of JSON_VALUE", v.Type().WithNullable(true))
		return nil, false
	}
	return expr.Fold(c), true
}

// jsonObject binds JSON_OBJECT: pairs, then the clauses as string literals.
func (eb *exprBinder) jsonObject(e *syntax.JSONObject) expr.Expr {
	if e.Agg {
		eb.b.notYet(e.Span(), "JSON_OBJECTAGG")
		return nil
	}
	var asts, values []syntax.Expr
	for _, p := range e.Pairs {
		asts, values = append(asts, p.Key, p.Value), append(values, p.Value)
	}
	return eb.jsonBuild("JSON_OBJECT", e.Span(), asts, values, e.OnNull == syntax.JSONAbsentOnNull)
}

// jsonArray binds JSON_ARRAY, which leaves NULLs out unless told otherwise.
func (eb *exprBinder) jsonArray(e *syntax.JSONArray) expr.Expr {
	if e.Agg {
		eb.b.notYet(e.Span(), "JSON_ARRAYAGG")
		return nil
	}
	return eb.jsonBuild("JSON_ARRAY", e.Span(), e.Items, e.Items, e.OnNull != syntax.JSONNullOnNull)
}

func (eb *exprBinder) jsonBuild(name string, span diag.Span, asts, values []syntax.Expr, absent bool) expr.Expr {
	args, ok := eb.bindAll(asts)
	if !ok {
		return nil
	}
	onNull := "NULL"
	if absent {
		onNull = "ABSENT"
	}
	// The result of another constructor goes in as JSON, not as a string.
	forms := make([]byte, len(values))
	for i, v := range values {
		forms[i] = 'v'
		switch v.(type) {
		case *syntax.JSONObject, *syntax.JSONArray:
			forms[i] = 'j'
		}
	}
	return eb.apply(name, span, asts, append(args, expr.Text(onNull), expr.Text(string(forms))))
}
