package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/vfs"
)

// correctedJob is wideJob whose windows are corrected, at most every so many ms, in a
// table whose partitions are replaced.
func correctedJob(parallelism int, lateness, every int64) *graph.Job {
	j := wideJob(parallelism, lateness)
	for _, n := range j.Nodes {
		switch op := n.Op.(type) {
		case *graph.WideMerge:
			op.Correct = every
		case *graph.Sink:
			op.Connector, op.Replace = wholes{}, true
		}
	}
	return j
}

// correctedProof: the table has the rows of every window, the ledger holds, nothing is
// pending, and no replacement of a partition had less keys than the one before it: a
// part of a window was never taken for all of it.
func correctedProof(t *testing.T, w *world, book *ledger.Book, want []string, what string) {
	t.Helper()
	if got := w.rows("out"); !slices.Equal(got, want) {
		t.Fatalf("%s: the table differs:\n%s", what, diff(got, want))
	}
	if v := book.Check(); len(v) > 0 {
		t.Fatalf("%s: the ledger does not hold: %v", what, v)
	}
	if left := book.Intents(func(e *ledger.Entry) bool { return e.Result != ledger.Committed }); len(left) > 0 {
		t.Fatalf("%s: %d artefacts are not committed", what, len(left))
	}
	for tp, rows := range w.table("out").contents {
		if !slices.IsSorted(rows) {
			t.Fatalf("%s: partition %s had %v rows, one after the other", what, tp, rows)
		}
	}
}

// TestCorrectionsSurviveCrashes crashes at each operation of a job whose windows are
// corrected, before and after its effect, and goes on at another parallelism.
func TestCorrectionsSurviveCrashes(t *testing.T) { correctionsSurviveCrashes(t, nil) }

func correctionsSurviveCrashes(t *testing.T, spill vfs.FS) {
	for _, every := range []int64{1, 3_600_000} {
		rng := rand.New(rand.NewPCG(7, uint64(every)))
		s := &scenario{t: t, delay: 2000, lateness: 40_000, window: &graph.Window{Size: minute}, wrap: replacing, every: 2, feeds: wideFeeds(rng),
			sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", maxRows: 3}}, opts: Options{Retained: 2}, spill: spill}
		job := func(p int) *graph.Job { return correctedJob(p, s.lateness, every) }
		s.job = job(1)
		want := wideOracle(s)
		seen, again := map[string]int{}, 0
		for k := 1; ; k += 1 + k/40 {
			w := newWorld()
			book, ops, crashed := s.lives(w, job, uint64(k), k)
			correctedProof(t, w, book, want, fmt.Sprintf("corrections every %d ms, crash at operation %d (%s)", every, k, ops[len(ops)-1]))
			again += len(w.table("out").replaced) - len(w.content("out"))
			if !crashed {
				break
			}
			seen[ops[len(ops)-1]]++
		}
		for _, op := range []string{"ledger", "seal", "manifest", "replace"} {
			if seen[op] == 0 {
				t.Errorf("no crash at %s: %v", op, seen)
			}
		}
		if again == 0 {
			t.Errorf("no window was corrected")
		}
		if spill != nil && s.spilled == 0 {
			t.Error("nothing went to disk")
		}
		t.Logf("every %d ms: %d corrections, crashes: %v", every, again, seen)
	}
}

// TestCorrectionsAgainAndAgain crashes several lives in a row.
func TestCorrectionsAgainAndAgain(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 8))
		every := []int64{1, 20, 3_600_000}[rng.IntN(3)]
		s := &scenario{t: t, delay: int64(rng.IntN(2)) * 5000, lateness: 10_000 + int64(rng.IntN(2))*60_000, window: &graph.Window{Size: minute}, wrap: replacing,
			every: 1 + rng.IntN(3), feeds: wideFeeds(rng), sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", maxRows: rng.IntN(2) * 5}},
			opts: Options{Retained: 1 + rng.IntN(3)}}
		job := func(p int) *graph.Job { return correctedJob(p, s.lateness, every) }
		s.job = job(1)
		want := wideOracle(s)
		var crashes []int
		for range rng.IntN(4) {
			crashes = append(crashes, 10+rng.IntN(50))
		}
		w := newWorld()
		book, _, _ := s.lives(w, job, seed, crashes...)
		correctedProof(t, w, book, want, fmt.Sprintf("seed %d, every %d ms, crashes at %v", seed, every, crashes))
	}
}

// TestOneWindowIsCorrected: the window of a late row is replaced twice, another one
// once; its partition is announced again, under the next version. A late row alone
// does not: the interval counts.
func TestOneWindowIsCorrected(t *testing.T) {
	at := func(second int64, uid int64) event { return event{uid: num(uid), ts: second * 1000, v: num(1), s: "x"} }
	feeds := []*feed{{name: "likes", parts: [][]event{{at(10, 1), at(20, 2), at(70, 3)}}}, {name: "visits", parts: [][]event{{at(70, 3)}}}, {name: "firsts", parts: [][]event{{at(70, 3)}}}}
	s := &scenario{t: t, lateness: 60_000, window: &graph.Window{Size: minute}, wrap: replacing, feeds: feeds, hold: true,
		sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", policy: connector.CommitPolicy{Trigger: connector.PartitionTime,
			Time: func(string) (int64, error) { return 60_000, nil }}}}}
	w := newWorld()
	const first = "window_start=1970-01-01 00:00:00.000"
	version := func(b *ledger.Book) uint32 {
		k := ledger.CloseKey{}
		copy(k.Table[:], "table out")
		k.TablePartition = first
		c := b.Close(k)
		if c == nil {
			return 0
		}
		for _, step := range []ledger.CloseStep{ledger.Closed, ledger.Announced} {
			f := *c
			f.Step = step
			if err := b.Append(t.Context(), &f); err != nil {
				t.Fatal(err)
			}
		}
		return c.Version
	}
	for _, step := range []struct {
		name     string
		late     []event
		hold     bool
		replaced int
		version  uint32
	}{
		{"the window is over", nil, true, 1, 1},
		{"a late row", []event{at(30, 1)}, true, 1, 1},
		{"nothing more can come", nil, false, 3, 2},
	} {
		feeds[0].parts[0] = append(feeds[0].parts[0], step.late...)
		s.hold, s.job = step.hold, correctedJob(2, s.lateness, 3_600_000)
		b, err := s.run(w.process(0, false), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.table("out").replaced; len(got) != step.replaced {
			t.Errorf("%s: %d replacements, want %d: %v", step.name, len(got), step.replaced, got)
		}
		if v := version(b); v != step.version {
			t.Errorf("%s: announced in version %d, want %d", step.name, v, step.version)
		}
	}
	rows := strings.Join(w.content("out")[first], "\n")
	if !strings.Contains(rows, "1|1970-01-01 00:00:00.000|1970-01-01 00:01:00.000|2|") || !strings.Contains(rows, "2|1970-01-01") {
		t.Errorf("the late row, or one that was there, is not in:\n%s", rows)
	}
}
