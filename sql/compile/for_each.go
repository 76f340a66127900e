package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// loops is what the FOR EACH of all files need to know of one another.
type loops struct {
	// all are the loops of the files, in order.
	all []*syntax.ForEach
	// templates are sources of a LIKE with WITH COLUMNS OF.
	templates map[string]bool
	// written are the targets of INSERTs that stand in no loop.
	written map[string]bool
	// loop is the variable of the loop in hand.
	loop catalog.Binding
}

// loopsOf looks through the statements for what is no table of any loop's set.
func (c *compiler) loopsOf(stmts []syntax.Stmt) {
	c.templates, c.written = map[string]bool{}, map[string]bool{}
	completes := func(s *syntax.CreateTable) {
		if s.Like != nil && s.ColumnsOf != nil {
			c.templates[s.Like.Source.Last().Name] = true
		}
	}
	for _, s := range stmts {
		switch s := s.(type) {
		case *syntax.CreateTable:
			completes(s)
			if s.As != nil {
				c.written[s.Name.Last().Name] = true
			}
		case *syntax.Insert:
			c.written[s.Target.Last().Name] = true
		case *syntax.StatementSet:
			for _, i := range s.Inserts {
				c.written[i.Target.Last().Name] = true
			}
		case *syntax.ForEach:
			c.all = append(c.all, s)
			for _, b := range s.Body {
				if t, ok := b.(*syntax.CreateTable); ok {
					completes(t)
				}
			}
		}
	}
}

// none is a loop variable's value outside of every loop: its default counts.
func none(string) (string, bool) { return "", false }

// outsideLoops reports loop variables in a statement that stands in no loop. A
// template keeps those of its options until LIKE binds them.
func (c *compiler) outsideLoops(s syntax.Stmt) (syntax.Stmt, bool) {
	if t, ok := s.(*syntax.CreateTable); ok {
		var open []*syntax.Var
		syntax.Walk(t, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Ident); ok {
				open = append(open, id.Text.Pending()...)
			}
			return true
		})
		return s, c.noneOpen(open)
	}
	switch e := s.(type) {
	case *syntax.ForEach:
		return s, true
	case *syntax.Explain:
		if _, loop := e.Stmt.(*syntax.ForEach); loop {
			return s, true
		}
	}
	s = syntax.Substitute(s, none)
	return s, c.noneOpen(syntax.Pending(s))
}

func (c *compiler) noneOpen(open []*syntax.Var) bool {
	for _, v := range open {
		c.diags.Errorf(diag.CodeBadVariable, v.Span(), "%q is the variable of FOR EACH, and stands outside of it", v.Name).
			WithHelp("only the options and comments of a template for LIKE may leave it open")
	}
	return len(open) == 0
}

// forEach binds the body of a loop once for each table of its set.
func (c *compiler) forEach(f *syntax.ForEach) {
	at := c.add(Statement{Kind: KindInsert, AST: f})
	created, inserts := 0, 0
	c.eachTable(f, func(body []syntax.Stmt) {
		for _, s := range body {
			switch s := s.(type) {
			case *syntax.CreateTable:
				t, insert := c.declare(s)
				if t != nil {
					created++
				}
				if insert != nil {
					inserts++
					c.bindInsert(insert, at)
				}
			case *syntax.Insert:
				inserts++
				c.bindInsert(s, at)
			}
		}
	})
	if inserts == 0 {
		c.unit.Statements[at].Kind = KindDDL
		c.unit.Statements[at].Result = sentence(fmt.Sprintf("%d tables created", created))
	}
}

// declare makes the table of a CREATE TABLE, nil where it is wrong; of CREATE TABLE ... AS
// it also gives the INSERT.
func (c *compiler) declare(s *syntax.CreateTable) (*catalog.Table, *syntax.Insert) {
	if s.As == nil {
		return c.createTable(s), nil
	}
	if c.exists(s.Name, s.IfNotExists) {
		return nil, nil // nothing is declared, and nothing filled
	}
	table, insert, ok := c.tableAs(s)
	if !ok {
		c.broken(s.Name)
		return nil, nil
	}
	t := c.createTable(table)
	if t == nil {
		return nil, nil
	}
	return t, insert
}

// eachTable calls bind with the body of the loop for each table of its set. What
// is reported meanwhile names the table.
func (c *compiler) eachTable(f *syntax.ForEach, bind func(body []syntax.Stmt)) {
	v := f.Var.Name
	if slices.Contains(c.opts.vars().Names(), v) {
		c.diags.Errorf(diag.CodeBadVariable, f.Var.Span(), "%q is set with --set, and is the variable of this loop", v).
			WithHelp("rename the variable of the loop, or leave --set %s=... out", v)
		return
	}
	head := f.Span().StartOnly().To(f.Set.Span())
	set := c.loopSet(f, head)
	if len(set) > 1 && c.fixedNames(f, len(set)) {
		return
	}
	for _, name := range set {
		before := len(c.diags)
		c.loop = catalog.Binding{Var: v, Value: name}
		var made []string
		body := make([]syntax.Stmt, len(f.Body))
		for i, s := range f.Body {
			body[i] = syntax.Substitute(s, c.loop.Lookup)
			made = append(made, madeNames(s, c.loop.Lookup)...)
		}
		if c.boundBody(body) {
			bind(body)
		}
		c.loop = catalog.Binding{}
		for _, d := range c.diags[before:] {
			d.Made = made
			d.WithInstance(name, diag.Note{Span: head, Message: fmt.Sprintf("in FOR EACH, %s = %q", v, name)})
		}
	}
}

// fixedNames reports tables that a loop would make under one name for each table of
// its set, once each; what else is wrong with them would be said for each table.
func (c *compiler) fixedNames(f *syntax.ForEach, tables int) bool {
	found := false
	for _, s := range f.Body {
		t, ok := s.(*syntax.CreateTable)
		if !ok || t.IfNotExists || len(syntax.Pending(t.Name)) > 0 {
			continue
		}
		found = true
		name := t.Name.Last().Name
		c.diags.Errorf(diag.CodeDuplicateTable, t.Name.Span(), "FOR EACH makes table %q once for each of %d tables", name, tables).
			WithHelp("put the variable of the loop into the name: `%s_${%s}`", name, f.Var.Name)
	}
	return found
}

// boundBody reports variables of other loops in a body.
func (c *compiler) boundBody(body []syntax.Stmt) bool {
	ok := true
	for _, s := range body {
		ok = c.noneOpen(syntax.Pending(s)) && ok
	}
	return ok
}

// madeNames are the names that a statement makes of a loop variable.
func madeNames(s syntax.Stmt, lookup func(string) (string, bool)) []string {
	var out []string
	syntax.Walk(s, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && len(id.Text.Pending()) > 0 {
			out = append(out, syntax.Substitute(id, lookup).Name)
		}
		return true
	})
	return out
}

// loopSet is the set of a loop: the tables declared so far that its pattern matches
// and that are no views, templates, wide tables, targets of an INSERT or products
// of a loop.
func (c *compiler) loopSet(f *syntax.ForEach, head diag.Span) []string {
	if f.Set.Kind != syntax.ShowTables {
		return nil // said by the parser
	}
	keep, err := likeFilter(f.Set)
	if err != nil {
		c.diags.Errorf(diag.CodeBadArgument, f.Set.Pattern.Span(), "%s", err)
		return nil
	}
	late := c.lateTables()
	candidates := func(keep func(string) bool) []string {
		return slices.DeleteFunc(c.catalog.Names(), func(name string) bool {
			return !keep(name) || c.written[name] || c.templates[name] || late[name] || !c.sourceOfLoop(name)
		})
	}
	set := candidates(keep)
	targets := map[string]bool{}
	for _, g := range c.all {
		if keep, err := likeFilter(g.Set); err == nil {
			loopTargets(g, candidates(keep), targets)
		}
	}
	set = slices.DeleteFunc(set, func(name string) bool { return targets[name] })
	if len(set) == 0 && !c.diags.HasErrors() {
		c.diags.Errorf(diag.CodeBadLoop, head, "FOR EACH finds no table").
			WithHelp("it takes the tables declared above it, but no views, templates, targets of INSERT and tables of other loops").
			WithHelp(`in LIKE, %% is any text, _ any character and \_ a plain _`)
	}
	for _, s := range c.rest {
		t, ok := s.(*syntax.CreateTable)
		if !ok || t.Like == nil && !t.HasWith || len(syntax.Pending(t)) > 0 {
			continue
		}
		name := t.Name.Last().Name
		if keep(name) && !c.written[name] && !c.templates[name] && !late[name] && !targets[name] {
			c.diags.Errorf(diag.CodeBadLoop, t.Name.Span(), "table %q matches a FOR EACH that stands before it", name).
				WithNote(head, "the loop takes the tables declared above it").
				WithHelp("move the declaration up, or its file to the front")
		}
	}
	return set
}

// sourceOfLoop says whether a name is of a table that a loop may read.
func (c *compiler) sourceOfLoop(name string) bool {
	o, _ := c.catalog.Lookup(name)
	switch o := o.(type) {
	case *catalog.Table:
		return !o.Template && o.Wide == nil && o.Loop.Var == ""
	case *catalog.Broken:
		return o.Table != nil && o.Table.Wide == nil
	}
	return false
}

// lateTables are those that rows too late for a window go to.
func (c *compiler) lateTables() map[string]bool {
	out := map[string]bool{}
	for _, name := range c.catalog.Names() {
		o, _ := c.catalog.Lookup(name)
		if t, ok := o.(*catalog.Table); ok && !t.Template {
			out[catalog.LateTable(t.LateRows(c.settings))] = true
		}
	}
	return out
}

// loopTargets adds what the INSERTs of a loop write.
func loopTargets(f *syntax.ForEach, names []string, out map[string]bool) {
	for _, s := range f.Body {
		i, ok := s.(*syntax.Insert)
		if !ok {
			continue
		}
		for _, name := range names {
			l := catalog.Binding{Var: f.Var.Name, Value: name}
			out[syntax.Substitute(i.Target, l.Lookup).Last().Name] = true
		}
	}
}

// star gives the columns of SELECT * FROM a table or view, for WITH COLUMNS OF.
func (c *compiler) star(n *syntax.Name) ([]catalog.Column, diag.Span, bool) {
	if !c.simpleName(n) {
		return nil, diag.Span{}, false
	}
	o, _ := c.catalog.Lookup(n.Last().Name)
	switch o := o.(type) {
	case *catalog.Broken:
		if o.Table == nil {
			return nil, diag.Span{}, false
		}
		return o.Table.Columns, o.Span, true
	case *catalog.Table:
		if o.Template {
			c.diags.Errorf(diag.CodeBadLike, n.Span(), "%q is a template, it has no columns of its own", o.Name).WithNote(o.Span, "declared here")
			return nil, diag.Span{}, false
		}
	}
	t := c.table(n)
	if t == nil {
		return nil, diag.Span{}, false
	}
	return t.Columns, o.Declared(), true
}

// explainLoop answers EXPLAIN FOR EACH: the plain SQL that it stands for.
func (c *compiler) explainLoop(s *syntax.Explain, f *syntax.ForEach) {
	before := c.diags.Count(diag.Error)
	saved := c.catalog.Clone()
	var b strings.Builder
	c.eachTable(f, func(body []syntax.Stmt) {
		for _, s := range body {
			switch s := s.(type) {
			case *syntax.CreateTable:
				t, insert := c.declare(s)
				if t != nil {
					b.WriteString(plan.CreateTableText(t) + ";\n\n")
				}
				if insert != nil {
					c.binder.Insert(insert)
					b.WriteString(syntax.Print(insert) + ";\n\n")
				}
			case *syntax.Insert:
				c.binder.Insert(s)
				b.WriteString(syntax.Print(s) + ";\n\n")
			}
		}
	})
	*c.catalog = *saved
	if c.diags.Count(diag.Error) > before {
		return
	}
	text := strings.TrimSuffix(b.String(), "\n\n")
	c.add(Statement{Kind: KindText, AST: s, Result: &Result{Columns: []string{"plan"}, Rows: [][]string{{text}}}})
}
