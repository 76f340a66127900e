package syntax

// part writes word and x if x is there.
func (p *printer) part(word string, x Expr) {
	if !isNil(x) {
		p.w(word)
		p.expr(x, 0)
	}
}

// functionName writes the name of a function: bare if it is a single word that calls can start with.
func (p *printer) functionName(n *Name) {
	last := n.Last()
	switch {
	case len(n.Parts) > 1 || last.Text != nil:
		p.name(n)
	case last.Quoted || !isPlainWord(last.Name):
		p.w(forceQuote(last.Name))
	default:
		p.w(last.Name)
	}
}

func (p *printer) call(c *Call) {
	p.functionName(c.Name)
	if c.NoParens {
		return
	}
	p.w("(")
	p.wIf(c.Distinct, "DISTINCT ")
	p.wIf(c.Star, "*")
	join(p, c.Args, func(e Expr) { p.expr(e, 0) })
	if c.OrderBy != nil {
		p.w(" ORDER BY ")
		join(p, c.OrderBy, p.orderItem)
	}
	p.w(")")
	switch c.Nulls {
	case RespectNulls:
		p.w(" RESPECT NULLS")
	case IgnoreNulls:
		p.w(" IGNORE NULLS")
	}
	if c.WithinGroup != nil {
		p.w(" WITHIN GROUP (ORDER BY ")
		join(p, c.WithinGroup, p.orderItem)
		p.w(")")
	}
	p.filter(c.Filter)
	if c.Over != nil {
		p.w(" OVER ")
		p.window(c.Over)
	}
}

func (p *printer) filter(e Expr) {
	if !isNil(e) {
		p.w(" FILTER (WHERE ")
		p.expr(e, 0)
		p.w(")")
	}
}

// window writes what follows OVER: a bare name where nothing else is given.
func (p *printer) window(w *WindowSpec) {
	if w.Ref != nil && w.PartitionBy == nil && w.OrderBy == nil && w.Frame == nil {
		p.ident(w.Ref)
		return
	}
	p.windowParens(w)
}

func (p *printer) windowParens(w *WindowSpec) {
	p.w("(")
	sep := ""
	if w.Ref != nil {
		p.ident(w.Ref)
		sep = " "
	}
	if w.PartitionBy != nil {
		p.w(sep, "PARTITION BY ")
		join(p, w.PartitionBy, func(e Expr) { p.expr(e, 0) })
		sep = " "
	}
	if w.OrderBy != nil {
		p.w(sep, "ORDER BY ")
		join(p, w.OrderBy, p.orderItem)
		sep = " "
	}
	if f := w.Frame; f != nil {
		p.w(sep, [...]string{"ROWS ", "RANGE "}[f.Unit])
		if f.End != nil {
			p.w("BETWEEN ")
			p.bound(f.Start)
			p.w(" AND ")
			p.bound(f.End)
		} else {
			p.bound(f.Start)
		}
	}
	p.w(")")
}

func (p *printer) bound(b *FrameBound) {
	if b.Offset != nil {
		p.expr(b.Offset, precAnd+1)
		p.w(" ")
	}
	p.w([...]string{"UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"}[b.Kind])
}

// callLike writes what is spelled like a call.
func (p *printer) callLike(e Expr) {
	switch e := e.(type) {
	case *Call:
		p.call(e)
	case *NamedArg:
		if isPlainWord(e.Name.Name) && !e.Name.Quoted {
			p.w(e.Name.Name) // any word can name an argument
		} else {
			p.ident(e.Name)
		}
		p.w(" => ")
		p.expr(e.Value, 0)
	case *DefaultArg:
		p.w("DEFAULT")
	case *TableArg:
		p.tableArg(e)
	case *Descriptor:
		p.w("DESCRIPTOR")
		p.idents(e.Columns)
	case *UnitArg:
		p.w(e.Unit.String())
	case *Cast:
		p.wIf(e.Try, "TRY_")
		p.w("CAST(")
		p.expr(e.Expr, 0)
		p.w(" AS ")
		p.typ(e.Type)
		p.w(")")
	case *Extract:
		p.w("EXTRACT(", e.Unit.Unit.String())
		p.part(" FROM ", e.From)
		p.w(")")
	case *RoundTime:
		if e.Ceil {
			p.w("CEIL(")
		} else {
			p.w("FLOOR(")
		}
		p.expr(e.Expr, 0)
		p.w(" TO ", e.Unit.Unit.String(), ")")
	case *Trim:
		p.trim(e)
	case *Position:
		p.w("POSITION(")
		p.expr(e.Needle, precLike+1)
		p.part(" IN ", e.In)
		p.part(" FROM ", e.From)
		p.w(")")
	case *Substring:
		p.w("SUBSTRING(")
		p.expr(e.Expr, 0)
		p.part(" FROM ", e.From)
		p.part(" FOR ", e.For)
		p.w(")")
	case *Overlay:
		p.w("OVERLAY(")
		p.expr(e.Expr, 0)
		p.part(" PLACING ", e.Placing)
		p.part(" FROM ", e.From)
		p.part(" FOR ", e.For)
		p.w(")")
	default:
		p.json(e)
	}
}

func (p *printer) trim(e *Trim) {
	p.w("TRIM(")
	if e.Chars != nil || e.Side != TrimBoth {
		p.w([...]string{"BOTH ", "LEADING ", "TRAILING "}[e.Side])
		if e.Chars != nil {
			p.expr(e.Chars, 0)
			p.w(" ")
		}
		p.w("FROM ")
	}
	p.expr(e.From, 0)
	p.w(")")
}

func (p *printer) tableArg(e *TableArg) {
	p.w("TABLE ")
	if e.Query != nil {
		p.inlineQuery(e.Query)
	} else {
		p.name(e.Name)
	}
	if e.PartitionBy != nil {
		p.w(" PARTITION BY ")
		if len(e.PartitionBy) > 1 {
			p.exprs(e.PartitionBy)
		} else {
			p.expr(e.PartitionBy[0], 0)
		}
	}
	if e.OrderBy != nil {
		p.w(" ORDER BY (")
		join(p, e.OrderBy, p.orderItem)
		p.w(")")
	}
}

func (p *printer) json(e Expr) {
	switch e := e.(type) {
	case *JSONValue:
		p.jsonPath("JSON_VALUE(", e.Expr, e.Path, e.Returning)
		p.behavior(e.OnEmpty, " ON EMPTY")
		p.behavior(e.OnError, " ON ERROR")
		p.w(")")
	case *JSONQuery:
		p.jsonPath("JSON_QUERY(", e.Expr, e.Path, e.Returning)
		p.w([...]string{"", " WITHOUT WRAPPER", " WITH CONDITIONAL WRAPPER", " WITH UNCONDITIONAL WRAPPER"}[e.Wrapper])
		p.behavior(e.OnEmpty, " ON EMPTY")
		p.behavior(e.OnError, " ON ERROR")
		p.w(")")
	case *JSONExists:
		p.jsonPath("JSON_EXISTS(", e.Expr, e.Path, nil)
		p.behavior(e.OnError, " ON ERROR")
		p.w(")")
	case *JSONObject:
		p.w("JSON_OBJECT")
		p.wIf(e.Agg, "AGG")
		p.w("(")
		join(p, e.Pairs, func(pair *JSONPair) {
			p.w("KEY ")
			p.expr(pair.Key, 0)
			p.w(" VALUE ")
			p.expr(pair.Value, 0)
		})
		p.onNull(e.OnNull, len(e.Pairs) > 0)
		p.filter(e.Filter)
	case *JSONArray:
		p.w("JSON_ARRAY")
		p.wIf(e.Agg, "AGG")
		p.w("(")
		join(p, e.Items, func(e Expr) { p.expr(e, 0) })
		p.onNull(e.OnNull, len(e.Items) > 0)
		p.filter(e.Filter)
	}
}

func (p *printer) jsonPath(name string, x, path Expr, returning *DataType) {
	p.w(name)
	p.expr(x, 0)
	p.w(", ")
	p.expr(path, 0)
	if returning != nil {
		p.w(" RETURNING ")
		p.typ(returning)
	}
}

func (p *printer) behavior(b *JSONBehavior, on string) {
	if b == nil {
		return
	}
	p.w([...]string{" NULL", " ERROR", " DEFAULT ", " EMPTY ARRAY", " EMPTY OBJECT", " TRUE", " FALSE", " UNKNOWN"}[b.Kind])
	if b.Default != nil {
		p.expr(b.Default, 0)
	}
	p.w(on)
}

func (p *printer) onNull(o JSONOnNull, space bool) {
	p.wIf(space && o != JSONOnNullDefault, " ")
	p.w([...]string{"", "NULL ON NULL", "ABSENT ON NULL"}[o], ")")
}
