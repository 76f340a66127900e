package difftest

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/sql/logictest"
)

// clauses are the forms that are no productions and no aggregates.
var clauses = []string{"aggregate", "comma-join", "correlated-condition", "cross-join", "cross-join-unnest", "distinct", "except", "except-all", "exists", "filter",
	"from-query", "from-subquery", "full-join", "group-by", "having", "in-query", "intersect", "intersect-all", "join", "join-condition", "join-non-equal",
	"join-null-safe", "join-three", "left-join", "left-join-unnest", "limit", "not-exists", "not-in-query", "offset", "order-by", "right-join", "scalar-query",
	"scalar-query-correlated", "union", "union-all", "where", "with"}

// formNames are the names of all that the generator can write.
func formNames() []string {
	out := slices.Clone(clauses)
	for _, p := range productions() {
		out = append(out, p.name)
	}
	for _, a := range aggregates() {
		out = append(out, a.name)
	}
	return out
}

// TestGeneratedQueriesRun compiles what is generated and runs it with the
// optimizer on and off: the same rows, or the same failure (Invariant 7).
func TestGeneratedQueriesRun(t *testing.T) {
	const seed, queries = 7, 300
	g := newGenerator(seed)
	ours, _ := g.tables()
	e := newEngine(t, ours)
	ways := logictest.Ways()
	for n := range queries {
		q := g.next()
		want, code := e.run(t, q, ways[0])
		other := ways[1+g.IntN(len(ways)-1)]
		got, code2 := e.run(t, q, other)
		a, b := lines(want), lines(got)
		if !q.sorted {
			slices.Sort(a)
			slices.Sort(b)
		}
		if (code == "") != (code2 == "") || !slices.Equal(a, b) {
			t.Errorf("seed %d, query %d: straight %s\n%s%s %s\n%s%s", seed, n, code, show(want), other.Name, code2, show(got), q.ours)
		}
		if t.Failed() && n > 5000 {
			return
		}
	}
}

// TestRulesAreNamed holds that every rewrite has its reason, and is used.
func TestRulesAreNamed(t *testing.T) {
	used := map[string]bool{"null-order": true}
	for _, p := range productions() {
		used[p.rule] = true
	}
	for _, a := range aggregates() {
		used[a.rule] = true
	}
	for r := range used {
		if r != "" && rewrites[r] == "" {
			t.Errorf("rewrite %s has no reason", r)
		}
	}
	for r := range rewrites {
		if !used[r] {
			t.Errorf("rewrite %s is not used", r)
		}
	}
}
