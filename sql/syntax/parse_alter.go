package syntax

import "github.com/millrace/millrace/sql/diag"

// alter parses what follows ALTER.
func (p *parser) alter(start int) Stmt {
	switch p.acceptOne("TABLE", "VIEW") {
	case "TABLE":
		return p.alterTable(start)
	case "VIEW":
		return p.alterView(start)
	}
	if w := p.acceptOne("CATALOG", "DATABASE", "FUNCTION", "MODEL", "CONNECTION", "MATERIALIZED"); w != "" {
		if w == "FUNCTION" {
			p.foreignFunction(start, "ALTER")
		}
		p.notYet(start, "ALTER "+w)
	}
	p.unexpected("\"TABLE\" or \"VIEW\"")
	return nil
}

func (p *parser) alterView(start int) Stmt {
	v := &AlterView{Name: p.name("a view")}
	if p.accept("RENAME") {
		p.expect("TO")
		v.RenameTo = p.name("a view name")
	} else {
		p.expect("AS")
		v.Query = p.query()
	}
	v.Loc = p.from(start)
	return v
}

func (p *parser) alterTable(start int) Stmt {
	t := &AlterTable{}
	if p.is("IF") {
		p.expect("IF", "EXISTS")
		t.IfExists = true
	}
	t.Name = p.name("a table")
	t.Action = p.alterAction()
	t.Loc = p.from(start)
	return t
}

func (p *parser) alterAction() AlterAction {
	start := p.pos
	switch p.acceptOne("RENAME", "SET", "RESET", "ADD", "MODIFY", "DROP") {
	case "RENAME":
		if p.accept("TO") {
			to := p.name("a table name")
			return &RenameTable{Loc: p.from(start), To: to}
		}
		r := &RenameColumn{From: p.ident("a column")}
		p.expect("TO")
		r.To = p.ident("a column name")
		r.Loc = p.from(start)
		return r
	case "SET":
		opts := p.options()
		return &SetOptions{Loc: p.from(start), Options: opts}
	case "RESET":
		r := &ResetOptions{}
		p.expectOp("(")
		p.commaList(func() { r.Keys = append(r.Keys, p.stringLit("an option's key")) })
		p.expectOp(")")
		r.Loc = p.from(start)
		return r
	case "ADD":
		list := p.placedElements(start)
		return &AddElements{Loc: p.from(start), Elements: list}
	case "MODIFY":
		list := p.placedElements(start)
		return &ModifyElements{Loc: p.from(start), Elements: list}
	case "DROP":
		return p.dropElements(start)
	}
	p.unexpected("RENAME, SET, RESET, ADD, MODIFY or DROP")
	return nil
}

func (p *parser) placedElements(start int) []*PlacedElement {
	if p.is("PARTITION") || p.is("DISTRIBUTION") {
		w := p.advance().Upper
		p.notYet(start, "ALTER TABLE for "+w)
	}
	var list []*PlacedElement
	if !p.acceptOp("(") {
		return append(list, p.placedElement())
	}
	p.commaList(func() { list = append(list, p.placedElement()) })
	p.expectOp(")")
	return list
}

func (p *parser) placedElement() *PlacedElement {
	start := p.pos
	e := &PlacedElement{Element: p.tableElement()}
	switch {
	case p.accept("FIRST"):
		e.First = true
	case p.accept("AFTER"):
		e.After = p.ident("a column")
	}
	e.Loc = p.from(start)
	return e
}

func (p *parser) dropElements(start int) AlterAction {
	d := &DropElements{}
	switch {
	case p.accept("PRIMARY"):
		p.expect("KEY")
		d.PrimaryKey = true
	case p.accept("CONSTRAINT"):
		d.Constraint = p.ident("the constraint's name")
	case p.is("WATERMARK"):
		p.advance()
		d.Watermark = true
	case p.is("PARTITION") || p.is("DISTRIBUTION"):
		w := p.advance().Upper
		p.notYet(start, "ALTER TABLE for "+w)
	case p.isOp("("):
		d.Columns = p.identList("a column")
	default:
		d.Columns = []*Ident{p.ident("a column")}
	}
	d.Loc = p.from(start)
	return d
}

// show parses SHOW and what it lists.
func (p *parser) show() *Show {
	start := p.pos
	p.expect("SHOW")
	s := &Show{}
	switch p.acceptOne("TABLES", "VIEWS", "FUNCTIONS", "USER", "GROUPS", "JOBS", "COLUMNS", "PARTITIONS", "CREATE") {
	case "TABLES":
		s.Kind = ShowTables
	case "VIEWS":
		s.Kind = ShowViews
	case "FUNCTIONS":
		s.Kind = ShowFunctions
	case "USER":
		p.expect("FUNCTIONS")
		s.Kind, s.User = ShowFunctions, true
	case "GROUPS":
		s.Kind = ShowGroups
	case "JOBS":
		s.Kind = ShowJobs
	case "COLUMNS":
		s.Kind = ShowColumns
		if p.acceptOne("FROM", "IN") == "" {
			p.unexpected("\"FROM\"")
		}
		s.Of = p.name("a table")
	case "PARTITIONS":
		s.Kind, s.Of = ShowPartitions, p.name("a table")
		s.Loc = p.from(start)
		return s
	case "CREATE":
		s.Kind = ShowCreateTable
		if p.accept("VIEW") {
			s.Kind = ShowCreateView
		} else {
			p.expect("TABLE")
		}
		s.Of = p.name("a name")
		s.Loc = p.from(start)
		return s
	default:
		p.otherShow(start)
	}
	p.showPattern(s)
	s.Loc = p.from(start)
	return s
}

func (p *parser) otherShow(start int) {
	t := p.cur()
	switch t.Upper {
	case "CATALOGS", "DATABASES", "CURRENT", "MODULES", "FULL", "JARS", "PROCEDURES", "MODELS", "CONNECTIONS", "MATERIALIZED":
		p.advance()
		p.notYet(start, "SHOW "+t.Upper)
	}
	p.unexpected("what to show (TABLES, VIEWS, FUNCTIONS, GROUPS, JOBS, COLUMNS, CREATE TABLE)")
}

func (p *parser) showPattern(s *Show) {
	if s.Of == nil && (p.is("FROM") || p.is("IN")) {
		at := p.pos
		p.advance()
		p.notYet(at, "SHOW ... FROM a database")
	}
	if s.Not = p.accept("NOT"); s.Not || p.is("LIKE") || p.is("ILIKE") {
		if s.ILike = p.accept("ILIKE"); !s.ILike {
			p.expect("LIKE")
		}
		s.Pattern = p.stringLit("a pattern in quotes")
	}
}

func (p *parser) describe(start int) Stmt {
	d := &Describe{}
	switch {
	case p.is("JOB") && p.at(1).Kind == String:
		p.advance()
		d.Kind, d.ID = KindJob, p.stringLit("the job's id")
	case p.is("FUNCTION"):
		p.advance()
		d.Kind = KindFunction
		d.Extended = p.accept("EXTENDED")
		d.Name = p.functionName()
	case p.is("GROUP"):
		p.advance()
		d.Kind, d.Name = KindGroup, p.name("a group")
	case p.is("CATALOG") || p.is("DATABASE"):
		if canStartName(p.at(1)) {
			w := p.advance().Upper
			p.notYet(start, "DESCRIBE "+w)
		}
		fallthrough
	default:
		d.Extended = p.accept("EXTENDED")
		d.Name = p.name("a table")
	}
	d.Loc = p.from(start)
	return d
}

// functionName takes a name that may be a reserved word, as many functions are (ABS, COUNT).
func (p *parser) functionName() *Name {
	t := p.cur()
	if t.Kind == Word && IsReserved(t.Upper) {
		if structural[t.Upper] && !callable[t.Upper] {
			p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(t), "expected a function but found %q", t.Text))
		}
		p.advance()
		loc := Loc{p.span(t)}
		return &Name{Loc: loc, Parts: []*Ident{{Loc: loc, Name: t.Text}}}
	}
	return p.name("a function")
}

// callable are structural words that name functions or special forms all the same.
var callable = map[string]bool{"CASE": true, "LIKE": true, "IN": true, "BETWEEN": true, "VALUES": false}
