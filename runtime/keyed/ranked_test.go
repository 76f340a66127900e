package keyed

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// placed is an event with its place in the order of rows.
type placed struct {
	event
	order string
}

func (e placed) row() string {
	s := e.s
	if s == "" {
		s = "NULL"
	}
	return fmt.Sprintf("%s|%s|%s|%s", text(e.uid), ts(e.ts), text(e.v), s)
}

// onTime are the events by uid that their own partition had not passed, in order of
// time and place.
func (s *scenario) onTime() map[string][]placed {
	keys := map[string][]placed{}
	s.each(func(e event, wm int64, order string) {
		if wm < e.ts || s.job.Batch {
			keys[text(e.uid)] = append(keys[text(e.uid)], placed{e, order})
		}
	})
	for _, rows := range keys {
		slices.SortFunc(rows, func(a, b placed) int { return cmp.Compare(a.order, b.order) })
	}
	return keys
}

// instant lets lanes decide lateness by the row's own time.
var instant = graph.Window{Kind: graph.Session, Size: 1}

func withColumns(types_ ...types.Field) *batch.Schema {
	return &batch.Schema{Fields: append(slices.Clone(eventSchema.Fields), types_...)}
}

// overJob is SUM(v) over the last three rows, COUNT(*) and LAST_VALUE(s) from the
// first row on, and SUM(v) over ten seconds, by row time.
func overJob(t testing.TB, p int) *graph.Job {
	b := newBuilder()
	ex := b.exchange(b.source("a"), p, 0)
	sum, count, last := call(t, "s", "SUM", eventSchema, 2), call(t, "c", "COUNT", eventSchema), call(t, "l", "LAST_VALUE", eventSchema, 3)
	rows := func(n int64) graph.Frame {
		return graph.Frame{Rows: true, Start: graph.FrameBound{Kind: graph.Preceding, Offset: n}, End: graph.FrameBound{Kind: graph.CurrentRow}}
	}
	running := graph.Frame{Rows: true, Start: graph.FrameBound{Kind: graph.UnboundedPreceding}, End: graph.FrameBound{Kind: graph.CurrentRow}}
	tenSeconds := graph.Frame{Start: graph.FrameBound{Kind: graph.Preceding, Offset: 10_000_000}, End: graph.FrameBound{Kind: graph.CurrentRow}}
	op := &graph.Over{Time: 1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Late: graph.LateRows{Table: -1}, Calls: []graph.OverCall{
		{Name: "s", Text: "s", Bound: sum.Bound, Args: []int{2}, Default: -1, Filter: -1, Frame: rows(2)},
		{Name: "c", Text: "c", Bound: count.Bound, Default: -1, Filter: -1, Frame: running},
		{Name: "l", Text: "l", Bound: last.Bound, Args: []int{3}, Default: -1, Filter: -1, Frame: running},
		{Name: "r", Text: "r", Bound: sum.Bound, Args: []int{2}, Default: -1, Filter: -1, Frame: tenSeconds},
		{Name: "g", Text: "g", Func: graph.OverLag, Args: []int{2}, Default: -1, Filter: -1, Offset: 2}}}
	out := withColumns(types.Field{Name: "s", Type: sum.Bound.Return}, types.Field{Name: "c", Type: count.Bound.Return},
		types.Field{Name: "l", Type: last.Bound.Return}, types.Field{Name: "r", Type: sum.Bound.Return}, types.Field{Name: "g", Type: types.NewBigInt()})
	b.sink("out", b.add(op, out, 1, "out/over", ex))
	return b.job
}

func overOracle(s *scenario) []string {
	var out []string
	for _, rows := range s.onTime() {
		for i, e := range rows {
			sum := func(in func(k int) bool) string {
				n, any := int64(0), false
				for k := range rows {
					if in(k) && rows[k].v != nil {
						n, any = n+*rows[k].v, true
					}
				}
				if !any {
					return "NULL"
				}
				return fmt.Sprint(n)
			}
			last, lag := "NULL", "NULL"
			for _, x := range rows[:i+1] {
				if x.s != "" {
					last = x.s
				}
			}
			if i >= 2 {
				lag = text(rows[i-2].v)
			}
			out = append(out, fmt.Sprintf("%s|%s|%d|%s|%s|%s", e.row(), sum(func(k int) bool { return k <= i && k >= i-2 }), i+1, last,
				sum(func(k int) bool { return rows[k].ts <= e.ts && rows[k].ts >= e.ts-10_000 }), lag))
		}
	}
	slices.Sort(out)
	return out
}

// firstJob keeps the first row of each uid by row time.
func firstJob(t testing.TB, p int) *graph.Job {
	b := newBuilder()
	ex := b.exchange(b.source("a"), p, 0)
	op := &graph.FirstRow{Time: 1, Keys: []int{0}, Number: true, Late: graph.LateRows{Table: -1}}
	b.sink("out", b.add(op, withColumns(types.Field{Name: "n", Type: types.NewBigInt()}), 1, "out/first", ex))
	return b.job
}

func firstOracle(s *scenario) []string {
	var out []string
	for _, rows := range s.onTime() {
		out = append(out, rows[0].row()+"|1")
	}
	slices.Sort(out)
	return out
}

// rankJob keeps the two greatest v of each uid in windows of a minute, which rows
// carry.
func rankJob(t testing.TB, p int) *graph.Job {
	b := newBuilder()
	with := withColumns(types.Field{Name: "window_start", Type: types.NewTimestamp(3)}, types.Field{Name: "window_end", Type: types.NewTimestamp(3)},
		types.Field{Name: "window_time", Type: types.NewTimestamp(3)})
	// Windows are put on behind a first stage: in these tests lanes hand events over as they are.
	over := b.add(&graph.FirstRow{Time: 1, Keys: []int{1, 0, 2, 3}, Late: graph.LateRows{Table: -1}}, eventSchema, 1, "out/first", b.exchange(b.source("a"), p, 1, 0, 2, 3))
	assigned := b.add(&graph.WindowAssign{Window: graph.Window{Size: minute}, Time: 1}, with, 6, "", over)
	op := &graph.Rank{Window: graph.Window{Kind: graph.Given, Start: 4, End: 5}, Keys: []int{0}, Order: []graph.SortKey{{Column: 2, Desc: true, NullsLast: true}}, N: 2, Number: true, Late: graph.LateRows{Table: -1}}
	out := &batch.Schema{Fields: append(slices.Clone(with.Fields), types.Field{Name: "n", Type: types.NewBigInt()})}
	b.sink("out", b.add(op, out, 6, "out/rank", b.exchange(assigned, p, 0)))
	return b.job
}

func rankOracle(s *scenario) []string {
	var out []string
	for _, rows := range s.onTime() {
		windows := map[int64][]placed{}
		seen := map[string]bool{}
		for _, e := range rows {
			if !seen[e.row()] {
				seen[e.row()] = true
				start := types.FloorDiv(e.ts, minute) * minute
				windows[start] = append(windows[start], e)
			}
		}
		for start, in := range windows {
			// Behind a stage rows of equal order go by their encoding: NULL first, then time.
			slices.SortFunc(in, func(a, b placed) int {
				switch {
				case a.v == nil && b.v == nil:
				case a.v == nil:
					return 1
				case b.v == nil:
					return -1
				case *a.v != *b.v:
					return cmp.Compare(*b.v, *a.v)
				}
				return bytes.Compare(encodedEvent(a.event), encodedEvent(b.event))
			})
			for i, e := range in[:min(len(in), 2)] {
				out = append(out, fmt.Sprintf("%s|%s|%s|%s|%d", e.row(), ts(start), ts(start+minute), ts(start+minute-1), i+1))
			}
		}
	}
	slices.Sort(out)
	return out
}

func encodedEvent(e event) (out []byte) {
	var b batch.Batch
	fill(&b, []event{e})
	for i := range b.Cols {
		out = batch.AppendValue(out, &b.Cols[i], 0)
	}
	return out
}

// sortJob is ORDER BY row time, v DESC.
func sortJob(t testing.TB, p int) *graph.Job {
	b := newBuilder()
	op := &graph.Over{Time: 1, Order: []graph.SortKey{{Column: 1}, {Column: 2, Desc: true, NullsLast: true}}, Late: graph.LateRows{Table: -1}}
	b.sink("out", b.add(op, eventSchema, 1, "out/sort", b.exchange(b.source("a"), 1)))
	return b.job
}

func sortOracle(s *scenario) []string {
	var out []string
	for _, rows := range s.onTime() {
		for _, e := range rows {
			out = append(out, e.row())
		}
	}
	slices.Sort(out)
	return out
}

var rankedJobs = []struct {
	name   string
	job    func(t testing.TB, p int) *graph.Job
	oracle func(s *scenario) []string
}{{"over", overJob, overOracle}, {"first row", firstJob, firstOracle}, {"rank", rankJob, rankOracle}, {"order by", sortJob, sortOracle}}

// TestOrderedRowsEqualSlowOracles: over, first rows and the first of windows, through
// crashes and at changing parallelism.
func TestOrderedRowsEqualSlowOracles(t *testing.T) { orderedRowsEqualSlowOracles(t, nil) }

func orderedRowsEqualSlowOracles(t *testing.T, spill vfs.FS) {
	for _, k := range rankedJobs {
		var spilled int64
		for seed := uint64(1); seed <= 12; seed++ {
			rng := rand.New(rand.NewPCG(seed, 14))
			s := &scenario{t: t, every: 1 + rng.IntN(3), delay: int64(rng.IntN(3)) * 8000, window: &instant, spill: spill, feeds: []*feed{randomFeed(rng, "a", 1+rng.IntN(2), 40, 6*minute)}}
			job := func(p int) *graph.Job { return k.job(t, p) }
			s.job = job(1)
			want := k.oracle(s)
			var crashes []int
			for range rng.IntN(4) {
				crashes = append(crashes, 8+rng.IntN(30))
			}
			w := newWorld()
			book, _, _ := s.lives(w, job, seed, crashes...)
			what := fmt.Sprintf("%s, seed %d, crashes at %v", k.name, seed, crashes)
			s.proof(w, book, want, what)
			spilled += s.spilled
			if k.name == "order by" {
				for _, rows := range w.table("out").published {
					inOrder(t, rows, what)
				}
			}
		}
		// ORDER BY has no key.
		if spill != nil && (spilled > 0) != (k.name != "order by") {
			t.Errorf("%s: %d bytes went to disk", k.name, spilled)
		}
	}
}

// inOrder checks that rows come by time, then by v from the greatest down.
func inOrder(t *testing.T, rows []string, what string) {
	t.Helper()
	for i := 1; i < len(rows); i++ {
		a, b := strings.Split(rows[i-1], "|"), strings.Split(rows[i], "|")
		if a[1] > b[1] || a[1] == b[1] && a[2] == "NULL" && b[2] != "NULL" {
			t.Fatalf("%s: row %s before %s", what, rows[i-1], rows[i])
		}
		x, _ := strconv.Atoi(a[2])
		y, _ := strconv.Atoi(b[2])
		if a[1] == b[1] && a[2] != "NULL" && b[2] != "NULL" && x < y {
			t.Fatalf("%s: row %s before %s", what, rows[i-1], rows[i])
		}
	}
}
