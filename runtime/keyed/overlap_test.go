package keyed

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// windowKind is a window with a slow way to find those of a time.
type windowKind struct {
	name   string
	window graph.Window
	of     func(ts int64) [][2]int64
}

// kinds are windows of which a session alone has no such way.
var kinds = []windowKind{
	{"hop", graph.Window{Kind: graph.Hop, Size: minute, Step: minute / 4}, func(ts int64) (out [][2]int64) {
		return overlaps(ts, minute, minute/4)
	}},
	{"hop of no whole number of steps", graph.Window{Kind: graph.Hop, Size: 50_000, Step: 20_000}, func(ts int64) (out [][2]int64) {
		return overlaps(ts, 50_000, 20_000)
	}},
	{"cumulate", graph.Window{Kind: graph.Cumulate, Size: 2 * minute, Step: minute / 2}, func(ts int64) (out [][2]int64) {
		start := types.FloorDiv(ts, 2*minute) * 2 * minute
		for end := start + minute/2; end <= start+2*minute; end += minute / 2 {
			if ts < end {
				out = append(out, [2]int64{start, end})
			}
		}
		return out
	}},
	{"session", graph.Window{Kind: graph.Session, Size: 7_000}, nil},
}

// overlaps tries every window that could hold a time.
func overlaps(ts, size, step int64) (out [][2]int64) {
	first := types.FloorDiv(ts-2*size, step) * step
	for start := first; start <= ts; start += step {
		if start+size > ts {
			out = append(out, [2]int64{start, start + size})
		}
	}
	return out
}

// sessionOracle sorts the rows of each key and cuts them at the gaps.
func sessionOracle(s *scenario, gap int64) []string {
	type member struct {
		e     event
		order string
	}
	keys := map[string][]member{}
	s.each(func(e event, wm int64, order string) {
		if wm < e.ts+gap-1+s.lateness || s.job.Batch {
			keys[text(e.uid)] = append(keys[text(e.uid)], member{e, order})
		}
	})
	var out []string
	for uid, rows := range keys {
		slices.SortFunc(rows, func(a, b member) int { return cmp.Compare(a.e.ts, b.e.ts) })
		g, k := &windowSum{}, windowKey{uid, rows[0].e.ts, 0}
		for _, m := range rows {
			if k.end != 0 && m.e.ts > k.end {
				out = append(out, k.row(g))
				g, k = &windowSum{}, windowKey{uid, m.e.ts, 0}
			}
			k.end = m.e.ts + gap
			g.add(m.e, m.order)
		}
		out = append(out, k.row(g))
	}
	slices.Sort(out)
	return out
}

// TestOverlappingWindowsAndSessionsEqualSlowOracles: whatever the order of
// arrival, the batch sizes and the parallelism.
func TestOverlappingWindowsAndSessionsEqualSlowOracles(t *testing.T) {
	for _, k := range kinds {
		for seed := uint64(1); seed <= 12; seed++ {
			rng := rand.New(rand.NewPCG(seed, 11))
			s := &scenario{t: t, delay: int64(rng.IntN(3)) * 10_000, lateness: int64(rng.IntN(2)) * 15_000, window: &k.window}
			s.feeds = []*feed{randomFeed(rng, "a", 1+rng.IntN(3), 60, 8*minute)}
			names := []string{"a"}
			if rng.IntN(2) == 0 {
				s.feeds = append(s.feeds, randomFeed(rng, "b", 2, 40, 6*minute))
				names = append(names, "b")
			}
			s.job = windowsJob(t, k.window, 1+rng.IntN(4), s.lateness, names...)
			s.job.Batch = seed%5 == 0
			want := sessionOracle(s, k.window.Size)
			if k.of != nil {
				want = windowsOracle(s, k.of)
			}
			t.Run(fmt.Sprintf("%s %d", k.name, seed), func(t *testing.T) {
				s.t = t
				s.check(want, seed)
			})
		}
	}
}

// TestOverlappingWindowsAndSessionsAfterCrashes crashes several lives in a row
// and goes on at other parallelism: the rows are the same.
func TestOverlappingWindowsAndSessionsAfterCrashes(t *testing.T) {
	for _, k := range kinds {
		for seed := uint64(1); seed <= 10; seed++ {
			rng := rand.New(rand.NewPCG(seed, 12))
			s := &scenario{t: t, every: 1 + rng.IntN(3), delay: int64(rng.IntN(2)) * 5000, lateness: int64(rng.IntN(2)) * 20_000, window: &k.window,
				feeds: []*feed{randomFeed(rng, "a", 2, 30, 6*minute)}, sinks: map[string]sinkOptions{"out": {maxRows: rng.IntN(2) * 5}}}
			job := func(p int) *graph.Job { return windowsJob(t, k.window, p, s.lateness, "a") }
			s.job = job(1)
			want := sessionOracle(s, k.window.Size)
			if k.of != nil {
				want = windowsOracle(s, k.of)
			}
			var crashes []int
			for range 1 + rng.IntN(4) {
				crashes = append(crashes, 8+rng.IntN(30))
			}
			w := newWorld()
			book, _, _ := s.lives(w, job, seed, crashes...)
			s.proof(w, book, want, fmt.Sprintf("%s, seed %d, crashes at %v", k.name, seed, crashes))
		}
	}
}

// TestRowsOfSessionsAfterCrashes: each row comes once, with the bounds of its
// session, whatever crashes in between.
func TestRowsOfSessionsAfterCrashes(t *testing.T) {
	w := graph.Window{Kind: graph.Session, Size: 7_000}
	out := outSchema(slices.Clone(eventSchema.Fields), nil, true)
	job := func(p int) *graph.Job {
		b := newBuilder()
		ex := b.exchange(b.source("a"), p, 0)
		b.sink("out", b.add(&graph.SessionAssign{Window: w, Time: 1, Keys: []int{0}, Late: graph.LateRows{Table: -1}}, out, len(out.Fields)-1, "out/window", ex))
		return b.job
	}
	for seed := uint64(1); seed <= 10; seed++ {
		rng := rand.New(rand.NewPCG(seed, 13))
		s := &scenario{t: t, every: 1 + rng.IntN(3), delay: int64(rng.IntN(2)) * 5000, window: &w, feeds: []*feed{randomFeed(rng, "a", 2, 30, 6*minute)}}
		s.job = job(1)
		keys := map[string][]event{}
		s.each(func(e event, wm int64, _ string) {
			if wm < e.ts+w.Size-1 {
				keys[text(e.uid)] = append(keys[text(e.uid)], e)
			}
		})
		var want []string
		for uid, rows := range keys {
			slices.SortFunc(rows, func(a, b event) int { return cmp.Compare(a.ts, b.ts) })
			for from := 0; from < len(rows); {
				to := from + 1
				for to < len(rows) && rows[to].ts <= rows[to-1].ts+w.Size {
					to++
				}
				end := rows[to-1].ts + w.Size
				for _, e := range rows[from:to] {
					str := e.s
					if str == "" {
						str = "NULL"
					}
					want = append(want, fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s", uid, ts(e.ts), text(e.v), str, ts(rows[from].ts), ts(end), ts(end-1)))
				}
				from = to
			}
		}
		slices.Sort(want)
		w := newWorld()
		book, _, _ := s.lives(w, job, seed, 8+rng.IntN(30), 8+rng.IntN(30))
		s.proof(w, book, want, fmt.Sprintf("seed %d", seed))
	}
}
