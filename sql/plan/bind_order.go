package plan

import (
	"strconv"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// ordering is what ORDER BY of a query is for.
type ordering uint8

const (
	// orderRows: the rows come in order.
	orderRows ordering = iota
	// orderFirst: LIMIT takes the first ones: Top-N, in a stream.
	orderFirst
	// orderNothing: the rows of a sub-query have no order.
	orderNothing
)

func orderingOf(q *syntax.Query, top bool) ordering {
	switch {
	case q.Limit != nil:
		return orderFirst
	case !top && q.Offset == nil:
		return orderNothing
	}
	return orderRows
}

// orderBy sorts the output. Items are output names, ordinals, or expressions
// over the SELECT's input.
func (sel *selection) orderBy(order []*syntax.OrderItem) *Output {
	if len(order) == 0 {
		return sel.out
	}
	b, out := sel.b, sel.out
	visible := out.Columns()
	var hidden []item
	sort := &Sort{Limit: -1}
	ok := true
	for _, o := range order {
		id, found := sel.sortColumn(o, visible, &hidden)
		ok = ok && found
		// Flink: NULL is the smallest value.
		last := o.Nulls == syntax.NullsLast || o.Nulls == syntax.NullsDefault && o.Desc
		sort.Keys = append(sort.Keys, SortKey{ID: id, Desc: o.Desc, NullsLast: last})
	}
	if !ok {
		return nil
	}
	if b.streaming() && b.ordering == orderNothing {
		b.Diags.Add(diag.Infof(diag.CodeNoEffect, order[0].Span(), "ORDER BY without LIMIT orders nothing in a sub-query").
			WithHelp("a table has no order; write ORDER BY in the query above"))
		return sel.out
	}
	sort.Input = out.Node
	if len(hidden) > 0 {
		sort.Input = sel.withHidden(out, hidden)
	}
	if b.streaming() && b.ordering == orderRows && !b.byTime(sort, order[0]) {
		return nil
	}
	return &Output{Node: keepOrder(sort, visible), Spans: out.Spans, Named: out.Named}
}

// withHidden is the output's projection with more columns to sort by.
func (sel *selection) withHidden(out *Output, hidden []item) Node {
	p := &Project{Input: sel.input}
	have := map[int]bool{}
	if top, ok := out.Node.(*Project); ok && top.Input == sel.input {
		p.Exprs = append(p.Exprs, top.Exprs...)
		p.Cols = append(p.Cols, top.Cols...)
	} else {
		for _, c := range out.Columns() {
			p.Exprs = append(p.Exprs, c.Ref())
			p.Cols = append(p.Cols, c)
		}
	}
	for _, c := range p.Cols {
		have[c.ID] = true
	}
	for _, h := range hidden {
		ref, ok := h.e.(*expr.Column)
		if ok && have[ref.Index] {
			continue
		}
		c, isCol := (*Column)(nil), false
		if ok {
			c, isCol = ColumnByID(sel.input.Columns(), ref.Index)
		}
		if isCol {
			p.Exprs, p.Cols = append(p.Exprs, h.e), append(p.Cols, *c)
		}
	}
	return p
}

func (sel *selection) sortColumn(o *syntax.OrderItem, visible []Column, hidden *[]item) (int, bool) {
	b := sel.b
	if n, ok := o.Expr.(*syntax.NumberLit); ok && n.Kind == syntax.IntegerNumber {
		i, err := strconv.Atoi(n.Text)
		if err != nil || i < 1 || i > len(visible) {
			b.errorf(diag.CodeBadArgument, o.Expr.Span(), "ORDER BY %s: there are %d columns", n.Text, len(visible))
			return 0, false
		}
		return sel.sortable(visible[i-1].ID, visible[i-1].Type, o)
	}
	if ref, ok := o.Expr.(*syntax.ColumnRef); ok && len(ref.Parts) == 1 {
		for i := range visible {
			if visible[i].Name == ref.Parts[0].Name {
				return sel.sortable(visible[i].ID, visible[i].Type, o)
			}
		}
	}
	var e expr.Expr
	if sel.group != nil {
		if e = sel.orderExprs[o]; e != nil {
			e = sel.group.replace(e)
		}
	} else {
		e = b.scalar(o.Expr, sel.plainScope, "ORDER BY")
	}
	if e == nil {
		return 0, false
	}
	if ref, ok := e.(*expr.Column); ok {
		*hidden = append(*hidden, item{e: e})
		return sel.sortable(ref.Index, e.Type(), o)
	}
	// An expression becomes a column of the node below.
	p := &Project{Input: sel.input}
	for _, c := range sel.input.Columns() {
		p.Exprs = append(p.Exprs, c.Ref())
		p.Cols = append(p.Cols, c)
	}
	c := derive(b.id, "", e, sel.input.Columns())
	p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, c)
	if top, ok := sel.out.Node.(*Project); ok && top.Input == sel.input {
		sel.out.Node = top.With(p)
	} else if sel.out.Node == sel.input {
		sel.out.Node = keepOrder(p, visible)
	}
	sel.input = p
	*hidden = append(*hidden, item{e: c.Ref()})
	return sel.sortable(c.ID, c.Type, o)
}

func (sel *selection) sortable(id int, t rt.Type, o *syntax.OrderItem) (int, bool) {
	if t.IsNested() {
		sel.b.errorf(diag.CodeTypeMismatch, o.Expr.Span(), "ORDER BY cannot sort %s", t.WithNullable(true))
		return 0, false
	}
	return id, true
}

// byTime makes an ORDER BY that begins with row time, ascending, one of a stream.
func (b *Binder) byTime(n *Sort, first *syntax.OrderItem) bool {
	// A CAST to its own type is an expression all the same.
	_, ordinal := first.Expr.(*syntax.NumberLit)
	if n.Keys[0].Desc || !ordinal && !isReference(first.Expr) || !inTimeOrder(n.Input, n.Keys[0].ID) {
		b.errorf(diag.CodeBoundedOnly, first.Span(), "ORDER BY needs its whole input, which a streaming job never has, unless it begins with row time, ascending").
			WithHelp("SET 'execution.runtime-mode' = 'batch' if the input ends").
			WithHelp("ORDER BY ... LIMIT n, together, give the first rows of a stream, as they change")
		return false
	}
	n.ByTime, n.Path, n.Span = true, b.path("sort"), first.Span()
	return true
}

// inTimeOrder reports a column of row time, also one that a window has divided: window_time
// is the row time then, but watermarks say as much about the rows' own.
func inTimeOrder(n Node, id int) bool {
	if c, ok := ColumnByID(n.Columns(), id); !ok || c.RowTime {
		return ok
	}
	switch x := n.(type) {
	case *Project:
		for i := range x.Cols {
			if ref, bare := x.Exprs[i].(*expr.Column); x.Cols[i].ID == id && bare && ref.Index == id {
				return inTimeOrder(x.Input, id)
			}
		}
	case *Filter:
		return inTimeOrder(x.Input, id)
	case *Unnest:
		return inTimeOrder(x.Input, id)
	case *WindowTable:
		// Rows of a session come when it is over.
		return x.Window.Kind != SessionWindow && (x.Time == id && x.Window.RowTime || inTimeOrder(x.Input, id))
	}
	return false
}
