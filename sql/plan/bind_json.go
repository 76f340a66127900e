package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/syntax"
	sqltypes "github.com/millrace/millrace/sql/types"
)

// json binds JSON_VALUE, JSON_QUERY and JSON_EXISTS.
func (eb *exprBinder) json(e syntax.Expr) expr.Expr {
	switch e := e.(type) {
	case *syntax.JSONValue:
		return eb.jsonValue(e)
	case *syntax.JSONQuery:
		if e.Wrapper > syntax.JSONWithoutWrapper || e.OnEmpty != nil && e.OnEmpty.Kind != syntax.JSONNull ||
			e.OnError != nil && e.OnError.Kind != syntax.JSONNull || e.Returning != nil {
			eb.b.notYet(e.Span(), "JSON_QUERY with RETURNING, a wrapper, or a behavior other than NULL")
			return nil
		}
		return eb.call("JSON_QUERY", e.Span(), e.Expr, e.Path)
	case *syntax.JSONExists:
		if e.OnError != nil && e.OnError.Kind != syntax.JSONFalse {
			eb.b.notYet(e.OnError.Span(), "JSON_EXISTS with a behavior other than FALSE ON ERROR")
			return nil
		}
		return eb.call("JSON_EXISTS", e.Span(), e.Expr, e.Path)
	}
	return nil
}

// jsonValue binds JSON_VALUE. It gives a STRING; RETURNING another type casts
// it, with NULL where the text does not fit, as NULL ON ERROR says.
func (eb *exprBinder) jsonValue(e *syntax.JSONValue) expr.Expr {
	for _, b := range []*syntax.JSONBehavior{e.OnEmpty, e.OnError} {
		if b != nil && b.Kind != syntax.JSONNull {
			eb.b.notYet(b.Span(), "JSON_VALUE with a behavior other than NULL").
				WithHelp("COALESCE(JSON_VALUE(...), default)")
			return nil
		}
	}
	x := eb.call("JSON_VALUE", e.Span(), e.Expr, e.Path)
	if x == nil || e.Returning == nil {
		return x
	}
	t, ok := sqltypes.FromAST(e.Returning, eb.b.Diags)
	if !ok {
		return nil
	}
	switch t.Kind {
	case rt.Boolean, rt.Int, rt.Double, rt.Varchar, rt.Char:
	default:
		eb.b.notYet(e.Returning.Span(), "JSON_VALUE RETURNING "+t.WithNullable(true).String()).
			WithHelp("RETURNING takes BOOLEAN, INT, DOUBLE and STRING; CAST gives the others")
		return nil
	}
	c, err := expr.NewCast(x, t, true)
	if err != nil {
		eb.b.notYet(e.Returning.Span(), "JSON_VALUE RETURNING "+t.WithNullable(true).String())
		return nil
	}
	return c
}
