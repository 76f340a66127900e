package syntax

import "github.com/millrace/millrace/sql/diag"

// fromList parses the tables after FROM. Commas are cross joins.
func (p *parser) fromList() TableExpr {
	left := p.joins()
	h := p.height
	for p.isOp(",") {
		op := Loc{p.span(p.advance())}
		right := p.joins()
		p.grow(max(h, p.height))
		h = p.height
		left = &Join{Loc: p.since(left), Kind: CrossJoin, Comma: true, Left: left, Right: right, Op: op}
	}
	return left
}

// joins parses a table and the joins behind it.
func (p *parser) joins() TableExpr {
	left := p.tableTerm()
	h := p.height
	for {
		j := p.joinOp()
		if j == nil {
			p.height = h
			return left
		}
		j.Left = left
		j.Right = p.tableTerm()
		hr := p.height
		switch {
		case p.accept("ON"):
			j.On = p.expr()
		case p.accept("USING"):
			j.Using = p.identList("a column")
		case j.Kind != CrossJoin && !j.Natural:
			p.unexpected("\"ON\" or \"USING\"")
		}
		p.grow(max(h, hr, p.height))
		h = p.height
		j.Loc = p.since(left)
		p.checkJoin(j)
		left = j
	}
}

func (p *parser) checkJoin(j *Join) {
	cond := j.On != nil || j.Using != nil
	switch {
	case j.Kind == CrossJoin && cond:
		p.errs.Errorf(diag.CodeSyntaxError, j.Op.Src, "CROSS JOIN takes no condition").WithHelp("write JOIN")
	case j.Natural && cond:
		p.errs.Errorf(diag.CodeSyntaxError, j.Op.Src, "NATURAL JOIN takes no condition").WithHelp("leave NATURAL out")
	}
}

// joinOp takes the words between two tables; nil if there are none.
func (p *parser) joinOp() *Join {
	start := p.pos
	j := &Join{Natural: p.accept("NATURAL"), Kind: InnerJoin}
	switch w := p.acceptOne("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL"); w {
	case "JOIN":
		j.Op = p.from(start)
		return j
	case "INNER":
	case "CROSS":
		j.Kind = CrossJoin
		if p.is("APPLY") {
			p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "APPLY is not part of this dialect").
				WithHelp("write CROSS JOIN LATERAL TABLE(f(...))"))
		}
	case "LEFT", "RIGHT", "FULL":
		j.Kind = map[string]JoinKind{"LEFT": LeftJoin, "RIGHT": RightJoin, "FULL": FullJoin}[w]
		p.accept("OUTER")
	default:
		if j.Natural {
			p.unexpected("\"JOIN\"")
		}
		return nil
	}
	p.expect("JOIN")
	j.Op = p.from(start)
	return j
}

func (p *parser) tableTerm() TableExpr {
	p.enter()
	defer func() { p.nesting-- }()
	defer p.measure()()
	start := p.pos
	lateral := p.accept("LATERAL")
	switch {
	case p.isOp("(") && p.queryInParens(p.pos):
		d := &DerivedTable{Lateral: lateral, Query: p.parenQuery()}
		d.Alias = p.tableAlias()
		d.Loc = p.from(start)
		return d
	case p.isOp("(") && !lateral:
		p.advance()
		t := p.fromList()
		p.expectOp(")")
		p.refuseAfterTable()
		return t
	case p.is("TABLE"):
		p.advance()
		p.expectOp("(")
		return p.tableFunc(start, lateral, true)
	case p.is("UNNEST"):
		return p.unnest(start)
	case p.cur().Kind == Word && p.at(1).isOp("(") && !structural[p.cur().Upper]:
		return p.tableFunc(start, lateral, false)
	case lateral:
		p.unexpected("TABLE(...) or a query in brackets")
	}
	return p.tableRef(start)
}

// tableFunc parses f(args), and the bracket behind it if it stands in TABLE(...).
func (p *parser) tableFunc(start int, lateral, wrapped bool) TableExpr {
	t := &TableFunc{Lateral: lateral}
	e := p.primary()
	call, ok := e.(*Call)
	if !ok {
		p.fail(diag.Errorf(diag.CodeSyntaxError, e.Span(), "expected a call of a table function"))
	}
	t.Call = call
	if wrapped {
		p.expectOp(")")
	}
	t.Alias = p.tableAlias()
	t.Loc = p.from(start)
	return t
}

func (p *parser) unnest(start int) TableExpr {
	p.expect("UNNEST")
	p.expectOp("(")
	u := &Unnest{}
	p.commaList(func() { u.Args = append(u.Args, p.expr()) })
	p.expectOp(")")
	if p.is("WITH", "ORDINALITY") {
		p.pos += 2
		u.Ordinality = true
	}
	u.Alias = p.tableAlias()
	u.Loc = p.from(start)
	return u
}

func (p *parser) tableRef(start int) TableExpr {
	t := &TableRef{Name: p.name("a table")}
	t.Hints = p.hints()
	if p.is("FOR", "SYSTEM_TIME") {
		p.pos += 2
		p.expect("AS", "OF")
		t.AsOf = p.expr()
	}
	p.refuseAfterTable()
	t.Alias = p.tableAlias()
	p.refuseAfterTable()
	t.Loc = p.from(start)
	return t
}

// refuseAfterTable names the table operators that are not built.
func (p *parser) refuseAfterTable() {
	start := p.pos
	switch t := p.cur(); t.Upper {
	case "MATCH_RECOGNIZE", "TABLESAMPLE", "PIVOT", "UNPIVOT":
		if t.Kind == Word {
			p.advance()
			p.notYet(start, t.Upper)
		}
	}
}

// tableAlias takes [AS] name [(a, ...)].
func (p *parser) tableAlias() *Alias {
	start := p.pos
	name := p.simpleAlias()
	if name == nil {
		return nil
	}
	a := &Alias{Name: name}
	if p.isOp("(") {
		a.Columns = p.identList("a column")
	}
	a.Loc = p.from(start)
	return a
}

// queryInParens reports whether the bracket at token i encloses a query, not a join or an expression.
// With several brackets it is what follows the inner one that decides: ((SELECT 1) + 1) is an expression,
// ((SELECT 1) UNION (SELECT 2)) a query.
func (p *parser) queryInParens(i int) bool {
	for range maxNesting {
		t := &p.tokens[min(i+1, len(p.tokens)-1)]
		switch {
		case t.isWord("SELECT") || t.isWord("WITH") || t.isWord("VALUES"):
			return true
		case t.isWord("TABLE"):
			return i+2 < len(p.tokens) && !p.tokens[i+2].isOp("(")
		case !t.isOp("("):
			return false
		}
		end := p.closingOf(i + 1)
		if end < 0 || end+1 >= len(p.tokens) {
			return false
		}
		after := &p.tokens[end+1]
		switch after.Upper {
		case "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH":
			i++
			continue
		}
		if !after.isOp(")") {
			return false
		}
		i++
	}
	return false
}

// closingOf returns the index of the bracket that closes the one at token i, -1 if there is none.
func (p *parser) closingOf(i int) int {
	if p.closing == nil {
		p.closing = matchBrackets(p.tokens)
	}
	return p.closing[i]
}

// matchBrackets finds the partner of each opening bracket. A semicolon closes nothing but leaves nothing
// open.
func matchBrackets(tokens []Token) []int {
	match := make([]int, len(tokens))
	var open []int
	for i := range tokens {
		match[i] = -1
		switch t := &tokens[i]; {
		case t.isOp("("), t.isOp("["):
			open = append(open, i)
		case t.isOp(";"):
			open = open[:0]
		case t.isOp(")"), t.isOp("]"):
			if len(open) > 0 {
				match[open[len(open)-1]] = i
				open = open[:len(open)-1]
			}
		}
	}
	return match
}

// hints parses /*+ ... */ if it stands here.
func (p *parser) hints() []*Hint {
	if p.cur().Kind != HintOpen {
		return nil
	}
	open := p.advance()
	var list []*Hint
	for p.cur().Kind != HintClose {
		if p.cur().Kind == EOF || p.isOp(";") {
			p.fail(diag.Errorf(diag.CodeUnterminatedComment, p.span(open), "hint is not closed").WithHelp("close it with */"))
		}
		list = append(list, p.hintItem())
		p.acceptOp(",")
	}
	p.advance()
	return list
}

func (p *parser) hintItem() *Hint {
	start := p.pos
	h := &Hint{Name: p.ident("a hint")}
	if p.acceptOp("(") && !p.acceptOp(")") {
		p.commaList(func() {
			if p.cur().Kind == String && p.at(1).isOp("=") {
				h.Options = append(h.Options, p.option())
				return
			}
			h.Args = append(h.Args, p.hintArg())
		})
		p.expectOp(")")
	}
	h.Loc = p.from(start)
	if len(h.Args) > 0 && len(h.Options) > 0 {
		p.errs.Errorf(diag.CodeSyntaxError, h.Src, "a hint takes a list or options, not both")
	}
	return h
}

func (p *parser) hintArg() Expr {
	t := p.cur()
	switch {
	case t.Kind == String:
		return p.stringLit("a value")
	case t.Kind == Number:
		p.advance()
		return &NumberLit{Loc: Loc{p.span(t)}, Kind: numberKind(t.Text), Text: t.Text}
	case p.at(1).isOp("="):
		p.quoteHint("an option's key in quotes")
	}
	return p.columnRef()
}
