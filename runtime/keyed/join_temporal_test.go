package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/storage/vfs"
)

func temporalJob(kind graph.JoinKind, parallelism int) *graph.Job {
	op := &graph.Join{Kind: kind, Keys: []graph.JoinKey{{}}, Temporal: &graph.JoinTemporal{LeftTime: 1, RightTime: 1}, Late: graph.LateRows{Table: -1}}
	b := newBuilder()
	left, right := b.exchange(b.source("a"), parallelism, 0), b.exchange(b.source("b"), parallelism, 0)
	b.sink("out", b.add(op, graph.PairSchema(eventSchema, eventSchema), 1, "out/temporal", left, right))
	return b.job
}

// temporalOracle is the join by its definition. The times of a key's versions differ.
func temporalOracle(s *scenario, kind graph.JoinKind) []string {
	var out []string
	right := s.inTime("b")
	for _, l := range s.inTime("a") {
		version := -1
		for i, r := range right {
			if l.uid != nil && r.uid != nil && *l.uid == *r.uid && r.ts <= l.ts && (version < 0 || r.ts > right[version].ts) {
				version = i
			}
		}
		switch {
		case version >= 0:
			out = append(out, cells(l)+"|"+cells(right[version]))
		case kind == graph.LeftJoin:
			out = append(out, cells(l)+"|"+nulls)
		}
	}
	slices.Sort(out)
	return out
}

// versionFeed is a random feed of which no two events have one time.
func versionFeed(rng *rand.Rand, name string, partitions, n int, span int64) *feed {
	f := randomFeed(rng, name, partitions, n, span)
	used := map[int64]bool{}
	for p := range f.parts {
		for i := range f.parts[p] {
			e := &f.parts[p][i]
			for used[e.ts] {
				e.ts++
			}
			used[e.ts] = true
		}
	}
	return f
}

// TestTemporalJoinGivesTheVersionOfTheTime whatever the order of arrival, the batches
// and the parallelism, with rows that are late and versions out of order.
func TestTemporalJoinGivesTheVersionOfTheTime(t *testing.T) {
	point := operator.PointInTime()
	for seed := uint64(1); seed <= 40; seed++ {
		rng := rand.New(rand.NewPCG(seed, 22))
		kind := graph.JoinKind(seed % 2)
		s := &scenario{t: t, delay: int64(rng.IntN(3)) * 20_000, window: &point, every: rng.IntN(4),
			feeds: []*feed{randomFeed(rng, "a", 2, 25, 8*minute), versionFeed(rng, "b", 1+rng.IntN(2), 25, 8*minute)},
			job:   temporalJob(kind, 1+rng.IntN(4))}
		t.Logf("seed %d: %s", seed, kind)
		s.check(temporalOracle(s, kind), seed)
	}
}

// TestTemporalJoinForgets: state has the rows that wait and a version a key.
func TestTemporalJoinForgets(t *testing.T) {
	op := temporalJob(graph.LeftJoin, 1).Nodes[4].Op.(*graph.Join)
	k, err := operator.NewJoin(op, eventSchema, eventSchema, graph.PairSchema(eventSchema, eventSchema))
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for n := range int64(200) {
		foldEventsOf(t, k, 0, n*1000, func(i int64) int64 { return i % 7 })
		foldEventsOf(t, k, 1, n*1000+100, func(i int64) int64 { return i % 7 })
		sizes = append(sizes, k.Bytes())
	}
	if early, late := slices.Max(sizes[20:60]), slices.Max(sizes[160:]); late > 2*early {
		t.Fatalf("state has grown from %d to %d bytes", early, late)
	}
}

// TestTemporalJoinSurvivesCrashes crashes at each operation and goes on at another
// parallelism: each left row comes once, with its version.
func TestTemporalJoinSurvivesCrashes(t *testing.T) { temporalJoinSurvivesCrashes(t, nil) }

func temporalJoinSurvivesCrashes(t *testing.T, spill vfs.FS) {
	rng := rand.New(rand.NewPCG(6, 7))
	point := operator.PointInTime()
	s := &scenario{t: t, spill: spill, delay: 10_000, window: &point, feeds: []*feed{randomFeed(rng, "a", 2, 10, 5*minute), versionFeed(rng, "b", 1, 12, 5*minute)},
		sinks: map[string]sinkOptions{"out": {maxRows: 4}}, opts: Options{Retained: 2}}
	job := func(p int) *graph.Job { return temporalJob(graph.LeftJoin, p) }
	s.job = job(1)
	want := temporalOracle(s, graph.LeftJoin)
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
