package keyed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// countJob is SELECT COUNT(*), window_start, window_end ... GROUP BY a tumbling
// window of a size.
func countJob(t testing.TB, w graph.Window, lateness int64) *graph.Job {
	b := newBuilder()
	ex := b.exchange(b.source("a"), 1)
	aggs := []graph.Aggregate{call(t, "COUNT(*)", "COUNT", eventSchema)}
	b.sink("out", b.add(&graph.WindowAggregate{Window: w, Time: 1, Aggregates: aggs, Lateness: lateness, Late: graph.LateRows{Table: -1}},
		outSchema(nil, aggs, true), 3, "out/window", ex))
	return b.job
}

func at(ms ...int64) *feed {
	f := &feed{name: "a", parts: make([][]event, 1)}
	for _, x := range ms {
		f.parts[0] = append(f.parts[0], event{ts: x})
	}
	return f
}

// What is late at the edge, with the watermark updated after every row: with no
// delay the row with the window's last millisecond fires it, and equal rows after
// it are late; with a delay of 1 ms they count.
func TestLateAtTheEdge(t *testing.T) {
	for _, c := range []struct {
		delay int64
		want  []string
		late  int64
	}{
		{0, []string{"1|0", "1|10"}, 2},
		{1, []string{"1|10", "2|0"}, 1},
		{5000, []string{"1|10", "3|0"}, 0},
	} {
		t.Run(fmt.Sprintf("delay %d ms", c.delay), func(t *testing.T) {
			s := &scenario{t: t, job: countJob(t, graph.Window{Size: 10_000}, 0), delay: c.delay, window: &graph.Window{Size: 10_000},
				feeds: []*feed{at(9999, 9999, 10_000, 9998)}}
			var want []string
			for _, x := range c.want {
				var n, start int64
				fmt.Sscanf(x, "%d|%d", &n, &start)
				want = append(want, fmt.Sprintf("%d|%s|%s|%s", n, ts(start*1000), ts(start*1000+10_000), ts(start*1000+9999)))
			}
			w := newWorld()
			book, err := s.run(w.process(0, false), 1)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(want)
			if got := w.rows("out"); !slices.Equal(got, want) {
				t.Fatalf("the table differs:\n%s", diff(got, want))
			}
			if late := book.Cursors(connector.UUID{0xe, 1})[0].Counts.Late; late != c.late {
				t.Fatalf("%d rows are late, want %d", late, c.late)
			}
		})
	}
}

// Old event times in bounded input: the end of the input fires what is open, and
// the wall clock says nothing.
func TestBoundedInputOfOldTimes(t *testing.T) {
	base := time.Date(2019, 3, 1, 10, 0, 0, 0, time.UTC).UnixMilli()
	s := &scenario{t: t, job: countJob(t, graph.Window{Size: minute}, 0), delay: 5000, window: &graph.Window{Size: minute},
		feeds: []*feed{at(base+1000, base+59_000, base+90_000)}}
	s.check([]string{
		"1|2019-03-01 10:01:00.000|2019-03-01 10:02:00.000|2019-03-01 10:01:59.999",
		"2|2019-03-01 10:00:00.000|2019-03-01 10:01:00.000|2019-03-01 10:00:59.999"}, 1)
}

// Times before 1970 round down, to their own windows.
func TestTimesBefore1970(t *testing.T) {
	s := &scenario{t: t, job: countJob(t, graph.Window{Size: 10_000}, 0), delay: 60_000, window: &graph.Window{Size: 10_000},
		feeds: []*feed{at(-1, -10_000, -10_001)}}
	s.check([]string{
		"1|1969-12-31 23:59:40.000|1969-12-31 23:59:50.000|1969-12-31 23:59:49.999",
		"2|1969-12-31 23:59:50.000|1970-01-01 00:00:00.000|1969-12-31 23:59:59.999"}, 1)
}

// In a session zone of +8 the bounds of windows over instants are wall clock, and
// window_time is the instant.
func TestWindowBoundsInAFixedOffsetZone(t *testing.T) {
	zone := time.FixedZone("GMT+08:00", 8*3600)
	window := graph.Window{Size: 10_000, Zone: zone}
	job := countJob(t, window, 0)
	ltz := types.NewTimestampLTZ(3)
	eventSchema.Fields[1].Type = ltz
	defer func() { eventSchema.Fields[1].Type = types.NewTimestamp(3) }()
	job.Nodes[2].Schema.Fields[3].Type = ltz
	job.Nodes[3].Op.(*graph.Sink).Table.Columns[3].Type = ltz
	job.Zone = zone
	s := &scenario{t: t, job: job, window: &window, feeds: []*feed{at(0)}}
	s.check([]string{"1|1970-01-01 08:00:00.000|1970-01-01 08:00:10.000|1970-01-01 00:00:09.999"}, 1)
}

// In batch mode nothing is late, whatever the order.
func TestBatchModeHasNoLateRows(t *testing.T) {
	job := countJob(t, graph.Window{Size: 10_000}, 0)
	job.Batch = true
	s := &scenario{t: t, job: job, window: &graph.Window{Size: 10_000}, feeds: []*feed{at(25_000, 1000, 12_000, 2000)}}
	s.check([]string{"1|" + ts(10_000) + "|" + ts(20_000) + "|" + ts(19_999), "1|" + ts(20_000) + "|" + ts(30_000) + "|" + ts(29_999),
		"2|" + ts(0) + "|" + ts(10_000) + "|" + ts(9999)}, 1)
}

// A window over the results of a window: the second sees the first's window_time.
func TestWindowOfWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	f := randomFeed(rng, "a", 2, 40, 8*minute)
	build := func(p int) *graph.Job {
		job := windowJob(t, p, 15_000, "a")
		b := &builder{job: job}
		job.Nodes = job.Nodes[:len(job.Nodes)-1]
		first := job.Nodes[len(job.Nodes)-1]
		ex := b.exchange(first.ID, 2)
		aggs := []graph.Aggregate{call(t, "SUM(COUNT)", "SUM", first.Schema, 1)}
		b.sink("out", b.add(&graph.WindowAggregate{Window: graph.Window{Size: 4 * minute}, Time: first.TimeColumn, Aggregates: aggs, Late: graph.LateRows{Table: -1}},
			outSchema(nil, aggs, true), 3, "out/second", ex))
		return job
	}
	s := &scenario{t: t, delay: 5000, lateness: 15_000, window: &graph.Window{Size: minute}, feeds: []*feed{f}}
	s.job = build(1)
	sums := map[int64]int64{}
	for _, part := range f.parts {
		wm := int64(-1 << 62)
		for _, e := range part {
			start := types.FloorDiv(e.ts, minute) * minute
			if late := wm >= start+minute-1+s.lateness; !late {
				sums[types.FloorDiv(start, 4*minute)*4*minute]++
			}
			wm = max(wm, e.ts-s.delay)
		}
	}
	var want []string
	for start, n := range sums {
		want = append(want, fmt.Sprintf("%d|%s|%s|%s", n, ts(start), ts(start+4*minute), ts(start+4*minute-1)))
	}
	slices.Sort(want)
	for seed := uint64(1); seed <= 6; seed++ {
		w := newWorld()
		book, ops, _ := s.lives(w, build, seed, 10+int(seed)*4, 12)
		s.proof(w, book, want, fmt.Sprintf("seed %d, %v", seed, ops))
	}
}

// stopped runs a job until its lanes have handed over, then stops it.
func (s *scenario) stopped(w *world, seed uint64) (*ledger.Book, error) {
	bounded := s.job.Bounded
	s.hold = true
	defer func() { s.hold, s.job.Bounded = false, bounded }()
	return s.run(w.process(0, false), seed)
}

// TestAddingAnAggregateKeepsTheRest: the saved state goes by canonical call text;
// a new call begins empty, another window is refused, a lost operator too.
func TestAddingAnAggregateKeepsTheRest(t *testing.T) {
	base := func() *scenario {
		s := &scenario{t: t, window: &graph.Window{Size: minute}, delay: 10 * minute, feeds: []*feed{{name: "a", parts: [][]event{{
			{uid: num(1), ts: 0, v: num(5), s: "x"}, {uid: num(1), ts: 1, v: num(7), s: "y"}}}}}}
		s.job = windowJob(t, 2, 0, "a")
		return s
	}
	agg := func(s *scenario) *graph.WindowAggregate { return s.job.Nodes[2].Op.(*graph.WindowAggregate) }
	w := newWorld()
	if _, err := base().stopped(w, 1); err != nil {
		t.Fatal(err)
	}
	other := base()
	agg(other).Window.Size = 2 * minute
	var incompatible *state.IncompatibleError
	if _, err := other.run(w.process(0, false), 1); !errors.As(err, &incompatible) {
		t.Fatalf("another window: %v", err)
	}
	early := base()
	agg(early).Firing.Early = true
	if _, err := early.run(w.process(0, false), 1); !errors.As(err, &incompatible) || !strings.Contains(incompatible.Reason, "WindowChanges") {
		t.Fatalf("a window that fires early now: %v", err)
	}
	lost := base()
	lost.job.Nodes[2].Path = "elsewhere"
	var unused *UnusedStateError
	if _, err := lost.run(w.process(0, false), 1); !errors.As(err, &unused) || !slices.Equal(unused.Paths, []string{"out/window"}) {
		t.Fatalf("an operator that is gone: %v", err)
	}
	more := base()
	max := call(t, "MAX(v)", "MAX", eventSchema, 2)
	agg(more).Aggregates[3] = max // in place of MIN(v)
	if _, err := more.run(w.process(0, false), 1); err != nil {
		t.Fatal(err)
	}
	// The rows are folded already: MAX has seen none of them.
	want := []string{"1|2|2|12|NULL|y|" + ts(0) + "|" + ts(minute) + "|" + ts(minute-1)}
	if got := w.rows("out"); !slices.Equal(got, want) {
		t.Fatalf("the table differs:\n%s", diff(got, want))
	}
}

// TestLostCheckpointsAreNoticed: rows that the ledger counts as folded are in a
// checkpoint, or the job does not start.
func TestLostCheckpointsAreNoticed(t *testing.T) {
	s := &scenario{t: t, window: &graph.Window{Size: minute}, delay: 10 * minute, feeds: []*feed{at(0, 1, 2)}, job: countJob(t, graph.Window{Size: minute}, 0)}
	w := newWorld()
	if _, err := s.stopped(w, 1); err != nil {
		t.Fatal(err)
	}
	h := w.checkpoints.Handle()
	ns, _ := h.List(context.Background())
	for _, n := range ns {
		if err := h.Remove(context.Background(), n); err != nil {
			t.Fatal(err)
		}
	}
	var lost *LostStateError
	if _, err := s.run(w.process(0, false), 1); !errors.As(err, &lost) || lost.Rows != 3 {
		t.Fatalf("without checkpoints: %v", err)
	}
}

// TestStateLimit: state beyond the budget is an error that says so.
func TestStateLimit(t *testing.T) {
	f := &feed{name: "a", parts: make([][]event, 1)}
	for i := range int64(4000) {
		f.parts[0] = append(f.parts[0], event{uid: num(i), ts: 0, s: "0123456789"})
	}
	s := &scenario{t: t, window: &graph.Window{Size: minute}, delay: minute, feeds: []*feed{f}, job: windowJob(t, 1, 0, "a"), every: 1000,
		opts: Options{StateBytes: 100_000}}
	var limit *StateLimitError
	if _, err := s.run(newWorld().process(0, false), 1); !errors.As(err, &limit) || limit.Stage != "out/window" {
		t.Fatalf("got %v, want a state limit", err)
	}
}

// TestClosingOfTablePartitions: a partition begins to close in the record of the
// checkpoint whose watermark has passed its time and delay, not before, and those
// without a time close at the end.
func TestClosingOfTablePartitions(t *testing.T) {
	policy := connector.CommitPolicy{Trigger: connector.PartitionTime, Delay: 30 * time.Second, Time: func(tp string) (int64, error) {
		x, err := time.Parse("window_start=2006-01-02 15:04:05.000", tp)
		return x.UnixMilli() + minute, err // the partition's end
	}}
	s := &scenario{t: t, window: &graph.Window{Size: minute}, feeds: []*feed{at(0, 1000, 60_000, 149_999)}, job: countJob(t, graph.Window{Size: minute}, 0),
		sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", policy: policy}}}
	w := newWorld()
	book, err := s.stopped(w, 1) // the watermark stands at 149,999
	if err != nil {
		t.Fatal(err)
	}
	tab, _ := book.Table("out")
	steps := func() (out []string) {
		for _, c := range book.Closes(tab.ID) {
			out = append(out, fmt.Sprintf("%s %s v%d", c.TablePartition, c.Step, c.Version))
		}
		return out
	}
	want := []string{"window_start=" + ts(0) + " closing v1"} // the next one ends at 120,000 + 30,000
	if got := steps(); !slices.Equal(got, want) {
		t.Fatalf("closes %v, want %v", got, want)
	}
	if book, err = s.run(w.process(0, false), 2); err != nil {
		t.Fatal(err)
	}
	want = append(want, "window_start="+ts(minute)+" closing v1", "window_start="+ts(2*minute)+" closing v1")
	if got := steps(); !slices.Equal(got, want) {
		t.Fatalf("at the end: closes %v, want %v", got, want)
	}
}
