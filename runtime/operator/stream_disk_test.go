package operator

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// streamCases are the joins of streams by a key.
func streamCases() []pairJoin {
	var cases []pairJoin
	for kind := graph.InnerJoin; kind <= graph.MarkJoin; kind++ {
		cases = append(cases, pairJoin{kind: kind}, pairJoin{kind: kind, condition: true})
	}
	return cases
}

// sideOf are rows of a side whose key 0 is NULL, and v where it is null.
func sideOf(side int, rows []change) *KeyedRows {
	kinds := changesOf(rows).Batch.Kinds
	in := insertsOf(side, rows)
	in.Batch.Kinds = kinds
	return in
}

// TestSpilledStreamJoinsSayTheSame: changes of both sides by chance, with rows taken
// back, times to live, keys that are NULL, state moved to disk and restarts.
func TestSpilledStreamJoinsSayTheSame(t *testing.T) {
	moved, merged, expired, parts := 0, 0, 0, 0
	for i, c := range streamCases() {
		for seed := uint64(1); seed <= 6; seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			retracts := [2]bool{rng.IntN(2) > 0, rng.IntN(2) > 0}
			ttl := int64(rng.IntN(2)) * 300
			s := newSpilled(t, rng, c.operator(t, retracts, ttl))
			ctx := expr.NewContext(nil, 1)
			keys := []int64{3, 40, 300}[rng.IntN(3)]
			var there [2][]change
			var now int64
			for step := range 60 {
				side := rng.IntN(2)
				in := sideOf(side, drawChanges(rng, 1+rng.IntN(25), keys, 10, retracts[side], &there[side]))
				now += rng.Int64N(40)
				s.both(func(k Keyed, out *Results) error {
					if ttl > 0 {
						n := k.(Aging).Age(now)
						if k == s.disk {
							expired += n
						}
					}
					return k.Fold(ctx, in, out)
				})
				s.same("%+v, seed %d, step %d", c, seed, step)
				if rng.IntN(3) > 0 {
					s.spill()
				}
				if d := &s.disk.(*StreamJoin).disk; len(d.runs) > 0 && d.runs[0].Keys() > int(keys)/2 {
					merged++
				}
				if rng.IntN(15) == 0 {
					s.restart(now)
				}
			}
			moved, parts = moved+s.moved, max(parts, s.parts)
			if err := s.store.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if moved < 1000 || merged == 0 || expired == 0 || parts < 5 {
		t.Fatalf("state was on disk %d times, runs merged %d times, %d rows expired, saved in at most %d parts", moved, merged, expired, parts)
	}
}

// TestRightRowsOfASemiJoinThatExpire: a left row that came when the right row of its key
// was forgotten shows when there is one again.
func TestRightRowsOfASemiJoinThatExpire(t *testing.T) {
	k := pairJoin{kind: graph.SemiJoin}.operator(t, [2]bool{}, 100)().(*StreamJoin)
	x := &table{t: t, rows: map[string]int{}}
	fold := func(now int64, side int) {
		t.Helper()
		k.Age(now)
		if err := k.Fold(expr.NewContext(nil, 0), sideOf(side, []change{{k: 1, v: now}}), x.results()); err != nil {
			t.Fatal(err)
		}
	}
	fold(0, 1)
	fold(150, 0)
	if got := x.list(); len(got) != 0 {
		t.Fatalf("%v, with the right row forgotten", got)
	}
	fold(200, 1)
	if got := x.list(); !slices.Equal(got, []string{"1|150"}) {
		t.Fatalf("%v, want the left row", got)
	}
}

// TestSpilledStreamJoinStaysWithinItsBudget: beyond memory only indexes stay.
func TestSpilledStreamJoinStaysWithinItsBudget(t *testing.T) {
	const budget = 256 << 10
	j := pairJoin{kind: graph.LeftJoin}.operator(t, [2]bool{}, 0)().(*StreamJoin)
	store := spill.New(vfs.NewMem(), "/spill")
	defer store.Close()
	j.SpillTo(store, budget)
	ctx := expr.NewContext(nil, 1)
	x := &table{t: t, rows: map[string]int{}}
	rng := rand.New(rand.NewPCG(5, 5))
	const keys = 20_000
	var count [2][keys]int
	for step := range 80 {
		var in []change
		for range 500 {
			k := rng.Int64N(keys)
			count[step%2][k]++
			in = append(in, change{k: 1 + k})
		}
		if err := j.Fold(ctx, sideOf(step%2, in), x.results()); err != nil {
			t.Fatal(err)
		}
		if j.Bytes() > budget {
			if err := j.Spill(); err != nil {
				t.Fatal(err)
			}
			if n := j.Bytes(); n > budget*3/4 {
				t.Fatalf("%d bytes stay in memory, of %d", n, budget)
			}
		}
	}
	if n := store.Bytes(); n < 2*budget {
		t.Fatalf("%d bytes on disk", n)
	}
	want := 0
	for k := range keys {
		want += count[0][k] * max(count[1][k], 1)
	}
	if got := len(x.list()); got != want {
		t.Fatalf("%d rows, want %d", got, want)
	}
}

// TestStreamJoinOnADiskThatFails at each operation: the cause comes out.
func TestStreamJoinOnADiskThatFails(t *testing.T) {
	run := func(fs vfs.FS) (rows int, err error) {
		j := pairJoin{kind: graph.FullJoin}.operator(t, [2]bool{}, 0)().(*StreamJoin)
		store := spill.New(fs, "/spill")
		defer store.Close()
		j.SpillTo(store, 1)
		ctx := expr.NewContext(nil, 1)
		res := &Results{Dead: func(*batch.Batch, *batch.ValueError) {}, Emit: func(b *batch.Batch) error { rows += b.Len; return nil }}
		for step := range int64(12) {
			var in []change
			for i := range int64(40) {
				in = append(in, change{k: 1 + i, v: step})
			}
			if err := j.Fold(ctx, sideOf(int(step%2), in), res); err != nil {
				return rows, err
			}
			if err := j.Spill(); err != nil {
				return rows, err
			}
		}
		return rows, nil
	}
	failEachOperation(t, "a join of streams", run)
}
