package difftest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// next writes a query.
func (g *generator) next() *query {
	g.used, g.rules = map[string]bool{}, map[string]bool{}
	q := &query{}
	switch g.IntN(10) {
	case 0, 1, 2, 3:
		q = g.selection(nil, g.IntN(4) == 0)
	case 4:
		if q = g.union(); g.IntN(3) == 0 {
			g.used, g.rules = map[string]bool{}, map[string]bool{}
			q = g.setOperation()
		}
	default:
		q = g.grouping()
	}
	if q.kinds != nil && !slices.Contains(q.kinds, 'f') && g.IntN(3) == 0 {
		q = g.order(q)
	}
	q.used, q.rules = slices.Sorted(maps.Keys(g.used)), slices.Sorted(maps.Keys(g.rules))
	return q
}

// from writes FROM and puts the columns in scope.
func (g *generator) from() text {
	g.correlated, g.must = false, nil
	if g.nested == 0 && g.IntN(8) == 0 {
		return g.derived()
	}
	if g.nested == 0 && g.IntN(3) == 0 {
		return g.aliased()
	}
	table := "t" + strconv.Itoa(g.tableNumber())
	g.scope, g.arrays = nil, true
	for _, c := range columnKinds {
		g.scope = append(g.scope, column{same(c.name), c.kind})
	}
	switch g.IntN(8) {
	case 0:
		g.use("from-subquery", "")
		k := kind(values[g.IntN(len(values))])
		e, w := g.expr(k, 2), g.expr('o', 1)
		g.scope = append(g.scope, column{same("x1"), k})
		return text{" FROM (SELECT " + names() + ", " + e.ours + " AS x1 FROM " + table + " WHERE " + w.ours + " OR i1 IS NULL) AS q",
			" FROM (SELECT " + names() + ", " + e.duck + " AS x1 FROM " + table + " WHERE " + w.duck + " OR i1 IS NULL) AS q"}
	case 1:
		return g.unnest(table, "ai", "e1", 'i')
	case 2:
		return g.unnest(table, "av", "e2", 's')
	}
	return same(" FROM " + table)
}

// derived writes FROM over another query, which sees only its columns.
func (g *generator) derived() text {
	g.use("from-query", "")
	g.nested++
	var q *query
	switch g.IntN(3) {
	case 0:
		q = g.union()
	case 1:
		q = g.selection(nil, true)
	default:
		q = g.grouping()
	}
	g.nested--
	g.scope, g.arrays = nil, false
	for i, k := range q.kinds {
		if k != 'f' {
			g.scope = append(g.scope, column{same("c" + strconv.Itoa(i)), k})
		}
	}
	return q.wrap(" FROM (", ") AS q")
}

func names() string {
	s := ""
	for i, c := range columnKinds {
		if i > 0 {
			s += ", "
		}
		s += c.name
	}
	return s + ", ai, av"
}

func (g *generator) tableNumber() int { return []int{0, 1, 2, 2, 3, 3, 3, 3}[g.IntN(8)] }

func (g *generator) unnest(table, array, name string, k kind) text {
	g.scope = append(g.scope, column{same(name), k})
	if g.IntN(2) == 0 {
		g.use("cross-join-unnest", "")
		return text{" FROM " + table + " CROSS JOIN UNNEST(" + array + ") AS u (" + name + ")",
			" FROM " + table + ", LATERAL (SELECT unnest(" + array + ")) AS u (" + name + ")"}
	}
	g.use("left-join-unnest", "")
	return text{" FROM " + table + " LEFT JOIN UNNEST(" + array + ") AS u (" + name + ") ON TRUE",
		" FROM " + table + " LEFT JOIN LATERAL (SELECT unnest(" + array + ")) AS u (" + name + ") ON TRUE"}
}

func (g *generator) where() text {
	var conds []text
	if g.must != nil {
		conds = append(conds, *g.must)
	}
	if g.correlated && g.IntN(2) == 0 {
		conds = append(conds, g.condition())
	}
	if g.IntN(2) == 0 {
		g.use("where", "")
		conds = append(conds, g.expr('o', 3))
	}
	if len(conds) == 0 {
		return text{}
	}
	if word := " OR "; g.must == nil && len(conds) == 2 && g.IntN(4) == 0 {
		return join(conds, word).wrap(" WHERE ", "")
	}
	return join(conds, " AND ").wrap(" WHERE ", "")
}

// selection writes SELECT [DISTINCT] ... FROM ... [WHERE ...], of the kinds wanted
// if there are any.
func (g *generator) selection(kinds []kind, distinct bool) *query {
	from := g.from()
	if kinds == nil {
		pool := values + "f"
		if distinct {
			pool = values
		}
		for range 1 + g.IntN(4) {
			kinds = append(kinds, kind(pool[g.IntN(len(pool))]))
		}
	}
	var list []text
	for i, k := range kinds {
		e := g.expr(k, 3)
		if g.correlated && k == 'b' && g.IntN(3) == 0 {
			e = g.scalar('b')
		}
		list = append(list, e.wrap("", " AS c"+strconv.Itoa(i)))
	}
	word := "SELECT "
	if distinct {
		g.use("distinct", "")
		word = "SELECT DISTINCT "
	}
	sel, where := join(list, ", "), g.where()
	return &query{text: text{word + sel.ours + from.ours + where.ours, word + sel.duck + from.duck + where.duck}, kinds: kinds}
}

func (g *generator) union() *query {
	// The rows of a table may not come both aggregated and as they are.
	g.nested++
	a := g.selection(nil, false)
	b := g.selection(a.kinds, false)
	g.nested--
	word := " UNION ALL "
	if !slices.Contains(a.kinds, 'f') && g.IntN(3) == 0 {
		word = " UNION "
	}
	g.use("union"+map[bool]string{true: "-all"}[word == " UNION ALL "], "")
	return &query{text: text{a.ours + word + b.ours, a.duck + word + b.duck}, kinds: a.kinds}
}

// order sorts by all columns, and may cut.
func (g *generator) order(q *query) *query {
	g.use("order-by", "null-order")
	var keys []text
	for _, i := range g.Perm(len(q.kinds)) {
		c := "c" + strconv.Itoa(i)
		switch g.IntN(4) {
		case 0:
			keys = append(keys, text{c + " DESC", c + " DESC NULLS LAST"})
		case 1:
			keys = append(keys, same(c+" ASC NULLS LAST"))
		case 2:
			keys = append(keys, same(c+" DESC NULLS FIRST"))
		default:
			keys = append(keys, text{c, c + " NULLS FIRST"})
		}
	}
	by := join(keys, ", ").wrap(" ORDER BY ", "")
	limit := ""
	if g.IntN(2) == 0 {
		g.use("limit", "")
		limit = " LIMIT " + strconv.Itoa(g.IntN(8))
		if g.IntN(3) == 0 {
			g.use("offset", "")
			limit += " OFFSET " + strconv.Itoa(g.IntN(4))
		}
	}
	from := func(q string) string { return "SELECT * FROM (" + q + ") AS s" }
	if g.IntN(3) == 0 {
		g.use("with", "")
		from = func(q string) string { return "WITH s AS (" + q + ") SELECT * FROM s" }
	}
	return &query{text: text{from(q.ours) + by.ours + limit, from(q.duck) + by.duck + limit}, kinds: q.kinds, sorted: true}
}

// aggregate is a form of an aggregate: its argument's kind, its result's.
type aggregate struct {
	name       string
	args       string
	kind       kind
	ours, duck string
	rule       string
}

// aggregates: $1 is the argument, $F the FILTER clause.
func aggregates() []aggregate {
	out := []aggregate{
		{"count-star", "o", 'b', "COUNT(*) $F", "", ""},
		{"count-distinct-two", "si", 'b', "COUNT(DISTINCT $1, $2) $F", "count(DISTINCT CASE WHEN CAST($1 IS NULL AS INTEGER) + CAST($2 IS NULL AS INTEGER) = 0 THEN row($1, $2) END) $F", "count-columns"},
		{"sum-int", "i", 'b', "SUM($1) $F", "CAST(sum($1) $F AS BIGINT)", ""},
		{"sum-big", "b", 'b', "SUM($1) $F", "CAST(sum($1) $F AS BIGINT)", ""},
		{"count-two", "si", 'b', "COUNT($1, $2) $F", "count(CASE WHEN CAST($1 IS NULL AS INTEGER) + CAST($2 IS NULL AS INTEGER) = 0 THEN 1 END) $F", "count-columns"},
		{"avg-distinct", "d", 'f', "AVG(DISTINCT $1) $F", "", ""},
		{"avg-big", "b", 'b', "AVG($1) $F", "CAST(div_int(sum($1) $F, nullif(count($1) $F, 0)) AS BIGINT)", "average-of-integers"},
		{"sum-decimal-distinct", "m", 'm', "CAST(SUM(DISTINCT $1) $F AS DECIMAL(12, 2))", "", ""},
		{"sum-distinct", "i", 'b', "SUM(DISTINCT $1) $F", "CAST(sum(DISTINCT $1) $F AS BIGINT)", ""},
		{"sum-decimal", "m", 'm', "CAST(SUM($1) $F AS DECIMAL(12, 2))", "", ""},
		{"sum-double", "d", 'f', "SUM($1) $F", "", ""},
		{"avg-int", "i", 'i', "AVG($1) $F", "CAST(div_int(sum($1) $F, nullif(count($1) $F, 0)) AS INTEGER)", "average-of-integers"},
		{"avg-decimal", "m", 'm', "CAST(AVG($1) $F * 1000 AS DECIMAL(12, 2))", "CAST(mean_decimal(sum($1) $F, count($1) $F) * 1000 AS DECIMAL(12, 2))", "average-of-decimals"},
		{"avg-double", "d", 'f', "AVG($1) $F", "", ""},
	}
	for _, k := range values {
		out = append(out,
			aggregate{"count/" + string(k), string(k), 'b', "COUNT($1) $F", "", ""},
			aggregate{"count-distinct/" + string(k), string(k), 'b', "COUNT(DISTINCT $1) $F", "", ""})
		if k != 'o' {
			out = append(out,
				aggregate{"min/" + string(k), string(k), kind(k), "MIN($1) $F", "", ""},
				aggregate{"max/" + string(k), string(k), kind(k), "MAX($1) $F", "", ""})
		}
	}
	for i := range out {
		if out[i].duck == "" {
			out[i].duck = out[i].ours
		}
	}
	return out
}

func (g *generator) aggregate(list []aggregate) column {
	a := pick(g, list)
	g.use(a.name, a.rule)
	var ours, duck []string
	for i := range len(a.args) {
		e := g.expr(kind(a.args[i]), 2)
		ours, duck = append(ours, "$"+strconv.Itoa(i+1), e.ours), append(duck, "$"+strconv.Itoa(i+1), e.duck)
	}
	filter := text{}
	if g.IntN(3) == 0 {
		g.use("filter", "")
		filter = g.expr('o', 2).wrap("FILTER (WHERE ", ")")
	}
	ours, duck = append(ours, "$F", filter.ours), append(duck, "$F", filter.duck)
	return column{text{strings.NewReplacer(ours...).Replace(a.ours), strings.NewReplacer(duck...).Replace(a.duck)}, a.kind}
}

// grouping writes SELECT keys, aggregates ... GROUP BY keys [HAVING ...].
func (g *generator) grouping() *query {
	from := g.from()
	g.use("aggregate", "")
	var list, keys []text
	var kinds []kind
	for range g.IntN(3) {
		k := kind(values[g.IntN(len(values))])
		of := g.columns(k)
		if len(of) == 0 {
			continue
		}
		e := pick(g, of).text
		if k != 'd' && g.IntN(2) == 0 {
			// DuckDB takes a key that is constant for the number of a column.
			if made := g.apply(pick(g, g.byKind[k]), 1); g.mentionsColumn(made) {
				e = made
			}
		}
		g.use("group-by", "")
		keys, list, kinds = append(keys, e), append(list, e), append(kinds, k)
	}
	for range 1 + g.IntN(3) {
		c := g.aggregate(aggregates())
		list, kinds = append(list, c.text), append(kinds, c.kind)
	}
	for i := range list {
		list[i] = list[i].wrap("", " AS c"+strconv.Itoa(i))
	}
	where, sel := g.where(), join(list, ", ")
	tail := text{}
	if len(keys) > 0 {
		tail = join(keys, ", ").wrap(" GROUP BY ", "")
		if g.IntN(3) == 0 {
			g.use("having", "")
			c := g.aggregate(slices.DeleteFunc(aggregates(), func(a aggregate) bool { return a.kind != 'b' }))
			h := c.wrap(" HAVING ", " > "+strconv.Itoa(g.IntN(4)))
			tail = text{tail.ours + h.ours, tail.duck + h.duck}
		}
	}
	return &query{text: text{"SELECT " + sel.ours + from.ours + where.ours + tail.ours, "SELECT " + sel.duck + from.duck + where.duck + tail.duck}, kinds: kinds}
}
