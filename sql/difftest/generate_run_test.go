package difftest

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/logictest"
)

// clauses are the forms that are no productions and no aggregates.
var clauses = []string{"aggregate", "any-query", "comma-join", "correlated-condition", "cross-join", "cross-join-unnest/int", "cross-join-unnest/map", "cross-join-unnest/ordinality", "cross-join-unnest/text",
	"cube", "distinct", "except", "except-all", "exists", "filter", "frame-range", "frame-range-distance", "frame-range-interval", "frame-rows", "from-query", "from-subquery", "full-join", "group-by", "grouping-id", "grouping-sets",
	"having", "in-grouped", "in-query", "in-set-operation", "intersect", "intersect-all", "join", "join-condition", "join-filtered", "join-non-equal", "join-null-safe", "join-query", "join-three", "join-using", "key-and-rollup", "left-join",
	"left-join-unnest/int", "left-join-unnest/map", "left-join-unnest/ordinality", "left-join-unnest/text", "limit", "natural-join", "nested-key", "not-exists", "not-in-query", "offset", "order-by", "order-by-plain", "order-hidden", "over-aggregate", "over-keys", "over-order",
	"partition-by", "query-as-value", "right-join", "rollup", "scalar-query", "scalar-query-correlated", "top-n", "union", "union-all", "union-narrower", "values", "view", "where", "with", "with-query", "with-twice"}

// formNames are the names of all that the generator can write.
func formNames() []string {
	out := slices.Clone(clauses)
	for _, p := range productions() {
		out = append(out, p.name)
	}
	for _, a := range aggregates() {
		out = append(out, a.name)
	}
	for _, w := range windowedForms() {
		out = append(out, w.name)
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
		q := g.number(n)
		want, code := e.run(q, ways[0])
		other := ways[1+n%(len(ways)-1)]
		got, code2 := e.run(q, other)
		a, b := lines(want), lines(got)
		if !q.sorted {
			slices.Sort(a)
			slices.Sort(b)
		}
		if strings.HasPrefix(code, notRun) || (code == "") != (code2 == "") || !slices.Equal(a, b) {
			t.Errorf("seed %d, query %d: straight %s\n%s%s %s\n%s%s", seed, n, code, show(want, got), other.Name, code2, show(got, want), q.ours)
		}
	}
}

// TestChoicesMakeTheQuery holds that a query can be written again from its choices,
// and that fewer of them still make one.
func TestChoicesMakeTheQuery(t *testing.T) {
	g := newGenerator(11)
	g.tables()
	for n := range 50 {
		q := g.number(n)
		if again := g.again(n, q.choices); again.text != q.text {
			t.Errorf("query %d: %s\nagain: %s", n, q.ours, again.ours)
		}
		if none := g.again(n, nil); none.ours == "" || len(none.ours) > len(q.ours)+100 {
			t.Errorf("query %d of no choices: %s", n, none.ours)
		}
	}
}

// TestShrink holds that what does not matter goes.
func TestShrink(t *testing.T) {
	failing := []int{3, 0, 9, 7, 2, 8, 1, 5, 5, 4}
	fails := func(c []int) bool {
		at := slices.IndexFunc(c, func(v int) bool { return v >= 7 })
		return at >= 0 && slices.Contains(c[at:], 5)
	}
	if got := shrink(failing, 1000, fails); !slices.Equal(got, []int{7, 5}) {
		t.Errorf("got %v, want [7 5]", got)
	}
	tries := 0
	shrink(failing, 3, func([]int) bool { tries++; return false })
	if tries > 3 {
		t.Errorf("%d tries, want at most 3", tries)
	}
}

// TestRulesAreNamed holds that every rewrite has its reason, and is used.
func TestRulesAreNamed(t *testing.T) {
	used := map[string]bool{"null-order": true, "grand-total": true}
	for _, p := range productions() {
		used[p.rule] = true
	}
	for _, a := range aggregates() {
		used[a.rule] = true
	}
	for _, w := range windowedForms() {
		used[w.rule] = true
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
