package syntax

import (
	"strings"

	"github.com/millrace/millrace/sql/diag"
)

// call parses the arguments of a function and the clauses behind them.
func (p *parser) call(start int, name *Name) Expr {
	c := &Call{Name: name}
	p.expectOp("(")
	switch {
	case p.isOp(")"):
	case p.isOp("*") && p.at(1).isOp(")"):
		p.advance()
		c.Star = true
	default:
		if c.Distinct = p.accept("DISTINCT"); !c.Distinct {
			p.accept("ALL")
		}
		unitFirst := len(name.Parts) == 1 && (equalFold(name, "TIMESTAMPADD") || equalFold(name, "TIMESTAMPDIFF"))
		p.commaList(func() {
			if unitFirst && len(c.Args) == 0 {
				c.Args = append(c.Args, p.unit("a unit of time", diffUnits))
				return
			}
			c.Args = append(c.Args, p.argument())
		})
		if p.accept("ORDER") {
			p.expect("BY")
			c.OrderBy = p.orderItems()
		}
		c.Nulls = p.nullTreatment()
	}
	p.expectOp(")")
	if c.Nulls == NullsUnspecified {
		c.Nulls = p.nullTreatment()
	}
	if p.is("WITHIN", "GROUP") {
		p.pos += 2
		p.expectOp("(")
		p.expect("ORDER", "BY")
		c.WithinGroup = p.orderItems()
		p.expectOp(")")
	}
	c.Filter = p.filter()
	if p.accept("OVER") {
		c.Over = p.windowSpec()
	}
	c.Loc = p.from(start)
	return c
}

func equalFold(n *Name, word string) bool {
	return !n.Last().Quoted && strings.EqualFold(n.Last().Name, word)
}

func (p *parser) nullTreatment() NullTreatment {
	switch {
	case p.is("RESPECT", "NULLS"):
		p.pos += 2
		return RespectNulls
	case p.is("IGNORE", "NULLS"):
		p.pos += 2
		return IgnoreNulls
	}
	return NullsUnspecified
}

func (p *parser) filter() Expr {
	if !p.is("FILTER") || !p.at(1).isOp("(") {
		return nil
	}
	p.pos += 2
	p.expect("WHERE")
	e := p.expr()
	p.expectOp(")")
	return e
}

// argument parses an argument, maybe named.
func (p *parser) argument() Expr {
	start := p.pos
	t := p.cur()
	if (t.Kind == Word || t.Kind == QuotedName) && p.at(1).isOp("=>") {
		p.pos += 2
		n := &NamedArg{Name: &Ident{Loc: Loc{p.span(t)}, Name: t.Text, Quoted: t.Kind == QuotedName, Text: t.Vars}}
		n.Value = p.argValue()
		n.Loc = p.from(start)
		return n
	}
	return p.argValue()
}

func (p *parser) argValue() Expr {
	start := p.pos
	switch {
	case p.is("DEFAULT"):
		p.advance()
		return &DefaultArg{Loc: p.from(start)}
	case p.is("TABLE"):
		p.advance()
		return p.tableArg(start)
	case p.is("DESCRIPTOR") && p.at(1).isOp("("):
		p.advance()
		cols := p.identList("a column")
		return &Descriptor{Loc: p.from(start), Columns: cols}
	case p.is("SELECT") || p.is("WITH"):
		p.fail(diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "a query as an argument stands in brackets of its own").
			WithHelp("write f((SELECT ...))"))
	}
	return p.expr()
}

func (p *parser) tableArg(start int) Expr {
	a := &TableArg{}
	if p.isOp("(") {
		a.Query = p.parenQuery()
	} else {
		a.Name = p.name("a table")
	}
	if p.accept("PARTITION") {
		p.expect("BY")
		a.PartitionBy = p.exprOrParens()
	}
	if p.accept("ORDER") {
		p.expect("BY")
		if p.acceptOp("(") {
			a.OrderBy = p.orderItems()
			p.expectOp(")")
		} else {
			start := p.pos
			item := &OrderItem{Expr: p.expr()}
			item.Desc = p.acceptOne("ASC", "DESC") == "DESC"
			item.Loc = p.from(start)
			a.OrderBy = []*OrderItem{item}
		}
	}
	a.Loc = p.from(start)
	return a
}

// exprOrParens takes a single expression, or several in brackets, for a comma would end the argument.
func (p *parser) exprOrParens() []Expr {
	e := p.expr()
	if r, ok := e.(*RowExpr); ok && !r.Explicit {
		return r.Items
	}
	return []Expr{e}
}
