package keyed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// TestCrashAtEachStepWithStateOnDisk and its neighbours are those of state in memory,
// with all of it on disk after each message: restarts go on from checkpoints of it, and
// nothing stays behind.
func TestCrashAtEachStepWithStateOnDisk(t *testing.T) {
	onDisk(t, crashAtEachStep)
}

func TestUpdatesOnDiskSurviveCrashes(t *testing.T) {
	onDisk(t, updatesSurviveCrashes)
}

func TestJoinOnDiskSurvivesCrashes(t *testing.T) {
	onDisk(t, joinSurvivesCrashes)
}

func TestStreamJoinOnDiskSurvivesCrashes(t *testing.T) {
	onDisk(t, streamJoinSurvivesCrashes)
}

func TestWideMergeOnDiskSurvivesCrashes(t *testing.T) {
	onDisk(t, wideMergeSurvivesCrashes)
}

func TestCorrectionsOnDiskSurviveCrashes(t *testing.T) {
	onDisk(t, correctionsSurviveCrashes)
}

func TestOrderedRowsOnDiskEqualSlowOracles(t *testing.T) {
	onDisk(t, orderedRowsEqualSlowOracles)
}

func TestOverOfUpdatesOnDiskSurvivesCrashes(t *testing.T) {
	onDisk(t, overOfUpdatesSurvivesCrashes)
}

func TestIntervalJoinOnDiskSurvivesCrashes(t *testing.T) {
	onDisk(t, intervalJoinSurvivesCrashes)
}

func TestTemporalJoinOnDiskSurvivesCrashes(t *testing.T) {
	onDisk(t, temporalJoinSurvivesCrashes)
}

func TestSetOperationOnDiskCountsCopies(t *testing.T) {
	onDisk(t, setOperationCountsCopies)
}

func TestExceptOfUpdatesOnDiskSurvivesCrashes(t *testing.T) {
	onDisk(t, exceptOfUpdatesSurvivesCrashes)
}

// leftovers is a disk on which a process that died has left something.
func leftovers(t *testing.T) *vfs.MemFS {
	fs := vfs.NewMem()
	if err := fs.MkdirAll(spillDir + "/0"); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(spillDir + "/0/1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("of somebody else")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// onDisk runs a test whose state goes to disk: at the end nothing is there.
func onDisk(t *testing.T, test func(t *testing.T, spill vfs.FS)) {
	fs := leftovers(t)
	test(t, fs)
	nothingLeft(t, fs)
}

func nothingLeft(t *testing.T, fs vfs.FS) {
	t.Helper()
	if there, err := vfs.Exists(fs, spillDir); there || err != nil {
		t.Errorf("%s is there after the end (%v)", spillDir, err)
	}
}

// TestOverlappingWindowsOnDisk: HOP, CUMULATE and sessions with crashes.
func TestOverlappingWindowsOnDisk(t *testing.T) {
	for _, k := range kinds {
		for seed := uint64(1); seed <= 4; seed++ {
			rng := rand.New(rand.NewPCG(seed, 13))
			s := &scenario{t: t, every: 1 + rng.IntN(3), delay: 5000, lateness: int64(rng.IntN(2)) * 20_000, window: &k.window, spill: vfs.NewMem(),
				feeds: []*feed{randomFeed(rng, "a", 2, 40, 6*minute)}}
			job := func(p int) *graph.Job { return windowsJob(t, k.window, p, s.lateness, "a") }
			s.job = job(1)
			want := sessionOracle(s, k.window.Size)
			if k.of != nil {
				want = windowsOracle(s, k.of)
			}
			w := newWorld()
			book, _, _ := s.lives(w, job, seed, 8+rng.IntN(30), 8+rng.IntN(30))
			s.proof(w, book, want, fmt.Sprintf("%s, seed %d", k.name, seed))
			if (s.spilled > 0) != graph.Spills(&graph.WindowAggregate{Window: k.window}) {
				t.Errorf("%s: %d bytes went to disk", k.name, s.spilled)
			}
		}
	}
}

// TestADiskThatFailsStopsTheStages at every operation on it, with the cause: a later
// start goes on from the checkpoints, and the rows are right.
func TestADiskThatFailsStopsTheStages(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	t.Run("windows", func(t *testing.T) {
		s := &scenario{t: t, every: 2, delay: 5000, window: &graph.Window{Size: minute}, feeds: []*feed{randomFeed(rng, "a", 2, 40, 5*minute)}}
		s.job = windowJob(t, 2, 0, "a")
		s.onDisksThatFail(windowOracle(s))
	})
	t.Run("join", func(t *testing.T) {
		s := &scenario{t: t, every: 2, feeds: []*feed{randomFeed(rng, "a", 2, 20, 5*minute), randomFeed(rng, "b", 1, 20, 5*minute)}}
		c := joinCase{kind: graph.FullJoin, condition: true}
		s.job = c.job(t, 2)
		s.onDisksThatFail(c.oracle(s.feeds[0].all(), s.feeds[1].all()))
	})
}

func (s *scenario) onDisksThatFail(want []string) {
	t := s.t
	failed := 0
	run := func(fs vfs.FS, cause error, what string) {
		w := newWorld()
		s.spill = fs
		_, err := s.run(w.process(0, false), 1)
		if err != nil {
			failed++
			var e *spill.Error
			if !errors.Is(err, cause) || !errors.As(err, &e) && !strings.Contains(err.Error(), "spilled") {
				t.Fatalf("%s: %v", what, err)
			}
		}
		s.spill = vfs.NewMem()
		book, err := s.run(w.process(0, false), 2)
		if err != nil {
			t.Fatalf("%s: the next start: %v", what, err)
		}
		s.proof(w, book, want, what)
	}
	for n := int64(1); ; n += 1 + n/10 {
		nth := &vfs.Nth{Kinds: vfs.OpsAll &^ (vfs.OpClose | vfs.OpRemove), From: n - 1}
		run(vfs.NewFault(vfs.NewMem(), nth), syscall.EIO, fmt.Sprintf("operation %d fails", n))
		if nth.Fired() == 0 {
			break
		}
	}
	for _, limit := range []int64{0, 100, 1000, 5000} {
		run(vfs.NewLimited(vfs.NewMem(), limit), syscall.ENOSPC, fmt.Sprintf("room for %d bytes", limit))
	}
	if failed < 10 {
		t.Errorf("%d runs failed", failed)
	}
}

// TestStateBeyondItsBudgetSpills: what was an error goes on to the same rows.
func TestStateBeyondItsBudgetSpills(t *testing.T) {
	f := &feed{name: "a", parts: make([][]event, 1)}
	for i := range int64(4000) {
		f.parts[0] = append(f.parts[0], event{uid: num(i % 3000), ts: 0, s: "0123456789"})
	}
	s := &scenario{t: t, window: &graph.Window{Size: minute}, delay: minute, feeds: []*feed{f}, job: windowJob(t, 1, 0, "a"), every: 200}
	want := windowOracle(s)
	fs := vfs.NewMem()
	for _, c := range []struct {
		fs    vfs.FS
		fails bool
	}{{nil, true}, {fs, false}} {
		w := newWorld()
		s.spill = c.fs
		s.opts = Options{StateBytes: 300_000}
		_, err := s.run(w.process(0, false), 1)
		var limit *StateLimitError
		if c.fails {
			if !errors.As(err, &limit) || limit.Operator != "out/window" || limit.Kind != "WindowAggregate" || !strings.Contains(err.Error(), optionState) {
				t.Fatalf("without a disk: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := w.rows("out"); !slices.Equal(got, want) {
			t.Fatalf("the table differs:\n%s", diff(got, want))
		}
	}
	nothingLeft(t, fs)
}
