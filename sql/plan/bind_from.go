package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// from binds a FROM clause to a node and adds its relations to the scope. nil
// means that something was reported; the scope is marked broken then.
func (b *Binder) from(t syntax.TableExpr, sc *scope) Node {
	n := b.fromItem(t, sc)
	if n == nil {
		sc.broken = true
	}
	return n
}

func (b *Binder) fromItem(t syntax.TableExpr, sc *scope) Node {
	switch t := t.(type) {
	case *syntax.TableRef:
		out := b.tableRef(t, sc.ctes)
		return b.relate(out, t.Name.Last().Name, t.Alias, sc)
	case *syntax.DerivedTable:
		if t.Lateral {
			b.notYet(t.Span(), "LATERAL")
			return nil
		}
		out := b.query(t.Query, sc.ctes)
		if out != nil && !b.noUntyped(out) {
			out = nil
		}
		return b.relate(out, "", t.Alias, sc)
	case *syntax.TableFunc:
		if f := b.userTable(t); f != nil {
			return b.lateral(oneRow(b), t, f, false, sc.part(0, 0, 0, 0), sc)
		}
		return b.relate(b.tableFunc(t, sc), "", t.Alias, sc)
	case *syntax.Unnest:
		return b.unnest(oneRow(b), t, false, sc.part(0, 0, 0, 0), sc)
	case *syntax.Join:
		return b.join(t, sc)
	}
	b.notYet(t.Span(), "this kind of table")
	return nil
}

// oneRow is a row for queries without FROM.
func oneRow(b *Binder) Node {
	return &Values{
		Rows: [][]expr.Expr{{expr.Bool(true)}},
		Cols: []Column{{ID: b.id(), Name: "", Type: rt.NewBoolean().NotNull(), WindowOnly: true}},
	}
}

// relate adds a bound table to the scope under its alias or name.
func (b *Binder) relate(out *Output, name string, alias *syntax.Alias, sc *scope) Node {
	if out == nil {
		return nil
	}
	if alias != nil {
		name = alias.Name.Name
		if out = b.columnNames(out, alias.Columns, alias.Span()); out == nil {
			return nil
		}
	}
	if name != "" {
		if _, dup := sc.relation(name); dup && alias != nil {
			b.errorf(diag.CodeDuplicateTable, alias.Span(), "there are two tables named %q in FROM", name)
		}
	}
	sc.rels = append(sc.rels, relation{name: name, cols: out.Columns()})
	return out.Node
}

// defaultNamespace are Flink's names of the one catalog and database.
var defaultNamespace = map[string]bool{"default_catalog": true, "default_database": true}

// simpleName takes Flink's default catalog and database off a name.
func (b *Binder) simpleName(n *syntax.Name) (string, bool) {
	for _, p := range n.Parts[:len(n.Parts)-1] {
		if !defaultNamespace[p.Name] {
			b.notYet(n.Span(), "a catalog or database in a table's name").
				WithHelp("write the table's name alone")
			return "", false
		}
	}
	return n.Last().Name, true
}

func (b *Binder) tableRef(t *syntax.TableRef, ctes []*cte) *Output {
	for _, h := range t.Hints {
		b.notYet(h.Span(), "the hint "+h.Name.Name)
	}
	if t.AsOf != nil {
		b.errorf(diag.CodeBadArgument, t.AsOf.Span(), "FOR SYSTEM_TIME AS OF belongs to the table on the right of a join").
			WithHelp("FROM o JOIN %s FOR SYSTEM_TIME AS OF o.proc AS d ON o.k = d.k", t.Name.Last().Name)
		return nil
	}
	return b.namedTable(t.Name, ctes)
}

// namedTable binds a table, view or CTE.
func (b *Binder) namedTable(n *syntax.Name, ctes []*cte) *Output {
	name, ok := b.simpleName(n)
	if !ok {
		return nil
	}
	if len(n.Parts) == 1 {
		if c := findCTE(ctes, name); c != nil {
			b.Index.name(n.Span(), c.def.Name.Span())
			return b.expandView("CTE", name, n.Span(), func() *Output {
				out := b.query(c.def.Query, c.outer)
				if out == nil {
					return nil
				}
				if out = b.columnNames(out, c.def.Columns, c.def.Name.Span()); out == nil || !b.noUntyped(out) {
					return nil
				}
				return out
			})
		}
	}
	o, ok := b.Catalog.Lookup(name)
	if !ok {
		candidates := b.Catalog.Names()
		for _, c := range ctes {
			candidates = append(candidates, c.def.Name.Name)
		}
		b.unknownTable(n, name, candidates)
		return nil
	}
	b.Index.table(n.Last().Span(), o)
	switch o := o.(type) {
	case *catalog.View:
		return b.expandView("view", name, n.Span(), func() *Output { return b.viewBody(o) })
	case *catalog.Table:
		return b.scan(o, n.Span())
	case *catalog.Broken:
		if o.Table != nil {
			return b.scanColumns(o.Table, n.Span())
		}
	}
	return nil // declared with errors
}

// unknownTable says that there is no such table, or not yet.
func (b *Binder) unknownTable(n *syntax.Name, name string, candidates []string) {
	if at, later := b.Declared[name]; later {
		b.errorf(diag.CodeUnknownTable, n.Span(), "table %q is declared after it is used", name).
			WithNote(at, "declared here").
			WithHelp("move the declaration up, or its file to the front")
		return
	}
	b.errorf(diag.CodeUnknownTable, n.Span(), "table %q not found", name).WithNearest(name, candidates)
}

func (b *Binder) viewBody(v *catalog.View) *Output {
	out := b.topQuery(v.Query)
	if out == nil {
		return nil
	}
	if out = b.columnNames(out, v.Columns, v.Span); out == nil || !b.noUntyped(out) {
		return nil
	}
	return out
}

// View checks the query of a CREATE VIEW.
func (b *Binder) View(v *catalog.View) bool {
	b.declaring = true
	out := b.viewBody(v)
	b.declaring = false
	if out == nil {
		return false
	}
	b.Index.view(v.Name, out.Columns())
	seen := map[string]bool{}
	ok := true
	for i, c := range out.Columns() {
		if seen[c.Name] {
			b.errorf(diag.CodeDuplicateColumn, out.Spans[i], "column %q appears twice in view %q", c.Name, v.Name)
			ok = false
		}
		seen[c.Name] = true
	}
	return ok
}

// scan binds a table: its physical and metadata columns, then a projection
// with the computed ones, all in declared order.
func (b *Binder) scan(t *catalog.Table, at diag.Span) *Output {
	switch {
	case t.Connector == nil:
		b.template(diag.CodeNotASource, at, t)
		return nil
	case !t.Spec.Source:
		b.errorf(diag.CodeNotASource, at, "connector %q cannot be read", t.Spec.Name).
			WithNote(t.Span, "table %q is declared here", t.Name)
		return nil
	}
	if b.ReadToNow {
		t = t.BoundedNow()
	}
	if b.Batch && !b.declaring && !t.Bounded() {
		b.errorf(diag.CodeUnboundedInBatch, at, "table %q never ends, and the runtime mode is batch", t.Name).
			WithHelp("add 'scan.bounded.mode' = 'latest-offset' to the table").
			WithHelp("or leave 'execution.runtime-mode' at streaming")
		return nil
	}
	if givesUpserts(t) && !b.checkUpserts(t, at) {
		return nil
	}
	return b.scanColumns(t, at)
}

// scanColumns is scan without a look at what the connector can do.
func (b *Binder) scanColumns(t *catalog.Table, at diag.Span) *Output {
	s := &Scan{Table: t, Time: -1}
	ordinal := 0
	computed := false
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Kind == catalog.Computed {
			computed = true
			continue
		}
		s.Cols = append(s.Cols, Column{ID: b.id(), Name: c.Name, Type: c.Type})
		s.Ordinals = append(s.Ordinals, ordinal)
		ordinal++
	}
	out := &Output{Node: s}
	if givesUpserts(t) {
		out.Node = b.normalize(s, at)
	}
	if computed {
		out.Node = b.computedColumns(out.Node, t)
	}
	if out.Node == nil {
		return nil
	}
	b.Index.declared(t, out.Columns())
	if t.Watermark != nil {
		b.watermark(s, out)
	}
	for range out.Columns() {
		out.Spans = append(out.Spans, at)
		out.Named = append(out.Named, true)
	}
	return out
}

func (b *Binder) computedColumns(in Node, t *catalog.Table) Node {
	p, cols := &Project{Input: in}, in.Columns()
	sc := &scope{rels: []relation{{name: t.Name, cols: cols}}}
	next := 0
	for i := range t.Columns {
		c := &t.Columns[i]
		var e expr.Expr
		if c.Kind == catalog.Computed {
			e = b.scalar(c.Expr, sc, "a computed column")
			if e == nil {
				return nil
			}
		} else {
			e = cols[next].Ref()
			next++
		}
		p.Exprs = append(p.Exprs, e)
		p.Cols = append(p.Cols, derive(b.id, c.Name, e, cols))
	}
	return p
}

// watermark binds the table's WATERMARK over the scan's columns and marks the
// row time column.
func (b *Binder) watermark(s *Scan, out *Output) {
	t := s.Table
	cols := out.Columns()
	e := b.scalar(t.Watermark.Expr, &scope{rels: []relation{{name: t.Name, cols: cols}}}, "WATERMARK")
	if e == nil {
		return
	}
	if p, ok := out.Node.(*Project); ok {
		e = Substitute(e, p)
	}
	s.Watermark = e
	det := expr.DeterminismOf(e)
	for i := range cols {
		if cols[i].Name == t.Watermark.Column {
			if givesUpserts(t) {
				cols[i].Changing = RowTimes // of a computed column: the rows are kept by key
			} else {
				cols[i].RowTime = true
			}
			det = max(det, cols[i].Determinism)
		}
	}
	if det != fn.Deterministic {
		b.errorf(diag.CodeNondeterministic, t.Watermark.Span, "row time must not depend on the clock or on chance: a replay would put rows into other windows").
			WithHelp("use a time of the record, e.g. the metadata column 'timestamp'")
	}
	for i := range s.Cols {
		if s.Cols[i].Name == t.Watermark.Column {
			s.Cols[i].RowTime = true
			s.Time = s.Cols[i].ID
		}
	}
}

// Substitute replaces references to a projection's columns by the
// projection's expressions.
func Substitute(e expr.Expr, p *Project) expr.Expr {
	return expr.Rewrite(e, func(n expr.Expr) expr.Expr {
		c, ok := n.(*expr.Column)
		if !ok {
			return n
		}
		for i := range p.Cols {
			if p.Cols[i].ID == c.Index {
				return p.Exprs[i]
			}
		}
		return n
	})
}

// TypeOf implements catalog.Typer.
func (b *Binder) TypeOf(e syntax.Expr, columns []catalog.Column) (rt.Type, bool) {
	var rel relation
	for i, c := range columns {
		rel.cols = append(rel.cols, Column{ID: -1 - i, Name: c.Name, Type: c.Type})
		b.Index.define(-1-i, c.Span)
	}
	bound := b.scalar(e, &scope{rels: []relation{rel}}, "a computed column")
	if bound == nil {
		return rt.Type{}, false
	}
	return bound.Type(), true
}

// unnest binds UNNEST over the relations to its left.
