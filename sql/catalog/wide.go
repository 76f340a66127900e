package catalog

import (
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// WideShell makes the table of a CREATE WIDE TABLE without its columns: name,
// options, connector. The binder adds the columns and calls FinishWide.
func (b *Builder) WideShell(s *syntax.CreateWideTable) (*Table, bool) {
	before := b.Diags.Count(diag.Error)
	t := &Table{Name: s.Name.Last().Name, Span: s.Name.Span(), Options: s.Options, Wide: s}
	if s.Comment != nil {
		t.Comment = s.Comment.Value
	}
	checkDuplicates(s.Options, b.Diags)
	if t.Option("connector") == nil {
		b.Diags.Errorf(diag.CodeMissingOption, t.Span, "a wide table needs the option \"connector\"")
	}
	resolveOptions(t, b.Registry, t.Span, b.Diags)
	return t, b.Diags.Count(diag.Error) == before
}

// FinishWide checks keys and partitions once the columns are there.
func (b *Builder) FinishWide(t *Table, s *syntax.CreateWideTable) bool {
	before := b.Diags.Count(diag.Error)
	b.partitions(t, s.Partitions)
	b.keys(t, s.Elements)
	b.check(t)
	b.afterOptions(t)
	return b.Diags.Count(diag.Error) == before
}
