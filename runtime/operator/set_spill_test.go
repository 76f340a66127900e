package operator

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// TestSpilledSetsSayTheSame: INTERSECT and EXCEPT of inputs that end.
func TestSpilledSetsSayTheSame(t *testing.T) {
	all := trips{}
	for i, op := range []graph.SetOperation{{Kind: graph.Intersect}, {Kind: graph.Intersect, All: true}, {Kind: graph.Except}, {Kind: graph.Except, All: true}} {
		for seed := uint64(1); seed <= 4; seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(70+i)))
			s := newSpilled(t, rng, func() Keyed { return NewSetOperation(&op, pairSchema) })
			ctx := expr.NewContext(nil, 1)
			keys := []int64{3, 40, 900}[rng.IntN(3)]
			for range 40 {
				var there []change
				in := changesOf(drawChanges(rng, 1+rng.IntN(60), keys, 3, false, &there))
				in.Input, in.Batch.Kinds = rng.IntN(2), nil
				if seed == 4 {
					collide(in)
				}
				s.fold(ctx, in)
				if rng.IntN(15) == 0 && seed < 4 {
					s.restart(0)
				}
			}
			s.end(ctx, "%+v, seed %d", op, seed)
			all.add(s)
		}
	}
	all.atLeast(t, 200, 5)
}

// TestSpilledSetsStayWithinTheirBudget: beyond memory only indexes stay.
func TestSpilledSetsStayWithinTheirBudget(t *testing.T) {
	const budget, keys = 256 << 10, 30_000
	for _, changes := range []bool{false, true} {
		op := &graph.SetOperation{Kind: graph.Except, All: true, Changes: changes}
		var k Spilling = NewSetOperation(op, pairSchema)
		if changes {
			k = NewSetChanges(op, pairSchema)
		}
		store := spill.New(vfs.NewMem(), "/spill")
		k.SpillTo(store, budget)
		ctx, rng := expr.NewContext(nil, 1), rand.New(rand.NewPCG(5, 5))
		var count [2][keys]int64
		got, want := int64(0), int64(0)
		res := &Results{Emit: func(b *batch.Batch) error {
			for i := range b.Len {
				if TakesBack(b, int32(i)) {
					got--
				} else {
					got++
				}
			}
			return nil
		}, Dead: func(*batch.Batch, *batch.ValueError) {}}
		for step := range 120 {
			var in []change
			for range 500 {
				x := change{k: rng.Int64N(keys)}
				count[step%2][x.k]++
				in = append(in, x)
			}
			rows := changesOf(in)
			rows.Input = step % 2
			if err := k.Fold(ctx, rows, res); err != nil {
				t.Fatal(err)
			}
			if k.Bytes() > budget {
				if err := k.Spill(); err != nil {
					t.Fatal(err)
				}
				if n := k.Bytes(); n > budget*3/4 {
					t.Fatalf("changes %t: %d bytes stay in memory, of %d", changes, n, budget)
				}
			}
		}
		if n := store.Bytes(); n < 2*budget {
			t.Fatalf("changes %t: %d bytes on disk", changes, n)
		}
		if err := k.Advance(ctx, batch.MaxWatermark, res); err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			want += max(count[0][i]-count[1][i], 0)
		}
		if got != want {
			t.Errorf("changes %t: %d rows, want %d", changes, got, want)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
