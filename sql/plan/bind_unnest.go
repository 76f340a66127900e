package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

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
