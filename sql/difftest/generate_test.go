package difftest

import (
	"fmt"
	"math/rand/v2"
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
}

// generator writes queries, the same ones for the same seed.
type generator struct {
	*rand.Rand
	byKind map[kind][]production
	scope  []column
	arrays bool // ai and av are in scope
	nested int  // depth of queries in FROM
	depth  int  // of sub-queries in expressions
	// correlated: the columns in scope have names that a sub-query can use.
	correlated bool
	// must is a condition that WHERE has to have: that of a list of tables.
	must  *text
	used  map[string]bool
	rules map[string]bool
}

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 77)), byKind: map[kind][]production{}}
	for _, p := range productions() {
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
	if strings.ContainsRune("nzprc", rune(k)) {
		return g.operand(k)
	}
	if k == 'f' || depth > 0 && g.IntN(6) > 0 {
		return g.apply(pick(g, g.byKind[k]), depth-1)
	}
	if g.IntN(5) == 0 {
		return g.literal(k)
	}
	if c := g.columns(k); len(c) > 0 {
		return pick(g, c).text
	}
	return g.literal(k)
}

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
	for !g.arrays && (strings.Contains(p.ours, "ai") || strings.Contains(p.ours, "av")) {
		p = pick(g, g.byKind[p.kind])
	}
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
	form, _, _ := strings.Cut(p.name, "/")
	if slices.Contains(foldsToNull, form) && !g.mentionsColumn(out) {
		g.used[nullFolded] = true
	}
	return out
}

// nullFolded marks a query with such a form over constants.
const nullFolded = "null-folded"

// foldsToNull are forms that may be NULL of constants.
var foldsToNull = []string{"case", "nullif", "int-try-text", "int-try-bigint", "dec-try-narrow", "date-try-text", "to-date", "split-index", "regexp-extract"}

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
	case 't':
		return text{"CAST(TIMESTAMP " + s + " AS TIMESTAMP(6))", "TIMESTAMP " + s}
	}
	return text{"CAST(" + s + " AS " + ourNames[k] + ")", "CAST(" + s + " AS " + duckNames[k] + ")"}
}

// constant writes a constant that takes its type from its place.
func (g *generator) constant(k kind) string {
	switch k {
	case 'i':
		if g.IntN(25) == 0 {
			return pick(g, []string{"2147483647", "-2147483648", "46341", "65536"})
		}
		return strconv.Itoa(g.IntN(28) - 7)
	case 'b':
		if g.IntN(25) == 0 {
			return pick(g, []string{"9223372036854775807", "-9223372036854775808", "4294967296", "3037000500"})
		}
		return strconv.Itoa(g.IntN(2000) - 700)
	case 'm':
		if g.IntN(25) == 0 {
			return pick(g, []string{"9999999999.99", "-9999999999.99", "0.01", "-0.05"})
		}
		return fmt.Sprintf("%d.%02d", g.IntN(60)-20, pick(g, []int{0, 5, 25, 50, 49, 95, 99}))
	case 'd', 'f':
		return pick(g, []string{"0e0", "1e0", "-1e0", "25e-1", "-25e-1", "5e-1", "1024e0", "1.25e2", "-3.75e1", "1e15", "0.1e0", "-0.7e0"})
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
}{{"i1", 'i'}, {"i2", 'i'}, {"b1", 'b'}, {"m1", 'm'}, {"m2", 'm'}, {"d1", 'd'}, {"d2", 'd'}, {"s1", 's'}, {"s2", 's'}, {"o1", 'o'}, {"dt1", 'D'}, {"ts1", 't'}, {"ts2", 't'}}

var tableRows = []int{0, 1, 9, 30}

// tables writes the statements that make and fill the tables.
func (g *generator) tables() (ours, duck []string) {
	for n, rows := range tableRows {
		a, b := "CREATE TABLE t"+strconv.Itoa(n)+" (", "CREATE TABLE t"+strconv.Itoa(n)+" ("
		for _, c := range columnKinds {
			a += c.name + " " + ourNames[c.kind] + ", "
			b += c.name + " " + duckNames[c.kind] + ", "
		}
		ours = append(ours, a+"ai ARRAY<INT>, av ARRAY<STRING>) WITH ('connector' = 'given', 'partitions' = '2')")
		duck = append(duck, b+"ai INTEGER[], av VARCHAR[])")
		var lines []text
		for range rows {
			lines = append(lines, g.row().wrap("(", ")"))
		}
		if rows > 0 {
			all := join(lines, ", ").wrap("INSERT INTO t"+strconv.Itoa(n)+" VALUES ", "")
			ours, duck = append(ours, all.ours), append(duck, all.duck)
		}
	}
	return ours, duck
}

func (g *generator) row() text {
	var vs []text
	for _, c := range columnKinds {
		if g.IntN(6) == 0 {
			vs = append(vs, text{"CAST(NULL AS " + ourNames[c.kind] + ")", "NULL"})
		} else {
			vs = append(vs, g.literal(c.kind))
		}
	}
	return join(append(vs, g.array('i'), g.array('s')), ", ")
}

func (g *generator) array(k kind) text {
	if g.IntN(5) == 0 {
		return text{"CAST(NULL AS ARRAY<" + ourNames[k] + ">)", "NULL"}
	}
	vs := []text{g.literal(k)}
	for range g.IntN(3) {
		if g.IntN(4) == 0 {
			vs = append(vs, text{"CAST(NULL AS " + ourNames[k] + ")", "NULL"})
		} else {
			vs = append(vs, g.literal(k))
		}
	}
	list := join(vs, ", ")
	return text{"ARRAY[" + list.ours + "]", "[" + list.duck + "]"}
}
