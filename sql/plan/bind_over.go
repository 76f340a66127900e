package plan

import (
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// overCall is a call with OVER, being bound. Its expressions are over the SELECT's
// input, or with grouping over placeholders as those of the items are.
type overCall struct {
	keys   []expr.Expr
	order  []overOrder
	args   []expr.Expr
	filter expr.Expr
	def    expr.Expr
	call   OverCall
	col    Column
	span   diag.Span
	over   diag.Span
}

type overOrder struct {
	e               expr.Expr
	desc, nullsLast bool
}

// rankFuncs are the functions that need OVER.
var rankFuncs = map[string]graph.OverFunc{"ROW_NUMBER": graph.OverAggregate, "RANK": graph.OverRank, "DENSE_RANK": graph.OverDenseRank,
	"PERCENT_RANK": graph.OverPercentRank, "CUME_DIST": graph.OverCumeDist, "NTILE": graph.OverNtile, "LAG": graph.OverLag, "LEAD": graph.OverLead}

// wholeFrame and runningFrame are what aggregates take without a frame.
var (
	wholeFrame   = graph.Frame{Rows: true, Start: graph.FrameBound{Kind: graph.UnboundedPreceding}, End: graph.FrameBound{Kind: graph.UnboundedFollowing}}
	runningFrame = graph.Frame{Start: graph.FrameBound{Kind: graph.UnboundedPreceding}, End: graph.FrameBound{Kind: graph.CurrentRow}}
)

// overExpr binds f(args) OVER (...) to a placeholder.
func (eb *exprBinder) overExpr(c *syntax.Call) expr.Expr {
	b := eb.b
	if eb.over == nil || eb.clause == "OVER" {
		b.errorf(diag.CodeMisplacedAggregate, c.Over.Span(), "OVER cannot stand in %s", eb.clause).
			WithHelp("select it in a sub-query: SELECT ... FROM (SELECT *, %s(...) OVER (...) AS x FROM t) WHERE x ...", c.Name)
		return nil
	}
	spec := eb.over.windowSpec(c.Over)
	if spec == nil {
		return nil
	}
	o := &overCall{span: c.Span(), over: c.Over.Span()}
	inner := &exprBinder{b: b, sc: eb.sc, clause: "OVER", group: eb.group, spans: eb.spans, over: eb.over}
	ok := true
	for _, k := range spec.PartitionBy {
		e := inner.bind(k)
		ok = ok && e != nil
		o.keys = append(o.keys, e)
	}
	for _, it := range spec.OrderBy {
		e := inner.bind(it.Expr)
		if e == nil {
			ok = false
			continue
		}
		if e.Type().IsNested() {
			b.errorf(diag.CodeTypeMismatch, it.Expr.Span(), "ORDER BY cannot sort %s", e.Type().WithNullable(true))
			ok = false
		}
		last := it.Nulls == syntax.NullsLast || it.Nulls == syntax.NullsDefault && it.Desc
		o.order = append(o.order, overOrder{e, it.Desc, last})
	}
	if !ok || !eb.overFunc(o, inner, c, spec) {
		return nil
	}
	o.col.ID, o.col.Name = b.id(), o.call.Text
	eb.over.overs = append(eb.over.overs, o)
	ref := o.col.Ref()
	if eb.spans != nil {
		eb.spans[ref] = c.Span()
	}
	return ref
}

// windowSpec is what OVER holds; a name is one of the WINDOW clause.
func (sel *selection) windowSpec(w *syntax.WindowSpec) *syntax.WindowSpec {
	if w.Ref == nil {
		return w
	}
	var names []string
	for _, n := range sel.ast.Windows {
		names = append(names, n.Name.Name)
		if n.Name.Name != w.Ref.Name {
			continue
		}
		if n.Spec.Ref != nil {
			sel.b.notYet(n.Spec.Ref.Span(), "a window of WINDOW that refers to another one")
			return nil
		}
		out := *n.Spec
		if len(w.OrderBy) > 0 {
			out.OrderBy = w.OrderBy
		}
		if w.Frame != nil {
			out.Frame = w.Frame
		}
		return &out
	}
	sel.b.errorf(diag.CodeBadWindow, w.Ref.Span(), "there is no window %q in WINDOW", w.Ref.Name).WithNearest(w.Ref.Name, names)
	return nil
}

// overFunc binds the function, its arguments and its frame.
func (eb *exprBinder) overFunc(o *overCall, inner *exprBinder, c *syntax.Call, spec *syntax.WindowSpec) bool {
	b := eb.b
	name := strings.ToUpper(c.Name.String())
	o.call.Default, o.call.Filter = -1, -1
	f, ranks := rankFuncs[name]
	if !ranks {
		agg, is := b.Functions.Aggregate(name)
		if !is {
			b.errorf(diag.CodeBadArgument, c.Over.Span(), "%s is no aggregate; OVER belongs to aggregates and to ROW_NUMBER, RANK, LAG and the like", c.Name)
			return false
		}
		plain := *c
		plain.Over = nil
		ac := inner.aggregateCall(agg, &plain, nil)
		if ac == nil {
			return false
		}
		o.call.Bound, o.args, o.filter, o.col = ac.call.Bound, ac.call.Args, ac.call.Filter, ac.col
		o.call.Frame = wholeFrame
		if len(o.order) > 0 {
			o.call.Frame = runningFrame
		}
		if spec.Frame != nil && !b.frame(o, spec.Frame) {
			return false
		}
		o.call.Text = ac.call.Text + " OVER (" + frameText(o.call.Frame) + ")"
		return true
	}
	o.call.Func = f
	switch {
	case len(o.order) == 0:
		b.errorf(diag.CodeBadArgument, c.Over.Span(), "%s needs an ORDER BY: without it the result would be left to chance", name)
		return false
	case spec.Frame != nil:
		b.errorf(diag.CodeBadArgument, spec.Frame.Span(), "%s takes no frame: it goes by all rows of the partition", name)
		return false
	case c.Star || c.Distinct || c.Filter != nil:
		b.errorf(diag.CodeBadArgument, c.Span(), "%s takes no DISTINCT, FILTER or *", name)
		return false
	}
	o.call.Text = name
	return eb.rankFunc(name, o, inner, c)
}

func (eb *exprBinder) rankFunc(name string, o *overCall, inner *exprBinder, c *syntax.Call) bool {
	b := eb.b
	least, most := 0, 0
	switch o.call.Func {
	case graph.OverNtile:
		least, most = 1, 1
	case graph.OverLag, graph.OverLead:
		least, most = 1, 3
	}
	if len(c.Args) < least || len(c.Args) > most {
		b.errorf(diag.CodeBadArgument, c.Span(), "%s takes %d to %d arguments", name, least, most)
		return false
	}
	switch o.call.Func {
	case graph.OverAggregate: // ROW_NUMBER is COUNT(*)
		count, _ := b.Functions.Aggregate("COUNT")
		bound, err := count.Bind(nil, fn.AggOptions{})
		if err != nil {
			b.errorf(diag.CodeBadArgument, c.Span(), "%s", err)
			return false
		}
		o.call.Bound, o.call.RowNumber, o.call.Frame = bound, true, runningFrame
		o.call.Frame.Rows = true
		o.col.Type = bound.Return
	case graph.OverRank, graph.OverDenseRank:
		o.col.Type = rt.NewBigInt().NotNull()
	case graph.OverPercentRank, graph.OverCumeDist:
		o.col.Type = rt.NewDouble().NotNull()
	case graph.OverNtile:
		o.col.Type = rt.NewInt().NotNull()
		return b.overCount(o, name, c.Args[0], 1)
	default:
		return eb.lag(name, o, inner, c)
	}
	return true
}

// overCount is a constant number of rows.
func (b *Binder) overCount(o *overCall, name string, e syntax.Expr, least int64) bool {
	n, ok := b.count(e, name, 0)
	if ok && n < least {
		b.errorf(diag.CodeBadArgument, e.Span(), "%s takes a number from %d", name, least)
		return false
	}
	o.call.Offset = n
	return ok
}

// lag binds LAG and LEAD(value [, offset [, default]]).
func (eb *exprBinder) lag(name string, o *overCall, inner *exprBinder, c *syntax.Call) bool {
	b := eb.b
	value := inner.bind(c.Args[0])
	if value == nil {
		return false
	}
	if value.Type().Kind == rt.Null {
		b.errorf(diag.CodeUntypedNull, c.Args[0].Span(), "NULL has no type here").WithHelp("write CAST(NULL AS <type>)")
		return false
	}
	o.call.Offset = 1
	if len(c.Args) > 1 && !b.overCount(o, name, c.Args[1], 0) {
		return false
	}
	o.col.Type = value.Type().WithNullable(true)
	if len(c.Args) > 2 {
		def := inner.bind(c.Args[2])
		if def == nil {
			return false
		}
		t, ok := rt.Common(value.Type(), def.Type())
		if !ok {
			b.errorf(diag.CodeTypeMismatch, c.Args[2].Span(), "the default is %s, the value %s", def.Type().WithNullable(true), value.Type().WithNullable(true))
			return false
		}
		o.col.Type = t.WithNullable(value.Type().Nullable || def.Type().Nullable)
		value, o.def = castTo(value, o.col.Type.WithNullable(value.Type().Nullable)), castTo(def, o.col.Type.WithNullable(def.Type().Nullable))
	}
	o.args = []expr.Expr{value}
	o.call.Text = callText(name, fn.AggOptions{}, false, []string{value.String()}, nil)
	for _, e := range []expr.Expr{value, o.def} {
		if e != nil {
			o.col.Determinism = max(o.col.Determinism, expr.DeterminismOf(e))
		}
	}
	return true
}

// asItIs replaces nothing.
func asItIs(e expr.Expr) expr.Expr { return e }

// applyOver puts the calls with OVER on the SELECT's input, one node for each
// partition and order.
func (sel *selection) applyOver(replace func(expr.Expr) expr.Expr) {
	for len(sel.overs) > 0 {
		first := sel.overs[0]
		var same, rest []*overCall
		for _, o := range sel.overs {
			if o.windowKey() == first.windowKey() {
				same = append(same, o)
			} else {
				rest = append(rest, o)
			}
		}
		sel.overs = rest
		sel.input = sel.overNode(same, replace)
	}
}

func (o *overCall) windowKey() string {
	s := Key(expr.NewRow(nil, append([]expr.Expr{expr.Bool(true)}, o.keys...)...))
	for _, k := range o.order {
		s += Key(k.e) + "|"
		if k.desc {
			s += "desc"
		}
		if k.nullsLast {
			s += "last"
		}
	}
	return s
}

func (sel *selection) overNode(calls []*overCall, replace func(expr.Expr) expr.Expr) Node {
	b := sel.b
	in := sel.input.Columns()
	pre := &Project{Input: sel.input}
	for i := range in {
		pre.Exprs, pre.Cols = append(pre.Exprs, in[i].Ref()), append(pre.Cols, in[i])
	}
	add := func(e expr.Expr) int {
		e = replace(e)
		key := Key(e)
		for i, old := range pre.Exprs {
			if Key(old) == key {
				return pre.Cols[i].ID
			}
		}
		c := derive(b.id, e.String(), e, in)
		pre.Exprs, pre.Cols = append(pre.Exprs, e), append(pre.Cols, c)
		return c.ID
	}
	first := calls[0]
	n := &Over{Time: -1, TTL: b.StateTTL, Path: b.path("over"), Span: first.over}
	for _, k := range first.keys {
		n.Keys = append(n.Keys, add(k))
	}
	for _, k := range first.order {
		n.Order = append(n.Order, SortKey{ID: add(k.e), Desc: k.desc, NullsLast: k.nullsLast})
	}
	var cols []Column
	for _, o := range calls {
		call := o.call
		for _, a := range o.args {
			call.Args = append(call.Args, add(a))
		}
		if o.filter != nil {
			call.Filter = add(o.filter)
		}
		if o.def != nil {
			call.Default = add(o.def)
		}
		n.Calls, cols = append(n.Calls, call), append(cols, o.col)
	}
	n.Input = Node(pre)
	if len(pre.Cols) == len(in) {
		n.Input = sel.input
	}
	n.Cols = append(append(n.Cols, pre.Cols...), cols...)
	if !b.Batch {
		n.overStream(pre.Cols)
	}
	return n
}

// checkOver is checkGrouped for what a function with OVER reads.
func (g *grouping) checkOver(o *overCall) bool {
	all := append(append([]expr.Expr(nil), o.keys...), o.args...)
	for _, k := range o.order {
		all = append(all, k.e)
	}
	for _, e := range []expr.Expr{o.filter, o.def} {
		if e != nil {
			all = append(all, e)
		}
	}
	ok := true
	for _, e := range all {
		ok = g.checkGrouped(e) && ok
	}
	return ok
}
