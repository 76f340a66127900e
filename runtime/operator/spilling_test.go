package operator

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// groupsOut is COUNT(*), SUM(v), MAX(v) by key.
func groupsOut(t testing.TB, op *graph.GroupAggregate) *batch.Schema {
	op.Keys = []int{0}
	op.Aggregates = []graph.Aggregate{aggregateOf(t, "COUNT"), aggregateOf(t, "SUM", 1), aggregateOf(t, "MAX", 1)}
	out := &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}}}
	for i := range op.Aggregates {
		out.Fields = append(out.Fields, types.Field{Name: op.Aggregates[i].Text, Type: op.Aggregates[i].Bound.Return})
	}
	return out
}

// TestSpilledGroupsSayTheSame: changes of groups by chance, with rows taken back, times
// to live, hashes that collide, state moved to disk and restarts.
func TestSpilledGroupsSayTheSame(t *testing.T) {
	moved, merged, parts := 0, 0, 0
	for seed := uint64(1); seed <= 24; seed++ {
		rng := rand.New(rand.NewPCG(seed, 41))
		op := &graph.GroupAggregate{Updates: seed%4 != 0, Retracts: seed%4 >= 2}
		if seed%3 == 0 && op.Updates {
			op.TTL = 200
		}
		out := groupsOut(t, op)
		s := newSpilled(t, rng, func() Keyed {
			g, err := NewGroupAggregate(op, pairSchema, out, 0)
			if err != nil {
				t.Fatal(err)
			}
			return g
		})
		keys := []int64{3, 60, 900}[rng.IntN(3)]
		var there []change
		var now int64
		ctx := expr.NewContext(nil, 1)
		for step := range 100 {
			in := changesOf(drawChanges(rng, 1+rng.IntN(60), keys, 10, op.Retracts, &there))
			if seed%5 == 0 {
				collide(in)
			}
			now += rng.Int64N(40)
			s.both(func(k Keyed, out *Results) error {
				if a, ok := k.(Aging); ok && op.TTL > 0 {
					a.Age(now)
				}
				return k.Fold(ctx, in, out)
			})
			s.same("seed %d, step %d", seed, step)
			if rng.IntN(3) > 0 {
				s.spill()
			}
			if d := &s.disk.(*GroupAggregate).disk; len(d.runs) > 0 && d.runs[0].Keys() > int(keys)/2 {
				merged++
			}
			if rng.IntN(20) == 0 && step < 99 && (seed%5 != 0) {
				s.restart(now)
			}
		}
		s.advance(ctx, batch.MaxWatermark, "seed %d, at the end", seed)
		moved, parts = moved+s.moved, max(parts, s.parts)
		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if moved < 500 || merged == 0 || parts < 5 {
		t.Fatalf("state was on disk %d times, runs merged %d times, saved in at most %d parts", moved, merged, parts)
	}
}

// TestSpilledWindowsSayTheSame is of windows that wait for their end.
func TestSpilledWindowsSayTheSame(t *testing.T) {
	all := trips{}
	for seed := uint64(1); seed <= 15; seed++ {
		rng := rand.New(rand.NewPCG(seed, 42))
		op := &graph.WindowAggregate{Lateness: []int64{0, 50}[seed%2], Window: []graph.Window{{Size: 100},
			{Kind: graph.Hop, Size: 100, Step: 20}, {Kind: graph.Cumulate, Size: 100, Step: 25}}[seed%3]}
		out := changesOut(t, op)
		s := newSpilled(t, rng, func() Keyed {
			k, err := NewAggregateOver(op, clickSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return k
		})
		ctx := expr.NewContext(nil, 1)
		keys := []int64{5, 400}[rng.IntN(2)]
		wm := int64(0)
		for step := range 120 {
			var rows []click
			for range 1 + rng.IntN(50) {
				rows = append(rows, click{k: rng.Int64N(keys), v: rng.Int64N(10), ts: wm + rng.Int64N(300)})
			}
			in := clicksOf(rows, wm)
			if seed%5 == 0 {
				collide(in)
			}
			s.fold(ctx, in)
			if rng.IntN(2) == 0 {
				wm += rng.Int64N(60)
				s.advance(ctx, wm, "seed %d, step %d", seed, step)
			}
			if rng.IntN(15) == 0 && seed%5 != 0 {
				s.restart(0)
			}
		}
		s.end(ctx, "seed %d, at the end", seed)
		all.add(s)
	}
	all.atLeast(t, 400, 5)
}

// TestSpilledStateStaysWithinItsBudget: beyond memory only indexes stay.
func TestSpilledStateStaysWithinItsBudget(t *testing.T) {
	for name, op := range map[string]*graph.GroupAggregate{"at the end": {}, "changes": {Updates: true}} {
		out := groupsOut(t, op)
		g, err := NewGroupAggregate(op, pairSchema, out, 0)
		if err != nil {
			t.Fatal(err)
		}
		const budget = 256 << 10
		store := spill.New(vfs.NewMem(), "/spill")
		g.SpillTo(store, budget)
		ctx := expr.NewContext(nil, 1)
		rows, keys := 0, map[int64]int64{}
		res := &Results{Emit: func(b *batch.Batch) error {
			for i := range b.Len {
				if b.Kinds == nil || b.Kinds[i] == batch.Insert || b.Kinds[i] == batch.UpdateAfter {
					rows++
					keys[b.Cols[0].I64[i]] = b.Cols[1].I64[i]
				}
			}
			return nil
		}, Dead: func(*batch.Batch, *batch.ValueError) {}}
		rng := rand.New(rand.NewPCG(5, 5))
		want := map[int64]int64{}
		for range 150 {
			var in []change
			for range 500 {
				k := rng.Int64N(30_000)
				want[k]++
				in = append(in, change{k: k})
			}
			if err := g.Fold(ctx, changesOf(in), res); err != nil {
				t.Fatal(err)
			}
			if g.Bytes() > budget {
				if err := g.Spill(); err != nil {
					t.Fatal(err)
				}
				if n := g.Bytes(); n > budget*3/4 {
					t.Fatalf("%s: %d bytes stay in memory, of %d", name, n, budget)
				}
			}
		}
		if n := store.Bytes(); n < 2*budget {
			t.Fatalf("%s: %d bytes on disk", name, n)
		}
		if err := g.Advance(ctx, batch.MaxWatermark, res); err != nil {
			t.Fatal(err)
		}
		for k, n := range want {
			if keys[k] != n {
				t.Fatalf("%s: key %d has %d rows, want %d", name, k, keys[k], n)
			}
		}
		if len(keys) != len(want) {
			t.Fatalf("%s: %d keys, want %d", name, len(keys), len(want))
		}
	}
}

// TestSpillingToABrokenDisk: a full disk and one that fails are errors with their
// cause, and bytes that have changed are never taken for state.
func TestSpillingToABrokenDisk(t *testing.T) {
	op := &graph.GroupAggregate{Updates: true}
	out := groupsOut(t, op)
	ctx := expr.NewContext(nil, 1)
	quiet := &Results{Emit: func(*batch.Batch) error { return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
	var rows []change
	for k := range int64(2000) {
		rows = append(rows, change{k: k})
	}
	fold := func(fs vfs.FS, between func(dir string)) (spilling, folding error) {
		g, err := NewGroupAggregate(op, pairSchema, out, 0)
		if err != nil {
			t.Fatal(err)
		}
		g.SpillTo(spill.New(fs, "/spill"), 1)
		if err := g.Fold(ctx, changesOf(rows), quiet); err != nil {
			t.Fatal(err)
		}
		if err := g.Spill(); err != nil {
			return err, nil
		}
		between("/spill")
		return nil, g.Fold(ctx, changesOf(rows), quiet)
	}
	var e *spill.Error
	if err, _ := fold(vfs.NewLimited(vfs.NewMem(), 1000), nil); !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &e) || e.Op != "writing" {
		t.Errorf("a full disk: %v", err)
	}
	for _, kind := range []vfs.OpKind{vfs.OpMkdir, vfs.OpCreate, vfs.OpWrite} {
		fs := vfs.NewFault(vfs.NewMem(), vfs.InjectorFunc(func(op vfs.Op) error {
			if op.Kind == kind {
				return syscall.EIO
			}
			return nil
		}))
		if err, _ := fold(fs, nil); !errors.Is(err, syscall.EIO) || !errors.As(err, &e) {
			t.Errorf("operation %v fails: %v", kind, err)
		}
	}
	broken := vfs.NewFault(vfs.NewMem(), nil)
	if _, err := fold(broken, func(string) {
		broken.SetInjector(vfs.InjectorFunc(func(op vfs.Op) error {
			if op.Kind == vfs.OpRead {
				return syscall.EIO
			}
			return nil
		}))
	}); !errors.Is(err, syscall.EIO) || !errors.As(err, &e) || e.Op != "reading" {
		t.Errorf("reading fails: %v", err)
	}
	changed := vfs.NewMem()
	if _, err := fold(changed, func(dir string) {
		f, err := changed.OpenReadWrite(dir + "/1")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte{0xff, 0xee}, 100); err != nil {
			t.Fatal(err)
		}
	}); !errors.Is(err, spill.ErrCorrupt) {
		t.Errorf("bytes have changed: %v", err)
	}
}
