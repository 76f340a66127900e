package catalog

import (
	"slices"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// bound is an expression with the loop variable bound.
func bound(e syntax.Expr, l Binding) syntax.Expr {
	if e == nil {
		return nil
	}
	return syntax.Substitute(e, l.Lookup)
}

// isTemplate says whether a table is good for LIKE alone.
func (b *Builder) isTemplate(t *Table, s *syntax.CreateTable) bool {
	if t.Option("connector") == nil || len(syntax.Pending(s)) > 0 {
		return true
	}
	if slices.ContainsFunc(t.Options, func(o *syntax.Option) bool { return len(syntax.Pending(o)) > 0 }) {
		return true
	}
	if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Expr != nil && len(syntax.Pending(c.Expr)) > 0 }) {
		return true
	}
	return b.Templates[t.Name] && onlyPartitions(s)
}

// onlyPartitions says whether a declaration has no columns beside those that
// partition.
func onlyPartitions(s *syntax.CreateTable) bool {
	if s.Like != nil {
		return false
	}
	parts := map[string]bool{}
	if s.Partitions != nil {
		for _, p := range s.Partitions.Columns {
			parts[p.Name.Name] = true
		}
	}
	for _, e := range s.Elements {
		if d, ok := e.(*syntax.ColumnDef); !ok || !parts[d.Name.Name] {
			return false
		}
	}
	return true
}

// columnsOf adds the columns of WITH COLUMNS OF as physical ones. false: its table
// is not there.
func (b *Builder) columnsOf(t *Table, s *syntax.CreateTable) bool {
	of := s.ColumnsOf
	cols, declared, ok := b.Star(of.Source)
	if !ok {
		return false
	}
	except := map[string]bool{}
	for _, id := range of.Except {
		if !slices.ContainsFunc(cols, func(c Column) bool { return c.Name == id.Name }) {
			var names []string
			for _, c := range cols {
				names = append(names, c.Name)
			}
			b.Diags.Errorf(diag.CodeUnknownColumn, id.Span(), "column %q not found in %q", id.Name, of.Source.Last().Name).
				WithNote(declared, "declared here").
				WithNearest(id.Name, names)
			continue
		}
		if except[id.Name] {
			b.Diags.Errorf(diag.CodeDuplicateColumn, id.Span(), "column %q is listed twice", id.Name)
		}
		except[id.Name] = true
	}
	for _, c := range cols {
		if !except[c.Name] {
			t.Columns = append(t.Columns, Column{Name: c.Name, Type: c.Type, Kind: Physical, Comment: c.Comment, Span: c.Span})
		}
	}
	return true
}

// clashes reports a column of LIKE's source that WITH COLUMNS OF gives as well.
func (b *Builder) clashes(t *Table, c Column, s *syntax.CreateTable, src *Table) bool {
	if s.ColumnsOf == nil {
		return false
	}
	old, dup := t.Column(c.Name)
	if !dup {
		return false
	}
	of := s.ColumnsOf.Source.Last().Name
	b.Diags.Errorf(diag.CodeDuplicateColumn, s.ColumnsOf.Span(), "column %q is in %q and in %q", c.Name, of, src.Name).
		WithNote(old.Span, "the one of %q", of).
		WithNote(c.Span, "the one of %q", src.Name).
		WithHelp("leave one out: WITH COLUMNS OF %s EXCEPT (%s)", syntax.Quote(of), syntax.Quote(c.Name))
	return true
}
