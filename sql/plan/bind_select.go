package plan

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// selection is one SELECT being bound.
type selection struct {
	b          *Binder
	ast        *syntax.Select
	plainScope *scope
	group      *grouping // nil without grouping
	overs      []*overCall
	input      Node // what the items are computed over
	items      []item
	out        *Output
	// order is ORDER BY; of a grouped SELECT its expressions are bound before
	// the aggregate is made, since they may hold aggregates of their own.
	order      []*syntax.OrderItem
	orderExprs map[*syntax.OrderItem]expr.Expr
}

// item is one output column.
type item struct {
	e     expr.Expr
	name  string
	named bool
	// aliased: the name was written with AS.
	aliased bool
	// computed: written as an expression, not as a bare reference.
	computed bool
	span     diag.Span
}

// selectQuery binds a SELECT with the ORDER BY of its query.
func (b *Binder) selectQuery(s *syntax.Select, ctes []*cte, order []*syntax.OrderItem) *Output {
	var out *Output
	saved, savedTTL := b.stateID, b.stateTTL
	b.stateID, b.stateTTL = "", nil
	b.selectHints(s)
	bind := func() { out = b.selectIn(s, ctes, order) }
	if label := fromLabel(s.From); label != "" {
		b.within(label, bind)
	} else {
		bind()
	}
	b.stateID, b.stateTTL = saved, savedTTL
	return out
}

func (b *Binder) selectHints(s *syntax.Select) {
	for _, h := range s.Hints {
		if strings.EqualFold(h.Name.Name, "LOOKUP") {
			b.lookupHint(h, s.From)
			continue
		}
		if strings.EqualFold(h.Name.Name, "STATE_TTL") {
			b.stateTTLHint(h)
			continue
		}
		if h.Name.Name != "STATE_ID" && h.Name.Name != "state_id" {
			b.notYet(h.Span(), "the hint "+h.Name.Name)
			continue
		}
		if b.stateID = stateIDOf(s); b.stateID != "" {
			continue
		}
		b.errorf(diag.CodeBadArgument, h.Span(), "STATE_ID takes one name").WithHelp("/*+ STATE_ID('name') */")
	}
}

func (b *Binder) selectIn(s *syntax.Select, ctes []*cte, order []*syntax.OrderItem) *Output {
	sel := &selection{b: b, ast: s, plainScope: &scope{ctes: ctes, outer: b.outer}, order: order}
	for _, it := range s.Items {
		if se, ok := it.(*syntax.SelectExpr); ok && se.Alias != nil {
			sel.plainScope.aliases = append(sel.plainScope.aliases, se.Alias.Name)
		}
	}
	var node Node
	if s.From == nil {
		node = oneRow(b)
	} else {
		node = b.from(s.From, sel.plainScope)
	}
	b.Index.scope(s, order, sel.plainScope)
	b.checkStateTTL(s.Hints, sel.plainScope)
	if s.Where != nil {
		node = sel.where(s.Where, node)
	}
	sel.input = node
	if sel.grouped(order) {
		sel.bindGrouped()
	} else {
		sel.bindPlain()
	}
	if sel.out == nil {
		return nil
	}
	b.Index.outputs(sel.out)
	if s.Distinct {
		if sel.out = b.distinct(sel.out, s.Span().StartOnly().To(s.Items[0].Span())); sel.out == nil {
			return nil
		}
		// After DISTINCT only the output columns are left to sort by.
		sel.group, sel.input = nil, sel.out.Node
		sel.plainScope = &scope{rels: []relation{{cols: sel.out.Columns()}}}
	}
	return sel.orderBy(order)
}

// grouped reports whether the SELECT aggregates.
func (sel *selection) grouped(order []*syntax.OrderItem) bool {
	s := sel.ast
	if s.GroupBy != nil || s.Having != nil {
		return true
	}
	for _, it := range s.Items {
		if se, ok := it.(*syntax.SelectExpr); ok && sel.b.hasAggregate(se.Expr) {
			return true
		}
	}
	for _, o := range order {
		if sel.b.hasAggregate(o.Expr) {
			return true
		}
	}
	return false
}

// hasAggregate reports an aggregate call in e that belongs to this SELECT, not to
// a sub-query in it.
func (b *Binder) hasAggregate(e syntax.Expr) bool {
	found := false
	syntax.Walk(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Query:
			return false
		case *syntax.Call:
			if n.Over == nil {
				_, agg := b.Functions.Aggregate(n.Name.String())
				found = found || agg
			}
		}
		return !found
	})
	return found
}

// bindItems binds the SELECT list with bind for expressions.
func (sel *selection) bindItems(bind func(e syntax.Expr) expr.Expr) bool {
	ok := true
	for i, it := range sel.ast.Items {
		switch it := it.(type) {
		case *syntax.Star:
			ok = sel.star(it, bind) && ok
		case *syntax.SelectExpr:
			e := bind(it.Expr)
			if e == nil {
				ok = false
				continue
			}
			name, named := itemName(it, i)
			span := it.Expr.Span()
			sel.items = append(sel.items, item{e: e, name: name, named: named, aliased: it.Alias != nil, computed: !isReference(it.Expr), span: span})
		}
	}
	return ok
}

// isReference reports a column written as such, or a bound of a window of GROUP BY.
func isReference(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.ColumnRef:
		return true
	case *syntax.Call:
		_, _, is := auxiliaryOf(e)
		return is
	}
	return false
}

// itemName is the alias, the name of a bare column or field, or EXPR$n.
func itemName(it *syntax.SelectExpr, i int) (string, bool) {
	if it.Alias != nil {
		return it.Alias.Name, true
	}
	switch e := it.Expr.(type) {
	case *syntax.ColumnRef:
		return e.Parts[len(e.Parts)-1].Name, true
	case *syntax.FieldAccess:
		return e.Field.Name, true
	}
	return "EXPR$" + strconv.Itoa(i), false
}

func (sel *selection) star(s *syntax.Star, bind func(syntax.Expr) expr.Expr) bool {
	sc := sel.plainScope
	switch {
	case s.Expr != nil:
		return sel.fields(s, s.Expr, bind)
	case s.Of != nil && !sc.isTable(s.Of):
		ref := &syntax.ColumnRef{Loc: s.Of.Loc, Parts: s.Of.Parts}
		if sc.has(ref) {
			return sel.fields(s, ref, bind)
		}
	}
	rels := sc.rels
	if s.Of != nil {
		name := s.Of.Last().Name
		r, ok := sc.relation(name)
		if !ok {
			if !sc.broken {
				var names []string
				for _, r := range sc.rels {
					names = append(names, r.name)
				}
				sel.b.errorf(diag.CodeUnknownTable, s.Of.Span(), "%q is not in FROM", name).WithNearest(name, names)
			}
			return false
		}
		rels = []relation{*r}
	}
	if len(sc.rels) == 0 {
		if !sc.broken {
			sel.b.errorf(diag.CodeUnknownColumn, s.Span(), "* needs a FROM")
		}
		return false
	}
	var cols []Column
	if s.Of == nil {
		cols = sc.visible()
	} else {
		cols = rels[0].cols
	}
	for i := range cols {
		sel.items = append(sel.items, item{e: cols[i].Ref(), name: cols[i].Name, named: true, span: s.Span()})
	}
	return true
}

// fields are the fields of a row, each a column.
func (sel *selection) fields(s *syntax.Star, of syntax.Expr, bind func(syntax.Expr) expr.Expr) bool {
	row := bind(of)
	if row == nil {
		return false
	}
	if t := row.Type(); t.Kind != rt.Row {
		sel.b.errorf(diag.CodeTypeMismatch, of.Span(), "%s has no fields to spread: it is %s", row, t.WithNullable(true)).
			WithHelp("* goes behind a table or a ROW")
		return false
	}
	for _, f := range row.Type().Fields {
		name := &syntax.Ident{Loc: syntax.Loc{Src: of.Span()}, Name: f.Name, Quoted: true}
		e := bind(&syntax.FieldAccess{Loc: syntax.Loc{Src: s.Span()}, Base: of, Field: name})
		if e == nil {
			return false
		}
		sel.items = append(sel.items, item{e: e, name: f.Name, named: true, span: s.Span()})
	}
	return true
}

// where filters a node; equalities between the sides of a join become its keys.
func (sel *selection) where(e syntax.Expr, node Node) Node {
	b, subs := sel.b, &subqueries{}
	eb := &exprBinder{b: b, sc: sel.plainScope, clause: "WHERE", subs: subs, filters: filters(e)}
	p := eb.predicate(e)
	if p == nil || node == nil {
		return node
	}
	b.lintClock(p, e.Span())
	node, rest := b.placeKeys(node, Conjuncts(p))
	node, rest = b.rankFilter(node, rest)
	if p = conjunction(rest); p == nil {
		return node
	}
	if node = b.joinSubqueries(node, subs, asIs); node == nil {
		return nil
	}
	return &Filter{Input: node, Predicate: p}
}

func (sel *selection) bindPlain() {
	subs := &subqueries{}
	bind := func(e syntax.Expr) expr.Expr {
		return (&exprBinder{b: sel.b, sc: sel.plainScope, clause: "SELECT", subs: subs, over: sel}).bind(e)
	}
	if !sel.bindItems(bind) || sel.input == nil {
		return
	}
	if sel.input = sel.b.joinSubqueries(sel.input, subs, asIs); sel.input == nil {
		return
	}
	sel.applyOver(asItIs)
	sel.project()
}

// project makes the output from the items.
func (sel *selection) project() {
	p := &Project{Input: sel.input}
	out := &Output{}
	for _, it := range sel.items {
		p.Exprs = append(p.Exprs, it.e)
		c := derive(sel.b.id, it.name, it.e, sel.input.Columns())
		_, bare := it.e.(*expr.Column)
		if it.computed && bare {
			// An expression that comes down to a column, such as a CAST to its own type, is one all the same.
			c.ID, c.RowTime, c.Window = sel.b.id(), false, nil
			if c.Changing == RowTimes {
				c.Changing = NoTime
			}
		}
		p.Cols = append(p.Cols, c)
		out.Spans = append(out.Spans, it.span)
		out.Named = append(out.Named, it.aliased || it.named && bare)
	}
	out.Node = keepIdentity(p)
	sel.out = out
}

// keepIdentity drops a projection that changes nothing.
func keepIdentity(p *Project) Node {
	in := p.Input.Columns()
	if len(in) != len(p.Cols) {
		return p
	}
	for i := range in {
		if in[i].ID != p.Cols[i].ID || in[i].Name != p.Cols[i].Name {
			return p
		}
	}
	return p.Input
}

// named reports an ORDER BY item that is an ordinal or an output name.
func (sel *selection) named(o *syntax.OrderItem) bool {
	switch e := o.Expr.(type) {
	case *syntax.NumberLit:
		return true
	case *syntax.ColumnRef:
		for _, it := range sel.items {
			if len(e.Parts) == 1 && it.name == e.Parts[0].Name {
				return true
			}
		}
	}
	return false
}
