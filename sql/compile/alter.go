package compile

import (
	"slices"

	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// alterTable changes a declaration and declares the table anew: what was true of
// CREATE TABLE holds for the result. It changes nothing outside: neither data nor
// what runs.
func (c *compiler) alterTable(s *syntax.AlterTable) {
	if c.opts.Mode != ModeSQL && len(c.inserts) > 0 {
		c.diags.Errorf(diag.CodeBadTable, s.Span().StartOnly().To(s.Name.Span()), "ALTER TABLE stands before the first INSERT of a job").
			WithNote(c.inserts[0].at, "the first one")
		return
	}
	name := s.Name.Last().Name
	o, ok := c.catalog.Lookup(name)
	if !ok {
		if s.IfExists {
			c.add(Statement{Kind: KindDDL, AST: s, Result: sentence("there is no table " + name)})
			return
		}
		c.diags.Errorf(diag.CodeUnknownTable, s.Name.Span(), "%q not found", name).WithNearest(name, c.catalog.Names())
		return
	}
	t, isTable := o.(*catalog.Table)
	if !isTable || t.Declaration == nil {
		if _, broken := o.(*catalog.Broken); !broken {
			c.diags.Errorf(diag.CodeBadTable, s.Name.Span(), "%q is no table that CREATE TABLE declares", name).
				WithNote(o.Declared(), "declared here")
		}
		return
	}
	ast := *t.Declaration
	ast.Elements, ast.Options = slices.Clone(ast.Elements), slices.Clone(ast.Options)
	if !c.alter(&ast, s.Action) {
		return
	}
	b := c.builder()
	b.Loop = t.Loop
	altered, ok := b.Table(&ast)
	if !ok {
		return // said by the builder; the table stays as it was
	}
	c.catalog.Remove(name)
	c.diags.Add(c.catalog.Add(altered, ast.Name.Span()))
	c.add(Statement{Kind: KindDDL, AST: s, Result: sentence("table " + name + " altered")})
}

// alter does the action on a copy of the declaration.
func (c *compiler) alter(ast *syntax.CreateTable, action syntax.AlterAction) bool {
	switch a := action.(type) {
	case *syntax.RenameTable:
		if !c.simpleName(a.To) {
			return false
		}
		if o, taken := c.catalog.Lookup(a.To.Last().Name); taken {
			c.diags.Errorf(diag.CodeDuplicateTable, a.To.Span(), "%q exists already", a.To).WithNote(o.Declared(), "declared here")
			return false
		}
		ast.Name = a.To
	case *syntax.SetOptions:
		for _, o := range a.Options {
			if at := optionAt(ast, o.Key.Value); at >= 0 {
				ast.Options[at] = o
			} else {
				ast.Options = append(ast.Options, o)
			}
		}
	case *syntax.ResetOptions:
		for _, k := range a.Keys {
			at := optionAt(ast, k.Value)
			if at < 0 || k.Value == "connector" {
				c.diags.Errorf(diag.CodeUnknownOption, k.Span(), "there is no option %q to reset", k.Value).
					WithNearest(k.Value, optionKeys(ast))
				return false
			}
			ast.Options = slices.Delete(ast.Options, at, at+1)
		}
	case *syntax.AddElements:
		for _, e := range a.Elements {
			if !c.place(ast, e) {
				return false
			}
		}
	case *syntax.ModifyElements:
		for _, e := range a.Elements {
			if !c.modify(ast, e) {
				return false
			}
		}
	case *syntax.DropElements:
		return c.dropElements(ast, a)
	case *syntax.RenameColumn:
		return c.renameColumn(ast, a)
	}
	return true
}

func optionAt(ast *syntax.CreateTable, key string) int {
	return slices.IndexFunc(ast.Options, func(o *syntax.Option) bool { return o.Key.Value == key })
}

func optionKeys(ast *syntax.CreateTable) []string {
	var out []string
	for _, o := range ast.Options {
		if o.Key.Value != "connector" {
			out = append(out, o.Key.Value)
		}
	}
	return out
}

// columnOf is the name of a column's element, nil for keys and watermarks.
func columnOf(e syntax.TableElement) *syntax.Ident {
	switch e := e.(type) {
	case *syntax.ColumnDef:
		return e.Name
	case *syntax.ComputedColumn:
		return e.Name
	case *syntax.MetadataColumn:
		return e.Name
	}
	return nil
}

// columnAt finds a column of the declaration, reporting that there is none.
func (c *compiler) columnAt(ast *syntax.CreateTable, name *syntax.Ident) int {
	var names []string
	for i, e := range ast.Elements {
		n := columnOf(e)
		if n == nil {
			continue
		}
		if n.Name == name.Name {
			return i
		}
		names = append(names, n.Name)
	}
	c.diags.Errorf(diag.CodeUnknownColumn, name.Span(), "column %q is not in the declaration of %q", name.Name, ast.Name).
		WithNearest(name.Name, names)
	return -1
}

// place inserts an element: first, behind another, or at the end.
func (c *compiler) place(ast *syntax.CreateTable, e *syntax.PlacedElement) bool {
	at := len(ast.Elements)
	switch {
	case e.First:
		at = 0
	case e.After != nil:
		if at = c.columnAt(ast, e.After) + 1; at == 0 {
			return false
		}
	}
	ast.Elements = slices.Insert(ast.Elements, at, e.Element)
	return true
}

// modify replaces the element of the same name or kind.
func (c *compiler) modify(ast *syntax.CreateTable, e *syntax.PlacedElement) bool {
	at := -1
	if name := columnOf(e.Element); name != nil {
		if at = c.columnAt(ast, name); at < 0 {
			return false
		}
	} else {
		at = slices.IndexFunc(ast.Elements, func(old syntax.TableElement) bool { return sameKind(old, e.Element) })
	}
	if at < 0 {
		c.diags.Errorf(diag.CodeBadTable, e.Span(), "there is nothing to modify in the declaration of %q", ast.Name).WithHelp("ALTER TABLE ... ADD adds it")
		return false
	}
	if !e.First && e.After == nil {
		ast.Elements[at] = e.Element
		return true
	}
	ast.Elements = slices.Delete(ast.Elements, at, at+1)
	return c.place(ast, e)
}

func sameKind(a, b syntax.TableElement) bool {
	switch a.(type) {
	case *syntax.WatermarkDef:
		_, same := b.(*syntax.WatermarkDef)
		return same
	case *syntax.PrimaryKeyDef:
		_, same := b.(*syntax.PrimaryKeyDef)
		return same
	}
	return false
}

func (c *compiler) dropElements(ast *syntax.CreateTable, a *syntax.DropElements) bool {
	for _, name := range a.Columns {
		at := c.columnAt(ast, name)
		if at < 0 {
			return false
		}
		ast.Elements = slices.Delete(ast.Elements, at, at+1)
	}
	before := len(ast.Elements)
	dropped := len(a.Columns) > 0
	ast.Elements = slices.DeleteFunc(ast.Elements, func(e syntax.TableElement) bool {
		switch e := e.(type) {
		case *syntax.WatermarkDef:
			return a.Watermark
		case *syntax.PrimaryKeyDef:
			return a.PrimaryKey || a.Constraint != nil && e.Constraint != nil && e.Constraint.Name == a.Constraint.Name
		}
		return false
	})
	dropped = dropped || len(ast.Elements) < before
	for i, e := range ast.Elements {
		if d, ok := e.(*syntax.ColumnDef); ok && a.PrimaryKey && d.PrimaryKey != nil {
			plain := *d
			plain.PrimaryKey = nil
			ast.Elements[i], dropped = &plain, true
		}
	}
	if !dropped {
		c.diags.Errorf(diag.CodeBadTable, a.Span(), "there is nothing to drop in the declaration of %q", ast.Name)
	}
	return dropped
}

// renameColumn renames a column that nothing else of the declaration names.
func (c *compiler) renameColumn(ast *syntax.CreateTable, a *syntax.RenameColumn) bool {
	at := c.columnAt(ast, a.From)
	if at < 0 {
		return false
	}
	switch e := ast.Elements[at].(type) {
	case *syntax.ColumnDef:
		x := *e
		x.Name, ast.Elements[at] = a.To, &x
	case *syntax.ComputedColumn:
		x := *e
		x.Name, ast.Elements[at] = a.To, &x
	case *syntax.MetadataColumn:
		x := *e
		if x.Name = a.To; x.From == nil {
			x.From = &syntax.StringLit{Loc: e.Name.Loc, Value: e.Name.Name} // the key was its name
		}
		ast.Elements[at] = &x
	}
	return true
}
