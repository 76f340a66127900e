package difftest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// begin forgets what the last query was made of.
func (g *generator) begin() {
	g.used, g.rules, g.named = map[string]bool{}, map[string]bool{}, nil
	g.nested, g.depth, g.wanted = 0, 0, nil
}

// number writes query n. Every second one begins with a form whose turn it is.
func (g *generator) number(n int) *query {
	g.choices = drawn(g.seed, uint64(n)+1)
	return g.next(n)
}

// again writes query n of other choices.
func (g *generator) again(n int, given []int) *query {
	g.choices = &choices{given: given}
	return g.next(n)
}

func (g *generator) next(n int) *query {
	g.begin()
	if n%2 == 1 {
		g.wanted = &g.all[(n/2+int(g.seed%uint64(len(g.all))))%len(g.all)]
	}
	q := &query{}
	form := g.IntN(20)
	switch {
	case g.wanted != nil && form < 14 || form < 5:
		q = g.selection(nil, g.wanted == nil && g.IntN(4) == 3)
	case form < 7:
		q = g.union()
	case form < 8:
		q = g.setOperation()
	case form < 13:
		q = g.windows()
	default:
		q = g.grouping()
	}
	nested := slices.ContainsFunc(q.kinds, func(k kind) bool { return k == 'f' || strings.ContainsRune("AVMR", rune(k)) })
	if q.kinds != nil && !nested && !q.sorted && g.IntN(3) == 2 {
		q = g.order(q)
	}
	if len(g.named) > 0 {
		with := join(g.named, ", ")
		q.text = text{"WITH " + with.ours + " " + q.ours, "WITH " + with.duck + " " + q.duck}
	}
	q.used, q.rules, q.choices = slices.Sorted(maps.Keys(g.used)), slices.Sorted(maps.Keys(g.rules)), g.made
	return q
}

func (g *generator) where() text {
	var conds []text
	if g.must != nil {
		conds = append(conds, *g.must)
	}
	if g.correlated && g.IntN(2) == 1 {
		conds = append(conds, g.condition())
	}
	if g.IntN(3) == 2 {
		g.use("where", "")
		c := g.expr('o', 3)
		switch g.IntN(6) {
		case 0, 1, 2: // many conditions hold for few rows
			c = c.wrap("", " IS NOT FALSE")
		case 3, 4:
			other := g.expr('o', 1)
			c = text{"(" + c.ours + " OR " + other.ours + " IS NOT TRUE)", "(" + c.duck + " OR " + other.duck + " IS NOT TRUE)"}
		}
		conds = append(conds, c)
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
	wanted := g.wanted
	g.wanted = nil
	if kinds == nil {
		pool := values + "fAV"
		if distinct {
			pool = values
		}
		if wanted != nil && !strings.ContainsRune("MRI", rune(wanted.kind)) {
			kinds = append(kinds, wanted.kind)
		} else {
			wanted = nil
		}
		for range 1 + g.IntN(4) {
			kinds = append(kinds, kind(pool[g.IntN(len(pool))]))
		}
	}
	var list []text
	for i, k := range kinds {
		e := text{}
		if i == 0 && wanted != nil && k == wanted.kind {
			e = g.apply(*wanted, 1)
		} else {
			e = g.expr(k, 3)
		}
		if g.correlated && k == 'b' && g.IntN(3) == 0 {
			e = g.scalar('b')
		}
		if g.correlated && k == 'o' && g.IntN(3) == 0 {
			g.use("query-as-value", "")
			e = g.condition()
		}
		list = append(list, e.wrap("", " AS c"+strconv.Itoa(i)))
	}
	word := "SELECT "
	if distinct {
		g.use("distinct", "")
		word = "SELECT DISTINCT "
	}
	sel, where := join(list, ", "), g.where()
	q := &query{text: text{word + sel.ours + from.ours + where.ours, word + sel.duck + from.duck + where.duck}, kinds: kinds}
	if g.unique != nil && !distinct && g.nested == 0 && g.IntN(6) == 5 {
		return g.orderHidden(q)
	}
	return q
}

// orderHidden sorts a selection by columns that are not selected.
func (g *generator) orderHidden(q *query) *query {
	g.use("order-hidden", "null-order")
	var keys []text
	for _, c := range g.columns(kind("sDmbo"[g.IntN(5)])) {
		keys = append(keys, g.orderKey(c))
	}
	for _, u := range g.unique {
		keys = append(keys, g.orderKey(column{u, 'i'}))
	}
	q.text = join([]text{q.text, join(keys, ", ")}, " ORDER BY ")
	if g.IntN(2) == 0 {
		q.text = q.wrap("", pick(g, []string{" LIMIT 5", " LIMIT 20 OFFSET 1", " FETCH FIRST 3 ROWS ONLY", " LIMIT 1"}))
	}
	q.sorted = true
	return q
}

// union writes UNION [ALL] of two or three selections; columns may be narrower in
// the later ones.
func (g *generator) union() *query {
	// The rows of a table may not come both aggregated and as they are.
	g.nested++
	defer func() { g.nested-- }()
	q := g.selection(nil, false) // nested, so without an order
	word := " UNION ALL "
	if !slices.Contains(q.kinds, 'f') && g.IntN(3) == 0 {
		word = " UNION "
	}
	g.use("union"+map[bool]string{true: "-all"}[word == " UNION ALL "], "")
	for range 1 + g.IntN(4)/3 {
		kinds := slices.Clone(q.kinds)
		for i, k := range kinds {
			if narrow := narrower[k]; narrow != "" && g.IntN(4) == 3 {
				g.use("union-narrower", "")
				kinds[i] = kind(narrow[g.IntN(len(narrow))])
			}
		}
		b := g.selection(kinds, false)
		q = &query{text: text{q.ours + word + b.ours, q.duck + word + b.duck}, kinds: q.kinds}
	}
	return q
}

// narrower are the kinds whose values become those of another one in UNION.
var narrower = map[kind]string{'b': "ih", 'i': "h", 'd': "iF", 'm': "ih", 'w': "mb"}

// order sorts by all columns, and may cut.
func (g *generator) order(q *query) *query {
	g.use("order-by", "null-order")
	var keys []text
	for _, i := range g.Perm(len(q.kinds)) {
		c := "c" + strconv.Itoa(i)
		keys = append(keys, g.orderKey(column{text: same(c)}))
	}
	by := join(keys, ", ").wrap(" ORDER BY ", "")
	limit := ""
	if g.IntN(2) == 0 {
		g.use("limit", "")
		limit = " LIMIT " + strconv.Itoa(1+g.IntN(8))
		if g.IntN(3) == 0 {
			g.use("offset", "")
			limit += " OFFSET " + strconv.Itoa(g.IntN(3))
		}
	}
	from := func(q string) string { return "SELECT * FROM (" + q + ") AS s" }
	switch g.IntN(3) {
	case 1:
		g.use("order-by-plain", "")
		from = func(q string) string { return q }
	case 2:
		if len(g.named) > 0 {
			break
		}
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
		{"sum-small", "h", 'b', "SUM($1) $F", "CAST(sum($1) $F AS BIGINT)", ""},
		{"sum-wide", "w", 'w', "CAST(SUM($1) $F AS DECIMAL(30, 10))", "", ""},
		{"listagg", "s", 'i', "CHAR_LENGTH(LISTAGG($1) $F)", "CAST(length(string_agg($1, ',') $F) AS INTEGER)", "order-of-rows"},
		{"listagg-distinct", "s", 'i', "CHAR_LENGTH(LISTAGG(DISTINCT $1) $F)", "CAST(length(string_agg(DISTINCT $1, ',') $F) AS INTEGER)", "order-of-rows"},
		{"array-agg", "i", 'A', "ARRAY_SORT(ARRAY_AGG($1) $F)", "list_sort(list($1) $F, 'ASC', 'NULLS FIRST')", "order-of-rows"},
		{"array-agg-distinct", "s", 'V', "ARRAY_SORT(ARRAY_AGG(DISTINCT $1) $F)", "list_sort(list(DISTINCT $1) $F, 'ASC', 'NULLS FIRST')", "order-of-rows"},
		{"sum-of-sums", "ib", 'b', "(SUM($1) $F + COUNT($2))", "(CAST(sum($1) $F AS BIGINT) + count($2))", ""},
	}
	for _, name := range []string{"stddev_pop", "stddev_samp", "var_pop", "var_samp"} {
		out = append(out, aggregate{name, "d", 'f', strings.ToUpper(name) + "($1) $F", name + "($1) $F", ""})
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
