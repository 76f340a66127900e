package keyed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/types"
)

// firingKinds are the windows that may fire more than once.
var firingKinds = append(kinds[:3:3], windowKind{"tumble", graph.Window{Size: minute}, func(ts int64) [][2]int64 {
	start := types.FloorDiv(ts, minute) * minute
	return [][2]int64{{start, start + minute}}
}})

// firingJob is windowsJob that fires more than once.
func firingJob(t testing.TB, over graph.Window, f graph.Firing, parallelism int, lateness int64, sources ...string) *graph.Job {
	job := windowsJob(t, over, parallelism, lateness, sources...)
	for _, n := range job.Nodes {
		if w, ok := n.Op.(*graph.WindowAggregate); ok {
			w.Firing = f
		}
	}
	return job
}

var firings = []graph.Firing{{Early: true}, {Late: true}, {Early: true, Late: true}, {Early: true, EarlyDelay: 1000, Late: true, LateDelay: 1000}}

// TestFiringLeavesTheRowsOfOneFiring: what early and late changes leave are the rows
// that windows give once, when no row can come any more, whatever the order of
// arrival, the sizes of batches and the parallelism; and in batch mode, where nothing
// is late, the rows of all input.
func TestFiringLeavesTheRowsOfOneFiring(t *testing.T) {
	changed := 0
	for seed := uint64(1); seed <= 32; seed++ {
		k, f := firingKinds[seed%4], firings[seed/4%4]
		rng := rand.New(rand.NewPCG(seed, 21))
		s := &scenario{t: t, delay: int64(rng.IntN(3)) * 10_000, window: &k.window}
		if f.Late {
			s.lateness = int64(1+rng.IntN(4)) * 15_000
		}
		s.feeds = []*feed{randomFeed(rng, "a", 1+rng.IntN(3), 60, 8*minute), randomFeed(rng, "b", 2, 40, 6*minute)}
		s.job = firingJob(t, k.window, f, 1+rng.IntN(4), s.lateness, "a", "b")
		s.job.Batch = seed%6 == 0
		w := newWorld()
		book, err := s.run(w.process(0, false), seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		rows := w.rows("out")
		if got, want := left(t, rows), windowsOracle(s, k.of); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %s, %+v:\n%s", seed, k.name, f, diff(got, want))
		}
		if v := book.Check(); len(v) > 0 {
			t.Fatalf("seed %d: the ledger does not hold: %v", seed, v)
		}
		for _, r := range rows {
			if strings.HasPrefix(r, "-U ") {
				changed++
			}
		}
	}
	if changed == 0 {
		t.Error("no row has changed")
	}
}

// TestFiringSurvivesCrashes crashes at each operation and goes on at another
// parallelism: no row is taken back that never came, and what is left are the rows of
// windows that fire once.
func TestFiringSurvivesCrashes(t *testing.T) {
	for i, f := range firings {
		k := firingKinds[i]
		t.Run(fmt.Sprintf("%s %+v", k.name, f), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(22, uint64(i)))
			s := &scenario{t: t, delay: 5000, window: &k.window, feeds: []*feed{randomFeed(rng, "a", 2, 20, 5*minute)},
				sinks: map[string]sinkOptions{"out": {maxRows: 8}}, opts: Options{Retained: 2}}
			if f.Late {
				s.lateness = 40_000
			}
			job := func(p int) *graph.Job { return firingJob(t, k.window, f, p, s.lateness, "a") }
			s.job = job(1)
			want := windowsOracle(s, k.of)
			for at := 1; ; at++ {
				w := newWorld()
				book, ops, crashed := s.lives(w, job, uint64(at%2), at)
				if got := left(t, w.rows("out")); !slices.Equal(got, want) {
					t.Fatalf("crash at operation %d (%s):\n%s", at, ops[len(ops)-1], diff(got, want))
				}
				if v := book.Check(); len(v) > 0 {
					t.Fatalf("crash at operation %d: the ledger does not hold: %v", at, v)
				}
				if open := book.Intents(func(e *ledger.Entry) bool { return e.Result != ledger.Committed }); len(open) > 0 {
					t.Fatalf("crash at operation %d: %d artefacts are not committed", at, len(open))
				}
				if !crashed {
					break
				}
			}
		})
	}
}

// TestWindowsOverFiringWindows: a window over rows that change, of windows that fire
// early and late, gives what it would give over final rows, and after each crash.
func TestWindowsOverFiringWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	for _, f := range []graph.Firing{{}, firings[2], firings[3]} {
		s := &scenario{t: t, delay: 5000, lateness: 40_000, window: &graph.Window{Size: minute}, feeds: []*feed{randomFeed(rng, "a", 2, 20, 5*minute)}, opts: Options{Retained: 2}}
		build := func(p int) *graph.Job {
			job := firingJob(t, graph.Window{Size: minute}, firings[2], p, s.lateness, "a")
			b := &builder{job: job}
			job.Nodes = job.Nodes[:len(job.Nodes)-1]
			first := job.Nodes[len(job.Nodes)-1]
			aggs := []graph.Aggregate{call(t, "COUNT(*)", "COUNT", first.Schema), call(t, "SUM(COUNT)", "SUM", first.Schema, 1), call(t, "MAX(COUNT)", "MAX", first.Schema, 1)}
			w := &graph.WindowAggregate{Window: graph.Window{Kind: graph.Hop, Step: 2 * minute, Size: 4 * minute}, Time: first.TimeColumn, Keys: []int{0}, Aggregates: aggs,
				Firing: f, Retracts: true, Late: graph.LateRows{Table: -1}}
			if f.Late {
				w.Lateness = 10_000
			}
			b.sink("out", b.add(w, outSchema([]types.Field{{Name: "uid", Type: types.NewBigInt()}}, aggs, true), 6, "out/second", b.exchange(first.ID, p, 0)))
			return job
		}
		s.job = build(1)
		inner := map[windowKey]int64{}
		s.each(func(e event, wm int64, _ string) {
			if start := types.FloorDiv(e.ts, minute) * minute; wm < start+minute-1+s.lateness {
				inner[windowKey{text(e.uid), start, start + minute}]++
			}
		})
		outer := map[windowKey][3]int64{}
		for k, n := range inner {
			for _, w := range overlaps(k.end-1, 4*minute, 2*minute) {
				o := windowKey{k.uid, w[0], w[1]}
				x := outer[o]
				outer[o] = [3]int64{x[0] + 1, x[1] + n, max(x[2], n)}
			}
		}
		var want []string
		for k, x := range outer {
			want = append(want, fmt.Sprintf("%s|%d|%d|%d|%s|%s|%s", k.uid, x[0], x[1], x[2], ts(k.start), ts(k.end), ts(k.end-1)))
		}
		slices.Sort(want)
		for at := 1; ; at++ {
			w := newWorld()
			_, ops, crashed := s.lives(w, build, uint64(at%2), at)
			if got := left(t, w.rows("out")); !slices.Equal(got, want) {
				t.Fatalf("%+v, crash at operation %d (%s):\n%s", f, at, ops[len(ops)-1], diff(got, want))
			}
			if !crashed {
				break
			}
		}
	}
}

// TestEarlyRowsOfProcessingTime: windows that end by the clock give rows before, by
// the clock, too; over a crash the rows of the checkpoint are those taken back.
func TestEarlyRowsOfProcessingTime(t *testing.T) {
	c := newClockWorld(t, graph.Window{Size: minute})
	c.firing = graph.Firing{Early: true, EarlyDelay: 10_000}
	c.start()
	c.give(3, batch.NoWatermark)
	c.due(clockBase.Add(10 * time.Second))
	c.clock.Advance(10 * time.Second)
	c.until("early rows", func() bool { return c.st.stirred.Load() })
	c.checkpoint()
	early := []string{counted("3", 3_720_000, 3_780_000)}
	c.until("early row", func() bool { return slices.Equal(c.w.rows("out"), early) })
	c.give(2, batch.NoWatermark)
	c.checkpoint() // with a row that is not out
	c.st.Kill()

	c.clock.Advance(5 * time.Second)
	c.start()
	defer func() { c.st.Kill() }()
	c.due(c.clock.Now().Add(time.Millisecond))
	c.clock.Advance(time.Second)
	c.until("what had changed", func() bool { return c.st.stirred.Load() })
	c.checkpoint()
	want := append(early, "-U "+counted("3", 3_720_000, 3_780_000), "+U "+counted("5", 3_720_000, 3_780_000))
	slices.Sort(want)
	c.until("the change", func() bool { return slices.Equal(c.w.rows("out"), want) })
	c.clock.Advance(time.Minute)
	if err := c.st.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := c.w.rows("out"); !slices.Equal(got, want) {
		t.Fatalf("the end said %v", got)
	}
}
