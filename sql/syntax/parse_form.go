package syntax

import (
	"slices"

	"github.com/millrace/millrace/sql/diag"
)

// specialForm parses literals and functions that have a grammar of their own; nil if t begins none.
func (p *parser) specialForm(start int, t *Token) Expr {
	next := p.at(1)
	paren := next.isOp("(")
	switch t.Upper {
	case "NULL":
		p.advance()
		return &NullLit{Loc: p.from(start)}
	case "TRUE", "FALSE":
		p.advance()
		return &BoolLit{Loc: p.from(start), Value: t.Upper == "TRUE"}
	case "UNKNOWN":
		p.advance()
		return &UnknownLit{Loc: p.from(start)}
	case "DATE", "TIME", "TIMESTAMP":
		if next.Kind == String {
			return p.dateTimeLit(start)
		}
	case "INTERVAL":
		return p.interval(start)
	case "CASE":
		return p.caseExpr(start)
	case "ARRAY", "MAP":
		if next.isOp("[") {
			return p.collection(start)
		}
	case "EXISTS":
		if paren {
			p.advance()
			q := p.parenQuery()
			return &Exists{Loc: p.from(start), Query: q}
		}
	}
	if paren {
		return p.formCall(start, t)
	}
	return nil
}

// formCall parses word( where the word has its own grammar inside the brackets; nil if it has none.
func (p *parser) formCall(start int, t *Token) Expr {
	switch t.Upper {
	case "CAST", "TRY_CAST", "SAFE_CAST":
		return p.cast(start, t)
	case "ROW":
		p.pos += 2
		r := &RowExpr{Explicit: true}
		if !p.isOp(")") {
			p.commaList(func() { r.Items = append(r.Items, p.expr()) })
		}
		p.expectOp(")")
		r.Loc = p.from(start)
		return r
	case "EXTRACT":
		p.pos += 2
		e := &Extract{Unit: p.unit("a unit of time", extractUnits)}
		p.expect("FROM")
		e.From = p.expr()
		p.expectOp(")")
		e.Loc = p.from(start)
		return e
	case "FLOOR", "CEIL", "CEILING":
		return p.roundTime(start, t)
	case "TRIM":
		return p.trim(start)
	case "POSITION":
		return p.position(start)
	case "SUBSTRING":
		return p.substring(start)
	case "OVERLAY":
		return p.overlay(start)
	case "JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_OBJECTAGG", "JSON_ARRAY", "JSON_ARRAYAGG":
		return p.jsonForm(start, t)
	case "PERIOD":
		p.advance() // PERIOD (a, b) is the row (a, b) in OVERLAPS
		return p.parenExpr(start)
	case "MULTISET", "CURSOR", "CONVERT":
		p.advance()
		p.notYet(start, t.Upper)
	}
	return nil
}

func (p *parser) dateTimeLit(start int) Expr {
	kinds := map[string]DateTimeKind{"DATE": DateLit, "TIME": TimeLit, "TIMESTAMP": TimestampLit}
	d := &DateTimeLit{Kind: kinds[p.advance().Upper]}
	d.Value = p.stringLit("a literal")
	d.Loc = p.from(start)
	return d
}

func (p *parser) interval(start int) Expr {
	p.advance()
	i := &IntervalLit{Negative: p.acceptOp("-")}
	if !i.Negative {
		p.acceptOp("+")
	}
	if t := p.cur(); t.Kind == Number {
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(t), "the amount of an interval stands in quotes").
			WithHelp("write INTERVAL '%s' %s", t.Text, p.at(1).Upper))
	}
	i.Value = p.stringLit("the amount of the interval in quotes")
	i.Qualifier = p.intervalQualifier()
	i.Loc = p.from(start)
	return i
}

func (p *parser) caseExpr(start int) Expr {
	p.advance()
	c := &Case{}
	if !p.is("WHEN") {
		c.Operand = p.expr()
	}
	for p.is("WHEN") {
		at := p.pos
		p.advance()
		w := &When{Cond: p.expr()}
		if p.isOp(",") && c.Operand != nil {
			p.notYet(at, "several values after WHEN")
		}
		p.expect("THEN")
		w.Result = p.expr()
		w.Loc = p.from(at)
		c.Whens = append(c.Whens, w)
	}
	if len(c.Whens) == 0 {
		p.unexpected("\"WHEN\"")
	}
	if p.accept("ELSE") {
		c.Else = p.expr()
	}
	p.expect("END")
	c.Loc = p.from(start)
	return c
}

func (p *parser) collection(start int) Expr {
	isMap := p.advance().Upper == "MAP"
	p.expectOp("[")
	var items []Expr
	if !p.isOp("]") {
		p.commaList(func() { items = append(items, p.expr()) })
	}
	p.expectOp("]")
	if !isMap {
		return &ArrayExpr{Loc: p.from(start), Items: items}
	}
	if len(items)%2 != 0 {
		p.errs.Errorf(diag.CodeSyntaxError, p.from(start).Src, "MAP takes an even number of items: key, value, ...")
	}
	return &MapExpr{Loc: p.from(start), Items: items}
}

func (p *parser) cast(start int, t *Token) Expr {
	if t.Upper == "SAFE_CAST" {
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(t), "SAFE_CAST is not part of this dialect").WithHelp("write TRY_CAST"))
	}
	p.pos += 2
	c := &Cast{Try: t.Upper == "TRY_CAST", Expr: p.expr()}
	p.expect("AS")
	c.Type = p.dataType()
	p.expectOp(")")
	c.Loc = p.from(start)
	return c
}

// roundTime parses FLOOR(x TO unit); without TO it is a call.
func (p *parser) roundTime(start int, t *Token) Expr {
	name := p.functionName()
	if end := p.closingOf(p.pos); end < 0 || !p.hasToAt(p.pos, end) {
		return p.call(start, name)
	}
	p.advance()
	r := &RoundTime{Ceil: t.Upper != "FLOOR", Expr: p.expr()}
	p.expect("TO")
	r.Unit = p.unit("a unit of time", roundUnits)
	p.expectOp(")")
	r.Loc = p.from(start)
	return r
}

// hasToAt reports whether TO stands between the brackets open and end, not inside inner ones.
func (p *parser) hasToAt(open, end int) bool {
	for i := open + 1; i < end; i++ {
		if c := p.closingOf(i); c > 0 {
			i = c
			continue
		}
		// INTERVAL '1' DAY TO HOUR has a TO of its own; the one sought stands before the last word.
		if p.tokens[i].isWord("TO") && i == end-2 && !p.intervalBefore(open, i) {
			return true
		}
	}
	return false
}

// intervalBefore reports whether the TO at token i belongs to an interval literal, which stands within the same brackets.
func (p *parser) intervalBefore(open, i int) bool {
	inner := 0 // brackets closed after token j
	for j := i - 1; j > open && j >= i-6; j-- {
		switch {
		case p.tokens[j].isWord("INTERVAL"):
			return inner == 0 && !slices.ContainsFunc(p.tokens[j:i], func(t Token) bool { return t.isWord("TO") })
		case p.tokens[j].isOp(","):
			return false
		case p.tokens[j].isOp(")"):
			inner++
		case p.tokens[j].isOp("("):
			inner--
		}
	}
	return false
}

func (p *parser) trim(start int) Expr {
	p.pos += 2
	tr := &Trim{}
	switch p.acceptOne("BOTH", "LEADING", "TRAILING") {
	case "LEADING":
		tr.Side = TrimLeading
	case "TRAILING":
		tr.Side = TrimTrailing
	case "":
		first := p.expr()
		if p.accept("FROM") {
			tr.Chars, tr.From = first, p.expr()
		} else {
			tr.From = first
		}
		return p.endTrim(start, tr)
	}
	if !p.is("FROM") {
		tr.Chars = p.expr()
	}
	p.expect("FROM")
	tr.From = p.expr()
	return p.endTrim(start, tr)
}

func (p *parser) endTrim(start int, tr *Trim) Expr {
	if p.isOp(",") {
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "TRIM takes no comma").
			WithHelp("write TRIM(BOTH 'x' FROM s), or BTRIM, LTRIM and RTRIM with a comma"))
	}
	p.expectOp(")")
	tr.Loc = p.from(start)
	return tr
}

// position parses POSITION(x IN y [FROM start]).
func (p *parser) position(start int) Expr {
	p.pos += 2
	pos := &Position{Needle: p.exprAt(precLike + 1)}
	p.expect("IN")
	pos.In = p.expr()
	if p.accept("FROM") {
		pos.From = p.expr()
	}
	p.expectOp(")")
	pos.Loc = p.from(start)
	return pos
}

// substring parses SUBSTRING(x FROM a [FOR b]); with commas it is a call.
func (p *parser) substring(start int) Expr {
	name := p.functionName()
	p.advance()
	s := &Substring{Expr: p.expr()}
	if !p.accept("FROM") {
		c := &Call{Name: name, Args: []Expr{s.Expr}}
		for p.acceptOp(",") {
			c.Args = append(c.Args, p.expr())
		}
		p.expectOp(")")
		c.Loc = p.from(start)
		return c
	}
	s.From = p.expr()
	if p.accept("FOR") {
		s.For = p.expr()
	}
	p.expectOp(")")
	s.Loc = p.from(start)
	return s
}

func (p *parser) overlay(start int) Expr {
	p.pos += 2
	o := &Overlay{Expr: p.expr()}
	p.expect("PLACING")
	o.Placing = p.expr()
	p.expect("FROM")
	o.From = p.expr()
	if p.accept("FOR") {
		o.For = p.expr()
	}
	p.expectOp(")")
	o.Loc = p.from(start)
	return o
}
