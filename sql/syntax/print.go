package syntax

import (
	"strconv"
	"strings"
)

// Print writes a node as SQL text that parses to an equal tree. Statements are laid out over lines, without
// a semicolon; expressions stay on one line. Values of bound variables are written out, secrets and unbound
// variables as placeholders. Comments are not kept, see Format.
func Print(n Node) string {
	var p printer
	switch n := n.(type) {
	case *Script:
		for i, s := range n.Stmts {
			if i > 0 {
				p.nl()
			}
			p.stmt(s)
			p.w(";")
			p.nl()
		}
	case Stmt:
		p.stmt(n)
	case Expr:
		p.expr(n, 0)
	case *Query:
		p.query(n)
	case QueryExpr:
		p.queryExpr(n, 0)
	case TableExpr:
		p.table(n)
	case *DataType:
		p.typ(n)
	case *Ident:
		p.ident(n)
	case *Name:
		p.name(n)
	case *Option:
		p.option(n)
	case TableElement:
		p.element(n)
	case SelectItem:
		p.selectItem(n)
	case *OrderItem:
		p.orderItem(n)
	case *Hint:
		p.hint(n)
	case *IntervalQualifier:
		p.qualifier(n)
	}
	return p.b.String()
}

type printer struct {
	b      strings.Builder
	indent int
	flat   int // inside something that stays on one line
}

func (p *printer) w(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// nl starts a new line.
func (p *printer) nl() {
	if p.flat > 0 {
		p.b.WriteByte(' ')
		return
	}
	p.b.WriteByte('\n')
	for range p.indent {
		p.b.WriteString("  ")
	}
}

// wIf writes s if cond holds.
func (p *printer) wIf(cond bool, s string) {
	if cond {
		p.b.WriteString(s)
	}
}

// join writes items with commas between them, on one line.
func join[T any](p *printer, items []T, item func(T)) {
	for i, it := range items {
		if i > 0 {
			p.w(", ")
		}
		item(it)
	}
}

// lines writes items with commas between them, one a line, indented.
func lines[T any](p *printer, items []T, item func(T)) {
	p.indent++
	for i, it := range items {
		if i > 0 {
			p.w(",")
		}
		p.nl()
		item(it)
	}
	p.indent--
}

func (p *printer) ident(id *Ident) {
	switch {
	case id.Text != nil:
		p.w(id.Text.quoted('`'))
	case isPlainWord(id.Name) && !IsReserved(id.Name) && !(id.Quoted && NeedsQuotes(id.Name)):
		p.w(id.Name)
	default:
		p.w(forceQuote(id.Name))
	}
}

func (p *printer) name(n *Name) {
	for i, part := range n.Parts {
		p.wIf(i > 0, ".")
		p.ident(part)
	}
}

func (p *printer) str(s *StringLit) {
	if s.Text == nil {
		p.w(QuoteString(s.Value))
		return
	}
	p.w(s.Text.quoted('\''))
}

// quoted writes the text between quotes; secrets and unbound variables as placeholders.
func (t *Text) quoted(quote byte) string {
	q := string(quote)
	var b strings.Builder
	b.WriteString(q)
	for i, part := range t.Parts {
		v := part.Var
		lit := part.Lit
		switch {
		case v != nil && (v.Secret || !v.Bound):
			b.WriteString(v.source())
			continue
		case v != nil:
			lit = v.Value
		}
		b.WriteString(escapeVars(strings.ReplaceAll(lit, q, q+q)))
		// A $ at the end would make an escape of the placeholder behind it: go on in a string of its own.
		if i+1 < len(t.Parts) && strings.HasSuffix(lit, "$") && quote == '\'' {
			b.WriteString(q + "\n" + q)
		}
	}
	b.WriteString(q)
	return b.String()
}

func (p *printer) idents(list []*Ident) {
	p.w("(")
	join(p, list, p.ident)
	p.w(")")
}

func (p *printer) option(o *Option) {
	p.str(o.Key)
	p.w(" = ")
	p.str(o.Value)
}

func (p *printer) options(word string, list []*Option) {
	p.w(word, " (")
	if len(list) > 0 {
		lines(p, list, p.option)
		p.nl()
	}
	p.w(")")
}

func (p *printer) comment(c *StringLit) {
	if c != nil {
		p.w(" COMMENT ")
		p.str(c)
	}
}

func (p *printer) hints(list []*Hint) {
	if len(list) > 0 {
		p.w(" /*+ ")
		join(p, list, p.hint)
		p.w(" */")
	}
}

func (p *printer) hint(h *Hint) {
	p.ident(h.Name)
	switch {
	case h.Options != nil:
		p.w("(")
		join(p, h.Options, p.option)
		p.w(")")
	case h.Args != nil:
		p.w("(")
		join(p, h.Args, func(e Expr) { p.expr(e, 0) })
		p.w(")")
	}
}

func (p *printer) typ(t *DataType) {
	names := [...]string{
		"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "CHAR", "VARCHAR", "STRING",
		"BINARY", "VARBINARY", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "INTERVAL ", "ARRAY", "MULTISET",
		"MAP", "ROW", "NULL",
	}
	p.w(names[t.Kind])
	if t.Precision != NoPrecision {
		p.w("(", strconv.Itoa(t.Precision))
		if t.Scale != NoPrecision {
			p.w(", ", strconv.Itoa(t.Scale))
		}
		p.w(")")
	}
	switch t.Kind {
	case TypeInterval:
		p.qualifier(t.Interval)
	case TypeArray, TypeMultiset:
		p.w("<")
		p.typ(t.Elem)
		p.w(">")
	case TypeMap:
		p.w("<")
		p.typ(t.Key)
		p.w(", ")
		p.typ(t.Elem)
		p.w(">")
	case TypeRow:
		p.w("<")
		join(p, t.Fields, func(f *FieldDef) {
			p.ident(f.Name)
			p.w(" ")
			p.typ(f.Type)
			if f.Comment != nil {
				p.w(" ")
				p.str(f.Comment)
			}
		})
		p.w(">")
	}
	p.wIf(t.NotNull, " NOT NULL")
	p.wIf(t.Null, " NULL")
}

func (p *printer) qualifier(q *IntervalQualifier) {
	p.w(q.From.String())
	frac := func(open string) {
		if q.FracPrecision != NoPrecision {
			p.w(open, strconv.Itoa(q.FracPrecision))
		}
	}
	if q.Precision != NoPrecision {
		p.w("(", strconv.Itoa(q.Precision))
		if q.From == q.To {
			frac(", ")
		}
		p.w(")")
	}
	if q.From != q.To {
		p.w(" TO ", q.To.String())
		if q.FracPrecision != NoPrecision {
			frac("(")
			p.w(")")
		}
	}
}
