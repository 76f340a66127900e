package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
	"github.com/millrace/millrace/sql/syntax"
)

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
