package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/vfs"
)

// left is what changes leave behind in the end.
func left(t testing.TB, rows []string) []string {
	t.Helper()
	count := map[string]int{}
	for _, r := range rows {
		switch {
		case strings.HasPrefix(r, "-U ") || strings.HasPrefix(r, "-D "):
			count[r[3:]]--
		case strings.HasPrefix(r, "+U "):
			count[r[3:]]++
		default:
			count[r]++
		}
	}
	var out []string
	for r, n := range count {
		if n < 0 {
			t.Fatalf("row %q was taken back more often than it came", r)
		}
		for range n {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return out
}

func updatesJob(t testing.TB, parallelism int) *graph.Job {
	b, g := groupJob(t, parallelism, []int{0}, call(t, "COUNT(*)", "COUNT", eventSchema), call(t, "MAX(v)", "MAX", eventSchema, 2))
	b.job.Batch = false
	b.job.Nodes[g].Op.(*graph.GroupAggregate).Updates = true
	b.sink("out", g)
	return b.job
}

// TestUpdatesSurviveCrashes crashes at each operation and goes on at another
// parallelism: what the changes leave is the groups of all rows, and no row is
// taken back that never came.
func TestUpdatesSurviveCrashes(t *testing.T) { updatesSurviveCrashes(t, nil) }

// updatesSurviveCrashes does so with state in memory, or on a filesystem.
func updatesSurviveCrashes(t *testing.T, spill vfs.FS) {
	rng := rand.New(rand.NewPCG(11, 11))
	s := &scenario{t: t, feeds: []*feed{randomFeed(rng, "a", 2, 20, 5*minute)}, sinks: map[string]sinkOptions{"out": {maxRows: 6}}, opts: Options{Retained: 2}, spill: spill}
	type sum struct {
		n   int
		max *int64
	}
	groups := map[string]*sum{}
	for _, e := range s.feeds[0].all() {
		g := groups[text(e.uid)]
		if g == nil {
			g = &sum{}
			groups[text(e.uid)] = g
		}
		g.n++
		if e.v != nil && (g.max == nil || *e.v > *g.max) {
			g.max = e.v
		}
	}
	var want []string
	for uid, g := range groups {
		want = append(want, fmt.Sprintf("%s|%d|%s", uid, g.n, text(g.max)))
	}
	slices.Sort(want)
	updated := false
	for k := 1; ; k++ {
		w := newWorld()
		book, ops, crashed := s.lives(w, func(p int) *graph.Job { return updatesJob(t, p) }, uint64(k%2), k)
		rows := w.rows("out")
		if got := left(t, rows); !slices.Equal(got, want) {
			t.Fatalf("crash at operation %d (%s):\n%s", k, ops[len(ops)-1], diff(got, want))
		}
		if v := book.Check(); len(v) > 0 {
			t.Fatalf("crash at operation %d: the ledger does not hold: %v", k, v)
		}
		if open := book.Intents(func(e *ledger.Entry) bool { return e.Result != ledger.Committed }); len(open) > 0 {
			t.Fatalf("crash at operation %d: %d artefacts are not committed", k, len(open))
		}
		updated = updated || slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, "-U ") })
		if !crashed {
			break
		}
	}
	if !updated {
		t.Error("no group has changed")
	}
	if spill != nil && s.spilled == 0 {
		t.Error("nothing went to disk")
	}
}

// TestErrorsOfUpdates: a result that is an error takes the row before it back, and
// is dead.
func TestErrorsOfUpdates(t *testing.T) {
	most := int64(1<<63 - 1)
	b, g := groupJob(t, 1, []int{0}, call(t, "SUM(v)", "SUM", eventSchema, 2))
	b.job.Batch = false
	b.job.Nodes[g].Op.(*graph.GroupAggregate).Updates = true
	b.sink("out", g)
	rows := []event{{num(1), 0, num(most), ""}, {num(2), 1, num(5), ""}, {num(1), 2, num(1), ""}}
	s := &scenario{t: t, job: b.job, feeds: []*feed{{name: "a", parts: [][]event{rows}}}}
	w := newWorld()
	if _, err := s.run(w.process(0, false), 1); err != nil {
		t.Fatal(err)
	}
	if got := left(t, w.rows("out")); !slices.Equal(got, []string{"2|5"}) {
		t.Fatalf("left %v of %v", got, w.rows("out"))
	}
	if len(w.dead) == 0 {
		t.Fatal("no row is dead")
	}
}

// TestStreamJoinSurvivesCrashes: every kind, whatever order the rows come in, and
// through crashes at each operation: what is left in the end is the join of all
// rows, and no row is taken back that never came.
func TestStreamJoinSurvivesCrashes(t *testing.T) { streamJoinSurvivesCrashes(t, nil) }

func streamJoinSurvivesCrashes(t *testing.T, spill vfs.FS) {
	for _, kind := range []graph.JoinKind{graph.InnerJoin, graph.LeftJoin, graph.RightJoin, graph.FullJoin} {
		c := joinCase{kind: kind, condition: true, changes: true}
		rng := rand.New(rand.NewPCG(12, uint64(kind)))
		s := &scenario{t: t, feeds: []*feed{randomFeed(rng, "a", 2, 12, 5*minute), randomFeed(rng, "b", 1, 14, 5*minute)},
			sinks: map[string]sinkOptions{"out": {maxRows: 6}}, opts: Options{Retained: 2}, spill: spill}
		want := c.oracle(s.feeds[0].all(), s.feeds[1].all())
		taken := false
		for k := 1; ; k++ {
			w := newWorld()
			book, ops, crashed := s.lives(w, func(p int) *graph.Job { return c.job(t, p) }, uint64(k%2), k)
			rows := w.rows("out")
			if got := left(t, rows); !slices.Equal(got, want) {
				t.Fatalf("%s, crash at operation %d (%s):\n%s", kind, k, ops[len(ops)-1], diff(got, want))
			}
			if v := book.Check(); len(v) > 0 {
				t.Fatalf("%s, crash at operation %d: the ledger does not hold: %v", kind, k, v)
			}
			taken = taken || slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, "-D ") })
			if !crashed {
				break
			}
		}
		if spill != nil && s.spilled == 0 {
			t.Errorf("%s: nothing went to disk", kind)
		}
		if taken != (kind != graph.InnerJoin) {
			t.Errorf("%s: rows were taken back: %v", kind, taken)
		}
	}
}
