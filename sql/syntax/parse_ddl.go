package syntax

import (
	"github.com/millrace/millrace/sql/diag"
)

// create parses what follows CREATE.
func (p *parser) create(start int) Stmt {
	if p.accept("OR") {
		p.expect("REPLACE")
		p.notYet(start, "CREATE OR REPLACE")
	}
	temporary := p.accept("TEMPORARY")
	switch {
	case p.accept("TABLE"):
		return p.createTable(start, temporary)
	case p.accept("VIEW"):
		return p.createView(start, temporary)
	case !temporary && p.accept("WIDE"):
		p.expect("TABLE")
		return p.createWide(start)
	}
	if w := p.acceptOne("CATALOG", "DATABASE", "FUNCTION", "MODEL", "CONNECTION", "MATERIALIZED", "SYSTEM"); w != "" {
		if w == "FUNCTION" || w == "SYSTEM" && p.accept("FUNCTION") {
			p.foreignFunction(start, "CREATE")
		}
		p.notYet(start, "CREATE "+w)
	}
	p.unexpected("\"TABLE\", \"VIEW\" or \"WIDE TABLE\"")
	return nil
}

func (p *parser) ifNotExists() bool {
	if !p.is("IF") || p.at(1).Kind != Word || p.at(1).isWord("AS") || p.at(1).isWord("WITH") || p.at(1).isWord("LIKE") {
		return false
	}
	p.expect("IF", "NOT", "EXISTS")
	return true
}

func (p *parser) createTable(start int, temporary bool) Stmt {
	t := &CreateTable{Temporary: temporary, IfNotExists: p.ifNotExists()}
	t.Name = p.name("a table name")
	p.declares = t.Name
	names := p.pos
	switch {
	case p.namesAlone():
		p.expectOp("(")
		p.commaList(func() { t.Columns = append(t.Columns, p.ident("a column")) })
		p.expectOp(")")
	case p.isOp("("):
		t.Elements = p.tableElements(p.tableElement)
	}
	t.Comment = p.comment()
	if p.is("DISTRIBUTED") {
		at := p.pos
		p.advance()
		p.notYet(at, "DISTRIBUTED")
	}
	t.Partitions = p.partitionedBy()
	if p.is("WITH") && !p.is("WITH", "COLUMNS") {
		p.advance()
		t.HasWith, t.Options = true, p.options()
	}
	switch {
	case p.is("LIKE"):
		t.Like = p.like()
		if p.is("WITH", "COLUMNS") {
			t.ColumnsOf = p.columnsOf()
		}
	case p.accept("AS"):
		t.As = p.query()
	}
	if t.Columns != nil && t.As == nil {
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(&p.tokens[names]), "the columns have no types").
			WithHelp("write (%s STRING, ...); names alone go with AS, and order its columns", t.Columns[0].Name))
	}
	if t.ColumnsOf == nil && p.is("WITH", "COLUMNS") {
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "WITH COLUMNS OF goes after LIKE"))
	}
	p.misplacedClause()
	t.Loc = p.from(start)
	return t
}

// namesAlone reports (a, b, ...) or the beginning of it.
func (p *parser) namesAlone() bool {
	return p.isOp("(") && canStartName(p.at(1)) && (p.at(2).isOp(",") || p.at(2).isOp(")"))
}

// misplacedClause reports a clause of CREATE TABLE that comes too late.
func (p *parser) misplacedClause() {
	t := p.cur()
	if t.Kind != Word {
		return
	}
	switch t.Upper {
	case "COMMENT", "PARTITIONED", "WITH", "LIKE":
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(t), "%s is out of order or stands twice", t.Upper).
			WithHelp("the order is: columns, COMMENT, PARTITIONED BY, WITH, LIKE or AS"))
	}
}

func (p *parser) comment() *StringLit {
	if !p.accept("COMMENT") {
		return nil
	}
	return p.stringLit("the comment's text")
}

// tableElements parses ( element, ... ). An element with an error is skipped to its comma, so that the
// next one is still looked at.
func (p *parser) tableElements(element func() TableElement) []TableElement {
	open := p.expectOp("(")
	end := p.closingOf(p.pos - 1)
	if end < 0 {
		p.fail(diag.Errorf(diag.CodeUnclosedBracket, p.span(open), "bracket is not closed"))
	}
	var list []TableElement
	bad := false
	p.commaList(func() {
		if !p.guard(func() {
			e := element()
			if !p.isOp(",") && !p.isOp(")") {
				p.unexpected("\",\" or \")\"")
			}
			list = append(list, e)
		}) {
			bad = true
			p.skipElement(end)
		}
	})
	if bad {
		p.pos = max(p.pos, end)
	}
	p.expectOp(")")
	return list
}

// skipElement moves to the next comma that is not inside brackets, at most to token end.
func (p *parser) skipElement(end int) {
	for p.pos < end {
		t := p.cur()
		switch {
		case t.isOp(","):
			return
		case t.isOp("(") || t.isOp("["):
			if c := p.closingOf(p.pos); c > 0 && c < end {
				p.pos = c
			}
		case t.isOp("<"):
			p.skipAngles(end)
		}
		p.pos++
	}
}

// skipAngles moves to the > that closes the < at the cursor, if there is one before token end.
func (p *parser) skipAngles(end int) {
	depth := 0
	for i := p.pos; i < end; i++ {
		switch t := &p.tokens[i]; {
		case t.isOp("<"):
			depth++
		case t.isOp(">"):
			if depth--; depth == 0 {
				p.pos = i
				return
			}
		}
	}
}

func (p *parser) tableElement() TableElement {
	start := p.pos
	switch {
	case p.is("WATERMARK", "FOR"):
		p.pos += 2
		w := &WatermarkDef{Column: p.name("the row time column")}
		p.expect("AS")
		w.Expr = p.expr()
		w.Loc = p.from(start)
		return w
	case p.is("PRIMARY", "KEY"):
		return p.primaryKey(start, nil)
	case p.is("CONSTRAINT") && p.at(2).isWord("PRIMARY"):
		p.advance()
		return p.primaryKey(start, p.ident("the constraint's name"))
	case p.is("UNIQUE") && p.at(1).isOp("("):
		p.advance()
		p.notYet(start, "UNIQUE")
	}
	return p.column(start)
}

func (p *parser) primaryKey(start int, constraint *Ident) *PrimaryKeyDef {
	p.expect("PRIMARY", "KEY")
	k := &PrimaryKeyDef{Constraint: constraint, Columns: p.identList("a column")}
	k.NotEnforced = p.enforcement()
	k.Loc = p.from(start)
	return k
}

// enforcement takes NOT ENFORCED.
func (p *parser) enforcement() bool {
	if p.accept("NOT") {
		p.expect("ENFORCED")
		return true
	}
	p.accept("ENFORCED")
	return false
}

// column parses a physical, computed or metadata column.
func (p *parser) column(start int) TableElement {
	name := p.columnName()
	if p.accept("AS") {
		c := &ComputedColumn{Name: name, Expr: p.expr(), Comment: p.comment()}
		c.Loc = p.from(start)
		return c
	}
	typ := p.dataType()
	if p.accept("METADATA") {
		m := &MetadataColumn{Name: name, Type: typ}
		if p.accept("FROM") {
			m.From = p.stringLit("the metadata key in quotes")
		}
		m.Virtual = p.accept("VIRTUAL")
		m.Comment = p.comment()
		m.Loc = p.from(start)
		return m
	}
	c := &ColumnDef{Name: name, Type: typ}
	at := p.pos
	var constraint *Ident
	if p.accept("CONSTRAINT") {
		constraint = p.ident("the constraint's name")
	}
	if constraint != nil || p.is("PRIMARY") {
		p.expect("PRIMARY", "KEY")
		c.PrimaryKey = &PrimaryKeyDef{Constraint: constraint, NotEnforced: p.enforcement()}
		c.PrimaryKey.Loc = p.from(at)
		key := *name
		key.Loc = c.PrimaryKey.Loc // what is said about the key points at the clause
		c.PrimaryKey.Columns = []*Ident{&key}
	}
	c.Comment = p.comment()
	c.Loc = p.from(start)
	return c
}

// columnName takes the name of a column that is being declared: here even a word that begins a clause can
// only be a forgotten pair of quotes.
func (p *parser) columnName() *Ident {
	t := p.cur()
	if t.Kind == Word && structural[t.Upper] && (p.at(1).Kind == Word || p.at(1).isOp("AS")) {
		p.reserved(t)
		p.advance()
		return &Ident{Loc: Loc{p.span(t)}, Name: t.Text}
	}
	return p.ident("a column name")
}

func (p *parser) partitionedBy() *PartitionClause {
	start := p.pos
	if !p.accept("PARTITIONED") {
		return nil
	}
	p.expect("BY")
	p.expectOp("(")
	c := &PartitionClause{}
	p.commaList(func() {
		at := p.pos
		col := &PartitionColumn{Name: p.ident("a partition column")}
		if p.cur().Kind == Word {
			col.Type = p.dataType()
		}
		col.Loc = p.from(at)
		c.Columns = append(c.Columns, col)
	})
	p.expectOp(")")
	c.Loc = p.from(start)
	return c
}

// options parses ('k' = 'v', ...). Secrets may stand in values. The list may be empty.
func (p *parser) options() []*Option {
	p.expectOp("(")
	var list []*Option
	if p.acceptOp(")") {
		return list
	}
	p.commaList(func() { list = append(list, p.option()) })
	p.expectOp(")")
	return list
}

func (p *parser) option() *Option {
	start := p.pos
	if p.cur().Kind != String {
		p.quoteHint("an option's key in quotes")
	}
	o := &Option{Key: p.stringLit("an option's key")}
	p.expectOp("=")
	if p.cur().Kind != String {
		p.quoteHint("an option's value in quotes")
	}
	o.Value = p.anyString()
	o.Loc = p.from(start)
	return o
}

var likeFeatures = map[string]LikeFeature{
	"ALL": LikeAll, "CONSTRAINTS": LikeConstraints, "DISTRIBUTION": LikeDistribution, "GENERATED": LikeGenerated,
	"METADATA": LikeMetadata, "OPTIONS": LikeOptions, "PARTITIONS": LikePartitions, "WATERMARKS": LikeWatermarks,
}

func (p *parser) like() *Like {
	start := p.pos
	p.expect("LIKE")
	l := &Like{Source: p.name("a table")}
	if p.acceptOp("(") {
		for !p.isOp(")") {
			l.Options = append(l.Options, p.likeOption())
			p.acceptOp(",")
		}
		p.expectOp(")")
	}
	l.Loc = p.from(start)
	return l
}

func (p *parser) likeOption() *LikeOption {
	start := p.pos
	o := &LikeOption{}
	switch p.acceptOne("INCLUDING", "EXCLUDING", "OVERWRITING") {
	case "INCLUDING":
		o.Merge = Including
	case "EXCLUDING":
		o.Merge = Excluding
	case "OVERWRITING":
		o.Merge = Overwriting
	default:
		p.unexpected("\"INCLUDING\", \"EXCLUDING\" or \"OVERWRITING\"")
	}
	w := p.acceptOne("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
	if w == "" {
		p.unexpected("what to merge (ALL, CONSTRAINTS, GENERATED, METADATA, OPTIONS, PARTITIONS, WATERMARKS)")
	}
	o.Feature = likeFeatures[w]
	o.Loc = p.from(start)
	if o.Merge == Overwriting && (o.Feature == LikeAll || o.Feature == LikeConstraints || o.Feature == LikePartitions) {
		p.errs.Errorf(diag.CodeSyntaxError, o.Src, "OVERWRITING cannot be used with %s", w).
			WithHelp("INCLUDING and EXCLUDING can")
	}
	return o
}

func (p *parser) columnsOf() *ColumnsOf {
	start := p.pos
	p.expect("WITH", "COLUMNS", "OF")
	c := &ColumnsOf{Source: p.name("a table")}
	if p.accept("EXCEPT") {
		c.Except = p.identList("a column")
	}
	c.Loc = p.from(start)
	return c
}

func (p *parser) createView(start int, temporary bool) Stmt {
	v := &CreateView{Temporary: temporary, IfNotExists: p.ifNotExists()}
	v.Name = p.name("a view name")
	p.declares = v.Name
	if p.isOp("(") {
		v.Columns = p.identList("a column")
	}
	v.Comment = p.comment()
	p.expect("AS")
	v.Query = p.query()
	v.Loc = p.from(start)
	return v
}

func (p *parser) drop(start int) Stmt {
	d := &Drop{Temporary: p.accept("TEMPORARY")}
	switch p.acceptOne("TABLE", "VIEW") {
	case "TABLE":
		d.Kind = KindTable
	case "VIEW":
		d.Kind = KindView
	default:
		if w := p.acceptOne("CATALOG", "DATABASE", "FUNCTION", "MODEL", "CONNECTION", "MATERIALIZED"); w != "" {
			if w == "FUNCTION" {
				p.foreignFunction(start, "DROP")
			}
			p.notYet(start, "DROP "+w)
		}
		p.unexpected("\"TABLE\" or \"VIEW\"")
	}
	if p.is("IF") {
		p.expect("IF", "EXISTS")
		d.IfExists = true
	}
	d.Name = p.name("a name")
	d.Loc = p.from(start)
	return d
}
