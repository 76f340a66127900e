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
)

// TestSetsOfChanges: after every batch the changes leave what the operation gives of the
// rows that are there on both sides, whatever comes and goes, over restarts.
func TestSetsOfChanges(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		r := rand.New(rand.NewPCG(seed, 8))
		op := &graph.SetOperation{Kind: []graph.SetKind{graph.Intersect, graph.Except}[r.IntN(2)], All: r.IntN(4) > 0, Changes: true, TTL: int64(r.IntN(2)) * 1000}
		retracts := r.IntN(3) > 0
		fresh := func() Keyed { return NewSetChanges(op, pairSchema) }
		k, x := fresh(), &table{t: t, rows: map[string]int{}}
		var there [2][]change
		for step := range 60 {
			side := r.IntN(2)
			in := changesOf(randomChanges(r, &there[side], retracts))
			in.Input = side
			if err := k.Fold(expr.NewContext(nil, 0), in, x.results()); err != nil {
				t.Fatal(err)
			}
			counts := [2]map[string]int64{{}, {}}
			for i := range there {
				for _, c := range there[i] {
					counts[i][fmt.Sprintf("%d|%d", c.k, c.v)]++
				}
			}
			var want []string
			for row, l := range counts[0] {
				right := counts[1][row]
				n := min(l, right)
				switch {
				case op.Kind == graph.Except && op.All:
					n = l - right
				case op.Kind == graph.Except && right > 0:
					n = 0
				case op.Kind == graph.Except:
					n = l
				}
				if !op.All {
					n = min(n, 1)
				}
				for ; n > 0; n-- {
					want = append(want, row)
				}
			}
			slices.Sort(want)
			if got := x.list(); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d, %+v: %v, want %v", seed, step, op, got, want)
			}
			if step%7 == 3 {
				k = restart(t, k, fresh)
			}
			if step%11 == 5 {
				k.(*SetChanges).tidy()
			}
		}
		if op.Kind == graph.Intersect && !retracts && x.kinds[batch.Delete] > 0 {
			t.Errorf("seed %d: rows of INTERSECT went, and those of its sides did not", seed)
		}
		if live := len(there[0]) + len(there[1]); k.(*SetChanges).keys.Len()-k.(*SetChanges).gone > live {
			t.Errorf("seed %d: rows that have gone are still counted", seed)
		}
	}
}

// TestSetsForgetOldRows: a row is forgotten its time to live after it came last, ages
// count on over a restart, and taking it back then is not missed.
func TestSetsForgetOldRows(t *testing.T) {
	op := &graph.SetOperation{Kind: graph.Except, All: true, Changes: true, TTL: 100}
	k, x := NewSetChanges(op, pairSchema), &table{t: t, rows: map[string]int{}}
	fold := func(c change) {
		t.Helper()
		if err := k.Fold(expr.NewContext(nil, 0), changesOf([]change{c}), x.results()); err != nil {
			t.Fatal(err)
		}
	}
	k.Age(1000)
	fold(change{1, 1, batch.Insert})
	k.Age(1060)
	payload := k.Save()
	k = NewSetChanges(op, pairSchema)
	k.Age(7)
	if err := k.Load(payload, state.Range{From: 0, To: state.Groups}); err != nil {
		t.Fatal(err)
	}
	if n := k.Age(46); n != 0 {
		t.Errorf("%d rows forgotten early", n)
	}
	if n := k.Age(47); n != 1 {
		t.Errorf("%d rows forgotten, want 1", n)
	}
	fold(change{1, 1, batch.Delete})
	if got := x.list(); !slices.Equal(got, []string{"1|1"}) {
		t.Errorf("rows %v", got)
	}
	if err := k.Load([]byte{1, 2, 3}, state.Range{From: 0, To: state.Groups}); err == nil {
		t.Error("a broken state is taken")
	}
}
