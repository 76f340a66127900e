package exprtext

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// Parse reads one expression over a schema (nil: no columns).
func Parse(lib *fn.Library, schema *batch.Schema, src string) (e expr.Expr, err error) {
	p := &parser{lib: lib, schema: schema, src: src}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			e, err = nil, fmt.Errorf("%s: %w", src, pe.err)
		}
	}()
	p.next()
	e = p.expr(0)
	if p.tok != "" {
		p.fail("unexpected %q", p.tok)
	}
	return e, nil
}

// ParseType reads a type such as DECIMAL(10, 2).
func ParseType(src string) (t types.Type, err error) {
	p := &parser{src: src}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			err = pe.err
		}
	}()
	p.next()
	return p.typ(), nil
}

type parseError struct{ err error }

type parser struct {
	lib    *fn.Library
	schema *batch.Schema
	src    string
	pos    int
	tok    string // upper case for words
	raw    string
	kind   byte // w word, n number, s string, o operator
}

func (p *parser) fail(format string, args ...any) {
	panic(parseError{fmt.Errorf(format, args...)})
}

func (p *parser) must(e expr.Expr, err error) expr.Expr {
	if err != nil {
		panic(parseError{err})
	}
	return e
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (p *parser) next() {
	for p.pos < len(p.src) && (p.src[p.pos] == ' ' || p.src[p.pos] == '\n' || p.src[p.pos] == '\t') {
		p.pos++
	}
	if p.pos == len(p.src) {
		p.tok, p.raw, p.kind = "", "", 0
		return
	}
	start := p.pos
	c := p.src[p.pos]
	switch {
	case c == '\'' || c == '`':
		var b strings.Builder
		for p.pos++; ; p.pos++ {
			if p.pos >= len(p.src) {
				p.fail("open string")
			}
			if p.src[p.pos] == c {
				if p.pos+1 < len(p.src) && p.src[p.pos+1] == c {
					p.pos++
				} else {
					break
				}
			}
			b.WriteByte(p.src[p.pos])
		}
		p.pos++
		p.raw, p.tok, p.kind = b.String(), string(c), 's'
		if c == '`' {
			p.kind, p.tok = 'w', b.String()
		}
		return
	case c >= '0' && c <= '9':
		for p.pos < len(p.src) && (p.src[p.pos] >= '0' && p.src[p.pos] <= '9' || p.src[p.pos] == '.' ||
			(p.src[p.pos] == 'e' || p.src[p.pos] == 'E') || (p.src[p.pos] == '-' && (p.src[p.pos-1] == 'E' || p.src[p.pos-1] == 'e'))) {
			p.pos++
		}
		p.kind = 'n'
	case isWord(c):
		for p.pos < len(p.src) && isWord(p.src[p.pos]) {
			p.pos++
		}
		p.kind = 'w'
	default:
		p.pos++
		if two := p.src[start:min(len(p.src), start+2)]; two == "||" || two == "<>" || two == "<=" || two == ">=" || two == "!=" {
			p.pos++
		}
		p.kind = 'o'
	}
	p.raw = p.src[start:p.pos]
	p.tok = strings.ToUpper(p.raw)
}

func (p *parser) accept(tok string) bool {
	if p.kind != 's' && p.tok == tok {
		p.next()
		return true
	}
	return false
}

func (p *parser) want(tok string) {
	if !p.accept(tok) {
		p.fail("want %q, have %q", tok, p.raw)
	}
}

func (p *parser) call(name string, args ...expr.Expr) expr.Expr {
	f, ok := p.lib.Lookup(name)
	if !ok {
		p.fail("no function %s", name)
	}
	return p.must(expr.NewCall(f, args...))
}

var precedence = map[string]int{"OR": 1, "AND": 2, "=": 4, "<>": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
	"IS": 4, "LIKE": 4, "SIMILAR": 4, "||": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7}

func (p *parser) expr(min int) expr.Expr {
	var e expr.Expr
	if p.tok == "NOT" && p.kind == 'w' {
		p.next()
		e = p.call("NOT", p.expr(3))
	} else {
		e = p.unary()
	}
	for {
		prec := precedence[p.tok]
		if p.kind == 's' || prec == 0 || prec <= min {
			return e
		}
		op := p.tok
		p.next()
		if op == "IS" {
			name := "IS"
			for p.kind == 'w' {
				name += " " + p.tok
				word := p.tok
				p.next()
				if word == "FROM" {
					break
				}
				if word != "NOT" && word != "DISTINCT" && word != "JSON" {
					break
				}
			}
			if strings.HasSuffix(name, "FROM") {
				e = p.call(name, e, p.expr(4))
				continue
			}
			if i := strings.Index(name, "JSON"); i >= 0 && i+4 < len(name) {
				e = p.call(name[:i+4], e, expr.Text(name[i+5:]))
				continue
			}
			e = p.call(name, e)
			continue
		}
		if op == "SIMILAR" {
			p.want("TO")
			args := []expr.Expr{e, p.expr(prec)}
			if p.accept("ESCAPE") {
				args = append(args, p.expr(prec))
			}
			e = p.call("SIMILAR TO", args...)
			continue
		}
		e = p.call(op, e, p.expr(prec))
	}
}

func (p *parser) unary() expr.Expr {
	if p.accept("-") {
		if p.kind == 'n' {
			p.raw = "-" + p.raw
			return p.postfix(p.primary())
		}
		return p.call("NEGATE", p.unary())
	}
	return p.postfix(p.primary())
}

func (p *parser) postfix(e expr.Expr) expr.Expr {
	for {
		switch {
		case p.accept("["):
			k := p.expr(0)
			p.want("]")
			e = p.call("ITEM", e, k)
		case p.accept("."):
			t := e.Type()
			at := -1
			for i, f := range t.Fields {
				if strings.EqualFold(f.Name, p.raw) {
					at = i
				}
			}
			p.next()
			f, err := expr.NewField(e, at)
			if err != nil {
				panic(parseError{err})
			}
			e = f
		default:
			return e
		}
	}
}

func (p *parser) number() expr.Expr {
	s := p.raw
	p.next()
	if strings.ContainsAny(s, "eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			p.fail("%v", err)
		}
		return expr.Float(types.NewDouble(), f)
	}
	if i := strings.IndexByte(s, '.'); i >= 0 {
		digits := strings.TrimLeft(strings.Replace(strings.TrimPrefix(s, "-"), ".", "", 1), "0")
		scale := len(s) - i - 1
		t := types.NewDecimal(max(len(digits), scale, 1), scale)
		d, _, err := types.ParseDecimal(s, t.Precision, scale)
		if err != nil {
			p.fail("%v", err)
		}
		return expr.Decimal(t, d)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		d, _, derr := types.ParseDecimal(s, 38, 0)
		if derr != nil {
			p.fail("%v", derr)
		}
		return expr.Decimal(types.NewDecimal(len(strings.TrimPrefix(s, "-")), 0), d)
	}
	if n == int64(int32(n)) {
		return expr.Int(types.NewInt(), n)
	}
	return expr.Int(types.NewBigInt(), n)
}

func (p *parser) primary() expr.Expr {
	switch p.kind {
	case 'n':
		return p.number()
	case 's':
		s := p.raw
		p.next()
		return expr.Text(s)
	case 'o':
		p.want("(")
		e := p.expr(0)
		p.want(")")
		return e
	case 0:
		p.fail("unexpected end")
	}
	word, raw := p.tok, p.raw
	p.next()
	switch word {
	case "NULL":
		return expr.Null(types.Simple(types.Null))
	case "TRUE", "FALSE":
		return expr.Bool(word == "TRUE")
	case "CAST", "TRY_CAST":
		p.want("(")
		e := p.expr(0)
		p.want("AS")
		t := p.typ()
		p.want(")")
		return p.must(expr.NewCast(e, t, word == "TRY_CAST"))
	case "CASE":
		return p.caseExpr()
	case "ARRAY", "MAP":
		p.want("[")
		args := p.args("]")
		if word == "ARRAY" {
			a, err := expr.NewArray(args...)
			if err != nil {
				panic(parseError{err})
			}
			return a
		}
		var ks, vs []expr.Expr
		for i := 0; i+1 < len(args); i += 2 {
			ks, vs = append(ks, args[i]), append(vs, args[i+1])
		}
		m, err := expr.NewMap(ks, vs)
		if err != nil {
			panic(parseError{err})
		}
		return m
	case "ROW":
		p.want("(")
		return expr.NewRow(nil, p.args(")")...)
	case "INTERVAL":
		return p.interval()
	case "DATE", "TIME", "TIMESTAMP", "X":
		if p.kind == 's' {
			return p.typed(word)
		}
	}
	if p.accept("(") {
		return p.call(word, p.args(")")...)
	}
	if p.schema != nil {
		for i, f := range p.schema.Fields {
			if strings.EqualFold(f.Name, raw) {
				return expr.NewColumn(p.schema, i)
			}
		}
	}
	return p.call(word) // CURRENT_TIMESTAMP
}

func (p *parser) args(end string) []expr.Expr {
	var out []expr.Expr
	for !p.accept(end) {
		out = append(out, p.expr(0))
		if !p.accept(",") {
			p.want(end)
			break
		}
	}
	return out
}

func (p *parser) caseExpr() expr.Expr {
	var args []expr.Expr
	for p.accept("WHEN") {
		args = append(args, p.expr(0))
		p.want("THEN")
		args = append(args, p.expr(0))
	}
	if p.accept("ELSE") {
		args = append(args, p.expr(0))
	}
	p.want("END")
	return p.call("CASE", args...)
}
