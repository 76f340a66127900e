package operator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// versionRows makes rows of timedSchema; v is their time in ms.
func versionRows(side int, changes []change) *KeyedRows {
	in := changesOf(changes)
	in.Input, in.Batch.Schema, in.Batch.Cols[1].Type = side, timedSchema, types.NewTimestamp(3)
	for i := range in.Batch.Cols[1].I64 {
		in.Batch.Cols[1].I64[i] *= 1000
	}
	return in
}

// temporalCase is a temporal join of changing left rows.
type temporalCase struct {
	kind      graph.JoinKind
	condition bool // the times differ
	deletions bool // a version may say that there is none
}

func (c temporalCase) operator(t *testing.T) func() Keyed {
	t.Helper()
	op := &graph.Join{Kind: c.kind, Keys: []graph.JoinKey{{}}, Temporal: &graph.JoinTemporal{LeftTime: 1, RightTime: 1}, Retracts: [2]bool{true, c.deletions}}
	pair := graph.PairSchema(timedSchema, timedSchema)
	if c.condition {
		lib, err := fn.NewLibrary(fn.LibraryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		differ, _ := lib.Lookup("<>")
		if op.Condition, err = expr.NewCall(differ, expr.NewColumn(pair, 1), expr.NewColumn(pair, 3)); err != nil {
			t.Fatal(err)
		}
	}
	return func() Keyed {
		k, err := NewJoin(op, timedSchema, timedSchema, pair)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
}

// want is the join by its definition, of left rows up to a time.
func (c temporalCase) want(left, right []change, upTo int64) []string {
	var out []string
	show := func(x change) string { return fmt.Sprintf("%d|%d", x.k, 1000*x.v) }
	for _, l := range left {
		if l.v > upTo {
			continue
		}
		best := -1
		for i, r := range right {
			if r.k == l.k && r.v <= l.v && (best < 0 || r.v > right[best].v) {
				best = i
			}
		}
		switch {
		case best >= 0 && right[best].kind != batch.Delete && !(c.condition && right[best].v == l.v):
			out = append(out, show(l)+"|"+show(right[best]))
		case c.kind == graph.LeftJoin:
			out = append(out, show(l)+"|NULL|NULL")
		}
	}
	slices.Sort(out)
	return out
}

// TestTemporalJoinOfChanges: at each watermark there is the join of the left rows up
// to it, whenever they come and go, and however late, over restarts.
func TestTemporalJoinOfChanges(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		r := rand.New(rand.NewPCG(seed, 77))
		c := temporalCase{graph.JoinKind(r.IntN(2)), r.IntN(2) == 0, r.IntN(2) == 0}
		fresh := c.operator(t)
		k, x := fresh(), &table{t: t, rows: map[string]int{}}
		var left, right []change
		used, wm := map[change]bool{}, int64(-1)
		for step := range 40 {
			if r.IntN(3) > 0 {
				in := versionRows(0, randomChanges(r, &left, true))
				fold(t, k, in, x)
			} else {
				var versions []change
				for range 1 + r.IntN(3) {
					v := change{int64(r.IntN(4)), max(wm+1-int64(r.IntN(2))*int64(r.IntN(4)), 0) + int64(r.IntN(5)), batch.UpdateAfter} // now and then late
					if used[v] {
						continue // times of versions differ
					}
					used[v] = true
					if c.deletions && r.IntN(3) == 0 {
						v.kind = batch.Delete
					}
					versions = append(versions, v)
				}
				right = append(right, versions...)
				fold(t, k, versionRows(1, versions), x)
			}
			if r.IntN(4) == 0 && wm < 12 {
				wm++
			}
			if err := k.Advance(expr.NewContext(nil, 0), wm, x.results()); err != nil {
				t.Fatal(err)
			}
			if got, want := x.list(), c.want(left, right, wm); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d, %+v, watermark %d: of %v and %v\n%v, want\n%v", seed, step, c, wm, left, right, got, want)
			}
			switch step % 9 {
			case 4:
				k = restart(t, k, fresh)
			case 7:
				k.(*TemporalJoin).compact(true)
			}
		}
		if err := k.Advance(expr.NewContext(nil, 0), batch.MaxWatermark, x.results()); err != nil {
			t.Fatal(err)
		}
		if got, want := x.list(), c.want(left, right, batch.MaxWatermark); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v: at the end\n%v, want\n%v", seed, c, got, want)
		}
	}
}

func fold(t *testing.T, k Keyed, in *KeyedRows, x *table) {
	t.Helper()
	if err := k.Fold(expr.NewContext(nil, 0), in, x.results()); err != nil {
		t.Fatal(err)
	}
}

// TestTemporalJoinRefusesOtherState: what a join of changes saved is long enough for
// its rows.
func TestTemporalJoinRefusesOtherState(t *testing.T) {
	fresh := temporalCase{kind: graph.LeftJoin}.operator(t)
	k, x := fresh(), &table{t: t, rows: map[string]int{}}
	fold(t, k, versionRows(0, []change{{k: 1, v: 5}, {k: 2, v: 6}}), x)
	short := append(state.AppendBytes(nil, []byte{1}), k.Save()[3:]...)
	if err := fresh().Load(short, state.Range{From: 0, To: state.Groups}); err == nil {
		t.Fatal("state with a flag for two rows was taken")
	}
}
