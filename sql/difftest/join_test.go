package difftest

import (
	"slices"
	"strconv"
)

// qualified are the columns of a table under an alias.
func qualified(alias string) []column { return columnsOf(alias + ".") }

// aliased writes FROM a table under a name, so that sub-queries can refer to it,
// and mostly a join with another one.
func (g *generator) aliased() text {
	left := "t" + strconv.Itoa(g.tableNumber()) + " AS l"
	g.correlated = true
	if g.IntN(4) == 0 {
		g.scope, g.unique = qualified("l"), []text{same("l.id")}
		return same(" FROM " + left)
	}
	right := "t" + strconv.Itoa(g.tableNumber()) + " AS r"
	if g.IntN(6) == 5 {
		return g.joinOfQuery(left)
	}
	both := append(qualified("l"), qualified("r")...)
	g.unique = []text{same("l.id"), same("r.id")}
	switch g.IntN(8) {
	case 0:
		g.use("cross-join", "")
		g.scope = both
		return same(" FROM " + left + " CROSS JOIN t" + strconv.Itoa(1+g.IntN(2)) + " AS r")
	case 1:
		g.use("comma-join", "")
		on := g.pair("l", "r")
		g.scope, g.must = both, &on
		return same(" FROM " + left + ", " + right)
	case 2:
		g.use("join-non-equal", "")
		a, b := pick(g, qualified("l")[:2]), pick(g, qualified("r")[:2])
		on := text{a.ours + " < " + b.ours, a.duck + " < " + b.duck}
		g.scope = both
		kind := pick(g, []string{"JOIN", "LEFT JOIN"})
		return text{" FROM " + left + " " + kind + " " + right + " ON " + on.ours, " FROM " + left + " " + kind + " " + right + " ON " + on.duck}
	}
	form := pick(g, []struct{ name, words string }{{"join", "JOIN"}, {"join", "INNER JOIN"}, {"left-join", "LEFT JOIN"}, {"left-join", "LEFT OUTER JOIN"},
		{"right-join", "RIGHT JOIN"}, {"full-join", "FULL JOIN"}})
	g.use(form.name, "")
	on := g.pair("l", "r")
	if g.IntN(4) == 3 {
		more := g.pair("l", "r")
		on = text{on.ours + " AND " + more.ours, on.duck + " AND " + more.duck}
	}
	g.scope = both
	if g.IntN(3) == 2 {
		g.use("join-condition", "")
		more := g.expr('o', 1).wrap("(", pick(g, []string{" IS NOT FALSE)", ")"}))
		on = text{on.ours + " AND " + more.ours, on.duck + " AND " + more.duck}
	}
	if g.IntN(4) == 0 {
		g.use("join-three", "")
		on2 := g.pair("r", "x")
		g.scope = append(both, qualified("x")...)
		g.unique = append(g.unique, same("x.id"))
		third := " LEFT JOIN t" + strconv.Itoa(g.IntN(3)) + " AS x ON "
		return text{" FROM " + left + " " + form.words + " " + right + " ON " + on.ours + third + on2.ours,
			" FROM " + left + " " + form.words + " " + right + " ON " + on.duck + third + on2.duck}
	}
	return text{" FROM " + left + " " + form.words + " " + right + " ON " + on.ours, " FROM " + left + " " + form.words + " " + right + " ON " + on.duck}
}

// joinOfQuery writes a join with a query that filters a table.
func (g *generator) joinOfQuery(left string) text {
	g.use("join-filtered", "")
	g.scope = columnsOf("")
	where := g.expr('o', 2)
	words := pick(g, []string{"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"})
	on := g.pair("l", "r")
	g.scope, g.unique = append(qualified("l"), qualified("r")...), []text{same("l.id"), same("r.id")}
	start := " FROM " + left + " " + words + " (SELECT * FROM t" + strconv.Itoa(g.tableNumber()) + " WHERE "
	return text{start + where.ours + " IS NOT FALSE) AS r ON " + on.ours, start + where.duck + " IS NOT FALSE) AS r ON " + on.duck}
}

// pair compares a column of each of two tables, of kinds that are often equal.
func (g *generator) pair(left, right string) text {
	if g.IntN(3) == 0 {
		return same(left + ".id = " + right + ".id")
	}
	k := kind("iiibosDooh"[g.IntN(10)])
	of := func(alias string) column {
		return pick(g, slices.DeleteFunc(qualified(alias), func(c column) bool { return c.kind != k }))
	}
	a, b := of(left), of(right)
	sign := " = "
	if g.IntN(10) == 0 {
		g.use("join-null-safe", "")
		sign = " IS NOT DISTINCT FROM "
	}
	return text{a.ours + sign + b.ours, a.duck + sign + b.duck}
}

// inner writes FROM and WHERE of a sub-query; what follows sees its table alone.
// correlated: its WHERE compares with the query around it, unequal: not only by =.
func (g *generator) inner(correlated, unequal bool) (from text, restore func()) {
	outer := g.scope
	table := " FROM t" + strconv.Itoa(g.tableNumber()) + " AS q"
	g.scope = qualified("q")
	g.depth++
	where := text{}
	if correlated {
		k := kind("iibsoD"[g.IntN(6)])
		own := pick(g, g.columns(k))
		g.scope = outer
		theirs := pick(g, g.columns(k))
		g.scope = qualified("q")
		where = text{" WHERE " + own.ours + " = " + theirs.ours, " WHERE " + own.duck + " = " + theirs.duck}
		if unequal && g.IntN(3) == 0 {
			g.use("correlated-condition", "")
			a := pick(g, g.columns('i'))
			g.scope = outer
			b := pick(g, g.columns('i'))
			g.scope = qualified("q")
			where = text{where.ours + " AND " + a.ours + " <= " + b.ours, where.duck + " AND " + a.duck + " <= " + b.duck}
		}
	} else if g.IntN(2) == 0 {
		where = g.expr('o', 1).wrap(" WHERE ", "")
	}
	return text{table + where.ours, table + where.duck}, func() { g.scope = outer; g.depth-- }
}

// condition writes a predicate with a sub-query.
func (g *generator) condition() text {
	switch g.IntN(8) {
	case 6:
		return g.inGrouped()
	case 7:
		return g.inSetOperation()
	case 0, 1:
		name, word := "exists", "EXISTS "
		if g.IntN(2) == 0 {
			name, word = "not-exists", "NOT EXISTS "
		}
		g.use(name, "")
		from, restore := g.inner(g.IntN(5) > 0, true)
		restore()
		return from.wrap(word+"(SELECT 1", ")")
	case 2, 3, 4:
		name, word := "in-query", " IN "
		switch g.IntN(5) {
		case 1, 2:
			name, word = "not-in-query", " NOT IN "
		case 3:
			name, word = "any-query", " = ANY "
		case 4:
			name, word = "any-query", " <> ALL "
		}
		g.use(name, "")
		k := kind("ibsoDm"[g.IntN(6)])
		x := g.expr(k, 1)
		from, restore := g.inner(g.IntN(3) == 0, true)
		y := pick(g, g.columns(k))
		restore()
		return text{"(" + x.ours + word + "(SELECT " + y.ours + from.ours + "))", "(" + x.duck + word + "(SELECT " + y.duck + from.duck + "))"}
	}
	x, y := pick(g, g.columns('i')), g.scalar('i')
	return text{"(" + x.ours + " <= " + y.ours + ")", "(" + x.duck + " <= " + y.duck + ")"}
}

// inGrouped writes IN over a query with GROUP BY, HAVING or LIMIT.
func (g *generator) inGrouped() text {
	g.use("in-grouped", "")
	x := pick(g, g.columns('i'))
	from, restore := g.inner(false, false)
	y := pick(g, g.columns('i'))
	restore()
	tail := pick(g, []string{" GROUP BY " + y.ours, " GROUP BY " + y.ours + " HAVING COUNT(*) > 1", " GROUP BY " + y.ours + ", q.o1"})
	return text{"(" + x.ours + " IN (SELECT " + y.ours + from.ours + tail + "))", "(" + x.duck + " IN (SELECT " + y.duck + from.duck + tail + "))"}
}

// inSetOperation writes IN over two queries at once.
func (g *generator) inSetOperation() text {
	g.use("in-set-operation", "")
	x := pick(g, g.columns('i'))
	a, restore := g.inner(false, false)
	y := pick(g, g.columns('i'))
	restore()
	b, restore := g.inner(false, false)
	z := pick(g, g.columns('i'))
	restore()
	word := pick(g, []string{" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT "})
	return text{"(" + x.ours + " IN (SELECT " + y.ours + a.ours + word + "SELECT " + z.ours + b.ours + "))", "(" + x.duck + " IN (SELECT " + y.duck + a.duck + word + "SELECT " + z.duck + b.duck + "))"}
}

// scalar writes a sub-query that is a value: an aggregate without keys.
func (g *generator) scalar(k kind) text {
	correlated := g.IntN(2) == 0
	g.use("scalar-query"+map[bool]string{true: "-correlated"}[correlated], "")
	from, restore := g.inner(correlated, false)
	defer restore()
	of := pick(g, g.columns('i'))
	call := pick(g, []string{"MAX", "MIN"}) + "(" + of.ours + ")"
	if k == 'b' {
		call = pick(g, []string{"COUNT(*)", "COUNT(" + of.ours + ")", "(COUNT(*) + 1)"})
	}
	return from.wrap("(SELECT "+call, ")")
}

// plain writes a query of columns alone.
func (g *generator) plain(kinds []kind) *query {
	g.scope = qualified("q")
	var list []text
	for i, k := range kinds {
		list = append(list, pick(g, g.columns(k)).wrap("", " AS c"+strconv.Itoa(i)))
	}
	sel := join(list, ", ").wrap("SELECT ", " FROM t"+strconv.Itoa(2+g.IntN(2))+" AS q")
	return &query{text: sel, kinds: kinds}
}

// setOperation writes INTERSECT or EXCEPT.
func (g *generator) setOperation() *query {
	var kinds []kind
	for range 1 + g.IntN(2) {
		kinds = append(kinds, kind("ooooibDs"[g.IntN(8)])) // of few values, so that rows are equal
	}
	g.nested++
	a, b := g.selection(kinds, false), g.selection(kinds, false)
	g.nested--
	if g.IntN(2) == 0 {
		a, b = g.plain(kinds), g.plain(kinds)
	}
	form := pick(g, []struct{ name, word string }{{"intersect", " INTERSECT "}, {"intersect-all", " INTERSECT ALL "}, {"except", " EXCEPT "}, {"except-all", " EXCEPT ALL "}})
	g.use(form.name, "")
	return &query{text: text{a.ours + form.word + b.ours, a.duck + form.word + b.duck}, kinds: kinds}
}
