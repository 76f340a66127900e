package difftest

import (
	"strconv"
)

// from writes FROM and puts the columns in scope.
func (g *generator) from() text {
	g.correlated, g.must, g.unique = false, nil, nil
	if g.nested == 0 {
		switch g.IntN(16) {
		case 1, 2:
			return g.derived()
		case 3, 4, 5, 6, 7:
			return g.aliased()
		case 8:
			return g.view()
		case 9:
			return g.joinedQueries()
		case 10:
			return g.using()
		}
	}
	if g.IntN(20) == 19 {
		return g.values()
	}
	table := "t" + strconv.Itoa(g.tableNumber())
	g.scope, g.unique = columnsOf(""), []text{same("id")}
	switch g.IntN(10) {
	case 1:
		g.use("from-subquery", "")
		k := kind(values[g.IntN(len(values))])
		e, w := g.expr(k, 2), g.expr('o', 1)
		g.scope = append(g.scope, column{same("x1"), k})
		return text{" FROM (SELECT *, " + e.ours + " AS x1 FROM " + table + " WHERE " + w.ours + " OR i1 IS NULL) AS q",
			" FROM (SELECT *, " + e.duck + " AS x1 FROM " + table + " WHERE " + w.duck + " OR i1 IS NULL) AS q"}
	case 2:
		return g.unnest(table)
	}
	return same(" FROM " + table)
}

// columnsOf are the columns of a table, with a prefix.
func columnsOf(prefix string) []column {
	out := []column{{same(prefix + "id"), 'i'}}
	for _, c := range columnKinds {
		out = append(out, column{same(prefix + c.name), c.kind})
	}
	return out
}

// outputs puts the columns of a query in scope, with a prefix; what cannot be
// compared exactly is left out.
func outputs(kinds []kind, prefix string) []column {
	var out []column
	for i, k := range kinds {
		if k != 'f' {
			out = append(out, column{same(prefix + "c" + strconv.Itoa(i)), k})
		}
	}
	return out
}

// inQuery writes a query that stands in FROM: it sees only its own columns.
func (g *generator) inQuery() *query {
	g.nested++
	defer func() { g.nested-- }()
	switch g.IntN(5) {
	case 1:
		return g.union()
	case 2:
		return g.selection(nil, true)
	case 3:
		return g.windows()
	case 4:
		return g.grouping()
	}
	return g.selection(nil, false)
}

// derived writes FROM over another query.
func (g *generator) derived() text {
	q := g.inQuery()
	if g.IntN(3) == 1 {
		name := g.inWith(q)
		g.scope, g.unique = outputs(q.kinds, ""), nil
		return same(" FROM " + name + " AS q")
	}
	g.use("from-query", "")
	g.scope, g.unique = outputs(q.kinds, ""), nil
	return q.wrap(" FROM (", ") AS q")
}

// inWith puts a query into WITH and gives its name.
func (g *generator) inWith(q *query) string {
	g.use("with-query", "")
	name := "w" + strconv.Itoa(len(g.named))
	g.named = append(g.named, q.wrap(name+" AS (", ")"))
	return name
}

// view writes FROM a view.
func (g *generator) view() text {
	if len(g.views) == 0 {
		return g.derived()
	}
	g.use("view", "")
	v := pick(g, g.views)
	g.scope, g.unique, g.correlated = outputs(v.kinds, "v."), nil, false
	return same(" FROM " + v.name + " AS v")
}

// joinedQueries writes a query in WITH that is used twice, or joined with a table.
func (g *generator) joinedQueries() text {
	q := g.inQuery()
	name := g.inWith(q)
	g.unique, g.correlated = nil, false
	words := pick(g, []string{"JOIN", "LEFT JOIN", "FULL JOIN"})
	left := outputs(q.kinds, "a.")
	if len(left) > 0 && g.IntN(2) == 1 {
		g.use("with-twice", "")
		c := g.IntN(len(left))
		right := outputs(q.kinds, "b.")
		on := left[c].ours + " = " + right[c].ours
		g.scope = append(left, right...)
		if c := left[c].kind; c != 'A' && c != 'V' && c != 'M' && c != 'R' && c != 'F' && c != 'd' {
			return same(" FROM " + name + " AS a " + words + " " + name + " AS b ON " + on)
		}
		// No equality that both compute alike: the columns of no rows.
		return same(" FROM " + name + " AS a CROSS JOIN (SELECT * FROM " + name + " LIMIT 0) AS b")
	}
	for _, c := range left {
		for _, d := range qualified("b") {
			if c.kind == d.kind && (c.kind == 'i' || c.kind == 'b' || c.kind == 's' || c.kind == 'o' || c.kind == 'D') {
				g.use("join-query", "")
				g.scope = append(left, qualified("b")...)
				return same(" FROM " + name + " AS a " + words + " t" + strconv.Itoa(g.tableNumber()) + " AS b ON " + c.ours + " = " + d.ours)
			}
		}
	}
	g.scope = left
	return same(" FROM " + name + " AS a")
}

// using writes a join with USING, whose column has no table.
func (g *generator) using() text {
	c := pick(g, columnsOf("")[:4])
	words := pick(g, []string{"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"})
	if g.IntN(4) == 3 {
		g.use("natural-join", "")
		g.scope, g.unique = []column{{same("id"), 'i'}, {same("o1"), 'o'}, {same("s1"), 's'}, {same("D1"), 'D'}, {same("m1"), 'm'}}, nil
		return same(" FROM (SELECT id, o1, s1, dt1 AS D1 FROM t" + strconv.Itoa(g.tableNumber()) + ") AS l NATURAL " + words + " (SELECT id, m1 FROM t" + strconv.Itoa(g.tableNumber()) + ") AS r")
	}
	g.use("join-using", "")
	g.scope, g.unique, g.correlated = []column{c}, nil, false
	for _, side := range []string{"l.", "r."} {
		for _, d := range columnsOf(side) {
			if d.ours != side+c.ours {
				g.scope = append(g.scope, d)
			}
		}
	}
	return same(" FROM t" + strconv.Itoa(g.tableNumber()) + " AS l " + words + " t" + strconv.Itoa(g.tableNumber()) + " AS r USING (" + c.ours + ")")
}

// values writes FROM (VALUES ...).
func (g *generator) values() text {
	g.use("values", "")
	kinds := []kind{'i'}
	for range 1 + g.IntN(3) {
		kinds = append(kinds, kind(values[g.IntN(len(values))]))
	}
	var rows []text
	for range 1 + g.IntN(4) {
		var vs []text
		for _, k := range kinds {
			if v := g.literal(k); g.IntN(6) == 5 {
				vs = append(vs, text{"CAST(NULL AS " + ourNames[k] + ")", "CAST(NULL AS " + duckNames[k] + ")"})
			} else if k == 's' {
				vs = append(vs, text{"CAST(" + v.ours + " AS STRING)", v.duck})
			} else {
				vs = append(vs, v)
			}
		}
		rows = append(rows, join(vs, ", ").wrap("(", ")"))
	}
	list := text{}
	g.scope, g.unique = nil, nil
	for i, k := range kinds {
		g.scope = append(g.scope, column{same("c" + strconv.Itoa(i)), k})
		if i > 0 {
			list = list.wrap("", ", ")
		}
		list = list.wrap("", "c"+strconv.Itoa(i))
	}
	return join(rows, ", ").wrap(" FROM (VALUES ", ") AS v ("+list.ours+")")
}

// tableNumber chooses a table, mostly one with many rows.
func (g *generator) tableNumber() int {
	return []int{3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 3, 1, 0}[g.IntN(20)]
}

// unnest writes FROM a table and the elements of one of its arrays or its map.
func (g *generator) unnest(table string) text {
	g.unique = nil
	form := pick(g, []struct{ name, array, columns, duck, kinds string }{
		{"int", "ai", "e1", "unnest(ai)", "i"},
		{"text", "av", "e1", "unnest(av)", "s"},
		{"map", "mp", "e1, e2", "unnest(map_keys(mp)), unnest(map_values(mp))", "si"},
		{"ordinality", "ai", "e1, e2", "unnest(ai), CAST(generate_subscripts(ai, 1) AS INTEGER)", "ii"},
	})
	for i, k := range form.kinds {
		g.scope = append(g.scope, column{same("e" + strconv.Itoa(i+1)), kind(k)})
	}
	ours := " JOIN UNNEST(" + form.array + ")"
	if form.name == "ordinality" {
		ours += " WITH ORDINALITY"
	}
	ours += " AS u (" + form.columns + ")"
	duck := "LATERAL (SELECT " + form.duck + ") AS u (" + form.columns + ")"
	if g.IntN(2) == 0 {
		g.use("cross-join-unnest/"+form.name, "")
		return text{" FROM " + table + " CROSS" + ours, " FROM " + table + ", " + duck}
	}
	g.use("left-join-unnest/"+form.name, "")
	return text{" FROM " + table + " LEFT" + ours + " ON TRUE", " FROM " + table + " LEFT JOIN " + duck + " ON TRUE"}
}
