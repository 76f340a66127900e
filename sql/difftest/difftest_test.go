//go:build services

package difftest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/logictest"
)

// The run that is made without being asked; MILLRACE_DIFFTEST is "seed queries",
// MILLRACE_TORTURE asks for the long run.
const (
	defaultSeed    = 20240229
	defaultQueries = 1500
	longQueries    = 20000
	queriesATable  = 250
	shownFailures  = 10
	shrinkingTries = 400
)

// The shares in a hundred that the comparison must have; chance moves those of the
// short run more.
const (
	leastWithRows      = 80
	leastWithRowsShort = 75
	mostPassed         = 3
)

// tally is what the report says.
type tally struct {
	queries, withRows, rows, failedBoth int
	passed                              map[string]int // by exclusion
	agreed                              map[string]int // queries with rows, by production
	rules                               map[string]int
	bad                                 int
}

// TestAgreesWithDuckDB runs each query in both and compares.
func TestAgreesWithDuckDB(t *testing.T) {
	seed, queries := uint64(defaultSeed), defaultQueries
	if os.Getenv("MILLRACE_TORTURE") != "" {
		queries = longQueries
	}
	if v := os.Getenv("MILLRACE_DIFFTEST"); v != "" {
		if _, err := fmt.Sscan(v, &seed, &queries); err != nil {
			t.Fatalf("MILLRACE_DIFFTEST=%q, want a seed and a number of queries: %v", v, err)
		}
	}
	c := &tally{passed: map[string]int{}, agreed: map[string]int{}, rules: map[string]int{}}
	for done := 0; done < queries && c.bad < shownFailures; done += queriesATable {
		c.world(t, seed+uint64(done), min(queriesATable, queries-done))
	}
	c.report(t, seed)
}

// world runs queries over one set of tables.
func (c *tally) world(t *testing.T, seed uint64, queries int) {
	g := newGenerator(seed)
	ours, duck := g.tables()
	b := &both{newEngine(t, ours), startDuckDB(t, slices.Concat(macros, duck))}
	ways := logictest.Ways()
	for n := 0; n < queries && c.bad < shownFailures; n++ {
		q, way := g.number(n), ways[n%len(ways)]
		o := b.run(t, q, way)
		c.queries++
		if o.problem == "" {
			c.count(q, o)
			continue
		}
		c.bad++
		// A smaller query that is wrong in the same way says more.
		shrink(q.choices, shrinkingTries, func(given []int) bool {
			small := g.again(n, given)
			if len(small.ours) >= len(q.ours) {
				return false
			}
			p := b.run(t, small, way)
			if p.problem != o.problem {
				return false
			}
			q, o = small, p
			return true
		})
		t.Errorf("seed %d, query %d, %s: %s\nMillrace: %s\n%s\n%sDuckDB: %s\n%s\n%s", seed, n, way.Name, o.problem, o.code, q.ours, show(o.got, o.want), o.failed, q.duck, show(o.want, o.got))
	}
}

// both are the two that are compared.
type both struct {
	engine *engine
	duck   *duckDB
}

// outcome is what became of a query: rows, or the code and the text of errors.
type outcome struct {
	got, want    [][]string
	code, failed string
	// passed is the exclusion that lets them differ, problem what is wrong.
	passed, problem string
}

// run runs a query in both and compares.
func (b *both) run(t *testing.T, q *query, way logictest.Way) (o outcome) {
	o.got, o.code = b.engine.run(q, way)
	o.want, o.failed = b.duck.run(t, q)
	for _, bug := range []string{"Parser Error", "Binder Error", "Catalog Error", "ParserException", "BinderException", "CatalogException"} {
		if strings.HasPrefix(o.failed, bug) {
			o.problem = "DuckDB does not take the query"
			return o
		}
	}
	switch {
	case strings.HasPrefix(o.code, notRun):
		o.problem = notRun
	case o.code != "" && o.failed != "":
	case o.code != "":
		if o.passed = b.duck.mayPass(t, q); o.passed == "" {
			o.problem = "fails here alone"
		}
	case o.failed != "":
		o.passed = "eager-error"
	default:
		got, want := lines(o.got), lines(o.want)
		if !q.sorted {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			o.problem = "other rows"
		}
	}
	return o
}

// mayPass names the exclusion by which a query may fail here alone, "" if none does.
func (d *duckDB) mayPass(t *testing.T, q *query) string {
	has := func(names ...string) bool {
		return slices.ContainsFunc(q.used, func(p string) bool {
			form, _, _ := strings.Cut(p, "/")
			return slices.Contains(names, form)
		})
	}
	switch {
	case d.failsUnoptimized(t, q):
		return "folded-error"
	case has("left-join", "right-join", "full-join", "join-three") && has("where", "filter", "having"):
		return "padded-null"
	case has("null", nullFolded, "nullif", "case-value"):
		return "null-constant"
	case has("in-query", "not-in-query", "any-query", "in-grouped", "in-set-operation", "join-filtered", "join-query"):
		return "empty-side"
	case has("where", "filter", "from-subquery") && has("and", "between"):
		return "null-and-error"
	}
	return ""
}

// count notes what a query that agrees has shown.
func (c *tally) count(q *query, o outcome) {
	switch {
	case o.passed != "":
		c.passed[o.passed]++
		return
	case o.code != "":
		c.failedBoth++
		return
	}
	if len(o.got) > 0 {
		c.withRows++
		c.rows += len(o.got)
		for _, p := range q.used {
			if p != nullFolded {
				c.agreed[p]++
			}
		}
	}
	for _, r := range q.rules {
		c.rules[r]++
	}
}

// report says what was compared, and fails where that was too little.
func (c *tally) report(t *testing.T, seed uint64) {
	passed := 0
	for r, n := range c.passed {
		passed += n
		if exclusions[r] == "" {
			t.Errorf("exclusion %s has no reason", r)
		}
	}
	t.Logf("seed %d: %d queries, %d gave rows (%.1f %%, %d rows), %d failed in both, %d differ; passed by exclusion: %v",
		seed, c.queries, c.withRows, 100*float64(c.withRows)/float64(max(c.queries, 1)), c.rows, c.failedBoth, c.bad, c.passed)
	var forms, rules, missing []string
	for _, p := range slices.Sorted(maps.Keys(c.agreed)) {
		forms = append(forms, p+" "+strconv.Itoa(c.agreed[p]))
	}
	for _, r := range slices.Sorted(maps.Keys(c.rules)) {
		rules = append(rules, r+" "+strconv.Itoa(c.rules[r]))
	}
	for _, name := range formNames() {
		if c.agreed[name] == 0 {
			missing = append(missing, name)
		}
	}
	t.Logf("%d of %d forms, with the queries that gave rows: %s", len(forms), len(formNames()), strings.Join(forms, ", "))
	t.Logf("%d of %d rewrites, with the queries: %s", len(rules), len(rewrites), strings.Join(rules, ", "))
	if c.bad > 0 || c.queries < defaultQueries {
		return // a part says nothing about the whole
	}
	if passed*100 > c.queries*mostPassed {
		t.Errorf("%d of %d queries passed by exclusion: the comparison says too little", passed, c.queries)
	}
	least := leastWithRowsShort
	if c.queries >= longQueries {
		least = leastWithRows
	}
	if c.withRows*100 < c.queries*least {
		t.Errorf("%d of %d queries gave rows, want %d %%", c.withRows, c.queries, least)
	}
	// The short run need not come by everything.
	if len(missing) > 0 && (c.queries >= longQueries || len(missing)*20 > len(formNames())) {
		t.Errorf("%d forms never gave a row: %s", len(missing), strings.Join(missing, ", "))
	}
}
