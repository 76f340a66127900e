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

// The run that is made without being asked; MILLRACE_DIFFTEST is "seed queries".
const (
	defaultSeed    = 20240229
	defaultQueries = 2000
	queriesATable  = 250
	shownFailures  = 10
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
	if v := os.Getenv("MILLRACE_DIFFTEST"); v != "" {
		if _, err := fmt.Sscan(v, &seed, &queries); err != nil {
			t.Fatalf("MILLRACE_DIFFTEST=%q, want a seed and a number of queries: %v", v, err)
		}
	}
	c := &tally{passed: map[string]int{}, agreed: map[string]int{}, rules: map[string]int{}}
	for done := 0; done < queries && c.bad < shownFailures; done += queriesATable {
		c.world(t, seed+uint64(done), min(queriesATable, queries-done))
	}
	c.report(t)
	for _, name := range formNames() {
		if c.agreed[name] == 0 && c.bad == 0 && queries >= defaultQueries {
			t.Errorf("seed %d: %s never gave a row in %d queries", seed, name, c.queries)
		}
	}
}

// world runs queries over one set of tables.
func (c *tally) world(t *testing.T, seed uint64, queries int) {
	g := newGenerator(seed)
	ours, duck := g.tables()
	e, d := newEngine(t, ours), startDuckDB(t, slices.Concat(macros, duck))
	ways := logictest.Ways()
	for n := 0; n < queries && c.bad < shownFailures; n++ {
		q := g.next()
		way := ways[g.IntN(len(ways))]
		got, code := e.run(t, q, way)
		want, failed := d.run(t, q)
		c.queries++
		if code != "" && failed == "" {
			if rule := d.mayPass(t, q); rule != "" {
				c.passed[rule]++
				continue
			}
		}
		if problem := c.compare(q, got, code, want, failed); problem != "" {
			c.bad++
			t.Errorf("seed %d, query %d, %s: %s\nMillrace: %s\n%s\n%sDuckDB: %s\n%s\n%s", seed, n, way.Name, problem, code, q.ours, show(got), failed, q.duck, show(want))
		}
	}
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
	case has("null", nullFolded):
		return "null-constant"
	case has("where", "filter", "from-subquery") && has("and", "between"):
		return "null-and-error"
	}
	return ""
}

// compare says what differs, "" if nothing does.
func (c *tally) compare(q *query, got [][]string, code string, want [][]string, failed string) string {
	for _, bug := range []string{"Parser Error", "Binder Error", "Catalog Error", "ParserException", "BinderException", "CatalogException"} {
		if strings.HasPrefix(failed, bug) {
			return "DuckDB does not take the query"
		}
	}
	switch {
	case code != "" && failed != "":
		c.failedBoth++
		return ""
	case code != "":
		return "fails here alone"
	case failed != "":
		c.passed["eager-error"]++
		return ""
	}
	a, b := lines(got), lines(want)
	if !q.sorted {
		slices.Sort(a)
		slices.Sort(b)
	}
	if !slices.Equal(a, b) {
		return "other rows"
	}
	if len(a) > 0 {
		c.withRows++
		c.rows += len(a)
		for _, p := range q.used {
			if p != nullFolded {
				c.agreed[p]++
			}
		}
	}
	for _, r := range q.rules {
		c.rules[r]++
	}
	return ""
}

func (c *tally) report(t *testing.T) {
	passed := 0
	for r, n := range c.passed {
		passed += n
		if exclusions[r] == "" {
			t.Errorf("exclusion %s has no reason", r)
		}
	}
	t.Logf("%d queries: %d gave rows (%d rows), %d failed in both, %d differ; passed by exclusion: %v", c.queries, c.withRows, c.rows, c.failedBoth, c.bad, c.passed)
	if passed > c.queries*3/100 {
		t.Errorf("%d of %d queries passed by exclusion: the comparison says too little", passed, c.queries)
	}
	var forms, rules []string
	for _, p := range slices.Sorted(maps.Keys(c.agreed)) {
		forms = append(forms, p+" "+strconv.Itoa(c.agreed[p]))
	}
	for _, r := range slices.Sorted(maps.Keys(c.rules)) {
		rules = append(rules, r+" "+strconv.Itoa(c.rules[r]))
	}
	t.Logf("%d of %d forms, with the queries that gave rows: %s", len(forms), len(formNames()), strings.Join(forms, ", "))
	t.Logf("rewrites: %s", strings.Join(rules, ", "))
}
