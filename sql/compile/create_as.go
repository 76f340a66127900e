package compile

import (
	"slices"

	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// createTableAs answers CREATE TABLE ... AS: the table, and the INSERT that fills it.
func (c *compiler) createTableAs(s *syntax.CreateTable) {
	if _, insert := c.declare(s); insert != nil {
		c.insert(s, []*syntax.Insert{insert})
	}
}

// tableAs makes the plain statements that CREATE TABLE ... AS stands for. The columns
// are, as in Flink, first those that it declares and the query does not give, then
// those of the query, with the types that are declared for them.
func (c *compiler) tableAs(s *syntax.CreateTable) (*syntax.CreateTable, *syntax.Insert, bool) {
	switch {
	case s.Temporary:
		c.diags.Errorf(diag.CodeBadTable, s.Name.Span(), "CREATE TEMPORARY TABLE takes no AS").WithHelp("leave TEMPORARY out: every table is one of its file or session")
		return nil, nil, false
	case !slices.ContainsFunc(s.Options, func(o *syntax.Option) bool { return o.Key.Value == "connector" }):
		c.diags.Errorf(diag.CodeMissingOption, s.Name.Span(), "table %q has no 'connector': AS has nowhere to put the rows", s.Name.Last().Name).
			WithHelp("CREATE TABLE %s WITH ('connector' = '...', ...) AS ...", s.Name)
		return nil, nil, false
	}
	insert := syntax.Substitute(&syntax.Insert{Loc: s.Loc, Target: s.Name, Query: s.As}, none)
	if !c.noneOpen(syntax.Pending(insert)) {
		return nil, nil, false
	}
	said := len(c.diags)
	out := c.binder.Query(insert.Query)
	if out == nil {
		return nil, nil, false
	}
	c.diags = c.diags[:said] // the INSERT says it again
	table := *s
	table.As, table.Elements, table.Columns = nil, nil, nil
	given := map[string]syntax.TableElement{}
	var columns []syntax.TableElement
	for i, col := range out.Columns() {
		if !out.Named[i] {
			c.diags.Errorf(diag.CodeBadTable, out.Spans[i], "column %d of the table has no name", i+1).WithHelp("add AS name; the columns of VALUES are named by SELECT * FROM (VALUES ...) AS v (a, b)")
			return nil, nil, false
		}
		if given[col.Name] != nil {
			c.diags.Errorf(diag.CodeDuplicateColumn, out.Spans[i], "column %q appears twice", col.Name)
			return nil, nil, false
		}
		name := &syntax.Ident{Loc: syntax.Loc{Src: out.Spans[i]}, Name: col.Name, Quoted: true}
		typ, ok := typeAST(col.Type, name.Loc)
		if !ok {
			c.diags.Errorf(diag.CodeInternal, out.Spans[i], "the type %s of column %q is not one of CREATE TABLE", col.Type, col.Name)
			return nil, nil, false
		}
		given[col.Name] = &syntax.ColumnDef{Loc: name.Loc, Name: name, Type: typ}
		insert.Columns = append(insert.Columns, name)
		columns = append(columns, given[col.Name])
	}
	if s.Columns != nil {
		if columns = c.inOrder(s, given); columns == nil {
			return nil, nil, false
		}
	}
	for _, e := range s.Elements {
		d, physical := e.(*syntax.ColumnDef)
		if physical && given[d.Name.Name] != nil {
			columns[slices.Index(columns, given[d.Name.Name])] = d
			continue
		}
		table.Elements = append(table.Elements, e)
	}
	table.Elements = append(table.Elements, columns...)
	return &table, insert, true
}

// inOrder are the columns of the query in the order of a list of names, which has to name
// each of them once.
func (c *compiler) inOrder(s *syntax.CreateTable, given map[string]syntax.TableElement) []syntax.TableElement {
	var columns []syntax.TableElement
	var names []string
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names)
	left := slices.Clone(names)
	for _, n := range s.Columns {
		at := slices.Index(left, n.Name)
		switch {
		case at >= 0:
			left = slices.Delete(left, at, at+1)
			columns = append(columns, given[n.Name])
		case given[n.Name] != nil:
			c.diags.Errorf(diag.CodeDuplicateColumn, n.Span(), "column %q appears twice", n.Name)
			return nil
		default:
			c.diags.Errorf(diag.CodeUnknownColumn, n.Span(), "the query gives no column %q", n.Name).WithNearest(n.Name, names).
				WithHelp("a new column has a type: %s STRING", syntax.Quote(n.Name))
			return nil
		}
	}
	if len(left) > 0 {
		c.diags.Errorf(diag.CodeColumnCount, s.Columns[0].Span().To(s.Columns[len(s.Columns)-1].Span()), "the list leaves out column %q of the query", left[0]).
			WithHelp("a list of names orders all columns of the query; leave it out, or do not select the column")
		return nil
	}
	return columns
}

// typeAST is a type as CREATE TABLE has it; false: it has no such type.
func typeAST(t rt.Type, at syntax.Loc) (*syntax.DataType, bool) {
	e, _ := syntax.ParseExpr(diag.NewFile("type", "CAST(NULL AS "+t.WithNullable(true).String()+")"), syntax.Options{})
	cast, ok := e.(*syntax.Cast)
	if !ok {
		return nil, false
	}
	d := *cast.Type
	d.Loc, d.NotNull = at, !t.Nullable
	return &d, true
}

// explainTableAs binds EXPLAIN CREATE TABLE ... AS, which declares nothing.
func (c *compiler) explainTableAs(s *syntax.CreateTable) *plan.Insert {
	table, insert, ok := c.tableAs(s)
	if !ok {
		return nil
	}
	saved := c.catalog.Clone()
	defer func() { *c.catalog = *saved }()
	if c.createTable(table) == nil {
		return nil
	}
	return c.binder.Insert(insert)
}
