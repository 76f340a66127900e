package sqltest

import (
	"fmt"

	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// Binder returns a binder over the tables and views that ddl declares.
func Binder(ddl string) (*plan.Binder, *diag.List, error) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		return nil, nil, err
	}
	diags := &diag.List{}
	b := &plan.Binder{Catalog: catalog.New(), Functions: lib, Zone: rt.UTC(), Diags: diags}
	script, errs := syntax.Parse(diag.NewFile("ddl.sql", ddl), syntax.Options{})
	diags.Add(errs...)
	build := &catalog.Builder{Catalog: b.Catalog, Registry: Registry(NewGiven()), Typer: b, Diags: diags}
	for _, s := range script.Stmts {
		switch s := s.(type) {
		case *syntax.CreateTable:
			if t, ok := build.Table(s); ok {
				diags.Add(b.Catalog.Add(t, s.Name.Span()))
			}
		case *syntax.CreateView:
			v := &catalog.View{Name: s.Name.Last().Name, Columns: s.Columns, Query: s.Query, Span: s.Name.Span()}
			diags.Add(b.Catalog.Add(v, s.Name.Span()))
		}
	}
	return b, diags, diags.Err()
}

// Query parses and binds a query.
func Query(b *plan.Binder, sql string) (*plan.Output, error) {
	script, errs := syntax.Parse(diag.NewFile("query.sql", sql), syntax.Options{})
	if errs.HasErrors() {
		return nil, errs
	}
	if len(script.Stmts) != 1 {
		return nil, fmt.Errorf("%d statements, want one", len(script.Stmts))
	}
	q, ok := script.Stmts[0].(*syntax.QueryStmt)
	if !ok {
		return nil, fmt.Errorf("%T is no query", script.Stmts[0])
	}
	out := b.Query(q.Query)
	if out == nil {
		return nil, b.Diags.Err()
	}
	return out, nil
}
