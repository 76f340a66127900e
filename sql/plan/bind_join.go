package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
)

func (b *Binder) join(j *syntax.Join, sc *scope) Node {
	if u, ok := j.Right.(*syntax.Unnest); ok {
		return b.joinUnnest(j, u, sc)
	}
	if t, ok := j.Right.(*syntax.TableRef); ok && t.AsOf != nil {
		return b.joinAsOf(j, t, sc)
	}
	first, firstMerged := len(sc.rels), len(sc.merged)
	left := b.from(j.Left, sc)
	mid, midMerged := len(sc.rels), len(sc.merged)
	right := b.from(j.Right, sc)
	if left == nil || right == nil {
		return nil
	}
	local := func(from, to, m0, m1 int) *scope {
		return &scope{rels: sc.rels[from:to], merged: sc.merged[m0:m1], broken: sc.broken, ctes: sc.ctes, outer: sc.outer}
	}
	ls, rs := local(first, mid, firstMerged, midMerged), local(mid, len(sc.rels), midMerged, len(sc.merged))
	on, shared, ok := b.joinCondition(j, ls, rs, local(first, len(sc.rels), firstMerged, len(sc.merged)))
	if !ok {
		return nil
	}
	n := b.newJoin(joinKinds[j.Kind], left, right, Conjuncts(on), j.Op.Span())
	n.TTL = [2]int64{b.ttlOf(ls.rels), b.ttlOf(rs.rels)}
	if !b.joinAllowed(n, j) {
		sc.rels, sc.merged = sc.rels[:mid], sc.merged[:midMerged]
		return nil
	}
	for i := first; i < len(sc.rels); i++ {
		sc.rels[i].cols = retyped(sc.rels[i].cols, n.Cols)
	}
	for i := firstMerged; i < len(sc.merged); i++ {
		sc.merged[i].col = retyped([]Column{sc.merged[i].col}, n.Cols)[0]
	}
	if len(shared) == 0 {
		return n
	}
	return b.mergeColumns(n, n.Kind, shared, sc, firstMerged)
}

var joinKinds = map[syntax.JoinKind]graph.JoinKind{
	syntax.CrossJoin: graph.InnerJoin, syntax.InnerJoin: graph.InnerJoin, syntax.LeftJoin: graph.LeftJoin,
	syntax.RightJoin: graph.RightJoin, syntax.FullJoin: graph.FullJoin,
}

// retyped takes over what a join made of columns.
func retyped(cols, joined []Column) []Column {
	out := slices.Clone(cols)
	for i := range out {
		if c, ok := ColumnByID(joined, out[i].ID); ok {
			out[i].Type, out[i].RowTime, out[i].Window, out[i].WindowOnly = c.Type, c.RowTime, c.Window, c.WindowOnly
		}
	}
	return out
}

// joinAllowed says whether a join can run in the mode at hand.
func (b *Binder) joinAllowed(n *Join, j *syntax.Join) bool {
	if b.Batch || b.declaring || n.endless() {
		return true
	}
	if len(n.Keys) == 0 && n.Kind == graph.InnerJoin && n.Condition == nil {
		return true // a list of tables: WHERE decides
	}
	b.joinNotYet(j.Op.Span(), joinName(j))
	return false
}

// endless reports a join that needs no end of its inputs.
func (n *Join) endless() bool {
	return n.Streams() || n.Changes && (len(n.Keys) > 0 || n.Kind >= graph.SemiJoin || n.OneRow)
}

// joinNotYet says what joins there are in streaming mode.
func (b *Binder) joinNotYet(at diag.Span, what string) {
	b.notYet(at, what+" in streaming mode without an equality, a window or a time interval").
		WithHelp("a window join: L.window_start = R.window_start AND L.window_end = R.window_end, over equal windows of TUMBLE, HOP or CUMULATE").
		WithHelp("an interval join: R.ts BETWEEN L.ts - INTERVAL '5' MINUTE AND L.ts + INTERVAL '5' MINUTE, over row times").
		WithHelp("where the inputs end, SET 'execution.runtime-mode' = 'batch'").
		WithHelp("to merge streams by key, use CREATE WIDE TABLE or UNION ALL with GROUP BY")
}

// sharedColumn is a column of USING or NATURAL.
type sharedColumn struct {
	name        string
	left, right *Column
}

// joinCondition binds ON, USING or NATURAL.
func (b *Binder) joinCondition(j *syntax.Join, left, right, both *scope) (on expr.Expr, shared []sharedColumn, ok bool) {
	names := j.Using
	if j.Natural {
		for _, c := range left.visible() {
			if found, _ := right.find(c.Name); len(found) > 0 {
				names = append(names, &syntax.Ident{Loc: j.Op, Name: c.Name})
			}
		}
	}
	if len(names) > 0 {
		return b.usingCondition(names, left, right)
	}
	if j.On == nil {
		if j.Kind != syntax.CrossJoin && !j.Natural {
			b.errorf(diag.CodeBadArgument, j.Op.Span(), "%s needs ON or USING", joinName(j)).
				WithHelp("CROSS JOIN pairs every row with every row")
			return nil, nil, false
		}
		return nil, nil, true
	}
	on = b.predicate(j.On, both, "ON")
	if on == nil || !b.deterministicJoin(on, both, j.On.Span()) {
		return nil, nil, false
	}
	return on, nil, true
}

func (b *Binder) deterministicJoin(on expr.Expr, sc *scope, at diag.Span) bool {
	d := expr.DeterminismOf(on)
	for _, id := range expr.Columns(on) {
		if c, ok := ColumnByID(sc.columns(), id); ok {
			d = max(d, c.Determinism)
		}
	}
	if d == fn.Deterministic {
		return true
	}
	b.errorf(diag.CodeNondeterministic, at, "a join's condition must not depend on the clock or on chance: a replay would find other partners")
	return false
}

func (b *Binder) usingCondition(names []*syntax.Ident, left, right *scope) (on expr.Expr, shared []sharedColumn, ok bool) {
	ok = true
	var conds []expr.Expr
	for _, name := range names {
		ref := &syntax.ColumnRef{Loc: name.Loc, Parts: []*syntax.Ident{name}}
		l, _, lok := left.resolve(b, ref)
		r, _, rok := right.resolve(b, ref)
		if !lok || !rok {
			ok = false
			continue
		}
		e, err := function.Call(b.Functions, "=", l.Ref(), r.Ref())
		if err != nil {
			b.errorf(diag.CodeTypeMismatch, name.Span(), "column %q is %s on the left and %s on the right", name.Name,
				l.Type.WithNullable(true), r.Type.WithNullable(true))
			ok = false
			continue
		}
		conds = append(conds, e)
		shared = append(shared, sharedColumn{name.Name, l, r})
	}
	return conjunction(conds), shared, ok
}

// mergeColumns makes one column of each pair of USING: the one of the side whose
// rows are all there, or the first that is not NULL.
func (b *Binder) mergeColumns(n Node, kind graph.JoinKind, shared []sharedColumn, sc *scope, firstMerged int) Node {
	out, cols := n, n.Columns()
	p := &Project{Input: n}
	for i := range cols {
		p.Exprs, p.Cols = append(p.Exprs, cols[i].Ref()), append(p.Cols, cols[i])
	}
	var merged []mergedColumn
	for _, s := range shared {
		l, _ := ColumnByID(cols, s.left.ID)
		r, _ := ColumnByID(cols, s.right.ID)
		m := mergedColumn{name: s.name, hides: map[int]bool{l.ID: true, r.ID: true}}
		switch kind {
		case graph.RightJoin:
			m.col = *r
		case graph.FullJoin:
			e, err := function.Call(b.Functions, "COALESCE", l.Ref(), r.Ref())
			if err != nil {
				e = l.Ref() // the types are equal: USING compared them
			}
			m.col = derive(b.id, s.name, e, cols)
			p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, m.col)
			out = p
		default:
			m.col = *l
		}
		m.col.Name = s.name
		merged = append(merged, m)
	}
	// A column merged before and again now is hidden by the new one.
	for _, old := range sc.merged[firstMerged:] {
		hidden := false
		for i := range merged {
			if merged[i].hides[old.col.ID] {
				hidden = true
				for id := range old.hides {
					merged[i].hides[id] = true
				}
			}
		}
		if !hidden {
			merged = append(merged, old)
		}
	}
	sc.merged = append(sc.merged[:firstMerged:firstMerged], merged...)
	return out
}

// newJoin makes a join of conditions: equalities between the sides become keys.
func (b *Binder) newJoin(kind graph.JoinKind, left, right Node, conds []expr.Expr, at diag.Span) *Join {
	ls, rs := columnSet(left.Columns()), columnSet(right.Columns())
	var lk, rk, rest []expr.Expr
	var safe []bool
	for _, c := range conds {
		l, r, nullSafe, ok := equality(c)
		switch {
		case ok && within(l, ls) && within(r, rs):
		case ok && within(r, ls) && within(l, rs):
			l, r = r, l
		default:
			rest = append(rest, c)
			continue
		}
		lk, rk, safe = append(lk, l), append(rk, r), append(safe, nullSafe)
	}
	return b.keyedJoin(&Join{Kind: kind, Left: left, Right: right, Condition: conjunction(rest), Span: at}, lk, rk, safe)
}

// keyedJoin completes a join with keys, which are expressions of each side.
func (b *Binder) keyedJoin(n *Join, lk, rk []expr.Expr, safe []bool) *Join {
	var lids, rids []int
	n.Left, lids = b.withExprs(n.Left, lk)
	n.Right, rids = b.withExprs(n.Right, rk)
	for i := range lids {
		n.Keys = append(n.Keys, JoinKey{Left: lids[i], Right: rids[i], NullSafe: safe != nil && safe[i]})
	}
	n.Path = n.statePath(b.path("join"))
	if !b.Batch && n.Temporal == nil {
		n.findWindows()
		n.findInterval()
		n.Changes = !n.Streams() && n.Kind <= graph.MarkJoin
	}
	n.Cols = n.columnsOver(n.Left, n.Right)
	return n
}

// withExprs gives a node that has the expressions as columns, with their ids.
func (b *Binder) withExprs(n Node, es []expr.Expr) (Node, []int) {
	cols := n.Columns()
	p := &Project{Input: n}
	ids := make([]int, len(es))
	for i, e := range es {
		if c, ok := e.(*expr.Column); ok {
			if _, there := ColumnByID(cols, c.Index); there {
				ids[i] = c.Index
				continue
			}
		}
		c := derive(b.id, e.String(), e, cols)
		p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, c)
		ids[i] = c.ID
	}
	if len(p.Cols) == 0 {
		return n, ids
	}
	var exprs []expr.Expr
	for i := range cols {
		exprs = append(exprs, cols[i].Ref())
	}
	p.Exprs, p.Cols = append(exprs, p.Exprs...), append(slices.Clone(cols), p.Cols...)
	return p, ids
}

// placeKeys makes keys of the equalities in WHERE that compare two sides of an
// inner join, and gives what is left. So a list of tables in FROM is the same as
// JOIN ... ON.
func (b *Binder) placeKeys(n Node, conds []expr.Expr) (Node, []expr.Expr) {
	var rest []expr.Expr
	for _, c := range conds {
		if l, r, safe, ok := equality(c); ok {
			if out := b.placeKey(n, l, r, safe); out != nil {
				n = out
				continue
			}
		}
		if !b.Batch {
			if out := placeBound(n, c); out != nil {
				n = out
				continue
			}
		}
		rest = append(rest, c)
	}
	return n, rest
}

// placeBound gives the node with a condition on the distance of two row times in
// the inner join of them, nil if it is none.
func placeBound(n Node, c expr.Expr) Node {
	switch n := n.(type) {
	case *Project:
		for _, id := range expr.Columns(c) {
			if _, ok := ColumnByID(n.Input.Columns(), id); !ok {
				return nil
			}
		}
		if in := placeBound(n.Input, c); in != nil {
			return n.With(in)
		}
	case *Join:
		if n.Temporal != nil {
			// Versions are chosen from all of a key: a condition may go to the left alone.
			if in := placeBound(n.Left, c); in != nil {
				return n.With(in, n.Right)
			}
			return nil
		}
		if n.Kind != graph.InnerJoin {
			return nil
		}
		t := &JoinInterval{LeftTime: -1, RightTime: -1}
		t.bound(c, n)
		if t.LeftTime < 0 {
			if in := placeBound(n.Left, c); in != nil {
				return n.With(in, n.Right)
			}
			if in := placeBound(n.Right, c); in != nil {
				return n.With(n.Left, in)
			}
			return nil
		}
		out := *n
		out.Condition = conjunction(append(Conjuncts(n.Condition), c))
		out.findInterval()
		out.Changes = !out.Streams()
		out.Cols = out.columnsOver(out.Left, out.Right)
		return &out
	}
	return nil
}

// checkJoins reports joins of FROM that would never end.
func (b *Binder) checkJoins(n Node) bool {
	ok := true
	if b.Batch || b.declaring {
		return true
	}
	Walk(n, func(x Node) bool {
		if j, is := x.(*Join); is && !j.endless() && ok {
			ok = false
			b.joinNotYet(j.Span, "a join")
		}
		return ok
	})
	return ok
}

// placeKey gives the node with the key, nil if it has no place there.
func (b *Binder) placeKey(n Node, l, r expr.Expr, safe bool) Node {
	switch n := n.(type) {
	case *Project:
		// One that adds keys of a join passes everything else on.
		cols := columnSet(n.Input.Columns())
		if !within(l, cols) || !within(r, cols) {
			return nil
		}
		for _, id := range expr.Columns(l, r) {
			if _, ok := ColumnByID(n.Cols, id); !ok {
				return nil
			}
		}
		if in := b.placeKey(n.Input, l, r, safe); in != nil {
			return n.With(in)
		}
	case *Join:
		if n.Kind != graph.InnerJoin {
			return nil
		}
		ls, rs := columnSet(n.Left.Columns()), columnSet(n.Right.Columns())
		switch {
		case within(l, ls) && within(r, ls):
			if in := b.placeKey(n.Left, l, r, safe); in != nil {
				return n.With(in, n.Right)
			}
			return nil
		case n.Temporal != nil:
			return nil // it would choose among other versions
		case within(l, rs) && within(r, rs):
			if in := b.placeKey(n.Right, l, r, safe); in != nil {
				return n.With(n.Left, in)
			}
			return nil
		case within(r, ls) && within(l, rs):
			l, r = r, l
		case !within(l, ls) || !within(r, rs):
			return nil
		}
		c := *n
		c.Keys = slices.Clone(n.Keys)
		c.Cols, c.Windows, c.Interval, c.Changes = nil, nil, nil, false
		return b.keyedJoin(&c, []expr.Expr{l}, []expr.Expr{r}, []bool{safe})
	}
	return nil
}

// joinUnnest binds a join with UNNEST, which sees the columns to its left.
func (b *Binder) joinUnnest(j *syntax.Join, u *syntax.Unnest, sc *scope) Node {
	left := b.from(j.Left, sc)
	switch {
	case j.Natural || len(j.Using) > 0:
		b.notYet(j.Op.Span(), "NATURAL or USING with UNNEST")
		return nil
	case j.Kind == syntax.RightJoin || j.Kind == syntax.FullJoin:
		b.errorf(diag.CodeNotYet, j.Op.Span(), "%s with UNNEST is not supported yet", joinName(j)).
			WithHelp("CROSS JOIN UNNEST(...) and LEFT JOIN UNNEST(...) ON TRUE are")
		return nil
	case j.On != nil:
		if lit, ok := j.On.(*syntax.BoolLit); !ok || !lit.Value {
			b.notYet(j.On.Span(), "a condition other than TRUE with UNNEST").
				WithHelp("write ON TRUE and put the condition into WHERE")
			return nil
		}
	case j.Kind == syntax.LeftJoin:
		b.errorf(diag.CodeBadArgument, j.Op.Span(), "LEFT JOIN UNNEST(...) needs ON TRUE")
		return nil
	}
	if left == nil {
		return nil
	}
	return b.unnest(left, u, j.Kind == syntax.LeftJoin, sc)
}

func joinName(j *syntax.Join) string {
	switch j.Kind {
	case syntax.InnerJoin:
		return "JOIN"
	case syntax.LeftJoin:
		return "LEFT JOIN"
	case syntax.RightJoin:
		return "RIGHT JOIN"
	case syntax.FullJoin:
		return "FULL JOIN"
	}
	if j.Comma {
		return "a list of tables in FROM"
	}
	return "CROSS JOIN"
}

func (b *Binder) unnest(left Node, u *syntax.Unnest, outer bool, sc *scope) Node {
	if len(u.Args) != 1 {
		b.notYet(u.Span(), "UNNEST of several arrays")
		return nil
	}
	v := b.scalar(u.Args[0], sc, "UNNEST")
	if v == nil {
		return nil
	}
	var elems []rt.Field
	t := v.Type()
	switch t.Kind {
	case rt.Array:
		if t.Elem.Kind == rt.Row {
			for _, f := range t.Elem.Fields {
				f.Type = f.Type.WithNullable(f.Type.Nullable || t.Elem.Nullable)
				elems = append(elems, f)
			}
		} else {
			name := "EXPR$0"
			if u.Alias != nil {
				name = u.Alias.Name.Name
			}
			elems = []rt.Field{{Name: name, Type: *t.Elem}}
		}
	case rt.Map:
		elems = []rt.Field{{Name: "key", Type: *t.Key}, {Name: "value", Type: *t.Elem}}
	default:
		b.errorf(diag.CodeTypeMismatch, u.Args[0].Span(), "UNNEST takes an ARRAY or a MAP, this is %s", t.WithNullable(true))
		return nil
	}
	if u.Ordinality {
		elems = append(elems, rt.Field{Name: "ORDINALITY", Type: rt.NewInt().NotNull()})
	}
	if u.Alias != nil && len(u.Alias.Columns) > 0 {
		if len(u.Alias.Columns) != len(elems) {
			b.errorf(diag.CodeColumnCount, u.Alias.Span(), "the list names %d columns, UNNEST gives %d", len(u.Alias.Columns), len(elems))
			return nil
		}
		for i, c := range u.Alias.Columns {
			elems[i].Name = c.Name
		}
	}
	n := &Unnest{Input: left, Value: v, Outer: outer, Ordinality: u.Ordinality}
	n.Cols = append(n.Cols, left.Columns()...)
	det := expr.DeterminismOf(v)
	var rel relation
	if u.Alias != nil {
		rel.name = u.Alias.Name.Name
	}
	for _, f := range elems {
		c := Column{ID: b.id(), Name: f.Name, Type: f.Type, Determinism: det}
		if outer {
			c.Type = c.Type.WithNullable(true)
		}
		rel.cols = append(rel.cols, c)
	}
	n.Cols = append(n.Cols, rel.cols...)
	sc.rels = append(sc.rels, rel)
	return n
}
