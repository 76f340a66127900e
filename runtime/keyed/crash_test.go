package keyed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/vfs"
)

// lives runs processes that crash at the given operations, then one that does
// not, at changing parallelism; it reports whether the first one crashed.
func (s *scenario) lives(w *world, job func(parallelism int) *graph.Job, seed uint64, crashes ...int) (book *ledger.Book, ops []string, crashed bool) {
	s.t.Helper()
	for i, at := range append(crashes, 0) {
		p := w.process(at, (seed+uint64(i))%2 == 0)
		s.job = job(1 + int(seed+uint64(i))%3)
		b, err := s.run(p, seed+uint64(i)*1000)
		if i == 0 {
			ops, crashed = p.names, p.dead
		}
		switch {
		case p.dead:
			continue
		case err != nil:
			s.t.Fatalf("seed %d, crashes at %v, life %d: %v\noperations of the first life: %v", seed, crashes, i, err, ops)
		}
		book = b
		if at == 0 {
			return book, ops, crashed
		}
	}
	return book, ops, crashed
}

func (s *scenario) proof(w *world, book *ledger.Book, want []string, what string) {
	s.t.Helper()
	if got := w.rows("out"); !slices.Equal(got, want) {
		s.t.Fatalf("%s: the table differs:\n%s", what, diff(got, want))
	}
	if v := book.Check(); len(v) > 0 {
		s.t.Fatalf("%s: the ledger does not hold: %v", what, v)
	}
	if left := book.Intents(func(e *ledger.Entry) bool { return e.Result != ledger.Committed }); len(left) > 0 {
		s.t.Fatalf("%s: %d artefacts are not committed", what, len(left))
	}
	var emitted int64
	for _, tab := range book.Tables() {
		if e := book.Emitted(tab.ID); e != nil {
			emitted += e.Rows
		}
	}
	if emitted != int64(len(want)) {
		s.t.Fatalf("%s: the ledger counts %d rows emitted, there are %d", what, emitted, len(want))
	}
	order := w.table("out").order
	ordered := slices.IsSortedFunc(order, func(a, b connector.ArtifactID) int { return int(int64(a.Manifest) - int64(b.Manifest)) })
	if !ordered {
		s.t.Fatalf("%s: artefacts were published out of the order of their manifests: %v", what, order)
	}
}

// TestCrashAtEachStep crashes at each operation of the cycle (opening writers,
// sealing, manifest, ledger, publishing, looking, removing), before and after its
// effect, and goes on at another parallelism: each row is there exactly once.
func TestCrashAtEachStep(t *testing.T) { crashAtEachStep(t, nil) }

// crashAtEachStep does so with state in memory, or on a filesystem.
func crashAtEachStep(t *testing.T, spill vfs.FS) {
	rng := rand.New(rand.NewPCG(3, 3))
	s := &scenario{t: t, delay: 5000, lateness: 20_000, window: &graph.Window{Size: minute},
		feeds: []*feed{randomFeed(rng, "a", 2, 25, 5*minute), randomFeed(rng, "b", 1, 20, 5*minute)},
		sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", maxRows: 4}}, opts: Options{Retained: 2}, spill: spill}
	job := func(p int) *graph.Job { return windowJob(t, p, s.lateness, "a", "b") }
	s.job = job(1)
	want := windowOracle(s)
	seen := map[string]int{}
	steps := 0
	for seed := uint64(0); seed < 2; seed++ {
		for k := 1; ; k++ {
			w := newWorld()
			book, ops, crashed := s.lives(w, job, seed, k)
			s.proof(w, book, want, fmt.Sprintf("seed %d, crash at operation %d (%s)", seed, k, ops[len(ops)-1]))
			if !crashed {
				break
			}
			steps++
			seen[ops[len(ops)-1]]++
		}
	}
	for _, op := range []string{"ledger", "open", "seal", "manifest", "publish", "remove"} {
		if seen[op] == 0 {
			t.Errorf("no crash at %s: %v", op, seen)
		}
	}
	if spill != nil && s.spilled == 0 {
		t.Error("nothing went to disk")
	}
	t.Logf("%d crashes: %v", steps, seen)
}

// TestCrashAgainAndAgain crashes several lives in a row at random operations.
func TestCrashAgainAndAgain(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		rng := rand.New(rand.NewPCG(seed, 9))
		s := &scenario{t: t, every: 1 + rng.IntN(4), delay: int64(rng.IntN(2)) * 5000, lateness: int64(rng.IntN(2)) * 20_000, window: &graph.Window{Size: minute},
			feeds: []*feed{randomFeed(rng, "a", 2, 30, 6*minute)},
			sinks: map[string]sinkOptions{"out": {maxRows: rng.IntN(2) * 5, roll: int64(rng.IntN(2)) * 30}}, opts: Options{Retained: 1 + rng.IntN(3)}}
		job := func(p int) *graph.Job { return windowJob(t, p, s.lateness, "a") }
		s.job = job(1)
		want := windowOracle(s)
		var crashes []int
		for range 1 + rng.IntN(4) {
			crashes = append(crashes, 8+rng.IntN(30))
		}
		w := newWorld()
		book, _, _ := s.lives(w, job, seed, crashes...)
		s.proof(w, book, want, fmt.Sprintf("seed %d, crashes at %v", seed, crashes))
	}
}

// TestAmbiguousPublish: a publish that has its effect and whose reply is lost is
// looked up, not made again; one without effect is tried again.
func TestAmbiguousPublish(t *testing.T) {
	for _, apply := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(4, 4))
		s := &scenario{t: t, window: &graph.Window{Size: minute}, feeds: []*feed{randomFeed(rng, "a", 1, 30, 5*minute)}}
		s.job = windowJob(t, 2, 0, "a")
		w := newWorld()
		p := w.process(0, false)
		n := 0
		p.fault = func(op string) (error, bool) {
			if op == "publish" {
				if n++; n%2 == 1 {
					return errors.New("time-out"), apply
				}
			}
			return nil, true
		}
		book, err := s.run(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		s.proof(w, book, windowOracle(s), fmt.Sprintf("time-outs, apply=%v", apply))
	}
}
