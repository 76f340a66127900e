package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

func intervalJob(kind graph.JoinKind, lower, upper int64, parallelism int) *graph.Job {
	op := &graph.Join{Kind: kind, Keys: []graph.JoinKey{{}}, Interval: &graph.JoinInterval{LeftTime: 1, RightTime: 1, Lower: lower, Upper: upper},
		Late: graph.LateRows{Table: -1}}
	b := newBuilder()
	left, right := b.exchange(b.source("a"), parallelism, 0), b.exchange(b.source("b"), parallelism, 0)
	b.sink("out", b.add(op, graph.PairSchema(eventSchema, eventSchema), 1, "out/interval", left, right))
	return b.job
}

// inTime are the events of a feed that are not late: their partition had not come
// to their time before them.
func (s *scenario) inTime(name string) []event {
	var out []event
	one := *s
	one.feeds = slices.DeleteFunc(slices.Clone(s.feeds), func(f *feed) bool { return f.name != name })
	one.each(func(e event, wm int64, _ string) {
		if e.ts > wm {
			out = append(out, e)
		}
	})
	return out
}

func intervalOracle(s *scenario, kind graph.JoinKind, lower, upper int64) []string {
	var out []string
	left, right := s.inTime("a"), s.inTime("b")
	seen := make([]bool, len(right))
	for _, l := range left {
		matched := false
		for i, r := range right {
			if d := r.ts - l.ts; l.uid == nil || r.uid == nil || *l.uid != *r.uid || d < lower || d > upper {
				continue
			}
			matched, seen[i] = true, true
			out = append(out, cells(l)+"|"+cells(r))
		}
		if !matched && (kind == graph.LeftJoin || kind == graph.FullJoin) {
			out = append(out, cells(l)+"|"+nulls)
		}
	}
	for i, r := range right {
		if !seen[i] && kind.KeepsRight() {
			out = append(out, nulls+"|"+cells(r))
		}
	}
	slices.Sort(out)
	return out
}

// TestIntervalJoinEqualsEveryPair: whatever the order of arrival, the batches and
// the parallelism, with rows that are late and bounds on either side.
func TestIntervalJoinEqualsEveryPair(t *testing.T) {
	point := operator.PointInTime()
	for seed := uint64(1); seed <= 40; seed++ {
		rng := rand.New(rand.NewPCG(seed, 21))
		lower := rng.Int64N(4*minute) - 3*minute
		upper := lower + rng.Int64N(3*minute)
		kind := graph.JoinKind(seed % 4)
		s := &scenario{t: t, delay: int64(rng.IntN(3)) * 20_000, window: &point, every: rng.IntN(4),
			feeds: []*feed{randomFeed(rng, "a", 2, 20, 8*minute), randomFeed(rng, "b", 1, 30, 8*minute)},
			job:   intervalJob(kind, lower, upper, 1+rng.IntN(4))}
		t.Logf("seed %d: %s from %d to %d ms", seed, kind, lower, upper)
		s.check(intervalOracle(s, kind, lower, upper), seed)
	}
}

// TestIntervalJoinForgets: state does not grow with the input.
func TestIntervalJoinForgets(t *testing.T) {
	op := intervalJob(graph.LeftJoin, -10, 10, 1).Nodes[4].Op.(*graph.Join)
	k, err := operator.NewJoin(op, eventSchema, eventSchema, graph.PairSchema(eventSchema, eventSchema))
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for n := range int64(200) {
		foldEvents(t, k, 0, n*1000)
		sizes = append(sizes, k.Bytes())
	}
	if early, late := slices.Max(sizes[20:60]), slices.Max(sizes[160:]); late > 2*early {
		t.Fatalf("state has grown from %d to %d bytes", early, late)
	}
}

// TestIntervalJoinSurvivesCrashes crashes at each operation and goes on at another
// parallelism: pairs come once, padded rows neither early nor twice.
func TestIntervalJoinSurvivesCrashes(t *testing.T) { intervalJoinSurvivesCrashes(t, nil) }

func intervalJoinSurvivesCrashes(t *testing.T, spill vfs.FS) {
	rng := rand.New(rand.NewPCG(6, 6))
	point := operator.PointInTime()
	s := &scenario{t: t, spill: spill, delay: 10_000, window: &point, feeds: []*feed{randomFeed(rng, "a", 2, 10, 5*minute), randomFeed(rng, "b", 1, 12, 5*minute)},
		sinks: map[string]sinkOptions{"out": {maxRows: 4}}, opts: Options{Retained: 2}}
	job := func(p int) *graph.Job { return intervalJob(graph.FullJoin, -minute, minute/2, p) }
	s.job = job(1)
	want := intervalOracle(s, graph.FullJoin, -minute, minute/2)
	for seed := uint64(0); seed < 2; seed++ {
		for k := 1; ; k++ {
			w := newWorld()
			book, ops, crashed := s.lives(w, job, seed, k)
			s.proof(w, book, want, fmt.Sprintf("seed %d, crash at operation %d (%s)", seed, k, ops[len(ops)-1]))
			if !crashed {
				break
			}
		}
	}
	if spill != nil && s.spilled == 0 {
		t.Error("nothing went to disk")
	}
}

// windowJoinJob joins the counts of two feeds by key and window: an aggregate for
// each, then a join of their results.
func windowJoinJob(t testing.TB, kind graph.JoinKind, parallelism int) *graph.Job {
	b := newBuilder()
	var sides []graph.NodeID
	aggs := []graph.Aggregate{call(t, "COUNT(*)", "COUNT", eventSchema)}
	out := outSchema([]types.Field{{Name: "uid", Type: types.NewBigInt()}}, aggs, true)
	for _, name := range []string{"a", "b"} {
		ex := b.exchange(b.source(name), parallelism, 0)
		w := b.add(&graph.WindowAggregate{Window: graph.Window{Size: minute}, Time: 1, Keys: []int{0}, Aggregates: aggs, Late: graph.LateRows{Table: -1}},
			out, len(out.Fields)-1, "out/window "+name, ex)
		sides = append(sides, b.exchange(w, parallelism, 0, 2, 3))
	}
	given := graph.Window{Kind: graph.Given, Start: 2, End: 3}
	op := &graph.Join{Kind: kind, Keys: []graph.JoinKey{{}, {Left: 2, Right: 2}, {Left: 3, Right: 3}}, Windows: []graph.Window{given, given}, Late: graph.LateRows{Table: -1}}
	pair := graph.PairSchema(out, out)
	for i := range pair.Fields {
		pair.Fields[i].Type = pair.Fields[i].Type.WithNullable(true) // either side may be padded
	}
	b.sink("out", b.add(op, pair, 4, "out/join", sides...))
	return b.job
}

func windowJoinOracle(s *scenario, kind graph.JoinKind) []string {
	type key struct {
		uid   string
		start int64
	}
	count := map[string]map[key]int{}
	for _, f := range s.feeds {
		n := map[key]int{}
		count[f.name] = n
		one := *s
		one.feeds = []*feed{f}
		one.each(func(e event, wm int64, _ string) {
			if start := types.FloorDiv(e.ts, minute) * minute; wm < start+minute-1 {
				n[key{text(e.uid), start}]++
			}
		})
	}
	cell := func(k key, n int) string {
		return fmt.Sprintf("%s|%d|%s|%s|%s", k.uid, n, ts(k.start), ts(k.start+minute), ts(k.start+minute-1))
	}
	const none = "NULL|NULL|NULL|NULL|NULL"
	var out []string
	for k, n := range count["a"] {
		m, ok := count["b"][k]
		switch {
		case ok && k.uid != "NULL":
			out = append(out, cell(k, n)+"|"+cell(k, m))
		case kind == graph.LeftJoin || kind == graph.FullJoin:
			out = append(out, cell(k, n)+"|"+none)
		}
	}
	for k, m := range count["b"] {
		if _, ok := count["a"][k]; (!ok || k.uid == "NULL") && kind.KeepsRight() {
			out = append(out, none+"|"+cell(k, m))
		}
	}
	slices.Sort(out)
	return out
}

// TestWindowJoinOfAggregates through crashes at each operation: three stages, the
// third fed by the other two.
func TestWindowJoinOfAggregates(t *testing.T) {
	for i, kind := range []graph.JoinKind{graph.InnerJoin, graph.LeftJoin, graph.RightJoin, graph.FullJoin} {
		rng := rand.New(rand.NewPCG(8, uint64(i)))
		s := &scenario{t: t, delay: 10_000, window: &graph.Window{Size: minute}, feeds: []*feed{randomFeed(rng, "a", 2, 12, 5*minute), randomFeed(rng, "b", 1, 15, 5*minute)},
			opts: Options{Retained: 2}}
		job := func(p int) *graph.Job { return windowJoinJob(t, kind, p) }
		s.job = job(1)
		want := windowJoinOracle(s, kind)
		for k := 1; ; k++ {
			w := newWorld()
			book, ops, crashed := s.lives(w, job, uint64(i), k)
			s.proof(w, book, want, fmt.Sprintf("%s, crash at operation %d (%s)", kind, k, ops[len(ops)-1]))
			if !crashed {
				break
			}
			if kind != graph.FullJoin {
				k += 4
			}
		}
	}
}

// foldEvents gives an operator a hundred rows around a time, and the watermark
// behind them.
func foldEvents(t testing.TB, k operator.Keyed, input int, at int64) {
	t.Helper()
	foldEventsOf(t, k, input, at, func(i int64) int64 { return at + i })
}

// foldEventsOf is foldEvents with the key of each row.
func foldEventsOf(t testing.TB, k operator.Keyed, input int, at int64, key func(i int64) int64) {
	t.Helper()
	var events []event
	for i := range int64(100) {
		events = append(events, event{uid: num(key(i)), ts: at + i, v: num(i), s: "x"})
	}
	b := new(batch.Batch)
	fill(b, events)
	sel := make(batch.Sel, b.Len)
	for i := range sel {
		sel[i] = int32(i)
	}
	hashes := make([]uint64, b.Len)
	batch.HashRows(hashes, []*batch.Vec{&b.Cols[0]}, nil)
	out := &operator.Results{Emit: func(*batch.Batch) error { return nil }, Dead: func(*batch.Batch, *batch.ValueError) { t.Fatal("a row is dead") }}
	ctx := expr.NewContext(types.UTC(), 1)
	if err := k.Fold(ctx, &operator.KeyedRows{Input: input, Batch: b, Sel: sel, Hashes: hashes}, out); err != nil {
		t.Fatal(err)
	}
	if err := k.Advance(ctx, at+50, out); err != nil {
		t.Fatal(err)
	}
}
