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
	"github.com/millrace/millrace/runtime/types"
)

// overCallsOf are SUM of v of equal and lesser ones, and the number of rows up to the row.
func overCallsOf(t testing.TB, values, rows bool) (calls []graph.OverCall) {
	up := graph.Frame{Start: graph.FrameBound{Kind: graph.UnboundedPreceding}, End: graph.FrameBound{Kind: graph.CurrentRow}}
	sum, count := aggregateOf(t, "SUM", 1), aggregateOf(t, "COUNT")
	if values {
		calls = append(calls, graph.OverCall{Name: "s", Text: "s", Bound: sum.Bound, Args: []int{1}, Default: -1, Filter: -1, Frame: up})
	}
	if rows {
		up.Rows = true
		calls = append(calls, graph.OverCall{Name: "c", Text: "c", Bound: count.Bound, Default: -1, Filter: -1, Frame: up})
	}
	return calls
}

// overOf is what the calls say of rows, by k in the order of v.
func overOf(there []change, values, rows bool) (out []string) {
	for k := range int64(4) {
		var vs []int64
		for _, c := range there {
			if c.k == k {
				vs = append(vs, c.v)
			}
		}
		slices.Sort(vs)
		for i, v := range vs {
			row := fmt.Sprintf("%d|%d", k, v)
			if values {
				sum := int64(0)
				for _, x := range vs {
					if x <= v {
						sum += x
					}
				}
				row += fmt.Sprintf("|%d", sum)
			}
			if rows {
				row += fmt.Sprintf("|%d", i+1)
			}
			out = append(out, row)
		}
	}
	slices.Sort(out)
	return out
}

// TestOverOfChanges: after every batch the changes leave each row that is there with
// what a slow count says of it, whatever comes and goes, over restarts.
func TestOverOfChanges(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		r := rand.New(rand.NewPCG(seed, 9))
		values := r.IntN(3) > 0
		rows := !values || r.IntN(2) == 0
		retracts := r.IntN(3) > 0
		op := &graph.Over{Time: -1, Changes: true, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: overCallsOf(t, values, rows), TTL: int64(r.IntN(2)) * 1000}
		out := &batch.Schema{Fields: slices.Clone(pairSchema.Fields)}
		for _, c := range op.Calls {
			out.Fields = append(out.Fields, types.Field{Name: c.Name, Type: c.Bound.Return})
		}
		fresh := func() Keyed {
			k, err := NewOverChanges(op, pairSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		k, x := fresh(), &table{t: t, rows: map[string]int{}}
		var there []change
		for step := range 60 {
			if err := k.Fold(expr.NewContext(nil, 0), changesOf(randomChanges(r, &there, retracts)), x.results()); err != nil {
				t.Fatal(err)
			}
			if got, want := x.list(), overOf(there, values, rows); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d, values %v, rows %v:\n%v\nwant\n%v", seed, step, values, rows, got, want)
			}
			if step%7 == 3 {
				k = restart(t, k, fresh)
			}
			if step%11 == 5 {
				k.(*OverChanges).tidy()
			}
		}
		if !retracts && x.kinds[batch.Delete] > 0 {
			t.Errorf("seed %d: rows went, and those of the input did not", seed)
		}
	}
}

// TestOverOfRowsBehindAllOthers: rows that come in order change nothing that was given.
func TestOverOfRowsBehindAllOthers(t *testing.T) {
	op := &graph.Over{Time: -1, Changes: true, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: overCallsOf(t, true, true), TTL: 100}
	out := &batch.Schema{Fields: append(slices.Clone(pairSchema.Fields), types.Field{Name: "s", Type: types.NewBigInt()}, types.Field{Name: "c", Type: types.NewBigInt()})}
	k, err := NewOverChanges(op, pairSchema, out)
	if err != nil {
		t.Fatal(err)
	}
	x := &table{t: t, rows: map[string]int{}}
	fold := func(cs ...change) {
		t.Helper()
		if err := k.Fold(expr.NewContext(nil, 0), changesOf(cs), x.results()); err != nil {
			t.Fatal(err)
		}
	}
	k.Age(1000)
	for v := range int64(500) {
		fold(change{1, v, batch.Insert})
	}
	if x.kinds != [4]int{batch.Insert: 500} {
		t.Errorf("kinds %v", x.kinds)
	}
	// An equal one changes the sum of its like; one in front all of them.
	fold(change{1, 499, batch.Insert})
	if x.kinds[batch.UpdateAfter] != 1 || x.kinds[batch.UpdateBefore] != 1 {
		t.Errorf("kinds %v after an equal row", x.kinds)
	}
	fold(change{1, -1, batch.Insert})
	if n := x.kinds[batch.UpdateAfter]; n != 502 {
		t.Errorf("%d rows changed, want 502", n)
	}
	// A key is forgotten its time to live after its last row, with all its rows; ages
	// count on over a restart.
	k.Age(1060)
	payload := k.Save()
	if k, err = NewOverChanges(op, pairSchema, out); err != nil {
		t.Fatal(err)
	}
	k.Age(7)
	if err := k.Load(payload, state.Range{From: 0, To: state.Groups}); err != nil {
		t.Fatal(err)
	}
	if n := k.Age(46); n != 0 {
		t.Errorf("%d keys forgotten early", n)
	}
	if n := k.Age(47); n != 1 {
		t.Errorf("%d keys forgotten, want 1", n)
	}
	x.rows, x.kinds = map[string]int{}, [4]int{}
	fold(change{1, 499, batch.Delete}, change{1, 600, batch.Insert})
	if got := x.list(); !slices.Equal(got, []string{"1|600|600|1"}) {
		t.Errorf("rows %v", got)
	}
	if err := k.Load([]byte{9, 9}, state.Range{From: 0, To: state.Groups}); err == nil {
		t.Error("a broken state is taken")
	}
}

// TestOverOfChangesRefusesOtherFrames: only what follows from the rows so far.
func TestOverOfChangesRefusesOtherFrames(t *testing.T) {
	calls := overCallsOf(t, true, false)
	calls[0].Frame.Start = graph.FrameBound{Kind: graph.Preceding, Offset: 1}
	out := &batch.Schema{Fields: append(slices.Clone(pairSchema.Fields), types.Field{Name: "s", Type: types.NewBigInt()})}
	if _, err := NewOverChanges(&graph.Over{Time: -1, Changes: true, Order: []graph.SortKey{{Column: 1}}, Calls: calls}, pairSchema, out); err == nil {
		t.Error("a frame that ends behind is taken")
	}
}
