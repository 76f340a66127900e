package operator

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// TestOrderedWaiting: with each watermark come the rows up to it, in order, and no
// others, also after rows that went were left out and after a restart.
func TestOrderedWaiting(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	fresh := func() *Over {
		o, err := NewOver(&graph.Over{Time: 1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, TTL: 50}, timedSchema, timedSchema)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	var got, wait [][2]int64
	res := &Results{Emit: func(b *batch.Batch) error {
		for i := range b.Len {
			got = append(got, [2]int64{b.Cols[0].Int64(i), b.Cols[1].Int64(i) / (timedSchema.Fields[1].Type.UnitsPerSecond() / 1000)})
		}
		return nil
	}, Dead: func(_ *batch.Batch, e *batch.ValueError) { t.Fatal(e) }}
	compare := func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }
	o := fresh()
	for now := int64(0); now < 40_000; now += 10 {
		in := make([][2]int64, r.IntN(8))
		for i := range in {
			in[i] = [2]int64{now/100 + r.Int64N(5), now + 1 + r.Int64N(300)}
		}
		if err := o.Fold(expr.NewContext(nil, 0), timed(in...), res); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		wait = append(wait, in...)
		o.Age(now)
		if r.IntN(200) == 0 {
			payload := o.Save()
			o = fresh()
			if err := o.Load(payload, state.Range{From: 0, To: state.Groups}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if now%20 > 0 {
			continue
		}
		got = got[:0]
		if err := o.Advance(expr.NewContext(nil, 0), now, res); err != nil {
			t.Fatal(err)
		}
		var want [][2]int64
		wait = slices.DeleteFunc(wait, func(x [2]int64) bool {
			if x[1] <= now {
				want = append(want, x)
			}
			return x[1] <= now
		})
		// Of each key the rows are in order; keys come in any order.
		slices.SortFunc(want, compare)
		slices.SortStableFunc(got, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, at %d: %v, want %v", seed, now, got, want)
		}
	}
}
