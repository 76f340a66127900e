package syntax

import (
	"fmt"

	"github.com/millrace/millrace/sql/diag"
)

// Precedences, loosest first, as Flink's grammar has them. Two of them surprise: IS NULL binds looser than
// a comparison, so that a = b IS NULL is (a = b) IS NULL; and || binds as tightly as *.
const (
	precOr      = 22
	precAnd     = 24
	precNot     = 26
	precIs      = 28
	precCompare = 30
	precLike    = 32 // LIKE, SIMILAR TO, BETWEEN, IN
	precAdd     = 40 // also IS DISTINCT FROM
	precMul     = 60 // also ||
	precUnary   = 80
)

var binaryOps = map[string]struct {
	op   BinaryOp
	prec int
}{
	"=": {OpEq, precCompare}, "<>": {OpNe, precCompare}, "!=": {OpNe, precCompare},
	"<": {OpLt, precCompare}, "<=": {OpLe, precCompare}, ">": {OpGt, precCompare}, ">=": {OpGe, precCompare},
	"+": {OpAdd, precAdd}, "-": {OpSub, precAdd},
	"*": {OpMul, precMul}, "/": {OpDiv, precMul}, "%": {OpMod, precMul}, "||": {OpConcat, precMul},
}

// expr parses an expression.
func (p *parser) expr() Expr { return p.exprAt(0) }

// exprAt parses an expression whose operators bind at least as tightly as prec.
func (p *parser) exprAt(prec int) Expr {
	p.enter()
	defer func() { p.nesting-- }()
	left := p.prefix()
	for {
		h := p.height
		next := p.infix(left, prec)
		if next == nil {
			p.height = h
			return left
		}
		left = next
	}
}

func (p *parser) prefix() Expr {
	start := p.pos
	op, prec := OpNot, precNot
	switch {
	case p.is("NOT"):
	case p.isOp("-"):
		op, prec = OpNeg, precUnary
	case p.isOp("+"):
		op, prec = OpPos, precUnary
	default:
		return p.postfix(p.primary())
	}
	p.advance()
	x := p.exprAt(prec)
	p.grow(p.height)
	return &Unary{Loc: p.from(start), Op: op, Expr: x}
}

// infix extends left by one operator that binds at least as tightly as prec; nil if none follows.
func (p *parser) infix(left Expr, prec int) Expr {
	t := p.cur()
	if t.Kind == Op {
		return p.binaryOp(left, prec)
	}
	if t.Kind != Word {
		return nil
	}
	switch {
	case t.isWord("OR") && prec <= precOr:
		return p.binary(left, OpOr, precOr)
	case t.isWord("AND") && prec <= precAnd:
		return p.binary(left, OpAnd, precAnd)
	case t.isWord("OVERLAPS") && prec <= precCompare:
		return p.binary(left, OpOverlaps, precCompare)
	case t.isWord("IS"):
		return p.isExpr(left, prec)
	case prec > precLike:
		return nil
	case t.isWord("NOT"):
		switch p.at(1).Upper {
		case "IN", "LIKE", "SIMILAR", "BETWEEN", "ILIKE", "RLIKE":
			p.advance()
			return p.predicate(left, true)
		}
		return nil
	}
	return p.predicate(left, false)
}

func (p *parser) binaryOp(left Expr, prec int) Expr {
	t := p.cur()
	b, ok := binaryOps[t.Text]
	if !ok {
		p.refuseOp(t)
		return nil
	}
	if prec > b.prec {
		return nil
	}
	if t.Text == "!=" {
		p.errs.Errorf(diag.CodeUnsupportedOperator, p.span(t), "!= is not part of this dialect").WithHelp("write <>")
	}
	if b.prec == precCompare {
		switch p.at(1).Upper {
		case "ANY", "SOME", "ALL":
			if p.at(2).isOp("(") && p.queryInParens(p.pos+2) {
				return p.quantified(left, b.op)
			}
		}
	}
	return p.binary(left, b.op, b.prec)
}

// refuseOp reports operators of other dialects.
func (p *parser) refuseOp(t *Token) {
	help := ""
	switch t.Text {
	case "::":
		help = "write CAST(x AS type)"
	case "->":
		help = "write JSON_VALUE(x, '$.key'), or r.field for a ROW"
	case "<=>":
		help = "write IS NOT DISTINCT FROM"
	default:
		return
	}
	p.fail(diag.Errorf(diag.CodeUnsupportedOperator, p.span(t), "%s is not part of this dialect", t.Text).WithHelp("%s", help))
}

// binary parses the operator at the cursor and its right side; all of them group from the left.
func (p *parser) binary(left Expr, op BinaryOp, prec int) Expr {
	h := p.height
	b := &Binary{Op: op, Left: left, OpLoc: Loc{p.span(p.advance())}}
	b.Right = p.exprAt(prec + 1)
	p.grow(max(h, p.height))
	b.Loc = p.since(left)
	return b
}

func (p *parser) quantified(left Expr, op BinaryOp) Expr {
	h := p.height
	p.advance()
	q := &Quantified{Left: left, Op: op}
	q.All = p.acceptOne("ANY", "SOME", "ALL") == "ALL"
	q.Query = p.parenQuery()
	p.grow(max(h, p.height))
	q.Loc = p.since(left)
	return q
}

// isExpr parses IS [NOT] what.
func (p *parser) isExpr(left Expr, prec int) Expr {
	i := 1
	if p.at(1).isWord("NOT") {
		i = 2
	}
	distinct := p.at(i).isWord("DISTINCT")
	if distinct && prec > precAdd || !distinct && prec > precIs {
		return nil
	}
	h := p.height
	p.advance()
	not := p.accept("NOT")
	if distinct {
		p.expect("DISTINCT", "FROM")
		d := &IsDistinct{Left: left, Not: not, Right: p.exprAt(precAdd)}
		p.grow(max(h, p.height))
		d.Loc = p.since(left)
		return d
	}
	kinds := map[string]IsKind{"NULL": IsNull, "TRUE": IsTrue, "FALSE": IsFalse, "UNKNOWN": IsUnknown, "JSON": IsJSONValue}
	w := p.acceptOne("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON")
	if w == "" {
		p.unexpected("NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM")
	}
	e := &Is{Expr: left, Not: not, Kind: kinds[w]}
	if w == "JSON" {
		switch p.acceptOne("VALUE", "OBJECT", "ARRAY", "SCALAR") {
		case "OBJECT":
			e.Kind = IsJSONObject
		case "ARRAY":
			e.Kind = IsJSONArray
		case "SCALAR":
			e.Kind = IsJSONScalar
		}
	}
	p.grow(h)
	e.Loc = p.since(left)
	return e
}

// predicate parses [NOT] IN, LIKE, SIMILAR TO and BETWEEN, after NOT; nil if none follows.
func (p *parser) predicate(left Expr, not bool) Expr {
	h := p.height
	var e Expr
	switch t := p.cur(); {
	case p.accept("IN"):
		in := &In{Expr: left, Not: not}
		p.inList(in, &h)
		in.Loc = p.since(left)
		e = in
	case p.accept("LIKE"):
		e = p.likeExpr(left, not, LikePattern, &h)
	case p.is("SIMILAR"):
		p.expect("SIMILAR", "TO")
		e = p.likeExpr(left, not, SimilarTo, &h)
	case p.accept("BETWEEN"):
		b := &Between{Expr: left, Not: not}
		if !p.accept("ASYMMETRIC") {
			b.Symmetric = p.accept("SYMMETRIC")
		}
		b.Low = p.exprAt(precLike + 1)
		h = max(h, p.height)
		p.expect("AND")
		b.High = p.exprAt(precLike + 1)
		h = max(h, p.height)
		b.Loc = p.since(left)
		e = b
	case t.isWord("ILIKE") || t.isWord("RLIKE"):
		help := "write LOWER(x) LIKE 'pattern'"
		if t.Upper == "RLIKE" {
			help = "write REGEXP(x, 'pattern')"
		}
		p.fail(diag.Errorf(diag.CodeUnsupportedOperator, p.span(t), "%s is not part of this dialect", t.Upper).WithHelp("%s", help))
	default:
		return nil
	}
	p.grow(h)
	return e
}

func (p *parser) inList(in *In, h *int) {
	if !p.isOp("(") {
		p.unexpected("\"(\"")
	}
	if p.queryInParens(p.pos) {
		in.Query = p.parenQuery()
		*h = max(*h, p.height)
		return
	}
	p.advance()
	p.commaList(func() {
		in.List = append(in.List, p.expr())
		*h = max(*h, p.height)
	})
	p.expectOp(")")
}

func (p *parser) likeExpr(left Expr, not bool, kind LikeKind, h *int) Expr {
	l := &LikeExpr{Kind: kind, Expr: left, Not: not, Pattern: p.exprAt(precLike + 1)}
	*h = max(*h, p.height)
	if p.accept("ESCAPE") {
		l.Escape = p.exprAt(precLike + 1)
		*h = max(*h, p.height)
	}
	l.Loc = p.since(left)
	return l
}

// postfix parses [key] and .field behind x.
func (p *parser) postfix(x Expr) Expr {
	for {
		h := p.height
		switch {
		case p.isOp("["):
			p.advance()
			i := &Index{Base: x, Key: p.expr()}
			h = max(h, p.height)
			p.expectOp("]")
			i.Loc = p.since(x)
			x = i
		case p.isOp(".") && p.at(1).isOp("*"):
			p.spread = x // (expr).* of a SELECT list
			return x
		case p.isOp("."):
			p.advance()
			f := &FieldAccess{Base: x, Field: p.ident("a field")}
			f.Loc = p.since(x)
			x = f
		default:
			return x
		}
		p.grow(h)
	}
}

// primary parses what operators combine.
func (p *parser) primary() Expr {
	defer p.measure()()
	start := p.pos
	t := p.cur()
	switch t.Kind {
	case Number:
		p.advance()
		return &NumberLit{Loc: Loc{p.span(t)}, Kind: numberKind(t.Text), Text: t.Text}
	case String, Bad:
		return p.stringLit("a string outside of options")
	case BinaryString:
		p.advance()
		return &BinaryLit{Loc: Loc{p.span(t)}, Value: []byte(t.Text)}
	case QuotedName:
		return p.nameOrCall()
	case Word:
		return p.wordExpr(start, t)
	case Op:
		if t.Text == "(" {
			return p.parenExpr(start)
		}
	case HintOpen:
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(t), "a hint cannot stand here").
			WithHelp("hints go after SELECT or after a table's name"))
	}
	p.unexpected("an expression")
	return nil
}

func numberKind(text string) NumberKind {
	kind := IntegerNumber
	for _, c := range text {
		switch c {
		case '.':
			kind = DecimalNumber
		case 'e', 'E':
			return DoubleNumber
		}
	}
	return kind
}

// parenExpr parses (query), (x) or (x, y, ...).
func (p *parser) parenExpr(start int) Expr {
	if p.queryInParens(p.pos) {
		q := p.parenQuery()
		return &Subquery{Loc: p.from(start), Query: q}
	}
	p.advance()
	var items []Expr
	p.commaList(func() { items = append(items, p.expr()) })
	p.expectOp(")")
	if len(items) == 1 {
		return items[0]
	}
	return &RowExpr{Loc: p.from(start), Items: items}
}

// wordExpr parses what begins with a bare word: a literal, a special form, a call or a column.
func (p *parser) wordExpr(start int, t *Token) Expr {
	if form := p.specialForm(start, t); form != nil {
		return form
	}
	if !IsReserved(t.Upper) {
		return p.nameOrCall()
	}
	if p.at(1).isOp("(") && !structural[t.Upper] {
		return p.call(start, p.functionName())
	}
	if niladic[t.Upper] {
		return &Call{Name: p.functionName(), NoParens: true, Loc: p.from(start)}
	}
	if structural[t.Upper] || (t.Upper == "GROUP" || t.Upper == "ORDER" || t.Upper == "PARTITION") && p.at(1).isWord("BY") {
		d := diag.Errorf(diag.CodeSyntaxError, p.span(t), "expected an expression but found %q", t.Text)
		if p.pos > 0 && p.tokens[p.pos-1].isOp(",") {
			d.Span = p.span(&p.tokens[p.pos-1])
			d.Message = "comma without an item after it"
			d.WithHelp("remove it")
		}
		p.fail(d)
	}
	return p.nameOrCall() // reports the reserved word
}

// niladic functions are written without parentheses.
var niladic = map[string]bool{
	"CURRENT_DATE": true, "CURRENT_TIME": true, "CURRENT_TIMESTAMP": true, "LOCALTIME": true, "LOCALTIMESTAMP": true,
	"CURRENT_USER": true, "CURRENT_ROLE": true, "CURRENT_PATH": true, "CURRENT_SCHEMA": true, "CURRENT_CATALOG": true,
	"SESSION_USER": true, "SYSTEM_USER": true,
}

// nameOrCall parses a column, a path or the call of a function.
func (p *parser) nameOrCall() Expr {
	start := p.pos
	n := p.name("an expression")
	if p.isOp("(") {
		return p.call(start, n)
	}
	return &ColumnRef{Loc: n.Loc, Parts: n.Parts}
}

// unit takes a unit of time.
func (p *parser) unit(what string, units map[string]Unit) *UnitArg {
	t := p.cur()
	u, ok := units[t.Upper]
	if t.Kind != Word || !ok {
		for w := range units {
			p.note(w)
		}
		d := diag.Errorf(diag.CodeSyntaxError, p.span(t), "expected %s but found %s", what, t.describe(p.file))
		if t.Kind == Word {
			d.WithNearest(t.Text, unitWords(units))
		}
		p.fail(d)
	}
	p.advance()
	return &UnitArg{Loc: Loc{p.span(t)}, Unit: u}
}

// intervalQualifier parses unit[(p[, s])] [TO unit[(s)]].
func (p *parser) intervalQualifier() *IntervalQualifier {
	start := p.pos
	q := &IntervalQualifier{Precision: NoPrecision, FracPrecision: NoPrecision}
	q.From = p.unit("a unit (YEAR, MONTH, DAY, HOUR, MINUTE, SECOND)", intervalUnits).Unit
	q.To = q.From
	if p.acceptOp("(") {
		q.Precision = p.precision()
		if p.acceptOp(",") {
			q.FracPrecision = p.precision()
		}
		p.expectOp(")")
	}
	if p.accept("TO") {
		q.To = p.unit("a unit", intervalUnits).Unit
		if q.To == UnitSecond && p.acceptOp("(") {
			q.FracPrecision = p.precision()
			p.expectOp(")")
		}
	}
	q.Loc = p.from(start)
	if !validQualifier(q) {
		p.errs.Errorf(diag.CodeSyntaxError, q.Src, "no such interval").
			WithHelp("an interval goes from a larger unit to a smaller one: YEAR TO MONTH, or DAY, HOUR and MINUTE TO a smaller one")
	}
	return q
}

func validQualifier(q *IntervalQualifier) bool {
	switch {
	case q.From == q.To:
		return q.FracPrecision == NoPrecision || q.From == UnitSecond
	case q.From == UnitYear:
		return q.To == UnitMonth
	}
	return q.From >= UnitDay && q.From < UnitSecond && q.To > q.From && q.To <= UnitSecond
}

// precision takes a small number.
func (p *parser) precision() int {
	t := p.cur()
	if t.Kind != Number || numberKind(t.Text) != IntegerNumber {
		p.unexpected("a number")
	}
	p.advance()
	n := 0
	if _, err := fmt.Sscan(t.Text, &n); err != nil || len(t.Text) > 9 {
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(t), "number %s is out of range", clip(t.Text)))
	}
	return n
}
