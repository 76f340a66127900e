package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// nestedJob counts the keys that have a number of rows, and gives the greatest sum
// among them: groups move from one group to another, which loses its last one.
func nestedJob(t testing.TB, parallelism int) *graph.Job {
	b, g := groupJob(t, parallelism, []int{0}, call(t, "COUNT(*)", "COUNT", eventSchema), call(t, "SUM(v)", "SUM", eventSchema, 2))
	b.job.Batch = false
	b.job.Nodes[g].Op.(*graph.GroupAggregate).Updates = true
	inner := b.job.Nodes[g].Schema
	aggs := []graph.Aggregate{call(t, "COUNT(*)", "COUNT", inner), call(t, "MAX(s)", "MAX", inner, 2)}
	ex := b.exchange(g, parallelism, 1)
	outer := b.add(&graph.GroupAggregate{Updates: true, Retracts: true, Keys: []int{1}, Aggregates: aggs},
		outSchema([]types.Field{inner.Fields[1]}, aggs, false), -1, "out/outer", ex)
	b.sink("out", outer)
	return b.job
}

// TestNestedUpdatesSurviveCrashes is TestUpdatesSurviveCrashes of an aggregate over
// an aggregate.
func TestNestedUpdatesSurviveCrashes(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	s := &scenario{t: t, feeds: []*feed{randomFeed(rng, "a", 2, 20, 5*minute)}, sinks: map[string]sinkOptions{"out": {maxRows: 6}}, opts: Options{Retained: 2}}
	type sum struct{ n, v int64 }
	groups, outer := map[string]*sum{}, map[int64]*sum{}
	valued := map[string]bool{}
	for _, e := range s.feeds[0].all() {
		g := groups[text(e.uid)]
		if g == nil {
			g = &sum{}
			groups[text(e.uid)] = g
		}
		g.n++
		if e.v != nil {
			g.v += *e.v
			valued[text(e.uid)] = true
		}
	}
	most := map[int64]*int64{}
	for uid, g := range groups {
		if outer[g.n] == nil {
			outer[g.n] = &sum{}
		}
		outer[g.n].n++
		if v := g.v; valued[uid] && (most[g.n] == nil || *most[g.n] < v) {
			most[g.n] = &v
		}
	}
	var want []string
	for n, o := range outer {
		want = append(want, fmt.Sprintf("%d|%d|%s", n, o.n, text(most[n])))
	}
	slices.Sort(want)
	deleted := false
	for k := 1; ; k++ {
		w := newWorld()
		book, ops, crashed := s.lives(w, func(p int) *graph.Job { return nestedJob(t, p) }, uint64(k%2), k)
		rows := w.rows("out")
		if got := left(t, rows); !slices.Equal(got, want) {
			t.Fatalf("crash at operation %d (%s):\n%s", k, ops[len(ops)-1], diff(got, want))
		}
		if v := book.Check(); len(v) > 0 {
			t.Fatalf("crash at operation %d: the ledger does not hold: %v", k, v)
		}
		deleted = deleted || slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, "-D ") })
		if !crashed {
			break
		}
	}
	if !deleted {
		t.Error("no group has gone")
	}
}

// TestChangesThatATableWouldMisunderstand: which -U become -D on the way into a
// table.
func TestChangesThatATableWouldMisunderstand(t *testing.T) {
	const (
		i, ub, ua, d = batch.Insert, batch.UpdateBefore, batch.UpdateAfter, batch.Delete
	)
	for name, c := range map[string]struct {
		keys   []int64
		kinds  []batch.Kind
		good   batch.Sel
		lost   batch.Sel
		upsert bool
		want   []batch.Kind
	}{
		"pairs stay":                        {[]int64{1, 1, 2}, []batch.Kind{ub, ua, i}, batch.Sel{0, 1, 2}, nil, true, []batch.Kind{ub, ua, i}},
		"a condition kept the new row back": {[]int64{1, 1, 2}, []batch.Kind{ub, ua, i}, batch.Sel{0, 2}, nil, true, []batch.Kind{d, ua, i}},
		"as in Flink where all kinds go":    {[]int64{1, 1, 2}, []batch.Kind{ub, ua, i}, batch.Sel{0, 2}, nil, false, []batch.Kind{ub, ua, i}},
		"the new row died":                  {[]int64{1, 1, 2}, []batch.Kind{ub, ua, i}, batch.Sel{0, 2}, batch.Sel{1}, false, []batch.Kind{d, ua, i}},
		"the key changed":                   {[]int64{1, 3}, []batch.Kind{ub, ua}, batch.Sel{0, 1}, nil, true, []batch.Kind{d, ua}},
		"the last of a batch":               {[]int64{1}, []batch.Kind{ub}, batch.Sel{0}, nil, true, []batch.Kind{d}},
		"two taken back together":           {[]int64{1, 2, 1, 2}, []batch.Kind{ub, ub, ua, ua}, batch.Sel{0, 1, 2, 3}, nil, true, []batch.Kind{d, d, ua, ua}},
		"deletions stay":                    {[]int64{1, 2}, []batch.Kind{d, d}, batch.Sel{0, 1}, nil, true, []batch.Kind{d, d}},
	} {
		s := &sinkPart{op: &graph.Sink{Table: &connector.Table{PrimaryKey: []int{0}}}, upsert: c.upsert, good: c.good, lost: c.lost}
		b := &batch.Batch{Cols: make([]batch.Vec, 1), Len: len(c.keys), Kinds: c.kinds}
		b.Cols[0].Reset(types.NewBigInt(), len(c.keys))
		copy(b.Cols[0].I64, c.keys)
		before := slices.Clone(c.kinds)
		s.complete(b)
		if !slices.Equal(b.Kinds, c.want) {
			t.Errorf("%s: %v, want %v", name, b.Kinds, c.want)
		}
		if !slices.Equal(c.kinds, before) {
			t.Errorf("%s: the kinds of the operator's batch were written to", name)
		}
	}
}

// overOfGroupsJob is the running sum of the sums of keys with as many rows, by key:
// keys move from one number of rows to the next, and leave the sums behind them.
func overOfGroupsJob(t testing.TB, parallelism int) *graph.Job {
	b, g := groupJob(t, parallelism, []int{0}, call(t, "COUNT(*)", "COUNT", eventSchema), call(t, "SUM(v)", "SUM", eventSchema, 2))
	b.job.Batch = false
	b.job.Nodes[g].Op.(*graph.GroupAggregate).Updates = true
	inner := b.job.Nodes[g].Schema
	sum := call(t, "r", "SUM", inner, 2)
	running := graph.Frame{Start: graph.FrameBound{Kind: graph.UnboundedPreceding}, End: graph.FrameBound{Kind: graph.CurrentRow}}
	op := &graph.Over{Time: -1, Changes: true, Keys: []int{1}, Order: []graph.SortKey{{Column: 0}}, Late: graph.LateRows{Table: -1},
		Calls: []graph.OverCall{{Name: "r", Text: "r", Bound: sum.Bound, Args: []int{2}, Default: -1, Filter: -1, Frame: running}}}
	out := &batch.Schema{Fields: append(slices.Clone(inner.Fields), types.Field{Name: "r", Type: sum.Bound.Return})}
	b.sink("out", b.add(op, out, -1, "out/over", b.exchange(g, parallelism, 1)))
	return b.job
}

// TestOverOfUpdatesSurvivesCrashes is TestUpdatesSurviveCrashes of OVER over an
// aggregate.
func TestOverOfUpdatesSurvivesCrashes(t *testing.T) { overOfUpdatesSurvivesCrashes(t, nil) }

func overOfUpdatesSurvivesCrashes(t *testing.T, spill vfs.FS) {
	rng := rand.New(rand.NewPCG(17, 17))
	s := &scenario{t: t, spill: spill, feeds: []*feed{randomFeed(rng, "a", 2, 20, 5*minute)}, sinks: map[string]sinkOptions{"out": {maxRows: 6}}, opts: Options{Retained: 2}}
	type group struct {
		uid  *int64
		n, v int64
		any  bool
	}
	groups := map[string]*group{}
	for _, e := range s.feeds[0].all() {
		g := groups[text(e.uid)]
		if g == nil {
			g = &group{uid: e.uid}
			groups[text(e.uid)] = g
		}
		g.n++
		if e.v != nil {
			g.v, g.any = g.v+*e.v, true
		}
	}
	sumOf := func(v int64, any bool) string {
		if !any {
			return "NULL"
		}
		return fmt.Sprint(v)
	}
	var want []string
	for _, g := range groups {
		var sum int64
		any := false
		for _, o := range groups {
			if o.n == g.n && (o.uid == nil || g.uid != nil && *o.uid <= *g.uid) {
				sum, any = sum+o.v, any || o.any
			}
		}
		want = append(want, fmt.Sprintf("%s|%d|%s|%s", text(g.uid), g.n, sumOf(g.v, g.any), sumOf(sum, any)))
	}
	slices.Sort(want)
	for k := 1; ; k++ {
		w := newWorld()
		book, ops, crashed := s.lives(w, func(p int) *graph.Job { return overOfGroupsJob(t, p) }, uint64(k%2), k)
		if got := left(t, w.rows("out")); !slices.Equal(got, want) {
			t.Fatalf("crash at operation %d (%s):\n%s", k, ops[len(ops)-1], diff(got, want))
		}
		if v := book.Check(); len(v) > 0 {
			t.Fatalf("crash at operation %d: the ledger does not hold: %v", k, v)
		}
		if !crashed {
			break
		}
	}
}

// exceptOfGroupsJob is the keys of a table with how many rows they have, but for those that
// have as many in another one: rows come and go on both sides.
func exceptOfGroupsJob(t testing.TB, parallelism int) *graph.Job {
	b := newBuilder()
	aggs := []graph.Aggregate{call(t, "COUNT(*)", "COUNT", eventSchema)}
	schema := outSchema([]types.Field{eventSchema.Fields[0]}, aggs, false)
	var sides []graph.NodeID
	for _, name := range []string{"a", "b"} {
		g := b.add(&graph.GroupAggregate{Updates: true, Keys: []int{0}, Aggregates: aggs}, schema, -1, "out/group "+name, b.exchange(b.source(name), parallelism, 0))
		sides = append(sides, b.exchange(g, parallelism, 0, 1))
	}
	b.sink("out", b.add(&graph.SetOperation{Kind: graph.Except, All: true, Changes: true}, schema, -1, "out/set", sides...))
	return b.job
}

// TestExceptOfUpdatesSurvivesCrashes is TestUpdatesSurviveCrashes of EXCEPT over
// aggregates.
func TestExceptOfUpdatesSurvivesCrashes(t *testing.T) { exceptOfUpdatesSurvivesCrashes(t, nil) }

func exceptOfUpdatesSurvivesCrashes(t *testing.T, spill vfs.FS) {
	rng := rand.New(rand.NewPCG(18, 18))
	s := &scenario{t: t, spill: spill, feeds: []*feed{randomFeed(rng, "a", 2, 14, 5*minute), randomFeed(rng, "b", 1, 12, 5*minute)},
		sinks: map[string]sinkOptions{"out": {maxRows: 6}}, opts: Options{Retained: 2}}
	count := [2]map[string]int{{}, {}}
	for i, f := range s.feeds {
		for _, e := range f.all() {
			count[i][text(e.uid)]++
		}
	}
	var want []string
	equal := 0
	for uid, n := range count[0] {
		if n == count[1][uid] {
			equal++
			continue
		}
		want = append(want, fmt.Sprintf("%s|%d", uid, n))
	}
	if slices.Sort(want); equal == 0 || len(want) == 0 {
		t.Fatalf("%d keys have as many rows in both tables, others %q", equal, want)
	}
	for k := 1; ; k++ {
		w := newWorld()
		book, ops, crashed := s.lives(w, func(p int) *graph.Job { return exceptOfGroupsJob(t, p) }, uint64(k%2), k)
		if got := left(t, w.rows("out")); !slices.Equal(got, want) {
			t.Fatalf("crash at operation %d (%s):\n%s", k, ops[len(ops)-1], diff(got, want))
		}
		if v := book.Check(); len(v) > 0 {
			t.Fatalf("crash at operation %d: the ledger does not hold: %v", k, v)
		}
		if !crashed {
			break
		}
	}
	if spill != nil && s.spilled == 0 {
		t.Error("nothing went to disk")
	}
}
