package plan

import (
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// seesLeft reports what stands on the right of a join and is made of each row on its
// left: UNNEST, and LATERAL with a program's own table function.
func (b *Binder) seesLeft(t syntax.TableExpr) bool {
	switch t := t.(type) {
	case *syntax.Unnest:
		return true
	case *syntax.TableFunc:
		return t.Lateral && b.userTable(t) != nil
	}
	return false
}

// joinRows binds a join with what seesLeft names.
func (b *Binder) joinRows(j *syntax.Join, sc *scope) Node {
	first, merged := len(sc.rels), len(sc.merged)
	left := b.from(j.Left, sc)
	what := "UNNEST"
	if t, ok := j.Right.(*syntax.TableFunc); ok {
		what = strings.ToUpper(t.Call.Name.String())
	}
	if !b.joinsRows(j, what) || left == nil {
		return nil
	}
	// Other tables of FROM are not below this join.
	below := sc.part(first, len(sc.rels), merged, len(sc.merged))
	outer := j.Kind == syntax.LeftJoin
	var n Node
	switch t := j.Right.(type) {
	case *syntax.Unnest:
		n = b.unnest(left, t, outer, below, sc)
	case *syntax.TableFunc:
		n = b.lateral(left, t, b.userTable(t), outer, below, sc)
	}
	if n == nil || alwaysTrue(j.On) {
		return n
	}
	cond := b.predicate(j.On, sc.part(first, len(sc.rels), merged, len(sc.merged)), "ON")
	if cond == nil {
		return nil
	}
	if u := n.(*Unnest); outer {
		u.Condition = cond
		return u
	}
	return &Filter{Input: n, Predicate: cond}
}

// joinsRows checks the kind of such a join.
func (b *Binder) joinsRows(j *syntax.Join, what string) bool {
	switch {
	case j.Natural || len(j.Using) > 0:
		b.notYet(j.Op.Span(), "NATURAL or USING with "+what)
	case j.Kind == syntax.RightJoin || j.Kind == syntax.FullJoin:
		b.errorf(diag.CodeBadArgument, j.Op.Span(), "%s with %s has no meaning: its rows are made of each row on the left", joinName(j), what).
			WithHelp("CROSS JOIN, and JOIN and LEFT JOIN ... ON, do")
	default:
		return true
	}
	return false
}

// alwaysTrue reports no condition, and the literal TRUE.
func alwaysTrue(on syntax.Expr) bool {
	lit, ok := on.(*syntax.BoolLit)
	return on == nil || ok && lit.Value
}

func (b *Binder) unnest(left Node, u *syntax.Unnest, outer bool, sees, sc *scope) Node {
	if len(u.Args) != 1 {
		b.notYet(u.Span(), "UNNEST of several arrays")
		return nil
	}
	v := b.scalar(u.Args[0], sees, "UNNEST")
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
	return b.rowsOf(&Unnest{Input: left, Value: v, Outer: outer, Ordinality: u.Ordinality}, elems, u.Alias, "UNNEST", sc)
}

// rowsOf completes an Unnest that gives elems, and adds its relation to sc.
func (b *Binder) rowsOf(n *Unnest, elems []rt.Field, alias *syntax.Alias, what string, sc *scope) Node {
	var rel relation
	if alias != nil {
		rel.name = alias.Name.Name
	}
	if alias != nil && len(alias.Columns) > 0 {
		if len(alias.Columns) != len(elems) {
			b.errorf(diag.CodeColumnCount, alias.Span(), "the list names %d columns, %s gives %d", len(alias.Columns), what, len(elems))
			return nil
		}
		for i, c := range alias.Columns {
			elems[i].Name = c.Name
		}
	}
	n.Cols = append(n.Cols, n.Input.Columns()...)
	det := expr.DeterminismOf(n.Value)
	for _, f := range elems {
		c := Column{ID: b.id(), Name: f.Name, Type: f.Type, Determinism: det}
		if n.Outer {
			c.Type = c.Type.WithNullable(true)
		}
		rel.cols = append(rel.cols, c)
	}
	n.Cols = append(n.Cols, rel.cols...)
	sc.rels = append(sc.rels, rel)
	return n
}
