package syntax

import "github.com/millrace/millrace/sql/diag"

// createWide parses what follows CREATE WIDE TABLE.
func (p *parser) createWide(start int) Stmt {
	t := &CreateWideTable{IfNotExists: p.ifNotExists()}
	t.Name = p.name("a table name")
	p.declares = t.Name
	t.Elements = p.tableElements(p.wideElement)
	t.Comment = p.comment()
	t.Partitions = p.partitionedBy()
	t.Window = p.wideWindow()
	if p.accept("ALLOWED") {
		p.expect("LATENESS")
		t.Lateness = p.expr()
	}
	p.expect("WITH")
	t.HasWith, t.Options = true, p.options()
	p.expect("AS", "UNION", "OF")
	p.commaList(func() { t.Branches = append(t.Branches, p.wideBranch()) })
	t.Loc = p.from(start)
	return t
}

// wideElement is a table element without metadata and watermark, which a wide table cannot have.
func (p *parser) wideElement() TableElement {
	e := p.tableElement()
	switch e := e.(type) {
	case *WatermarkDef:
		p.errs.Errorf(diag.CodeSyntaxError, e.Src, "a wide table has no WATERMARK").
			WithHelp("each branch names its row time with TIME")
	case *MetadataColumn:
		p.errs.Errorf(diag.CodeSyntaxError, e.Src, "a wide table has no METADATA columns")
	}
	return e
}

func (p *parser) wideWindow() *WideWindow {
	start := p.pos
	p.expect("WINDOW")
	if !p.is("TUMBLE") && (p.is("HOP") || p.is("CUMULATE") || p.is("SESSION")) {
		w := p.advance().Upper
		p.notYet(start, "a wide table over "+w)
	}
	p.expect("TUMBLE")
	p.expectOp("(")
	w := &WideWindow{}
	p.commaList(func() {
		t := p.cur()
		switch p.acceptOne("SIZE", "OFFSET") {
		case "SIZE":
			p.once(w.Size != nil, t)
			p.expectOp("=>")
			w.Size = p.expr()
		case "OFFSET":
			p.once(w.Offset != nil, t)
			p.expectOp("=>")
			w.Offset = p.expr()
		default:
			p.unexpected("\"SIZE\" or \"OFFSET\"")
		}
	})
	p.expectOp(")")
	w.Loc = p.from(start)
	if w.Size == nil {
		p.errs.Errorf(diag.CodeSyntaxError, w.Src, "the window has no size").WithHelp("write TUMBLE(SIZE => INTERVAL '1' HOUR)")
	}
	return w
}

// once reports a clause that was already given.
func (p *parser) once(given bool, t *Token) {
	if given {
		p.errs.Errorf(diag.CodeSyntaxError, p.span(t), "%s stands twice", t.Upper)
	}
}

func (p *parser) wideBranch() *WideBranch {
	start := p.pos
	b := &WideBranch{Label: p.ident("the branch's label")}
	switch {
	case p.accept("TIME"):
		b.Time = p.columnRef()
		for more := true; more; {
			t := p.cur()
			switch {
			case p.accept("VERSION"):
				p.once(b.VersionBy != nil, t)
				p.expect("BY")
				b.VersionBy = p.columnRef()
			case p.accept("KEEP"):
				p.once(b.KeepNulls, t)
				p.expect("NULLS")
				b.KeepNulls = true
			default:
				more = false
			}
		}
	case p.accept("OFFLINE"):
		b.Offline = true
		p.expect("GENERATION")
		b.Generation = p.columnRef()
		p.expectOp("=")
		b.GenExpr = p.expr()
		if p.accept("CREATES") {
			p.expect("ROWS")
			b.CreatesRows = true
		}
	default:
		p.unexpected("\"TIME\" or \"OFFLINE\" after the branch's label")
	}
	p.expect("AS")
	if !p.isOp("(") {
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "a branch's query stands in brackets"))
	}
	b.Query = p.parenQuery()
	b.Loc = p.from(start)
	return b
}

// columnRef takes a column name, maybe qualified.
func (p *parser) columnRef() *ColumnRef {
	n := p.name("a column")
	return &ColumnRef{Loc: n.Loc, Parts: n.Parts}
}
