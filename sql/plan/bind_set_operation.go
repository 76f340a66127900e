package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
)

// setOp binds UNION; a chain of UNION ALL becomes one node.
func (b *Binder) setOp(s *syntax.SetOp, ctes []*cte) *Output {
	if s.Kind != syntax.Union {
		return b.setOperation(s, ctes)
	}
	var branches []syntax.QueryExpr
	flatten(s, &branches)
	outs := make([]*Output, len(branches))
	ok := true
	for i, e := range branches {
		if op := setOpOf(e); op == nil || op.Kind == syntax.Union {
			outs[i] = b.queryExpr(e, ctes)
		} else {
			outs[i] = b.setBranch(e, "branch"+strconv.Itoa(i+1), ctes)
		}
		ok = ok && outs[i] != nil
	}
	if !ok {
		return nil
	}
	out := b.unionAll(outs, branches, "UNION")
	if out == nil || s.All {
		return out
	}
	return b.distinct(out, s.Span())
}

func flatten(e syntax.QueryExpr, out *[]syntax.QueryExpr) {
	if s, ok := e.(*syntax.SetOp); ok && s.Kind == syntax.Union {
		if l, ok := s.Left.(*syntax.SetOp); ok && l.Kind == syntax.Union && l.All == s.All {
			flatten(l, out)
		} else {
			*out = append(*out, s.Left)
		}
		*out = append(*out, s.Right)
		return
	}
	*out = append(*out, e)
}

// setBranch binds a branch. One that is a set operation itself takes the names of its
// states from its place: no hint in a SELECT can name them.
func (b *Binder) setBranch(e syntax.QueryExpr, place string, ctes []*cte) (out *Output) {
	if setOpOf(e) == nil {
		return b.queryExpr(e, ctes)
	}
	b.within(place, func() { out = b.queryExpr(e, ctes) })
	return out
}

// setOpOf is the set operation that a branch is, in parentheses or not, or nil.
func setOpOf(e syntax.QueryExpr) *syntax.SetOp {
	switch e := e.(type) {
	case *syntax.SetOp:
		return e
	case *syntax.Query:
		return setOpOf(e.Body)
	}
	return nil
}

// setOperation binds INTERSECT and EXCEPT.
func (b *Binder) setOperation(s *syntax.SetOp, ctes []*cte) *Output {
	branches := []syntax.QueryExpr{s.Left, s.Right}
	outs := []*Output{b.setBranch(s.Left, "left", ctes), b.setBranch(s.Right, "right", ctes)}
	word, kind := "INTERSECT", graph.Intersect
	if s.Kind == syntax.Except {
		word, kind = "EXCEPT", graph.Except
	}
	if outs[0] == nil || outs[1] == nil {
		return nil
	}
	out := b.unionAll(outs, branches, word)
	if out == nil || !b.noUntyped(out) {
		return nil
	}
	u := out.Node.(*Union)
	if b.streaming() && !s.All {
		return b.changingSet(out, kind, b.path(strings.ToLower(word)), s.Span())
	}
	n := &SetOperation{Left: u.In[0], Right: u.In[1], Kind: kind, All: s.All, Changes: b.streaming(), TTL: b.StateTTL, Cols: u.Cols, Path: b.path(strings.ToLower(word)), Span: s.Span()}
	for i := range n.Cols {
		n.Cols[i].forgetTime()
	}
	return &Output{Node: n, Spans: out.Spans, Named: out.Named}
}

// unionAll brings branches to common types; word is the operation's.
func (b *Binder) unionAll(outs []*Output, branches []syntax.QueryExpr, word string) *Output {
	first := outs[0]
	width := len(first.Columns())
	for i, o := range outs[1:] {
		if len(o.Columns()) != width {
			b.errorf(diag.CodeColumnCount, branches[i+1].Span(), "this branch of %s has %d columns, the first one %d", word, len(o.Columns()), width)
			return nil
		}
	}
	target := make([]rt.Type, width)
	ok := true
	for i := range target {
		ts := make([]rt.Type, len(outs))
		nullable := false
		for j, o := range outs {
			ts[j] = o.Columns()[i].Type
			nullable = nullable || ts[j].Nullable
		}
		t, bad, fits := commonType(ts)
		if !fits {
			b.errorf(diag.CodeTypeMismatch, outs[bad].Spans[i], "column %d (%q) is %s in this branch of %s and %s above", i+1,
				first.Columns()[i].Name, ts[bad].WithNullable(true), word, ts[bad-1].WithNullable(true)).
				WithHelp("CAST one of them")
			ok = false
			continue
		}
		target[i] = t
		if t.Kind != rt.Null {
			target[i] = t.WithNullable(nullable)
		}
	}
	if !ok {
		return nil
	}
	u := &Union{}
	for _, o := range outs {
		u.In = append(u.In, b.coerce(o, target).Node)
	}
	for i, c := range first.Columns() {
		col := Column{ID: b.id(), Name: c.Name, Type: target[i], RowTime: true, ProcTime: true, WindowOnly: true}
		for _, in := range u.In {
			ic := in.Columns()[i]
			col.RowTime, col.ProcTime = col.RowTime && ic.RowTime, col.ProcTime && ic.ProcTime
			col.Lookup = col.Lookup || ic.Lookup
			col.WindowOnly = col.WindowOnly && ic.WindowOnly
			col.Determinism = max(col.Determinism, ic.Determinism)
		}
		u.Cols = append(u.Cols, col)
	}
	return &Output{Node: u, Spans: first.Spans, Named: first.Named}
}

// coerce casts an output to types that are known to take it; nullability is
// not changed.
func (b *Binder) coerce(out *Output, target []rt.Type) *Output {
	cols := out.Columns()
	same := true
	for i := range cols {
		same = same && cols[i].Type.EqualIgnoringNull(target[i])
	}
	if same {
		return out
	}
	p := &Project{Input: out.Node}
	if below, ok := out.Node.(*Project); ok {
		// Cast in place, so that literals stay literals.
		p.Input = below.Input
		p.Exprs = append(p.Exprs, below.Exprs...)
	} else {
		for i := range cols {
			p.Exprs = append(p.Exprs, cols[i].Ref())
		}
	}
	for i := range cols {
		e := castTo(p.Exprs[i], target[i])
		if e == p.Exprs[i] {
			p.Cols = append(p.Cols, cols[i])
			continue
		}
		p.Exprs[i] = e
		c := derive(b.id, cols[i].Name, e, p.Input.Columns())
		c.Determinism = max(c.Determinism, cols[i].Determinism)
		p.Cols = append(p.Cols, c)
	}
	return &Output{Node: p, Spans: out.Spans, Named: out.Named}
}

// distinct removes double rows: GROUP BY all columns.
func (b *Binder) distinct(out *Output, at diag.Span) *Output {
	if !b.noUntyped(out) {
		return nil
	}
	for _, c := range out.Columns() {
		if c.Determinism != fn.Deterministic {
			b.errorf(diag.CodeNondeterministic, at, "column %q depends on the clock or on chance, and rows that are equal are to be found: a replay would find others", c.Name).
				WithHelp("find the distinct rows below, and compute it over them")
			return nil
		}
	}
	a := &Aggregate{Input: out.Node, Updates: !b.Batch, TTL: b.StateTTL, Time: -1, Path: b.path("distinct"), Span: at}
	cols := slices.Clone(out.Columns())
	for i := range cols {
		// Rows that are late pass, so that what is behind could not go by their time.
		cols[i].RowTime = cols[i].RowTime && b.Batch
		cols[i].Changing = NoTime
	}
	a.groupBy(cols)
	return &Output{Node: keepOrder(a, cols), Spans: out.Spans, Named: out.Named}
}

// groupBy makes keys of columns, each once.
func (n *Aggregate) groupBy(cols []Column) {
	seen := map[int]bool{}
	for _, c := range cols {
		if !seen[c.ID] {
			seen[c.ID] = true
			n.Keys, n.Cols = append(n.Keys, c.ID), append(n.Cols, c)
		}
	}
}

// changingSet is INTERSECT or EXCEPT in streaming mode: the rows of both sides with the
// side's number, grouped. A group is a row of the result while it has rows of both sides,
// or of the left one alone.
func (b *Binder) changingSet(out *Output, kind graph.SetKind, path string, at diag.Span) *Output {
	u := out.Node.(*Union)
	number := rt.NewInt().NotNull()
	both := &Union{Cols: slices.Clone(u.Cols)}
	for i, in := range u.In {
		p := &Project{Input: in}
		for _, c := range in.Columns() {
			p.Exprs, p.Cols = append(p.Exprs, c.Ref()), append(p.Cols, c)
		}
		side := expr.Int(number, int64(i))
		p.Exprs, p.Cols = append(p.Exprs, side), append(p.Cols, derive(b.id, "side", side, nil))
		both.In = append(both.In, p)
	}
	for i := range both.Cols {
		both.Cols[i].forgetTime()
	}
	side := Column{ID: b.id(), Name: "side", Type: number}
	a := &Aggregate{Input: both, Updates: true, TTL: b.StateTTL, Time: -1, Path: path, Span: at}
	a.groupBy(both.Cols)
	both.Cols = append(both.Cols, side)
	var bounds [2]expr.Expr
	for i, name := range []string{"MIN", "MAX"} {
		agg, _ := b.Functions.Aggregate(name)
		bound, err := agg.Bind(expr.ArgsOf(side.Ref()), fn.AggOptions{})
		if err != nil {
			panic("BUG: " + err.Error())
		}
		col := Column{ID: b.id(), Name: name + "(side)", Type: bound.Return}
		a.Aggs = append(a.Aggs, AggCall{Agg: agg, Bound: bound, Args: []expr.Expr{side.Ref()}, Text: col.Name})
		a.Cols = append(a.Cols, col)
		bounds[i] = col.Ref()
	}
	want := expr.NewAnd(b.equals(bounds[0], 0), b.equals(bounds[1], 1))
	if kind == graph.Except {
		want = b.equals(bounds[1], 0)
	}
	n := keepOrder(&Filter{Input: a, Predicate: want}, both.Cols[:len(both.Cols)-1])
	return &Output{Node: n, Spans: out.Spans, Named: out.Named}
}

func (b *Binder) equals(e expr.Expr, n int64) expr.Expr {
	out, err := function.Call(b.Functions, "=", e, expr.Int(rt.NewInt(), n))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return out
}
