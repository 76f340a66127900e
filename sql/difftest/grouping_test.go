package difftest

import (
	"slices"
	"strconv"
	"strings"
)

// grouping writes SELECT keys, aggregates ... GROUP BY keys [HAVING ...].
func (g *generator) grouping() *query {
	from := g.from()
	g.use("aggregate", "")
	sets := g.IntN(4) == 3
	keys, kinds := g.keys(sets)
	list := slices.Clone(keys)
	for range 1 + g.IntN(3) {
		c := g.aggregate(aggregates())
		list, kinds = append(list, c.text), append(kinds, c.kind)
	}
	tail := text{}
	// DuckDB does not order a window by what may be an error.
	if c := list[len(keys)]; g.IntN(6) == 5 && kinds[len(keys)] == 'b' && !strings.Contains(c.duck, "div_int") {
		g.use("over-aggregate", "null-order")
		if g.IntN(2) == 0 {
			c = text{"SUM(" + c.ours + ") OVER ()", "CAST(sum(" + c.duck + ") OVER () AS BIGINT)"}
		} else {
			c = text{"RANK() OVER (ORDER BY " + c.ours + " DESC)", "RANK() OVER (ORDER BY " + c.duck + " DESC NULLS LAST)"}
		}
		list, kinds = append(list, c), append(kinds, 'b')
	}
	scope := g.scope
	if len(keys) > 0 && !sets && g.IntN(3) == 2 {
		g.use("over-keys", "")
		g.scope = nil
		for i, k := range keys {
			g.scope = append(g.scope, column{k, kinds[i]})
		}
		k := kind(values[g.IntN(len(values))])
		e := g.expr(k, 2)
		list, kinds = append(list, e), append(kinds, k)
		g.scope = scope
	}
	having := text{}
	if len(keys) > 0 {
		by := join(keys, ", ")
		if sets {
			by = g.sets(keys)
			g.use("aggregate", "grand-total")
			having = text{"", " HAVING count(*) > 0"}
			if g.IntN(2) == 0 {
				g.use("grouping-id", "")
				list, kinds = append(list, pick(g, keys).wrap("GROUPING(", ")"), join(keys, ", ").wrap("GROUPING_ID(", ")")), append(kinds, 'b', 'b')
			}
		}
		tail = by.wrap(" GROUP BY ", "")
		if g.IntN(3) == 2 {
			g.use("having", "")
			c := g.aggregate(slices.DeleteFunc(aggregates(), func(a aggregate) bool { return a.kind != 'b' }))
			h := c.wrap("", pick(g, []string{" >= 0", " IS NOT NULL", " < 100", " <> 2", " > 1"}))
			if having.duck != "" {
				h.duck = "count(*) > 0 AND " + h.duck
			}
			having = h.wrap(" HAVING ", "")
		}
		tail = text{tail.ours + having.ours, tail.duck + having.duck}
	}
	for i := range list {
		list[i] = list[i].wrap("", " AS c"+strconv.Itoa(i))
	}
	where, sel := g.where(), join(list, ", ")
	return &query{text: text{"SELECT " + sel.ours + from.ours + where.ours + tail.ours, "SELECT " + sel.duck + from.duck + where.duck + tail.duck}, kinds: kinds}
}

// keys chooses keys; those of grouping sets are different columns.
func (g *generator) keys(sets bool) (keys []text, kinds []kind) {
	n := g.IntN(3)
	if sets {
		n = 2 + g.IntN(2)
	}
	for range n {
		k := kind(values[g.IntN(len(values))])
		if !sets && g.IntN(12) == 11 {
			k = kind("AV"[g.IntN(2)])
			g.use("nested-key", "")
		}
		of := g.columns(k)
		if len(of) == 0 {
			continue
		}
		e := pick(g, of).text
		if !sets && k != 'd' && k != 'F' && g.IntN(2) == 1 {
			// DuckDB takes a key that is constant for the number of a column.
			if made := g.apply(g.form(k), 1); g.mentionsColumn(made) {
				e = made
			}
		}
		if sets && slices.Contains(keys, e) {
			continue
		}
		g.use("group-by", "")
		keys, kinds = append(keys, e), append(kinds, k)
	}
	return keys, kinds
}

// sets writes several groupings at once.
func (g *generator) sets(keys []text) text {
	all := join(keys, ", ")
	switch g.IntN(4) {
	case 0:
		g.use("rollup", "")
		return all.wrap("ROLLUP (", ")")
	case 1:
		g.use("cube", "")
		return all.wrap("CUBE (", ")")
	case 2:
		g.use("key-and-rollup", "")
		if rest := keys[1:]; len(rest) > 0 {
			r := join(rest, ", ").wrap("ROLLUP (", ")")
			return join([]text{keys[0], r}, ", ")
		}
	}
	g.use("grouping-sets", "")
	parts := []text{all.wrap("(", ")")}
	for _, k := range keys {
		parts = append(parts, k.wrap("(", ")"))
	}
	if g.IntN(2) == 0 {
		parts = append(parts, same("()"))
	}
	return join(parts, ", ").wrap("GROUPING SETS (", ")")
}
