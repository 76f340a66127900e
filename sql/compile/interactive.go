package compile

import (
	"regexp"
	"strings"

	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// interactive handles the statements of the shell.
func (c *compiler) interactive(s syntax.Stmt) {
	if c.opts.Mode != ModeSQL {
		c.diags.Errorf(diag.CodeStatementInJob, s.Span(), "this statement belongs in the shell, not in a job file").
			WithHelp("a job file holds CREATE, SET, RESET, INSERT and EXPLAIN")
		return
	}
	switch s := s.(type) {
	case *syntax.Show:
		c.show(s)
	case *syntax.Describe:
		c.describe(s)
	case *syntax.Drop:
		c.drop(s)
	case *syntax.StopJob:
		c.stopJob(s)
	default:
		c.diags.Errorf(diag.CodeNotYet, s.Span(), "this statement is not supported yet")
	}
}

func (c *compiler) text(s syntax.Stmt, columns []string, rows [][]string) {
	c.add(Statement{Kind: KindText, AST: s, Result: &Result{Columns: columns, Rows: rows}})
}

func (c *compiler) show(s *syntax.Show) {
	keep, err := likeFilter(s)
	if err != nil {
		c.diags.Errorf(diag.CodeBadArgument, s.Pattern.Span(), "%s", err)
		return
	}
	var rows [][]string
	add := func(cells ...string) {
		if keep(cells[0]) {
			rows = append(rows, cells)
		}
	}
	switch s.Kind {
	case syntax.ShowTables, syntax.ShowViews:
		for _, name := range c.catalog.Names() {
			o, _ := c.catalog.Lookup(name)
			_, view := o.(*catalog.View)
			if view || s.Kind == syntax.ShowTables {
				add(name)
			}
		}
		c.text(s, []string{"name"}, rows)
	case syntax.ShowFunctions:
		names := c.binder.Functions.Names()
		if s.User {
			names = c.binder.Functions.UserNames()
		}
		for _, name := range names {
			add(name)
		}
		c.text(s, []string{"function"}, rows)
	case syntax.ShowColumns:
		if t := c.table(s.Of); t != nil {
			for _, r := range columnRows(t) {
				add(r...)
			}
			c.text(s, columnHeads, rows)
		}
	case syntax.ShowCreateTable, syntax.ShowCreateView:
		if text, ok := c.createText(s.Of); ok {
			c.text(s, []string{"result"}, [][]string{{text}})
		}
	case syntax.ShowJobs, syntax.ShowGroups:
		c.add(Statement{Kind: KindJobs, AST: s, Keep: keep})
	default:
		c.diags.Errorf(diag.CodeNotYet, s.Span(), "this SHOW is not supported yet")
	}
}

// stopJob passes STOP JOB on. What a stopped job has read and holds is kept anyway, so
// that WITH SAVEPOINT asks for nothing more.
func (c *compiler) stopJob(s *syntax.StopJob) {
	if s.Drain {
		c.diags.Errorf(diag.CodeNotYet, s.Span(), "STOP JOB WITH DRAIN is not supported: windows that are not over would give rows as if they were").
			WithHelp("STOP JOB alone keeps open windows; they go on when the job is run again")
		return
	}
	c.add(Statement{Kind: KindJobs, AST: s})
}

// likeFilter is the LIKE pattern of SHOW as a function.
func likeFilter(s *syntax.Show) (func(string) bool, error) {
	if s.Pattern == nil {
		return func(string) bool { return true }, nil
	}
	var b strings.Builder
	if s.ILike {
		b.WriteString("(?i)")
	}
	b.WriteString(`\A(?s:`)
	escaped := false
	for _, r := range s.Pattern.Value {
		switch {
		case escaped:
			b.WriteString(regexp.QuoteMeta(string(r)))
			escaped = false
		case r == '\\':
			escaped = true
		case r == '%':
			b.WriteString(".*")
		case r == '_':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString(`)\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, err
	}
	return func(name string) bool { return re.MatchString(name) != s.Not }, nil
}

// table finds a table or reports that there is none.
func (c *compiler) table(n *syntax.Name) *catalog.Table {
	o, ok := c.catalog.Lookup(n.Last().Name)
	if !ok {
		c.diags.Errorf(diag.CodeUnknownTable, n.Span(), "table %q not found", n).WithNearest(n.String(), c.catalog.Names())
		return nil
	}
	switch o := o.(type) {
	case *catalog.Table:
		return o
	case *catalog.View:
		out := c.binder.Query(o.Query)
		if out == nil {
			return nil
		}
		t := &catalog.Table{Name: o.Name}
		for _, col := range out.Columns() {
			t.Columns = append(t.Columns, catalog.Column{Name: col.Name, Type: col.Type})
		}
		for i, id := range o.Columns {
			if i < len(t.Columns) {
				t.Columns[i].Name = id.Name
			}
		}
		return t
	}
	return nil
}

var columnHeads = []string{"name", "type", "null", "key", "extras", "watermark", "comment"}

func columnRows(t *catalog.Table) [][]string {
	var rows [][]string
	for i := range t.Columns {
		col := &t.Columns[i]
		null, key, extras, mark := "TRUE", "", "", ""
		if !col.Type.Nullable {
			null = "FALSE"
		}
		for _, k := range t.PrimaryKey {
			if k == col.Name {
				key = "PRI"
			}
		}
		switch col.Kind {
		case catalog.Computed:
			extras = "AS " + syntax.Print(col.Expr)
		case catalog.Metadata:
			extras = "METADATA FROM '" + col.Key + "'"
			if col.Virtual {
				extras += " VIRTUAL"
			}
		}
		for _, p := range t.PartitionKeys {
			if p == col.Name {
				extras = "partition"
			}
		}
		if t.Watermark != nil && t.Watermark.Column == col.Name {
			mark = syntax.Print(t.Watermark.Expr)
		}
		rows = append(rows, []string{col.Name, col.Type.WithNullable(true).String(), null, key, extras, mark, col.Comment})
	}
	return rows
}

func (c *compiler) describe(s *syntax.Describe) {
	switch s.Kind {
	case syntax.KindTable:
		if t := c.table(s.Name); t != nil {
			c.text(s, columnHeads, columnRows(t))
		}
	case syntax.KindFunction:
		c.describeFunction(s)
	case syntax.KindJob, syntax.KindGroup:
		c.add(Statement{Kind: KindJobs, AST: s})
	default:
		c.diags.Errorf(diag.CodeNotYet, s.Span(), "this DESCRIBE is not supported yet")
	}
}

func (c *compiler) describeFunction(s *syntax.Describe) {
	lib := c.binder.Functions
	if f, ok := lib.Lookup(s.Name.String()); ok {
		kind := "scalar"
		if f.Table {
			kind = "table"
		}
		c.functionText(s, f.User, [][]string{
			{"name", f.Name}, {"syntax", strings.Join(f.Syntax, "\n")}, {"kind", kind}, {"determinism", f.Determinism.String()}, {"doc", f.Doc},
		})
		return
	}
	if a, ok := lib.Aggregate(s.Name.String()); ok {
		c.functionText(s, a.User, [][]string{
			{"name", a.Name}, {"syntax", strings.Join(a.Syntax, "\n")}, {"kind", "aggregate"}, {"doc", a.Doc},
		})
		return
	}
	c.diags.Errorf(diag.CodeUnknownFunction, s.Name.Span(), "function %q not found", s.Name).WithNearest(s.Name.String(), lib.Names())
}

// functionText answers DESCRIBE FUNCTION; user is nil for a built-in one.
func (c *compiler) functionText(s *syntax.Describe, user *fn.User, rows [][]string) {
	if user != nil {
		rows = append(rows, []string{"version", user.Version})
	}
	c.text(s, []string{"property", "value"}, rows)
}

func (c *compiler) drop(s *syntax.Drop) {
	name := s.Name.Last().Name
	o, ok := c.catalog.Lookup(name)
	_, view := o.(*catalog.View)
	switch {
	case !ok && s.IfExists:
	case !ok:
		c.diags.Errorf(diag.CodeUnknownTable, s.Name.Span(), "%q not found", name).WithNearest(name, c.catalog.Names())
		return
	case view != (s.Kind == syntax.KindView):
		kind := "table"
		if view {
			kind = "view"
		}
		c.diags.Errorf(diag.CodeBadTable, s.Name.Span(), "%q is a %s", name, kind)
		return
	default:
		c.catalog.Remove(name)
	}
	c.add(Statement{Kind: KindDDL, AST: s, Result: sentence(name + " dropped; its data is untouched")})
}

func (c *compiler) createText(n *syntax.Name) (string, bool) {
	o, ok := c.catalog.Lookup(n.Last().Name)
	if !ok {
		c.diags.Errorf(diag.CodeUnknownTable, n.Span(), "%q not found", n).WithNearest(n.String(), c.catalog.Names())
		return "", false
	}
	switch o := o.(type) {
	case *catalog.Table:
		return plan.CreateTableText(o), true
	case *catalog.View:
		return "CREATE VIEW " + syntax.Quote(o.Name) + " AS\n" + syntax.Print(o.Query), true
	}
	return "", false
}
