package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// Index is what the binder learned about places in the text, for editors. It is
// filled as far as binding came, also when there are errors. Views and CTEs are
// bound at each reference, so that a place may be listed more than once.
//
// A nil Index takes nothing down. An Index belongs to one goroutine.
type Index struct {
	// Catalog is what the text had declared at its end.
	Catalog *catalog.Catalog
	// Uses are the names that refer to something.
	Uses []Use
	// Types are the expressions with their types.
	Types []TypeAt
	// Scopes are the queries with what names in them can refer to.
	Scopes []ScopeAt
	// Views are the columns of the views, by name.
	Views map[string][]Column

	defs map[int]diag.Span // where the column of an id was written
}

// Use is a name that refers to something.
type Use struct {
	Span diag.Span
	// Declared is where what it refers to was written; may be zero.
	Declared diag.Span
	// Object is the table or view; nil for a column or a CTE.
	Object catalog.Object
	// Column is the column; nil for a table.
	Column *Column
}

// TypeAt is an expression's type.
type TypeAt struct {
	Span diag.Span
	Type rt.Type
}

// ScopeAt is a query with the relations of its FROM.
type ScopeAt struct {
	Span      diag.Span
	Relations []Relation
}

// Relation is one item of FROM that names can refer to.
type Relation struct {
	Name    string // alias or table name; "" for none
	Columns []Column
}

func (x *Index) expr(e syntax.Expr, bound expr.Expr) {
	if x == nil || bound == nil {
		return
	}
	x.Types = append(x.Types, TypeAt{Span: e.Span(), Type: bound.Type()})
}

// column takes down a reference; the fields of a ROW behind the column are no
// part of its span.
func (x *Index) column(ref *syntax.ColumnRef, c *Column, fields []*syntax.Ident) {
	if x == nil {
		return
	}
	col := *c
	span := ref.Parts[len(ref.Parts)-len(fields)-1].Span()
	x.Uses = append(x.Uses, Use{Span: span, Declared: x.defs[c.ID], Column: &col})
}

func (x *Index) table(at diag.Span, o catalog.Object) {
	if x == nil {
		return
	}
	x.Uses = append(x.Uses, Use{Span: at, Declared: o.Declared(), Object: o})
}

func (x *Index) name(at, declared diag.Span) {
	if x == nil {
		return
	}
	x.Uses = append(x.Uses, Use{Span: at, Declared: declared})
}

// define says where the column of an id was written.
func (x *Index) define(id int, at diag.Span) {
	if x == nil {
		return
	}
	if x.defs == nil {
		x.defs = map[int]diag.Span{}
	}
	x.defs[id] = at
}

func (x *Index) declared(t *catalog.Table, cols []Column) {
	if x == nil {
		return
	}
	for i := range cols {
		if c, ok := t.Column(cols[i].Name); ok {
			x.define(cols[i].ID, c.Span)
		}
	}
}

// outputs makes the items of a SELECT the places of the columns that begin there.
func (x *Index) outputs(out *Output) {
	if x == nil {
		return
	}
	for i, c := range out.Columns() {
		if _, old := x.defs[c.ID]; !old && i < len(out.Spans) {
			x.define(c.ID, out.Spans[i])
		}
	}
}

func (x *Index) view(name string, cols []Column) {
	if x == nil {
		return
	}
	if x.Views == nil {
		x.Views = map[string][]Column{}
	}
	x.Views[name] = cols
}

func (x *Index) scope(s *syntax.Select, order []*syntax.OrderItem, sc *scope) {
	if x == nil {
		return
	}
	at := ScopeAt{Span: s.Span()}
	if len(order) > 0 {
		at.Span = at.Span.To(order[len(order)-1].Span())
	}
	for _, r := range sc.rels {
		at.Relations = append(at.Relations, Relation{Name: r.name, Columns: r.cols})
	}
	x.Scopes = append(x.Scopes, at)
}
