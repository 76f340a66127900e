package operator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// rowTimeCalls are aggregates over rows of timedSchema: of all up to the row, by number and
// by value, of the last three, of 40 ms, and the row two before.
func rowTimeCalls(t testing.TB) (calls []graph.OverCall, out *batch.Schema) {
	first, last := graph.FrameBound{Kind: graph.UnboundedPreceding}, graph.FrameBound{Kind: graph.CurrentRow}
	out = &batch.Schema{Fields: slices.Clone(timedSchema.Fields)}
	for i, f := range []graph.Frame{{Rows: true, Start: first, End: last}, {Start: first, End: last},
		{Rows: true, Start: graph.FrameBound{Kind: graph.Preceding, Offset: 2}, End: last},
		{Start: graph.FrameBound{Kind: graph.Preceding, Offset: 40 * timedSchema.Fields[1].Type.UnitsPerSecond() / 1000}, End: last}} {
		count := aggregateOf(t, "COUNT")
		calls = append(calls, graph.OverCall{Name: fmt.Sprint("c", i), Text: fmt.Sprint("c", i), Bound: count.Bound, Default: -1, Filter: -1, Frame: f})
		out.Fields = append(out.Fields, types.Field{Name: fmt.Sprint("c", i), Type: count.Bound.Return})
	}
	calls = append(calls, graph.OverCall{Name: "g", Text: "g", Func: graph.OverLag, Args: []int{0}, Default: -1, Filter: -1, Offset: 2})
	out.Fields = append(out.Fields, types.Field{Name: "g", Type: types.NewBigInt()})
	return calls, out
}

// overCases are OVER by row time and over changes.
func overCases(t *testing.T) (cases []keyedCase) {
	calls, out := rowTimeCalls(t)
	for _, ttl := range []int64{0, 200} {
		byTime := &graph.Over{Time: 1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: calls, TTL: ttl}
		cases = append(cases, keyedCase{name: fmt.Sprintf("over by time, ttl %d", ttl), timed: true, aging: ttl > 0, fresh: func() Keyed {
			k, err := NewOver(byTime, timedSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}})
		for _, retracts := range []bool{false, true} {
			op := &graph.Over{Time: -1, Changes: true, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: overCallsOf(t, true, true), TTL: ttl}
			two := &batch.Schema{Fields: append(slices.Clone(pairSchema.Fields), types.Field{Name: "s", Type: types.NewBigInt()}, types.Field{Name: "c", Type: types.NewBigInt()})}
			cases = append(cases, keyedCase{name: fmt.Sprintf("over, taken back %t, ttl %d", retracts, ttl), retracts: retracts, aging: ttl > 0, fresh: func() Keyed {
				k, err := NewOverChanges(op, pairSchema, two)
				if err != nil {
					t.Fatal(err)
				}
				return k
			}})
		}
	}
	return cases
}

// endCalls need all rows of a key: NTILE, the last row's number, and the row behind.
func endCalls(t testing.TB) (calls []graph.OverCall, out *batch.Schema) {
	count := aggregateOf(t, "COUNT")
	out = numbered(numbered(numbered(pairSchema, true), true), true)
	return []graph.OverCall{{Name: "n", Text: "n", Func: graph.OverNtile, Offset: 3, Default: -1, Filter: -1},
		{Name: "c", Text: "c", Bound: count.Bound, Default: -1, Filter: -1, Frame: graph.Frame{Start: graph.FrameBound{Kind: graph.CurrentRow}, End: graph.FrameBound{Kind: graph.UnboundedFollowing}}},
		{Name: "l", Text: "l", Func: graph.OverLead, Args: []int{1}, Offset: 1, Default: -1, Filter: -1}}, out
}

// TestSpilledOverOfInputThatEndsSaysTheSame: all rows wait for the end.
func TestSpilledOverOfInputThatEndsSaysTheSame(t *testing.T) {
	all := trips{}
	calls, out := endCalls(t)
	op := &graph.Over{Time: -1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: calls}
	for seed := uint64(1); seed <= 12; seed++ {
		rng := rand.New(rand.NewPCG(seed, 63))
		s := newSpilled(t, rng, func() Keyed {
			k, err := NewOver(op, pairSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return k
		})
		keys, ctx := []int64{3, 40, 900}[rng.IntN(3)], expr.NewContext(nil, 1)
		var there []change
		for step := range 40 {
			in := changesOf(drawChanges(rng, 1+rng.IntN(60), keys, 20, false, &there))
			in.Batch.Kinds = nil
			if seed%5 == 0 {
				collide(in)
			}
			s.fold(ctx, in)
			if rng.IntN(3) == 0 {
				s.advance(ctx, int64(step), "seed %d, step %d", seed, step)
			}
			if rng.IntN(15) == 0 && seed%5 != 0 {
				s.restart(0)
			}
		}
		s.end(ctx, "seed %d, at the end", seed)
		all.add(s)
	}
	all.atLeast(t, 200, 5)
}

// TestOverGoesOnInTheOtherForm: state of a stream goes on where the input ends, and the
// other way round, where keys have a time to live then.
func TestOverGoesOnInTheOtherForm(t *testing.T) {
	calls, out := rowTimeCalls(t)
	for _, from := range []int{-1, 1} {
		time := from
		rng, ctx := rand.New(rand.NewPCG(9, 9)), expr.NewContext(nil, 1)
		s := newSpilled(t, rng, func() Keyed {
			k, err := NewOver(&graph.Over{Time: time, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: calls, TTL: max(0, int64(time))}, timedSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return k
		})
		feed := func(at int64) {
			for range 5 {
				var in [][2]int64
				for range 60 {
					in = append(in, [2]int64{rng.Int64N(20), at + rng.Int64N(100)})
				}
				s.fold(ctx, timed(in...))
				s.spill()
			}
		}
		feed(1)
		if from > 0 {
			s.advance(ctx, 50, "from %d", from)
		}
		parts, own := s.save(), s.memory.Save()
		time = -from
		s.memory, s.disk = s.fresh(), s.spilling(1)
		whole := state.Range{From: 0, To: state.Groups}
		if err := s.memory.Load(own, whole); err != nil {
			t.Fatal(err)
		}
		loadParts(t, s.disk, parts, whole)
		feed(101)
		s.advance(ctx, batch.MaxWatermark, "from %d", from)
		if s.moved == 0 {
			t.Errorf("from %d: nothing went to disk", from)
		}
	}
}

// TestOverGoesOnFromSubtasksOfTheOtherForm, of which one had given rows and another had not.
func TestOverGoesOnFromSubtasksOfTheOtherForm(t *testing.T) {
	calls, out := rowTimeCalls(t)
	over := func(time int) Keyed {
		k, err := NewOver(&graph.Over{Time: time, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: calls}, timedSchema, out)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	ctx, quiet := expr.NewContext(nil, 1), &Results{Emit: func(*batch.Batch) error { return nil }}
	saved := func(key, watermark int64) []byte {
		k := over(1)
		if err := k.Fold(ctx, timed([2]int64{key, 10}, [2]int64{key, 20}, [2]int64{key + 1, 30}), quiet); err != nil {
			t.Fatal(err)
		}
		if err := k.Advance(ctx, watermark, quiet); err != nil {
			t.Fatal(err)
		}
		return k.Save()
	}
	waits, gave := saved(1, 5), saved(5, 15)
	for _, parts := range [][][]byte{{waits, gave}, {gave, waits}} {
		s := newSpilled(t, rand.New(rand.NewPCG(1, 1)), func() Keyed { return over(-1) })
		for _, k := range []Keyed{s.memory, s.disk} {
			loadParts(t, k, parts, state.Range{From: 0, To: state.Groups})
		}
		s.restart(0)
		s.both(func(k Keyed, out *Results) error { return k.Advance(ctx, batch.MaxWatermark, out) })
		// Of six rows one was given.
		if n := len(s.said[0]); n != 5 {
			t.Errorf("%d rows, want 5", n)
		}
		s.same("at the end")
	}
}

// TestSpilledOverStaysWithinItsBudget: beyond memory only indexes stay.
func TestSpilledOverStaysWithinItsBudget(t *testing.T) {
	const budget, keys = 256 << 10, 20_000
	calls, out := rowTimeCalls(t)
	for _, time := range []int{-1, 1} {
		o, err := NewOver(&graph.Over{Time: time, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: calls}, timedSchema, out)
		if err != nil {
			t.Fatal(err)
		}
		store := spill.New(vfs.NewMem(), "/spill")
		o.SpillTo(store, budget)
		ctx, rng := expr.NewContext(nil, 1), rand.New(rand.NewPCG(5, 5))
		var number, rows [keys]int64 // the greatest number of a row of each key, and of rows
		most := int64(0)
		res := &Results{Emit: func(b *batch.Batch) error {
			for i := range b.Len {
				k := b.Cols[0].Int64(i)
				number[k] = max(number[k], b.Cols[2].Int64(i))
			}
			most = max(most, o.Bytes())
			return nil
		}, Dead: func(*batch.Batch, *batch.ValueError) {}}
		for step := range int64(80) {
			var in [][2]int64
			for range 500 {
				k := rng.Int64N(keys)
				rows[k]++
				in = append(in, [2]int64{k, step*100 + rng.Int64N(2000)})
			}
			if err := o.Fold(ctx, timed(in...), res); err != nil {
				t.Fatal(err)
			}
			if o.Bytes() > budget {
				if err := o.Spill(); err != nil {
					t.Fatal(err)
				}
				if n := o.Bytes(); n > budget {
					t.Fatalf("time %d: %d bytes stay in memory, of %d", time, n, budget)
				}
			}
			if step%10 == 9 {
				if err := o.Advance(ctx, step*100-1, res); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := store.Bytes(); n < 2*budget {
			t.Fatalf("time %d: %d bytes on disk", time, n)
		}
		if err := o.Advance(ctx, batch.MaxWatermark, res); err != nil {
			t.Fatal(err)
		}
		if number != rows {
			t.Errorf("time %d: rows are missing, or come twice", time)
		}
		if most > budget*3 {
			t.Errorf("time %d: %d bytes were in memory, of %d", time, most, budget)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
