package difftest

import (
	"slices"
	"strconv"
	"strings"
)

// windowed is a function with OVER: $1... are its operands, $O the window.
type windowed struct {
	name string
	kind kind
	ours string
	duck string
	args string
	rule string
	// frames: the function takes one. unique: equal rows of the order would be told
	// apart by chance, so the order has none.
	frames, unique bool
}

// firstFramed is where the functions begin, nine of them, that need no order.
const firstFramed = 6

// windowedForms are the functions.
func windowedForms() []windowed {
	out := []windowed{
		{"row-number", 'b', "ROW_NUMBER() $O", "", "", "", false, true},
		{"rank", 'b', "RANK() $O", "", "", "", false, false},
		{"dense-rank", 'b', "DENSE_RANK() $O", "", "", "", false, false},
		{"percent-rank", 'f', "PERCENT_RANK() $O", "", "", "", false, false},
		{"cume-dist", 'f', "CUME_DIST() $O", "", "", "", false, false},
		{"ntile", 'i', "NTILE(3) $O", "CAST(ntile(3) $O AS INTEGER)", "", "", false, true},
		{"over-count-star", 'b', "COUNT(*) $O", "", "", "", true, false},
		{"over-count-filter", 'b', "COUNT(*) FILTER (WHERE $1) $O", "", "o", "", true, false},
		{"over-sum-int", 'b', "SUM($1) $O", "CAST(sum($1) $O AS BIGINT)", "i", "", true, false},
		{"over-sum-filter", 'b', "SUM($1) FILTER (WHERE $2) $O", "CAST(sum($1) FILTER (WHERE $2) $O AS BIGINT)", "io", "", true, false},
		{"over-sum-distinct", 'b', "SUM(DISTINCT $1) $O", "CAST(sum(DISTINCT $1) $O AS BIGINT)", "i", "", true, false},
		{"over-sum-decimal", 'm', "CAST(SUM($1) $O AS DECIMAL(12, 2))", "", "m", "", true, false},
		{"over-sum-double", 'f', "SUM($1) $O", "", "d", "", true, false},
		{"over-avg-int", 'i', "AVG($1) $O", "CAST(div_int(sum($1) $O, nullif(count($1) $O, 0)) AS INTEGER)", "i", "average-of-integers", true, false},
		{"over-avg-double", 'f', "AVG($1) $O", "", "d", "", true, false},
		{"over-sum-case", 'b', "(SUM($1) $O + $2)", "(CAST(sum($1) $O AS BIGINT) + $2)", "ib", "", true, false},
	}
	for _, k := range values {
		k := string(k)
		out = append(out,
			windowed{"lag/" + k, kind(k[0]), "LAG($1) $O", "", k, "", false, true},
			windowed{"lead/" + k, kind(k[0]), "LEAD($1, 2) $O", "", k, "", false, true},
			windowed{"first-value/" + k, kind(k[0]), "FIRST_VALUE($1) $O", "first_value($1 IGNORE NULLS) $O", k, "first-of-values", true, true},
			windowed{"last-value/" + k, kind(k[0]), "LAST_VALUE($1) $O", "last_value($1 IGNORE NULLS) $O", k, "first-of-values", true, true},
			windowed{"over-count/" + k, 'b', "COUNT($1) $O", "", k, "", true, false},
			windowed{"over-count-distinct/" + k, 'b', "COUNT(DISTINCT $1) $O", "", k, "", true, false})
		if k != "o" {
			out = append(out,
				windowed{"over-min/" + k, kind(k[0]), "MIN($1) $O", "", k, "", true, false},
				windowed{"over-max/" + k, kind(k[0]), "MAX($1) $O", "", k, "", true, false})
		}
	}
	for i := range out {
		if out[i].duck == "" {
			out[i].duck = out[i].ours
		}
	}
	return out
}

// over writes the window of a function: PARTITION BY, ORDER BY, a frame.
func (g *generator) over(w windowed) text {
	var parts []text
	if g.IntN(3) > 0 {
		g.use("partition-by", "")
		var keys []text
		for range 1 + g.IntN(2) {
			if of := g.columns(kind("oihsDb"[g.IntN(6)])); len(of) > 0 {
				keys = append(keys, pick(g, of).text)
			}
		}
		if len(keys) > 0 {
			parts = append(parts, join(keys, ", ").wrap("PARTITION BY ", ""))
		}
	}
	var keys []text
	distance := column{}
	ordered := !w.frames || w.unique || g.IntN(4) > 0
	if ordered {
		for range 1 + g.IntN(2) {
			of := g.columns(kind("ibmsDtwTdo"[g.IntN(10)]))
			if len(of) == 0 {
				continue
			}
			c := pick(g, of)
			if len(keys) == 0 {
				distance = c
			}
			keys = append(keys, g.orderKey(c))
		}
		if of := g.columns('i'); len(keys) == 0 && len(of) > 0 {
			keys = append(keys, g.orderKey(of[0]))
		}
		if w.unique || len(keys) == 0 {
			for _, u := range g.unique {
				keys = append(keys, text{u.ours, u.duck + " NULLS FIRST"})
			}
		}
	}
	if len(keys) > 0 {
		g.use("over-order", "null-order")
		parts = append(parts, join(keys, ", ").wrap("ORDER BY ", ""))
	}
	if w.frames && len(keys) > 0 && g.IntN(3) > 0 {
		if frame := g.frame(w, len(keys), distance, !strings.Contains(keys[0].ours, " DESC")); frame != "" {
			parts = append(parts, same(frame))
		}
	}
	return join(parts, " ").wrap("OVER (", ")")
}

// orderKey writes a column of ORDER BY with its direction and the place of NULLs.
func (g *generator) orderKey(c column) text {
	switch g.IntN(5) {
	case 1:
		return text{c.ours + " DESC", c.duck + " DESC NULLS LAST"}
	case 2:
		return c.wrap("", " ASC NULLS LAST")
	case 3:
		return c.wrap("", " DESC NULLS FIRST")
	}
	return text{c.ours, c.duck + " NULLS FIRST"}
}

// frame writes ROWS where the order tells all rows apart, else RANGE; a distance
// needs one key that has one, and goes up.
func (g *generator) frame(w windowed, keys int, by column, up bool) string {
	n, m := strconv.Itoa(g.IntN(4)), strconv.Itoa(g.IntN(4))
	if w.unique {
		g.use("frame-rows", "")
		return pick(g, []string{"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN " + n + " PRECEDING AND CURRENT ROW",
			"ROWS BETWEEN " + n + " PRECEDING AND " + m + " FOLLOWING", "ROWS BETWEEN CURRENT ROW AND " + m + " FOLLOWING",
			"ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
			"ROWS " + n + " PRECEDING", "ROWS BETWEEN " + n + " FOLLOWING AND UNBOUNDED FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND " + n + " PRECEDING"})
	}
	if keys == 1 && up && by.kind == 't' && g.IntN(2) == 0 {
		g.use("frame-range-interval", "")
		return pick(g, []string{"RANGE BETWEEN INTERVAL '365' DAY PRECEDING AND CURRENT ROW", "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND INTERVAL '20000' DAY FOLLOWING"})
	}
	if keys == 1 && up && strings.ContainsRune("ib", rune(by.kind)) && g.IntN(2) == 0 {
		g.use("frame-range-distance", "")
		return pick(g, []string{"RANGE BETWEEN " + n + " PRECEDING AND CURRENT ROW", "RANGE BETWEEN " + n + " PRECEDING AND " + m + " FOLLOWING",
			"RANGE BETWEEN CURRENT ROW AND " + m + " FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND " + n + " FOLLOWING"})
	}
	g.use("frame-range", "")
	return pick(g, []string{"RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
		"RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "RANGE BETWEEN CURRENT ROW AND CURRENT ROW"})
}

// windows writes SELECT with functions OVER windows, sometimes as a Top-N.
func (g *generator) windows() *query {
	from := g.from()
	forms := windowedForms()
	var list []text
	var kinds []kind
	for range g.IntN(3) {
		k := kind(values[g.IntN(len(values))])
		list, kinds = append(list, g.expr(k, 2)), append(kinds, k)
	}
	for range 1 + g.IntN(2) {
		w := pick(g, forms)
		// What needs an order needs something to order by.
		for g.unique == nil && (w.unique || !w.frames && !slices.ContainsFunc(g.scope, func(c column) bool { return c.kind == 'i' })) {
			w = forms[firstFramed+g.IntN(9)]
		}
		g.use(w.name, w.rule)
		var ours, duck []string
		for i := range len(w.args) {
			e := g.expr(kind(w.args[i]), 1)
			ours, duck = append(ours, "$"+strconv.Itoa(i+1), e.ours), append(duck, "$"+strconv.Itoa(i+1), e.duck)
		}
		o := g.over(w)
		ours, duck = append(ours, "$O", o.ours), append(duck, "$O", o.duck)
		list = append(list, text{strings.NewReplacer(ours...).Replace(w.ours), strings.NewReplacer(duck...).Replace(w.duck)})
		kinds = append(kinds, w.kind)
	}
	if len(g.unique) > 0 && g.IntN(3) == 1 {
		return g.topN(list, kinds, from)
	}
	for i := range list {
		list[i] = list[i].wrap("", " AS c"+strconv.Itoa(i))
	}
	sel, where := join(list, ", "), g.where()
	return &query{text: text{"SELECT " + sel.ours + from.ours + where.ours, "SELECT " + sel.duck + from.duck + where.duck}, kinds: kinds}
}

// topN writes the first rows of each partition.
func (g *generator) topN(list []text, kinds []kind, from text) *query {
	g.use("top-n", "")
	var names []string
	for i := range list {
		name := "c" + strconv.Itoa(i)
		list[i] = list[i].wrap("", " AS "+name)
		names = append(names, name)
	}
	o := g.over(windowed{unique: true})
	word := pick(g, []string{"ROW_NUMBER", "RANK", "DENSE_RANK"})
	list = append(list, o.wrap(word+"() ", " AS rn"))
	sel, where := join(list, ", "), g.where()
	end := ") AS n WHERE rn <= " + strconv.Itoa(1+g.IntN(3))
	start := "SELECT " + strings.Join(names, ", ") + " FROM (SELECT "
	return &query{text: text{start + sel.ours + from.ours + where.ours + end, start + sel.duck + from.duck + where.duck + end}, kinds: kinds}
}
