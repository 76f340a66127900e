package syntax

import "github.com/millrace/millrace/sql/diag"

func (p *parser) jsonForm(start int, t *Token) Expr {
	p.pos += 2
	switch t.Upper {
	case "JSON_VALUE":
		return p.jsonValue(start)
	case "JSON_QUERY":
		return p.jsonQuery(start)
	case "JSON_EXISTS":
		return p.jsonExists(start)
	case "JSON_OBJECT", "JSON_OBJECTAGG":
		return p.jsonObject(start, t.Upper == "JSON_OBJECTAGG")
	}
	return p.jsonArray(start, t.Upper == "JSON_ARRAYAGG")
}

// jsonArgs parses x, path.
func (p *parser) jsonArgs() (x, path Expr) {
	x = p.expr()
	p.expectOp(",")
	return x, p.expr()
}

func (p *parser) jsonValue(start int) Expr {
	v := &JSONValue{}
	v.Expr, v.Path = p.jsonArgs()
	if p.accept("RETURNING") {
		v.Returning = p.dataType()
	}
	v.OnEmpty, v.OnError = p.jsonBehaviors(map[JSONBehaviorKind]bool{JSONNull: true, JSONError: true, JSONDefault: true})
	p.expectOp(")")
	v.Loc = p.from(start)
	return v
}

func (p *parser) jsonQuery(start int) Expr {
	q := &JSONQuery{}
	q.Expr, q.Path = p.jsonArgs()
	if p.accept("RETURNING") {
		q.Returning = p.dataType()
	}
	switch {
	case p.is("WITHOUT"):
		p.advance()
		p.accept("ARRAY")
		p.expect("WRAPPER")
		q.Wrapper = JSONWithoutWrapper
	case p.is("WITH"):
		p.advance()
		q.Wrapper = JSONWithUnconditionalWrapper
		if p.acceptOne("CONDITIONAL", "UNCONDITIONAL") == "CONDITIONAL" {
			q.Wrapper = JSONWithConditionalWrapper
		}
		p.accept("ARRAY")
		p.expect("WRAPPER")
	}
	q.OnEmpty, q.OnError = p.jsonBehaviors(map[JSONBehaviorKind]bool{
		JSONNull: true, JSONError: true, JSONEmptyArray: true, JSONEmptyObject: true,
	})
	p.expectOp(")")
	q.Loc = p.from(start)
	return q
}

func (p *parser) jsonExists(start int) Expr {
	e := &JSONExists{}
	e.Expr, e.Path = p.jsonArgs()
	var onEmpty *JSONBehavior
	onEmpty, e.OnError = p.jsonBehaviors(map[JSONBehaviorKind]bool{JSONTrue: true, JSONFalse: true, JSONUnknown: true, JSONError: true})
	if onEmpty != nil {
		p.errs.Errorf(diag.CodeSyntaxError, onEmpty.Src, "JSON_EXISTS has no ON EMPTY")
	}
	p.expectOp(")")
	e.Loc = p.from(start)
	return e
}

// jsonBehaviors parses [b ON EMPTY] [b ON ERROR] in any order.
func (p *parser) jsonBehaviors(allowed map[JSONBehaviorKind]bool) (onEmpty, onError *JSONBehavior) {
	for {
		t := p.cur()
		b := p.jsonBehavior()
		if b == nil {
			return onEmpty, onError
		}
		if !allowed[b.Kind] {
			p.errs.Errorf(diag.CodeSyntaxError, b.Src, "this behavior is not one of the function's")
		}
		p.expect("ON")
		switch p.acceptOne("EMPTY", "ERROR") {
		case "EMPTY":
			p.once(onEmpty != nil, t)
			onEmpty = b
		case "ERROR":
			p.once(onError != nil, t)
			onError = b
		default:
			p.unexpected("\"EMPTY\" or \"ERROR\"")
		}
	}
}

func (p *parser) jsonBehavior() *JSONBehavior {
	start := p.pos
	b := &JSONBehavior{}
	switch p.acceptOne("NULL", "ERROR", "DEFAULT", "EMPTY", "TRUE", "FALSE", "UNKNOWN") {
	case "NULL":
		b.Kind = JSONNull
	case "ERROR":
		b.Kind = JSONError
	case "DEFAULT":
		b.Kind, b.Default = JSONDefault, p.expr()
	case "EMPTY":
		b.Kind = JSONEmptyArray
		if w := p.acceptOne("ARRAY", "OBJECT"); w == "OBJECT" {
			b.Kind = JSONEmptyObject
		} else if w == "" {
			p.unexpected("\"ARRAY\" or \"OBJECT\"")
		}
	case "TRUE":
		b.Kind = JSONTrue
	case "FALSE":
		b.Kind = JSONFalse
	case "UNKNOWN":
		b.Kind = JSONUnknown
	default:
		return nil
	}
	b.Loc = p.from(start)
	return b
}

func (p *parser) jsonOnNull() JSONOnNull {
	switch {
	case p.is("NULL", "ON", "NULL"):
		p.pos += 3
		return JSONNullOnNull
	case p.is("ABSENT", "ON", "NULL"):
		p.pos += 3
		return JSONAbsentOnNull
	}
	return JSONOnNullDefault
}

func (p *parser) jsonObject(start int, agg bool) Expr {
	o := &JSONObject{Agg: agg}
	if !p.isOp(")") && !p.is("NULL", "ON") && !p.is("ABSENT", "ON") {
		p.commaList(func() { o.Pairs = append(o.Pairs, p.jsonPair()) })
	}
	o.OnNull = p.jsonOnNull()
	p.expectOp(")")
	if agg {
		if len(o.Pairs) != 1 {
			p.errs.Errorf(diag.CodeSyntaxError, p.from(start).Src, "JSON_OBJECTAGG takes one KEY and VALUE")
		}
		o.Filter = p.filter()
	}
	o.Loc = p.from(start)
	return o
}

func (p *parser) jsonPair() *JSONPair {
	start := p.pos
	pair := &JSONPair{}
	// KEY is also a fine name of a column.
	if p.is("KEY") && !p.at(1).isWord("VALUE") && !p.at(1).isOp(":") && !p.at(1).isOp(".") {
		p.advance()
	}
	pair.Key = p.expr()
	if !p.accept("VALUE") && !p.acceptOp(":") {
		d := diag.Errorf(diag.CodeSyntaxError, p.span(p.cur()), "expected \"VALUE\" but found %s", p.cur().describe(p.file)).
			WithHelp("write KEY 'k' VALUE v")
		p.fail(d)
	}
	pair.Value = p.expr()
	pair.Loc = p.from(start)
	return pair
}

func (p *parser) jsonArray(start int, agg bool) Expr {
	a := &JSONArray{Agg: agg}
	if !p.isOp(")") && !p.is("NULL", "ON") && !p.is("ABSENT", "ON") {
		p.commaList(func() { a.Items = append(a.Items, p.expr()) })
	}
	a.OnNull = p.jsonOnNull()
	p.expectOp(")")
	if agg {
		if len(a.Items) != 1 {
			p.errs.Errorf(diag.CodeSyntaxError, p.from(start).Src, "JSON_ARRAYAGG takes one item")
		}
		a.Filter = p.filter()
	}
	a.Loc = p.from(start)
	return a
}
