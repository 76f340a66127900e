package syntax

func (p *printer) query(q *Query) {
	if len(q.With) > 0 {
		p.w("WITH ")
		for i, c := range q.With {
			if i > 0 {
				p.w(",")
				p.nl()
			}
			p.ident(c.Name)
			if c.Columns != nil {
				p.w(" ")
				p.idents(c.Columns)
			}
			p.w(" AS ")
			p.parenQuery(c.Query)
		}
		p.nl()
	}
	p.queryExpr(q.Body, 0)
	if q.OrderBy != nil {
		p.nl()
		p.w("ORDER BY ")
		join(p, q.OrderBy, p.orderItem)
	}
	if q.Limit != nil {
		p.nl()
		p.w("LIMIT ")
		p.expr(q.Limit, 0)
	}
	if q.Offset != nil {
		p.nl()
		p.w("OFFSET ")
		p.expr(q.Offset, 0)
	}
}

// parenQuery writes (query) over several lines.
func (p *printer) parenQuery(q *Query) {
	if p.flat > 0 {
		p.inlineQuery(q)
		return
	}
	p.w("(")
	p.indent++
	p.nl()
	p.query(q)
	p.indent--
	p.nl()
	p.w(")")
}

func (p *printer) orderItem(o *OrderItem) {
	p.expr(o.Expr, 0)
	p.wIf(o.Desc, " DESC")
	p.wIf(o.Nulls == NullsFirst, " NULLS FIRST")
	p.wIf(o.Nulls == NullsLast, " NULLS LAST")
}

// queryExpr writes a query body; brackets go around set operations that bind looser than min.
func (p *printer) queryExpr(q QueryExpr, min int) {
	switch q := q.(type) {
	case *Query:
		p.parenQuery(q)
	case *SetOp:
		prec := 1
		if q.Kind == Intersect {
			prec = 2
		}
		if prec < min {
			p.parenQuery(&Query{Body: q})
			return
		}
		p.queryExpr(q.Left, prec)
		p.nl()
		p.w([...]string{"UNION", "INTERSECT", "EXCEPT"}[q.Kind])
		p.wIf(q.All, " ALL")
		p.nl()
		p.queryExpr(q.Right, prec+1)
	case *Values:
		p.w("VALUES")
		lines(p, q.Rows, func(r *RowExpr) {
			if r.Explicit {
				p.expr(r, 0)
				return
			}
			p.exprs(r.Items)
		})
	case *ExplicitTable:
		p.w("TABLE ")
		p.name(q.Name)
	case *Select:
		p.selectBody(q)
	}
}

func (p *printer) selectBody(s *Select) {
	p.w("SELECT")
	p.hints(s.Hints)
	p.wIf(s.Distinct, " DISTINCT")
	p.w(" ")
	join(p, s.Items, p.selectItem)
	if s.From != nil {
		p.nl()
		p.w("FROM ")
		p.table(s.From)
	}
	if s.Where != nil {
		p.nl()
		p.w("WHERE ")
		p.expr(s.Where, 0)
	}
	if s.GroupBy != nil {
		p.nl()
		p.w("GROUP BY ")
		p.wIf(s.GroupBy.Distinct, "DISTINCT ")
		join(p, s.GroupBy.Elements, p.groupElement)
	}
	if s.Having != nil {
		p.nl()
		p.w("HAVING ")
		p.expr(s.Having, 0)
	}
	if s.Windows != nil {
		p.nl()
		p.w("WINDOW ")
		join(p, s.Windows, func(w *NamedWindow) {
			p.ident(w.Name)
			p.w(" AS ")
			p.windowParens(w.Spec)
		})
	}
}

func (p *printer) selectItem(i SelectItem) {
	switch i := i.(type) {
	case *Star:
		if i.Of != nil {
			p.name(i.Of)
			p.w(".")
		}
		if i.Expr != nil {
			p.w("(")
			p.expr(i.Expr, 0)
			p.w(").")
		}
		p.w("*")
	case *SelectExpr:
		p.expr(i.Expr, 0)
		if i.Alias != nil {
			p.w(" AS ")
			p.ident(i.Alias)
		}
	}
}

func (p *printer) groupElement(g GroupElement) {
	switch g := g.(type) {
	case *GroupExpr:
		p.expr(g.Expr, 0)
	case *GroupingSets:
		if g.Kind == GroupingSetsOf && len(g.Sets) == 1 && len(g.Sets[0].Items) == 0 {
			p.w("()")
			return
		}
		p.w([...]string{"GROUPING SETS ", "ROLLUP ", "CUBE "}[g.Kind], "(")
		join(p, g.Sets, func(r *RowExpr) {
			if r.Explicit {
				p.expr(r, 0)
				return
			}
			p.exprs(r.Items)
		})
		p.w(")")
	}
}

func (p *printer) alias(a *Alias) {
	if a == nil {
		return
	}
	p.w(" AS ")
	p.ident(a.Name)
	if a.Columns != nil {
		p.w(" ")
		p.idents(a.Columns)
	}
}

func (p *printer) table(t TableExpr) {
	switch t := t.(type) {
	case *TableRef:
		p.name(t.Name)
		p.hints(t.Hints)
		if t.AsOf != nil {
			p.w(" FOR SYSTEM_TIME AS OF ")
			p.expr(t.AsOf, 0)
		}
		p.alias(t.Alias)
	case *DerivedTable:
		p.wIf(t.Lateral, "LATERAL ")
		p.parenQuery(t.Query)
		p.alias(t.Alias)
	case *TableFunc:
		p.wIf(t.Lateral, "LATERAL ")
		p.w("TABLE(")
		p.expr(t.Call, 0)
		p.w(")")
		p.alias(t.Alias)
	case *Unnest:
		p.w("UNNEST")
		p.exprs(t.Args)
		p.wIf(t.Ordinality, " WITH ORDINALITY")
		p.alias(t.Alias)
	case *Join:
		p.joinTable(t)
	}
}

func (p *printer) joinTable(j *Join) {
	p.tableIn(j.Left, j.Comma)
	if j.Comma {
		p.w(", ")
		p.tableIn(j.Right, false)
		return
	}
	p.nl()
	p.wIf(j.Natural, "NATURAL ")
	p.w([...]string{"CROSS JOIN ", "JOIN ", "LEFT JOIN ", "RIGHT JOIN ", "FULL JOIN "}[j.Kind])
	if r, ok := j.Right.(*Join); ok {
		p.w("(")
		p.flat++
		p.table(r)
		p.flat--
		p.w(")")
	} else {
		p.table(j.Right)
	}
	switch {
	case j.On != nil:
		p.w(" ON ")
		p.expr(j.On, 0)
	case j.Using != nil:
		p.w(" USING ")
		p.idents(j.Using)
	}
}

// tableIn writes one side of a join. A comma binds looser than JOIN and groups from the left.
func (p *printer) tableIn(t TableExpr, commaOK bool) {
	j, ok := t.(*Join)
	if ok && j.Comma && !commaOK {
		p.w("(")
		p.table(t)
		p.w(")")
		return
	}
	p.table(t)
}
