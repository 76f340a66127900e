package plan

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// groupingSets are the sets of keys of GROUPING SETS, ROLLUP and CUBE. Each row goes
// into a group of every set, told apart by the number of the set; keys that a set
// has not are NULL.
type groupingSets struct {
	sets [][]int // places in grouping.keys
	id   Column
}

// maxGroupingSets bounds what CUBE can ask for.
const maxGroupingSets = 256

// elementSets are the sets that an element of GROUP BY stands for.
func (g *grouping) elementSets(el syntax.GroupElement) (sets [][]int, ok bool) {
	x, several := el.(*syntax.GroupingSets)
	if !several {
		key, ok := g.keyPlaces(el.(*syntax.GroupExpr).Expr)
		return [][]int{key}, ok
	}
	ok = true
	var parts [][]int
	for _, row := range x.Sets {
		part := []int{}
		for _, e := range row.Items {
			places, good := g.keyPlaces(e)
			part, ok = append(part, places...), ok && good
		}
		parts = append(parts, part)
	}
	if !ok {
		return nil, false
	}
	switch x.Kind {
	case syntax.Rollup:
		for n := len(parts); n >= 0; n-- {
			sets = append(sets, slices.Concat(parts[:n]...))
		}
	case syntax.Cube:
		if len(parts) > 8 {
			g.sel.b.errorf(diag.CodeBadArgument, x.Span(), "CUBE of %d keys makes more than %d groups of each row", len(parts), maxGroupingSets)
			return nil, false
		}
		for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
			set := []int{}
			for i, p := range parts {
				if mask&(1<<(len(parts)-1-i)) != 0 {
					set = append(set, p...)
				}
			}
			sets = append(sets, set)
		}
	default:
		sets = parts
	}
	return sets, true
}

// keyPlaces binds a key and says where it stands among the keys.
func (g *grouping) keyPlaces(e syntax.Expr) ([]int, bool) {
	before := len(g.keys)
	if !g.bindKey(e) {
		return nil, false
	}
	if len(g.keys) > before {
		places := []int{}
		for i := before; i < len(g.keys); i++ {
			places = append(places, i)
		}
		return places, true
	}
	text := Key(g.sel.b.scalar(e, g.sel.plainScope, "GROUP BY"))
	for i := range g.keys {
		if g.keys[i].text == text {
			return []int{i}, true
		}
	}
	return nil, false
}

// bindSets binds a GROUP BY with GROUPING SETS, ROLLUP or CUBE: every combination of
// the sets of its elements.
func (g *grouping) bindSets(by *syntax.GroupBy) bool {
	b := g.sel.b
	all, ok := [][]int{{}}, true
	for _, el := range windowFirst(by.Elements) {
		sets, good := g.elementSets(el)
		if ok = ok && good; !ok {
			continue
		}
		var next [][]int
		for _, left := range all {
			for _, right := range sets {
				next = append(next, append(slices.Clone(left), right...))
			}
		}
		if all = next; len(all) > maxGroupingSets {
			b.errorf(diag.CodeBadArgument, el.Span(), "this makes more than %d groups of each row", maxGroupingSets)
			return false
		}
	}
	if !ok {
		return false
	}
	g.sets = &groupingSets{sets: all, id: Column{ID: b.id(), Name: "grouping_set", Type: rt.NewInt().NotNull()}}
	for i := range g.keys {
		if g.sets.everywhere(i) {
			continue
		}
		k := &g.keys[i]
		c, isCol := k.e.(*expr.Column)
		switch {
		case g.windowRole(k.e) != nil && !b.Batch:
			b.errorf(diag.CodeBadWindow, k.span, "window_start and window_end belong to every grouping set").
				WithHelp("GROUP BY window_start, window_end, GROUPING SETS ((a), ())")
			return false
		case !isCol:
			b.notYet(k.span, "an expression as a key of a grouping set").WithHelp("compute it in a sub-query")
			return false
		}
		g.nullableKey(c.Index)
	}
	return true
}

func (s *groupingSets) has(set, key int) bool { return slices.Contains(s.sets[set], key) }

func (s *groupingSets) everywhere(key int) bool {
	for i := range s.sets {
		if !s.has(i, key) {
			return false
		}
	}
	return true
}

// nullableKey lets a column be NULL for what is bound from now on: where its set has
// it not, it is.
func (g *grouping) nullableKey(id int) {
	rels := g.sel.plainScope.rels
	for i := range rels {
		rels[i].cols = slices.Clone(rels[i].cols)
		for j := range rels[i].cols {
			if c := &rels[i].cols[j]; c.ID == id {
				c.Type = c.Type.WithNullable(true)
			}
		}
	}
}

// choose is a value that depends on the set: that of one(i) for set i.
func (s *groupingSets) choose(t rt.Type, one func(i int) expr.Expr) (expr.Expr, error) {
	out := &expr.Case{T: t}
	for i := range s.sets {
		is, err := expr.NewIn(s.id.Ref(), expr.Int(rt.NewInt(), int64(i)))
		if err != nil {
			return nil, err
		}
		out.Conds, out.Thens = append(out.Conds, is), append(out.Thens, one(i))
	}
	out.Else = expr.Null(t)
	return out, nil
}

// expand gives each row once for every set, with the keys of the set, and makes the
// set a key.
func (g *grouping) expand(pre *Project, a *Aggregate) Node {
	b, s := g.sel.b, g.sets
	var ids []expr.Expr
	for i := range s.sets {
		ids = append(ids, expr.Int(rt.NewInt(), int64(i)))
	}
	list, err := expr.NewArray(ids...)
	if err != nil {
		b.errorf(diag.CodeBadArgument, a.Span, "%s", err)
		return nil
	}
	un := &Unnest{Input: pre, Value: list, Cols: append(slices.Clone(pre.Cols), s.id)}
	post := &Project{Input: un}
	for i := range un.Cols {
		post.Exprs, post.Cols = append(post.Exprs, un.Cols[i].Ref()), append(post.Cols, un.Cols[i])
	}
	at := 0
	for i := range g.keys {
		k := &g.keys[i]
		if a.Window != nil && g.windowRole(k.e) != nil {
			continue
		}
		if !s.everywhere(i) {
			from, _ := ColumnByID(pre.Cols, a.Keys[at])
			t := from.Type.WithNullable(true)
			e, err := s.choose(t, func(set int) expr.Expr {
				if s.has(set, i) {
					return from.Ref()
				}
				return expr.Null(t)
			})
			if err != nil {
				b.errorf(diag.CodeBadArgument, k.span, "%s", err)
				return nil
			}
			c := *from
			c.ID, c.Type, c.Window = b.id(), t, nil
			c.forgetTime()
			post.Exprs, post.Cols = append(post.Exprs, e), append(post.Cols, c)
			a.Keys[at], a.Cols[at], k.col = c.ID, c, c
		}
		at++
	}
	a.Keys = append(a.Keys, s.id.ID)
	a.Cols = slices.Insert(a.Cols, at, s.id)
	return post
}

// groupingCall binds GROUPING(k) and GROUPING_ID(k, ...): a bit for each key, 1 where
// the row's set has it not. is says whether c is such a call.
func (eb *exprBinder) groupingCall(c *syntax.Call) (x expr.Expr, is bool) {
	name := strings.ToUpper(c.Name.String())
	if name != "GROUPING" && name != "GROUPING_ID" {
		return nil, false
	}
	b := eb.b
	if eb.group == nil || eb.group.sets == nil {
		b.errorf(diag.CodeBadArgument, c.Span(), "%s tells groups of GROUPING SETS, ROLLUP or CUBE apart, and GROUP BY has none", name)
		return nil, true
	}
	g := eb.group
	var keys []int
	for _, arg := range c.Args {
		e := b.scalar(arg, eb.sc, name)
		if e == nil {
			return nil, true
		}
		at := slices.IndexFunc(g.keys, func(k groupKey) bool { return k.text == Key(e) })
		if at < 0 {
			b.errorf(diag.CodeNotGrouped, arg.Span(), "%s is no key of GROUP BY", syntax.Print(arg))
			return nil, true
		}
		keys = append(keys, at)
	}
	if len(keys) == 0 || len(keys) > 63 {
		b.errorf(diag.CodeBadArgument, c.Span(), "%s takes keys of GROUP BY", name)
		return nil, true
	}
	t := rt.NewBigInt()
	x, err := g.sets.choose(t, func(set int) expr.Expr {
		bits := int64(0)
		for _, k := range keys {
			bits <<= 1
			if !g.sets.has(set, k) {
				bits |= 1
			}
		}
		return expr.Int(t, bits)
	})
	if err != nil {
		b.errorf(diag.CodeBadArgument, c.Span(), "%s", err)
		return nil, true
	}
	return x, true
}
