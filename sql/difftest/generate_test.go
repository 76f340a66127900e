package difftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// text is a piece of SQL in both dialects.
type text struct{ ours, duck string }

func same(s string) text { return text{s, s} }

func (t text) wrap(before, after string) text {
	return text{before + t.ours + after, before + t.duck + after}
}

func join(parts []text, sep string) text {
	var a, b []string
	for _, p := range parts {
		a, b = append(a, p.ours), append(b, p.duck)
	}
	return text{strings.Join(a, sep), strings.Join(b, sep)}
}

// column is a column in scope, or a selected expression.
type column struct {
	text
	kind kind
}

// query is one to run.
type query struct {
	text
	kinds []kind
	// sorted queries order by all columns.
	sorted bool
	used   []string // productions
	rules  []string // rewrites
	// choices are those that it was made of.
	choices []int
}

// generator writes queries, the same ones for the same seed. Its tables and views
// are those of the seed; each query has choices of its own.
type generator struct {
	*choices
	seed   uint64
	byKind map[kind][]production
	all    []production
	views  []view
	scope  []column
	// unique are columns in scope that tell all rows apart, nil if there are none.
	unique []text
	nested int // depth of queries in FROM
	depth  int // of sub-queries in expressions
	// correlated: the columns in scope have names that a sub-query can use.
	correlated bool
	// must is a condition that WHERE has to have: that of a list of tables.
	must *text
	// wanted is a form that the query begins with, so that each has its turn.
	wanted *production
	// named are the queries of WITH.
	named []text
	used  map[string]bool
	rules map[string]bool
}

func newGenerator(seed uint64) *generator {
	g := &generator{choices: drawn(seed, 0), seed: seed, byKind: map[kind][]production{}, all: productions()}
	for _, p := range g.all {
		g.byKind[p.kind] = append(g.byKind[p.kind], p)
	}
	return g
}

func (g *generator) use(name, rule string) {
	g.used[name] = true
	if rule != "" {
		g.rules[rule] = true
	}
}

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

// expr writes an expression of a kind, at most depth forms deep.
func (g *generator) expr(k kind, depth int) text {
	if strings.ContainsRune("nzprcu", rune(k)) {
		return g.operand(k)
	}
	if k == 'f' || depth > 0 && g.IntN(6) > 0 {
		return g.apply(g.form(k), depth-1)
	}
	c := g.columns(k)
	if len(c) == 0 || g.IntN(5) == 4 {
		return g.literal(k)
	}
	return pick(g, c).text
}

// form chooses one of a kind. Forms that fail for many values are chosen less, so
// that most queries give rows.
func (g *generator) form(k kind) production {
	p := pick(g, g.byKind[k])
	for try := 0; try < 3 && slices.Contains(risky, p.name); try++ {
		p = pick(g, g.byKind[k])
	}
	return p
}

// risky are forms that are an error for many values.
var risky = []string{"int-div", "int-mod", "big-div", "big-mod", "dec-div", "dec-mod", "int-mul", "big-mul", "dec-mul", "int-tinyint", "int-of-bigint", "element", "small-mul", "small-of-int", "wide-mul",
	"int-of-decimal", "big-of-decimal", "dec-of-double", "int-of-double", "timestampadd-year"}

func (g *generator) columns(k kind) []column {
	var out []column
	for _, c := range g.scope {
		if c.kind == k {
			out = append(out, c)
		}
	}
	return out
}

func (g *generator) apply(p production, depth int) text {
	g.use(p.name, p.rule)
	out := text{p.ours, p.duck}
	var args []text
	for i := range len(p.args) {
		args = append(args, g.expr(kind(p.args[i]), depth))
	}
	var ours, duck []string
	for i, a := range args {
		ours = append(ours, "$"+strconv.Itoa(i+1), a.ours)
		duck = append(duck, "$"+strconv.Itoa(i+1), a.duck)
	}
	out = text{strings.NewReplacer(ours...).Replace(out.ours), strings.NewReplacer(duck...).Replace(out.duck)}
	if !g.mentionsColumn(out) {
		g.used[nullFolded] = true
	}
	return out
}

// nullFolded marks a query with a form over constants, which may be NULL.
const nullFolded = "null-folded"

func (g *generator) mentionsColumn(t text) bool {
	return slices.ContainsFunc(g.scope, func(c column) bool { return strings.Contains(t.ours, c.ours) })
}

func quoted(s string) text { return same("'" + strings.ReplaceAll(s, "'", "''") + "'") }

// operand writes a literal that a form wants in this place.
func (g *generator) operand(k kind) text {
	switch k {
	case 'n':
		return same(strconv.Itoa(g.IntN(7)))
	case 'z':
		return same(strconv.Itoa(g.IntN(10) - 3))
	case 'p':
		return quoted(pick(g, []string{"a%", "%b", "%", "", "_", "_%", "%a%b%", "a_c%", `%\%%`, `%\_%`, "%é%", "数_%", "%,%", "__"}))
	case 'u':
		return quoted(pick(g, []string{"a", "k", "x y", "数", "b"}))
	case 'r':
		return quoted(pick(g, []string{"a", "^a", "b$", "[a-c]+", "[0-9]{2}", "a.c", "é|数", "x*y", "(a|b)c", "^[^,]*"}))
	default:
		return quoted(pick(g, []string{"a", "b", ",", "ab", "é", "数", " ", "%", "-", "xy"}))
	}
}

var strs = []string{"", "a", "b", "abc", "ABC", "a,b,c", ",", " a ", "é", "Émigré", "数据流", "数,据", "😀", "a%b", "a_c", "x'y", "12", "-7", "0", "2024-02-29", "1969-12-31", "2023-02-29", "Zebra ab", "ñandú", "+5", " 12 ", "1.005", "-0.5", "true", "FALSE", "2024-02-29 10:00:00", "1969-12-31 23:59:59.5", "9999999999.999", "a-b c_d"}

// literal writes a constant of a kind; never NULL.
func (g *generator) literal(k kind) text {
	s := g.constant(k)
	switch k {
	case 'i':
		return text{s, "CAST(" + s + " AS INTEGER)"} // DuckDB takes -2147483648 for a BIGINT
	case 'o', 's':
		return same(s)
	case 'D':
		return same("DATE " + s)
	case 'T':
		return same("TIME " + s)
	case 'I':
		return same(s)
	case 'A', 'V':
		return g.array(k)
	case 'M':
		a, b := g.literal('i'), g.literal('i')
		return text{"MAP[CAST('a' AS STRING), " + a.ours + ", '数', " + b.ours + "]", "MAP {'a': " + a.duck + ", '数': " + b.duck + "}"}
	case 'R':
		a, b := g.literal('i'), g.literal('s')
		return text{"CAST(ROW(" + a.ours + ", " + b.ours + ") AS " + ourNames[k] + ")", "{'x': " + a.duck + ", 'y': " + b.duck + "}"}
	case 't':
		return text{"CAST(TIMESTAMP " + s + " AS TIMESTAMP(6))", "TIMESTAMP " + s}
	}
	return text{"CAST(" + s + " AS " + ourNames[k] + ")", "CAST(" + s + " AS " + duckNames[k] + ")"}
}

// constant writes a constant that takes its type from its place.
func (g *generator) constant(k kind) string {
	switch k {
	case 'i':
		if g.IntN(80) == 79 {
			return pick(g, []string{"2147483647", "-2147483648", "46341", "65536"})
		}
		return strconv.Itoa(g.IntN(28) - 7)
	case 'b':
		if g.IntN(80) == 79 {
			return pick(g, []string{"9223372036854775807", "-9223372036854775808", "4294967296", "3037000500"})
		}
		return strconv.Itoa(g.IntN(2000) - 700)
	case 'm':
		if g.IntN(80) == 79 {
			return pick(g, []string{"9999999999.99", "-9999999999.99", "0.01", "-0.05"})
		}
		return fmt.Sprintf("%d.%02d", g.IntN(60)-20, pick(g, []int{0, 5, 25, 50, 49, 95, 99}))
	case 'd', 'f':
		return pick(g, []string{"0e0", "1e0", "-1e0", "25e-1", "-25e-1", "5e-1", "1024e0", "1.25e2", "-3.75e1", "1e15", "0.1e0", "-0.7e0"})
	case 'h':
		return strconv.Itoa(g.IntN(60) - 20)
	case 'F':
		return pick(g, []string{"0e0", "1e0", "-25e-1", "0.1e0", "16777216e0", "3.1415927e0", "-1e-3", "1e10"})
	case 'w':
		return pick(g, []string{"0", "1", "-1", "0.0000000001", "-12345678901.2345678901", "3.5", "99999999999999.9999999999", "0.3333333333"})
	case 'T':
		return "'" + pick(g, []string{"00:00:00", "23:59:59", "12:34:56", "01:02:03", "10:00:00"}) + "'"
	case 'I':
		return pick(g, []string{"INTERVAL '0' SECOND", "INTERVAL '1' DAY", "INTERVAL '90' MINUTE", "INTERVAL '5' HOUR", "INTERVAL '30' SECOND", "INTERVAL '24' HOUR"})
	case 's':
		return quoted(pick(g, strs)).ours
	case 'o':
		return pick(g, []string{"TRUE", "FALSE"})
	case 'D':
		return "'" + pick(g, []string{"1970-01-01", "1969-12-31", "2024-02-29", "2024-12-30", "2023-01-01", "1900-02-28", "1582-10-15", "2000-03-31", "2021-01-03", "2038-01-19"}) + "'"
	}
	return "'" + pick(g, []string{"1970-01-01 00:00:00.000000", "1969-12-31 23:59:59.999999", "1969-12-31 00:00:00.000000", "2024-02-29 12:34:56.789012", "2024-01-31 23:00:00.000000",
		"1900-03-01 06:30:00.500000", "2023-12-31 23:59:59.999000", "2000-01-01 00:00:00.000001", "1965-07-04 10:20:30.123456"}) + "'"
}

var columnKinds = []struct {
	name string
	kind kind
}{{"i1", 'i'}, {"i2", 'i'}, {"b1", 'b'}, {"m1", 'm'}, {"m2", 'm'}, {"d1", 'd'}, {"d2", 'd'}, {"s1", 's'}, {"s2", 's'}, {"o1", 'o'}, {"dt1", 'D'}, {"ts1", 't'}, {"ts2", 't'},
	{"h1", 'h'}, {"fl1", 'F'}, {"w1", 'w'}, {"tm1", 'T'}, {"ai", 'A'}, {"av", 'V'}, {"mp", 'M'}, {"rw", 'R'}}

var tableRows = []int{0, 1, 9, 30}

// view is one by its name, with its columns c0, c1...
type view struct {
	name  string
	kinds []kind
}

// tables writes the statements that make and fill the tables, and the views.
func (g *generator) tables() (ours, duck []string) {
	for n, rows := range tableRows {
		a, b := "CREATE TABLE t"+strconv.Itoa(n)+" (id INT", "CREATE TABLE t"+strconv.Itoa(n)+" (id INTEGER"
		for _, c := range columnKinds {
			a += ", " + c.name + " " + ourNames[c.kind]
			b += ", " + c.name + " " + duckNames[c.kind]
		}
		ours = append(ours, a+") WITH ('connector' = 'given', 'partitions' = '2')")
		duck = append(duck, b+")")
		var lines []text
		for i := range rows {
			lines = append(lines, g.row(i+1).wrap("(", ")"))
		}
		if rows > 0 {
			all := join(lines, ", ").wrap("INSERT INTO t"+strconv.Itoa(n)+" VALUES ", "")
			ours, duck = append(ours, all.ours), append(duck, all.duck)
		}
	}
	for n := range 3 {
		g.begin()
		g.nested++
		var q *query
		if n == 0 {
			q = g.grouping()
		} else {
			q = g.selection(nil, n == 2)
		}
		g.nested--
		name := "v" + strconv.Itoa(n)
		ours, duck = append(ours, "CREATE VIEW "+name+" AS "+q.ours), append(duck, "CREATE VIEW "+name+" AS "+q.duck)
		g.views = append(g.views, view{name, q.kinds})
	}
	return ours, duck
}

// row writes the values of a row; about every sixth is NULL.
func (g *generator) row(id int) text {
	vs := []text{same(strconv.Itoa(id))}
	for _, c := range columnKinds {
		if g.IntN(6) == 5 {
			vs = append(vs, text{"CAST(NULL AS " + ourNames[c.kind] + ")", "NULL"})
		} else {
			vs = append(vs, g.literal(c.kind))
		}
	}
	return join(vs, ", ")
}

// array writes an ARRAY of up to four elements, some of them NULL.
func (g *generator) array(k kind) text {
	of := map[kind]kind{'A': 'i', 'V': 's'}[k]
	vs := []text{g.literal(of)}
	for range g.IntN(4) {
		if g.IntN(4) == 3 {
			vs = append(vs, text{"CAST(NULL AS " + ourNames[of] + ")", "NULL"})
		} else {
			vs = append(vs, g.literal(of))
		}
	}
	list := join(vs, ", ")
	return text{"ARRAY[" + list.ours + "]", "[" + list.duck + "]"}
}
