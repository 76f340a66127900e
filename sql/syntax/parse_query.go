package syntax

import "github.com/millrace/millrace/sql/diag"

// query parses a query with its WITH and ORDER BY.
func (p *parser) query() *Query {
	start := p.pos
	p.enter()
	defer func() { p.nesting-- }()
	q := &Query{}
	if p.accept("WITH") {
		if p.is("RECURSIVE") {
			at := p.pos
			p.advance()
			p.notYet(at, "WITH RECURSIVE")
		}
		p.commaList(func() { q.With = append(q.With, p.cte()) })
	}
	q.Body = p.setOps(0)
	p.queryTail(q)
	q.Loc = p.from(start)
	return p.unwrap(q)
}

// unwrap drops a query that only puts brackets around another one.
func (p *parser) unwrap(q *Query) *Query {
	inner, ok := q.Body.(*Query)
	if ok && q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil {
		return &Query{Loc: q.Loc, With: inner.With, Body: inner.Body, OrderBy: inner.OrderBy, Limit: inner.Limit, Offset: inner.Offset}
	}
	return q
}

// queryTail parses ORDER BY, LIMIT, OFFSET and FETCH.
func (p *parser) queryTail(q *Query) {
	if p.accept("ORDER") {
		p.expect("BY")
		q.OrderBy = p.orderItems()
	}
	if p.accept("LIMIT") {
		if !p.accept("ALL") {
			q.Limit = p.expr()
			if p.isOp(",") {
				p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "LIMIT takes one number").WithHelp("write LIMIT n OFFSET m"))
			}
		}
	}
	if p.accept("OFFSET") {
		q.Offset = p.expr()
		p.acceptOne("ROW", "ROWS")
	}
	if t := p.cur(); p.accept("FETCH") {
		p.once(q.Limit != nil, t)
		if p.acceptOne("FIRST", "NEXT") == "" {
			p.unexpected("\"FIRST\" or \"NEXT\"")
		}
		q.Limit = p.expr()
		if p.acceptOne("ROW", "ROWS") == "" {
			p.unexpected("\"ROWS\"")
		}
		p.expect("ONLY")
	}
}

func (p *parser) cte() *CTE {
	start := p.pos
	c := &CTE{Name: p.ident("a name")}
	if p.isOp("(") {
		c.Columns = p.identList("a column")
	}
	p.expect("AS")
	c.Query = p.parenQuery()
	c.Loc = p.from(start)
	return c
}

// parenQuery takes (query).
func (p *parser) parenQuery() *Query {
	p.expectOp("(")
	q := p.query()
	p.expectOp(")")
	return q
}

func (p *parser) orderItems() []*OrderItem {
	var list []*OrderItem
	p.commaList(func() {
		start := p.pos
		o := &OrderItem{Expr: p.expr()}
		o.Desc = p.acceptOne("ASC", "DESC") == "DESC"
		if p.accept("NULLS") {
			switch p.acceptOne("FIRST", "LAST") {
			case "FIRST":
				o.Nulls = NullsFirst
			case "LAST":
				o.Nulls = NullsLast
			default:
				p.unexpected("\"FIRST\" or \"LAST\"")
			}
		}
		o.Loc = p.from(start)
		list = append(list, o)
	})
	return list
}

// setOps parses a chain of set operations whose precedence is at least min: 1 is UNION and EXCEPT, 2 is
// INTERSECT.
func (p *parser) setOps(min int) QueryExpr {
	left := p.queryTerm()
	h := p.height
	for {
		var kind SetOpKind
		prec := 1
		switch {
		case p.is("UNION"):
			kind = Union
		case p.is("EXCEPT"):
			kind = Except
		case p.is("INTERSECT"):
			kind, prec = Intersect, 2
		case p.is("MINUS"):
			p.fail(diag.Errorf(diag.CodeUnsupportedOperator, p.span(p.cur()), "MINUS is not part of this dialect").
				WithHelp("write EXCEPT"))
		default:
			p.height = h
			return left
		}
		if prec < min {
			p.height = h
			return left
		}
		p.advance()
		op := &SetOp{Kind: kind, Left: left}
		op.All = p.acceptOne("ALL", "DISTINCT") == "ALL"
		op.Right = p.setOps(prec + 1)
		p.grow(max(h, p.height))
		h = p.height
		op.Loc = p.since(left)
		left = op
	}
}

func (p *parser) queryTerm() QueryExpr {
	defer p.measure()()
	start := p.pos
	switch {
	case p.is("SELECT"):
		return p.selectBody()
	case p.accept("VALUES"):
		v := &Values{}
		p.commaList(func() { v.Rows = append(v.Rows, p.valuesRow()) })
		v.Loc = p.from(start)
		return v
	case p.accept("TABLE"):
		name := p.name("a table")
		return &ExplicitTable{Loc: p.from(start), Name: name}
	case p.isOp("("):
		q := p.parenQuery()
		if q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil {
			return q.Body
		}
		return q
	}
	p.unexpected("a query")
	return nil
}

// valuesRow makes a row of (a, b), ROW(a, b) or a bare expression.
func (p *parser) valuesRow() *RowExpr {
	e := p.expr()
	if r, ok := e.(*RowExpr); ok {
		return r
	}
	return &RowExpr{Loc: Loc{e.Span()}, Items: []Expr{e}}
}

func (p *parser) selectBody() *Select {
	start := p.pos
	p.expect("SELECT")
	s := &Select{Hints: p.hints()}
	if p.is("STREAM") {
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "SELECT STREAM is not part of this dialect").
			WithHelp("leave STREAM out: a query over a stream is a stream"))
	}
	if s.Distinct = p.accept("DISTINCT"); !s.Distinct {
		p.accept("ALL")
	}
	p.commaList(func() { s.Items = append(s.Items, p.selectItem()) })
	if p.accept("FROM") {
		s.From = p.fromList()
	}
	if p.accept("WHERE") {
		s.Where = p.expr()
	}
	if p.is("GROUP", "BY") {
		s.GroupBy = p.groupBy()
	} else if p.is("GROUP") {
		p.expect("GROUP", "BY")
	}
	if p.accept("HAVING") {
		s.Having = p.expr()
	}
	if p.accept("WINDOW") {
		p.commaList(func() {
			at := p.pos
			w := &NamedWindow{Name: p.ident("a window name")}
			p.expect("AS")
			w.Spec = p.windowSpec()
			w.Loc = p.from(at)
			s.Windows = append(s.Windows, w)
		})
	}
	if p.is("QUALIFY") {
		at := p.pos
		p.advance()
		p.notYet(at, "QUALIFY")
	}
	s.Loc = p.from(start)
	return s
}

func (p *parser) selectItem() SelectItem {
	start := p.pos
	if p.acceptOp("*") {
		s := &Star{Loc: p.from(start)}
		if p.is("EXCEPT") && p.at(1).isOp("(") {
			p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "SELECT * EXCEPT is not part of this dialect").
				WithHelp("list the columns"))
		}
		return s
	}
	if n := p.starName(); n != nil {
		return &Star{Loc: p.from(start), Of: n}
	}
	p.spread = nil
	x := p.expr()
	if p.spread != nil && p.spread == x {
		p.pos += 2 // .*
		return &Star{Loc: p.from(start), Expr: x}
	}
	item := &SelectExpr{Expr: x}
	item.Alias = p.simpleAlias()
	item.Loc = p.from(start)
	return item
}

// starName takes t.* and returns t, or nil if something else stands there.
func (p *parser) starName() *Name {
	i := 0
	for canStartName(p.at(i)) && p.at(i+1).isOp(".") {
		i += 2
	}
	if i == 0 || !p.at(i).isOp("*") {
		return nil
	}
	start := p.pos
	n := &Name{Parts: []*Ident{p.ident("a name")}}
	for p.advance(); !p.acceptOp("*"); p.advance() {
		n.Parts = append(n.Parts, p.ident("a name"))
	}
	n.Src = p.file.Span(p.tokens[start].Start, n.Last().Src.End)
	return n
}

// simpleAlias takes [AS] name.
func (p *parser) simpleAlias() *Ident {
	if p.accept("AS") {
		if t := p.cur(); t.Kind == String {
			p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(t), "an alias is a name, not a string").
				WithHelp("write %s", Quote(t.Text)))
		}
		return p.ident("an alias")
	}
	if canStartName(p.cur()) {
		p.aliasAt = p.pos
		return p.ident("an alias")
	}
	return nil
}

func (p *parser) groupBy() *GroupBy {
	start := p.pos
	p.expect("GROUP", "BY")
	g := &GroupBy{}
	if g.Distinct = p.accept("DISTINCT"); !g.Distinct {
		p.accept("ALL")
	}
	p.commaList(func() { g.Elements = append(g.Elements, p.groupElement()) })
	g.Loc = p.from(start)
	return g
}

func (p *parser) groupElement() GroupElement {
	start := p.pos
	switch {
	case p.is("GROUPING", "SETS"):
		p.pos += 2
		return p.groupingSets(start, GroupingSetsOf)
	case p.accept("ROLLUP"):
		return p.groupingSets(start, Rollup)
	case p.accept("CUBE"):
		return p.groupingSets(start, Cube)
	case p.isOp("(") && p.at(1).isOp(")"):
		p.pos += 2
		loc := p.from(start)
		return &GroupingSets{Loc: loc, Sets: []*RowExpr{{Loc: loc}}}
	}
	e := p.expr()
	return &GroupExpr{Loc: Loc{e.Span()}, Expr: e}
}

func (p *parser) groupingSets(start int, kind GroupingKind) *GroupingSets {
	g := &GroupingSets{Kind: kind}
	p.expectOp("(")
	p.commaList(func() {
		at := p.pos
		if p.isOp("(") && p.at(1).isOp(")") {
			p.pos += 2
			g.Sets = append(g.Sets, &RowExpr{Loc: p.from(at)})
			return
		}
		g.Sets = append(g.Sets, p.valuesRow())
	})
	p.expectOp(")")
	g.Loc = p.from(start)
	return g
}
