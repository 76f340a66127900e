package assist

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// Analysis is what is known about one file of a job.
type Analysis struct {
	// Findings are those of the file itself; others are left out.
	Findings diag.List

	file     *diag.File
	tokens   []syntax.Token
	index    *plan.Index
	registry *connector.Registry
	library  *fn.Library
}

// Analyze compiles files, DDL first, as `millrace check` does, and keeps what is
// known of the file named target.
func Analyze(files []compile.Source, target string, o compile.Options) (*Analysis, error) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{Extra: o.Functions})
	if err != nil {
		return nil, fmt.Errorf("building the function library: %w", err)
	}
	a := &Analysis{index: &plan.Index{}, registry: o.Registry, library: lib}
	o.Mode, o.Index = compile.ModeCheck, a.index
	_, found := compile.Compile(files, o)
	for _, d := range found {
		if d.Span.File != nil && d.Span.File.Name() == target {
			a.Findings.Add(d)
		}
	}
	for _, f := range files {
		if f.Name == target {
			a.file = diag.NewFile(f.Name, f.Text)
		}
	}
	if a.file == nil {
		return nil, fmt.Errorf("file %q is not among the %d to be analyzed", target, len(files))
	}
	a.tokens, _ = syntax.Lex(a.file, syntax.Options{})
	return a, nil
}

// covers reports whether a span of the file holds the offset; its end counts, as a
// cursor behind a word is at the word.
func (a *Analysis) covers(s diag.Span, offset int) bool {
	return s.File != nil && s.File.Name() == a.file.Name() && s.Start <= offset && offset <= s.End
}

// tokenAt is the index of the token at the offset, -1 in trivia. Of two that
// touch, a word is taken before an operator.
func (a *Analysis) tokenAt(offset int) int {
	best := -1
	for i, t := range a.tokens {
		if t.Kind == syntax.EOF || t.Start > offset {
			break
		}
		if offset <= t.End && (best < 0 || t.Kind != syntax.Op) {
			best = i
		}
	}
	return best
}

// Definition is where the table, view, CTE or column at the offset was declared.
func (a *Analysis) Definition(offset int) (diag.Span, bool) {
	if u := a.useAt(offset); u != nil && !u.Declared.IsZero() {
		return u.Declared, true
	}
	return diag.Span{}, false
}

// useAt is the name at the offset that refers to something.
func (a *Analysis) useAt(offset int) *plan.Use {
	for i := range a.index.Uses {
		if a.covers(a.index.Uses[i].Span, offset) {
			return &a.index.Uses[i]
		}
	}
	return nil
}

// Hover is what stands at the offset, in Markdown, and its span.
func (a *Analysis) Hover(offset int) (text string, at diag.Span, ok bool) {
	var parts []string
	add := func(s string, span diag.Span) {
		if s != "" {
			parts = append(parts, s)
			if at.IsZero() {
				at = span
			}
		}
	}
	i := a.tokenAt(offset)
	if i >= 0 {
		t := a.tokens[i]
		span := a.file.Span(t.Start, t.End)
		if t.Kind == syntax.String {
			add(a.optionHover(i), span)
		}
		if u := a.useAt(offset); u != nil {
			add(a.useHover(u), u.Span)
		} else if s := a.declaredHover(offset); s != "" {
			add(s, span)
		} else if t.Kind == syntax.Word {
			add(functionDoc(a.library, t.Upper), span)
		}
		if len(parts) == 0 {
			if e := a.typeAt(offset); e != nil {
				add(code(e.Span.Text()+" "+e.Type.String()), e.Span)
			}
		}
	}
	for _, d := range a.Findings {
		if a.covers(d.Span, offset) {
			if page, _, known := diag.Explain(string(d.Code)); known {
				add(fmt.Sprintf("**%s**: %s\n\n%s", page.Code, page.Title, page.Explanation), d.Span)
			}
		}
	}
	return strings.Join(parts, "\n\n---\n\n"), at, len(parts) > 0
}

// typeAt is the innermost expression at the offset.
func (a *Analysis) typeAt(offset int) *plan.TypeAt {
	var best *plan.TypeAt
	for i := range a.index.Types {
		t := &a.index.Types[i]
		if a.covers(t.Span, offset) && (best == nil || t.Span.End-t.Span.Start < best.Span.End-best.Span.Start) {
			best = t
		}
	}
	return best
}

func code(s string) string { return "```sql\n" + s + "\n```" }

func (a *Analysis) useHover(u *plan.Use) string {
	if u.Column != nil {
		s := code(syntax.Quote(u.Column.Name) + " " + u.Column.Type.String())
		if u.Column.RowTime {
			s += "\n\nRow time: watermarks run along it."
		}
		if c := a.commentOf(u.Declared); c != "" {
			s += "\n\n" + c
		}
		return s
	}
	switch o := u.Object.(type) {
	case *catalog.Table:
		return code(plan.CreateTableText(o))
	case *catalog.Broken:
		return code("TABLE "+syntax.Quote(o.Name)) + "\n\nIts declaration has errors."
	case *catalog.View:
		var cols []string
		for _, c := range a.index.Views[o.Name] {
			cols = append(cols, "\n  "+syntax.Quote(c.Name)+" "+c.Type.String())
		}
		return code("VIEW " + syntax.Quote(o.Name) + " (" + strings.Join(cols, ",") + "\n)")
	}
	return code("WITH " + u.Declared.Text())
}

// columnAt is the column of a table that was declared at a place.
func (a *Analysis) columnAt(match func(diag.Span) bool) *catalog.Column {
	for _, t := range a.tables() {
		for i := range t.Columns {
			if match(t.Columns[i].Span) {
				return &t.Columns[i]
			}
		}
	}
	return nil
}

func (a *Analysis) tables() []*catalog.Table {
	var out []*catalog.Table
	for _, name := range a.index.Catalog.Names() {
		switch o, _ := a.index.Catalog.Lookup(name); o := o.(type) {
		case *catalog.Table:
			out = append(out, o)
		case *catalog.Broken:
			if o.Table != nil {
				out = append(out, o.Table)
			}
		}
	}
	return out
}

func (a *Analysis) commentOf(declared diag.Span) string {
	if declared.IsZero() {
		return ""
	}
	if c := a.columnAt(func(s diag.Span) bool { return s == declared }); c != nil {
		return c.Comment
	}
	return ""
}

// declaredHover is for the declaration of a column itself.
func (a *Analysis) declaredHover(offset int) string {
	if c := a.columnAt(func(s diag.Span) bool { return a.covers(s, offset) }); c != nil {
		s := code(syntax.Quote(c.Name) + " " + c.Type.String())
		if c.Comment != "" {
			s += "\n\n" + c.Comment
		}
		return s
	}
	return ""
}

// optionHover is for a key or value of WITH or SET.
func (a *Analysis) optionHover(i int) string {
	start := statementStart(a.tokens[:i])
	p := placeAfter(a.tokens[start:i])
	group := append(p.options, optionsOf(a.tokens[i:])...)
	key := p.key
	switch p.kind {
	case atKey, atSettingKey:
		key = a.tokens[i].Text
	case atValue:
		if key == "connector" {
			if c, ok := a.registry.Lookup(a.tokens[i].Text); ok {
				return connectorDoc(c.Spec())
			}
		}
	case atSettingValue:
	default:
		return ""
	}
	for _, o := range a.optionsAt(p, group) {
		if o.Key == key || strings.HasSuffix(o.Key, "*") && strings.HasPrefix(key, strings.TrimSuffix(o.Key, "*")) {
			return optionDoc(o)
		}
	}
	return ""
}

func connectorDoc(s *connector.Spec) string {
	out := "**connector " + s.Name + "**: " + s.Summary
	if s.Guarantee != "" {
		out += "\n\n" + s.Guarantee
	}
	return out
}

func optionDoc(o connector.Option) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`", o.Key)
	if len(o.Enum) > 0 {
		fmt.Fprintf(&b, ": `%s`", strings.Join(o.Enum, "`, `"))
	}
	switch {
	case o.Required:
		b.WriteString(" (required)")
	case o.Default != "":
		fmt.Fprintf(&b, " (default `%s`)", o.Default)
	}
	return b.String() + "\n\n" + o.Doc
}

// functionDoc is the page of a function, "" if there is none of that name.
func functionDoc(lib *fn.Library, name string) string {
	page := func(syntaxes []string, doc, example, want string) string {
		s := code(strings.Join(syntaxes, "\n")) + "\n\n" + doc
		if example != "" {
			s += "\n\n`" + example + "` gives `" + want + "`"
		}
		return s
	}
	if f, ok := lib.Lookup(name); ok && len(f.Syntax) > 0 && !f.Infix && !f.Postfix {
		if len(f.Examples) > 0 {
			return page(f.Syntax, f.Doc, f.Examples[0].SQL, f.Examples[0].Want)
		}
		return page(f.Syntax, f.Doc, "", "")
	}
	if g, ok := lib.Aggregate(name); ok {
		return page(g.Syntax, g.Doc, "", "")
	}
	return ""
}
