package operator

import (
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// savedBefore is an operator whose state was saved by a version that did not spill it.
type savedBefore struct {
	name   string
	fresh  func() Keyed
	before []*KeyedRows
	wm     int64 // behind before
	after  []*KeyedRows
}

// savedBefores are the operators of testdata/saved_before.txt, with the rows that the state
// is of.
func savedBefores(t *testing.T) []savedBefore {
	three := &batch.Schema{Fields: append(slices.Clone(timedSchema.Fields), types.Field{Name: "c", Type: types.NewBigInt()}, types.Field{Name: "g", Type: types.NewBigInt()})}
	two := &batch.Schema{Fields: append(slices.Clone(pairSchema.Fields), types.Field{Name: "s", Type: types.NewBigInt()}, types.Field{Name: "c", Type: types.NewBigInt()})}
	count := aggregateOf(t, "COUNT")
	up := graph.Frame{Rows: true, Start: graph.FrameBound{Kind: graph.UnboundedPreceding}, End: graph.FrameBound{Kind: graph.CurrentRow}}
	calls := []graph.OverCall{{Name: "c", Text: "c", Bound: count.Bound, Default: -1, Filter: -1, Frame: up},
		{Name: "g", Text: "g", Func: graph.OverLag, Args: []int{1}, Default: -1, Filter: -1, Offset: 2}}
	must := func(k Keyed, err error) Keyed {
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	join := func(op *graph.Join) func() Keyed {
		op.Keys = []graph.JoinKey{{}}
		return func() Keyed {
			return must(NewJoin(op, timedSchema, timedSchema, graph.PairSchema(timedSchema, timedSchema)))
		}
	}
	side := func(n int, changes ...change) *KeyedRows { return versionRows(n, changes) }
	pairs := func(n int, changes ...change) *KeyedRows {
		in := changesOf(changes)
		in.Input = n
		return in
	}
	rows := []*KeyedRows{timed([2]int64{1, 10}, [2]int64{1, 20}, [2]int64{2, 15}, [2]int64{1, 70}, [2]int64{3, 80})}
	more := []*KeyedRows{timed([2]int64{1, 60}, [2]int64{2, 90}, [2]int64{3, 75})}
	first := []*KeyedRows{pairs(0, change{1, 5, batch.Insert}, change{1, 5, batch.Insert}, change{2, 7, batch.Insert}), pairs(1, change{1, 5, batch.Insert}, change{3, 1, batch.Insert})}
	second := []*KeyedRows{pairs(0, change{3, 1, batch.Insert}, change{1, 4, batch.Insert}), pairs(1, change{2, 7, batch.Insert})}
	left := []*KeyedRows{side(0, change{1, 10, batch.Insert}, change{2, 60, batch.Insert}, change{3, 70, batch.Insert}), side(1, change{1, 5, batch.Insert}, change{2, 20, batch.Insert}, change{2, 58, batch.Insert})}
	right := []*KeyedRows{side(1, change{3, 66, batch.Insert}, change{1, 61, batch.Insert}), side(0, change{1, 62, batch.Insert}, change{2, 65, batch.Insert})}
	return []savedBefore{
		{"over by time", func() Keyed {
			return must(NewOver(&graph.Over{Time: 1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: calls}, timedSchema, three))
		}, rows, 50, more},
		{"over by time, ttl", func() Keyed {
			return must(NewOver(&graph.Over{Time: 1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: calls, TTL: 1000}, timedSchema, three))
		}, rows, 50, more},
		{"over at the end", func() Keyed {
			return must(NewOver(&graph.Over{Time: -1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: calls}, timedSchema, three))
		}, rows, 50, more},
		{"over of changes", func() Keyed {
			return must(NewOverChanges(&graph.Over{Time: -1, Changes: true, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: overCallsOf(t, true, true), TTL: 1000}, pairSchema, two))
		}, first[:1], 0, second[:1]},
		{"interval join", join(&graph.Join{Kind: graph.FullJoin, Interval: &graph.JoinInterval{LeftTime: 1, RightTime: 1, Lower: -10, Upper: 10}}), left, 50, right},
		{"temporal join", join(&graph.Join{Kind: graph.LeftJoin, Temporal: &graph.JoinTemporal{LeftTime: 1, RightTime: 1}}), left, 50, right},
		{"temporal join of changes", join(&graph.Join{Kind: graph.LeftJoin, Temporal: &graph.JoinTemporal{LeftTime: 1, RightTime: 1}, Retracts: [2]bool{true, true}}), left, 50, right},
		{"set operation", func() Keyed { return NewSetOperation(&graph.SetOperation{Kind: graph.Except, All: true}, pairSchema) }, first, 0, second},
		{"set operation of changes", func() Keyed {
			return NewSetChanges(&graph.SetOperation{Kind: graph.Except, All: true, Changes: true, TTL: 1000}, pairSchema)
		}, first, 0, second},
	}
}

// TestStateSavedBeforeItSpilled is read by operators that spill, and goes on as if there
// had been no restart.
func TestStateSavedBeforeItSpilled(t *testing.T) {
	data, err := os.ReadFile("testdata/saved_before.txt")
	if err != nil {
		t.Fatal(err)
	}
	saved := map[string][]byte{}
	for line := range strings.Lines(string(data)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if saved[name], err = hex.DecodeString(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx := expr.NewContext(nil, 1)
	for _, c := range savedBefores(t) {
		k, ok := c.fresh().(Spilling)
		if !ok {
			continue
		}
		x := &spilled{t: t, memory: c.fresh(), disk: k}
		quiet := &Results{Emit: func(*batch.Batch) error { return nil }}
		for _, in := range c.before {
			if err := x.memory.Fold(ctx, in, quiet); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.memory.Advance(ctx, c.wm, quiet); err != nil {
			t.Fatal(err)
		}
		store := spill.New(vfs.NewMem(), "/spill")
		k.SpillTo(store, 1)
		if err := k.Load(saved[c.name], state.Range{From: 0, To: state.Groups}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !k.Spilled() {
			t.Errorf("%s: nothing is on disk", c.name)
		}
		for _, in := range c.after {
			x.both(func(k Keyed, out *Results) error { return k.Fold(ctx, in, out) })
			x.spill()
		}
		x.both(func(k Keyed, out *Results) error { return k.Advance(ctx, batch.MaxWatermark, out) })
		if len(x.said[0]) == 0 {
			t.Errorf("%s: nothing was said", c.name)
		}
		x.same("%s", c.name)
	}
}
