package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// grouping is a SELECT that aggregates, being bound. Expressions are bound
// over the input with aggregate calls as placeholder columns; replace then
// puts key columns in the place of key expressions.
type grouping struct {
	sel   *selection
	input Node
	keys  []groupKey
	calls []*aggCall
	subs  subqueries // over the aggregate
	// legacy is a window among the keys.
	legacy *groupWindow
	// sets is nil for one set of keys.
	sets *groupingSets
	// noWindow: there was one with faults.
	noWindow bool
	spans    map[*expr.Column]diag.Span // of bound column references
}

type groupKey struct {
	e    expr.Expr
	text string // Key(e)
	col  Column // in the aggregate's output
	span diag.Span
}

type aggCall struct {
	call AggCall
	key  string
	col  Column
	span diag.Span
}

func (sel *selection) bindGrouped() {
	b, s := sel.b, sel.ast
	g := &grouping{sel: sel, input: sel.input, spans: map[*expr.Column]diag.Span{}}
	sel.group = g
	ok := g.bindKeys(s.GroupBy)
	ok = sel.bindItems(func(e syntax.Expr) expr.Expr { return g.bindOver(e) }) && ok
	var having expr.Expr
	if s.Having != nil {
		if having = g.bindPredicate(s.Having); having == nil {
			ok = false
		}
	}
	sel.orderExprs = map[*syntax.OrderItem]expr.Expr{}
	for _, o := range sel.order {
		if sel.named(o) {
			continue
		}
		if sel.orderExprs[o] = g.bind(o.Expr, "ORDER BY"); sel.orderExprs[o] == nil {
			ok = false
		}
	}
	if !ok || sel.input == nil {
		return
	}
	for _, it := range sel.items {
		ok = g.checkGrouped(it.e) && ok
	}
	for _, o := range sel.overs {
		ok = g.checkOver(o) && ok
	}
	if having != nil {
		ok = g.checkGrouped(having) && ok
	}
	for _, o := range sel.order {
		if e := sel.orderExprs[o]; e != nil {
			ok = g.checkGrouped(e) && ok
		}
	}
	if !ok {
		return
	}
	node := g.aggregate(s)
	if node == nil {
		return
	}
	if sel.input = b.joinSubqueries(node, &g.subs, g.overGroups); sel.input == nil {
		return
	}
	for i := range sel.items {
		sel.items[i].e = g.replace(sel.items[i].e)
	}
	if having != nil {
		having = g.replace(having)
	}
	if having != nil {
		b.lintClock(having, s.Having.Span())
		sel.input = &Filter{Input: sel.input, Predicate: having}
	}
	sel.applyOver(g.replace)
	sel.project()
}

// bindOver binds an item, in which functions with OVER may stand.
func (g *grouping) bindOver(e syntax.Expr) expr.Expr {
	eb := &exprBinder{b: g.sel.b, sc: g.sel.plainScope, clause: "SELECT", group: g, spans: g.spans, subs: &g.subs, over: g.sel}
	return eb.bind(e)
}

func (g *grouping) bindKeys(by *syntax.GroupBy) bool {
	if by == nil {
		return true
	}
	b := g.sel.b
	if by.Distinct {
		b.notYet(by.Span(), "GROUP BY DISTINCT")
		return false
	}
	ok, sets := true, false
	for _, el := range by.Elements {
		x, is := el.(*syntax.GroupingSets)
		nothing := is && x.Kind == syntax.GroupingSetsOf && len(x.Sets) == 1 && len(x.Sets[0].Items) == 0 // GROUP BY ()
		sets = sets || is && !nothing
	}
	if sets {
		return g.bindSets(by)
	}
	for _, el := range windowFirst(by.Elements) {
		if el, is := el.(*syntax.GroupExpr); is {
			ok = g.bindKey(el.Expr) && ok
		}
	}
	return ok
}

func (g *grouping) bindKey(e syntax.Expr) bool {
	b := g.sel.b
	if is, ok := g.bindWindowKey(e); is {
		g.noWindow = !ok
		return ok
	}
	if n, isNum := e.(*syntax.NumberLit); isNum {
		b.errorf(diag.CodeBadArgument, e.Span(), "GROUP BY %s groups by a constant; a column's place has no meaning here", n.Text).
			WithHelp("repeat the expression")
		return false
	}
	if b.hasAggregate(e) {
		b.errorf(diag.CodeMisplacedAggregate, e.Span(), "an aggregate cannot be a key of GROUP BY")
		return false
	}
	k := b.scalar(e, g.sel.plainScope, "GROUP BY")
	if k == nil {
		return false
	}
	if d := g.determinism(k); d != fn.Deterministic {
		b.errorf(diag.CodeNondeterministic, e.Span(), "a key of GROUP BY must not depend on the clock or on chance: a replay would find another group").
			WithHelp("group by the row's own time")
		return false
	}
	text := Key(k)
	for _, old := range g.keys {
		if old.text == text {
			return true
		}
	}
	g.keys = append(g.keys, groupKey{e: k, text: text, span: e.Span()})
	return true
}

// determinism is that of an expression with the columns it reads.
func (g *grouping) determinism(e expr.Expr) fn.Determinism {
	d := expr.DeterminismOf(e)
	if g.input == nil {
		return d
	}
	for _, id := range expr.Columns(e) {
		if c, ok := ColumnByID(g.input.Columns(), id); ok {
			d = max(d, c.Determinism)
		}
	}
	return d
}

// bind binds an expression in which aggregates may stand.
func (g *grouping) bind(e syntax.Expr, clause string) expr.Expr {
	eb := &exprBinder{b: g.sel.b, sc: g.sel.plainScope, clause: clause, group: g, spans: g.spans, subs: &g.subs}
	return eb.bind(e)
}

func (g *grouping) bindPredicate(e syntax.Expr) expr.Expr {
	eb := &exprBinder{b: g.sel.b, sc: g.sel.plainScope, clause: "HAVING", group: g, spans: g.spans, subs: &g.subs}
	return eb.predicate(e)
}

// call collects an aggregate call and returns its placeholder.
func (g *grouping) call(eb *exprBinder, agg *fn.Aggregate, c *syntax.Call) expr.Expr {
	ac := eb.aggregateCall(agg, c, g.input)
	if ac == nil {
		return nil
	}
	for _, old := range g.calls {
		if old.key == ac.key {
			return old.col.Ref()
		}
	}
	ac.col.ID = eb.b.id()
	g.calls = append(g.calls, ac)
	return ac.col.Ref()
}

// aggregateCall binds an aggregate over the scope of eb.
// aggregateTypes notes the type Flink gives where ours is wider.
// argError reports a fault that Bind found at the argument it names.
// aggregate makes the node: a projection to keys and arguments, then the
// aggregate.
// windowRole is the window bound that a key is, nil if it is none.
func (g *grouping) windowRole(e expr.Expr) *WindowColumn {
	ref, ok := e.(*expr.Column)
	if !ok {
		return nil
	}
	c, ok := ColumnByID(g.input.Columns(), ref.Index)
	if !ok {
		return nil
	}
	return c.Window
}

// replace puts key columns in the place of key expressions.
func (g *grouping) replace(e expr.Expr) expr.Expr {
	sub := func(n expr.Expr) expr.Expr {
		key := Key(n)
		for i := range g.keys {
			if g.keys[i].text == key {
				return castBack(g.keys[i].col.Ref(), n.Type())
			}
		}
		return n
	}
	if r := sub(e); r != e {
		return r
	}
	return expr.Rewrite(e, sub)
}

// castBack keeps the nullability that a tree was typed with.
func castBack(c *expr.Column, t rt.Type) expr.Expr {
	c.T = c.T.WithNullable(c.T.Nullable || t.Nullable)
	return c
}

// overGroups puts keys into what a sub-query compares with; it must be grouped.
func (g *grouping) overGroups(e expr.Expr) expr.Expr {
	if !g.checkGrouped(e) {
		return nil
	}
	return g.replace(e)
}

// isOuter reports a column of the query around a sub-query.
func (g *grouping) isOuter(id int) bool {
	for _, c := range g.sel.plainScope.outer.outerColumns() {
		if c.ID == id {
			return true
		}
	}
	return false
}

// checkGrouped reports columns that are neither keys nor aggregated.
func (g *grouping) checkGrouped(e expr.Expr) bool {
	for i := range g.keys {
		if g.keys[i].text == Key(e) {
			return true
		}
	}
	if c, ok := e.(*expr.Column); ok {
		if g.subs.ids[c.Index] || g.isOuter(c.Index) {
			return true
		}
		if g.sets != nil && g.sets.id.ID == c.Index {
			return true
		}
		for _, o := range g.sel.overs {
			if o.col.ID == c.Index {
				return true
			}
		}
		for _, call := range g.calls {
			if call.col.ID == c.Index {
				return true
			}
		}
		g.sel.b.errorf(diag.CodeNotGrouped, g.spans[c], "column %q is neither in GROUP BY nor inside an aggregate", c.Name).
			WithHelp("add it to GROUP BY, or write e.g. MAX(%s) or LAST_VALUE(%s)", c.Name, c.Name)
		return false
	}
	ok := true
	for _, child := range expr.Children(e) {
		ok = g.checkGrouped(child) && ok
	}
	return ok
}
