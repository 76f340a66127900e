package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

const minute = int64(60_000)

// windowJob is SELECT uid, COUNT(*), COUNT(v), SUM(v), MIN(v), LAST_VALUE(s),
// window_start, window_end, window_time ... GROUP BY uid, TUMBLE of a minute.
func windowJob(t testing.TB, parallelism int, lateness int64, sources ...string) *graph.Job {
	return windowsJob(t, graph.Window{Size: minute}, parallelism, lateness, sources...)
}

// windowsJob is windowJob over any windows.
func windowsJob(t testing.TB, over graph.Window, parallelism int, lateness int64, sources ...string) *graph.Job {
	b := newBuilder()
	var in []graph.NodeID
	for _, s := range sources {
		in = append(in, b.source(s))
	}
	from := in[0]
	if len(in) > 1 {
		from = b.add(&graph.Union{}, eventSchema, 1, "", in...)
	}
	ex := b.exchange(from, parallelism, 0)
	aggs := []graph.Aggregate{call(t, "COUNT(*)", "COUNT", eventSchema), call(t, "COUNT(v)", "COUNT", eventSchema, 2),
		call(t, "SUM(v)", "SUM", eventSchema, 2), call(t, "MIN(v)", "MIN", eventSchema, 2), call(t, "LAST_VALUE(s)", "LAST_VALUE", eventSchema, 3)}
	out := outSchema([]types.Field{{Name: "uid", Type: types.NewBigInt()}}, aggs, true)
	w := b.add(&graph.WindowAggregate{Window: over, Time: 1, Keys: []int{0}, Aggregates: aggs, Lateness: lateness,
		Late: graph.LateRows{Table: -1}}, out, len(out.Fields)-1, "out/window", ex)
	b.sink("out", w)
	return b.job
}

type windowKey struct {
	uid        string
	start, end int64
}

type windowSum struct {
	rows, vs, sum int64
	min           *int64
	last          string
	order         string
}

func (g *windowSum) add(e event, order string) {
	g.rows++
	if e.v != nil {
		g.vs++
		g.sum += *e.v
		if g.min == nil || *e.v < *g.min {
			g.min = e.v
		}
	}
	if e.s != "" && order > g.order {
		g.last, g.order = e.s, order
	}
}

func (k windowKey) row(g *windowSum) string {
	sum, last := "NULL", "NULL"
	if g.vs > 0 {
		sum = fmt.Sprint(g.sum)
	}
	if g.order != "" {
		last = g.last
	}
	return fmt.Sprintf("%s|%d|%d|%s|%s|%s|%s|%s|%s", k.uid, g.rows, g.vs, sum, text(g.min), last, ts(k.start), ts(k.end), ts(k.end-1))
}

// each gives every event with the watermark of its own partition before it and
// its place in the order of rows.
func (s *scenario) each(f func(e event, wm int64, order string)) {
	for _, x := range s.feeds {
		for p, rows := range x.parts {
			wm := int64(-1 << 62)
			for off, e := range rows {
				f(e, wm, fmt.Sprintf("%020d %s %05d %010d", e.ts+1<<40, x.name, p, off))
				wm = max(wm, e.ts-s.delay)
			}
		}
	}
}

// windowOracle computes the table slowly: each row is late or not by its own
// partition alone.
func windowOracle(s *scenario) []string {
	return windowsOracle(s, func(ts int64) [][2]int64 {
		start := types.FloorDiv(ts, minute) * minute
		return [][2]int64{{start, start + minute}}
	})
}

// windowsOracle does so for windows that may overlap: those of a time.
func windowsOracle(s *scenario, of func(ts int64) [][2]int64) []string {
	groups := map[windowKey]*windowSum{}
	s.each(func(e event, wm int64, order string) {
		for _, w := range of(e.ts) {
			if wm >= w[1]-1+s.lateness && !s.job.Batch {
				continue
			}
			k := windowKey{text(e.uid), w[0], w[1]}
			if groups[k] == nil {
				groups[k] = &windowSum{}
			}
			groups[k].add(e, order)
		}
	})
	var out []string
	for k, g := range groups {
		out = append(out, k.row(g))
	}
	slices.Sort(out)
	return out
}

// check runs the scenario without a crash and compares.
func (s *scenario) check(want []string, seed uint64) *world {
	s.t.Helper()
	w := newWorld()
	book, err := s.run(w.process(0, false), seed)
	if err != nil {
		s.t.Fatalf("seed %d: %v", seed, err)
	}
	if got := w.rows("out"); !slices.Equal(got, want) {
		s.t.Fatalf("seed %d: the table differs:\n%s", seed, diff(got, want))
	}
	if v := book.Check(); len(v) > 0 {
		s.t.Fatalf("seed %d: the ledger does not hold: %v", seed, v)
	}
	return w
}

// TestWindowAggregateEqualsASlowOracle: whatever the order of arrival, the batch
// sizes and the parallelism.
func TestWindowAggregateEqualsASlowOracle(t *testing.T) {
	for seed := uint64(1); seed <= 24; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &scenario{t: t, delay: int64(rng.IntN(3)) * 10_000, lateness: int64(rng.IntN(2)) * 15_000, window: &graph.Window{Size: minute}}
		s.feeds = []*feed{randomFeed(rng, "a", 1+rng.IntN(3), 60, 8*minute)}
		names := []string{"a"}
		if rng.IntN(2) == 0 {
			s.feeds = append(s.feeds, randomFeed(rng, "b", 2, 40, 6*minute))
			names = append(names, "b")
		}
		s.job = windowJob(t, 1+rng.IntN(4), s.lateness, names...)
		s.job.Batch = seed%5 == 0
		s.check(windowOracle(s), seed)
	}
}
