package operator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// BenchmarkTopNTies is the first ten of 2,000 keys in 40 batches of 4,096 rows with text, of
// which many are equal by the order or none; where rows may go again, all do.
func BenchmarkTopNTies(b *testing.B) {
	for _, values := range []int64{3, 1 << 40} {
		for _, retracts := range []bool{true, false} {
			b.Run(fmt.Sprintf("values=%d/retracts=%t", values, retracts), func(b *testing.B) {
				const rows, keys = 4096, 2000
				s := &batch.Schema{Fields: append(pairSchema.Fields[:2:2], types.Field{Name: "s", Type: types.NewString()}, types.Field{Name: "t", Type: types.NewString()}, types.Field{Name: "u", Type: types.NewBigInt()})}
				op := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, N: 10, Changes: true, Retracts: retracts}
				k, err := NewTopN(op, s, s)
				if err != nil {
					b.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				var all []*KeyedRows
				for range 40 {
					var in []change
					for range rows {
						in = append(in, change{k: rng.Int64N(keys), v: rng.Int64N(values)})
					}
					x := changesOf(in)
					x.Batch.Schema = s
					var t, u, w batch.Vec
					t.Reset(types.NewString(), rows)
					u.Reset(types.NewString(), rows)
					w.Reset(types.NewBigInt(), rows)
					for i := range rows {
						t.PutString(i, fmt.Sprintf("https://example.org/channel/%d/item", rng.IntN(1000)))
						u.PutString(i, fmt.Sprintf("user %030d", rng.IntN(1000)))
						w.I64[i] = rng.Int64()
					}
					x.Batch.Cols = append(x.Batch.Cols, t, u, w)
					if !retracts {
						x.Batch.Kinds = nil
					}
					all = append(all, x)
				}
				ctx := expr.NewContext(nil, 1)
				res := &Results{Emit: func(*batch.Batch) error { return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
				began := processTime(b)
				for range b.N {
					k, _ = NewTopN(op, s, s)
					for _, x := range all {
						if err := k.Fold(ctx, x, res); err != nil {
							b.Fatal(err)
						}
					}
					if !retracts {
						continue
					}
					for _, x := range all {
						kinds := x.Batch.Kinds
						x.Batch.Kinds = make([]batch.Kind, rows)
						for i := range x.Batch.Kinds {
							x.Batch.Kinds[i] = batch.Delete
						}
						if err := k.Fold(ctx, x, res); err != nil {
							b.Fatal(err)
						}
						x.Batch.Kinds = kinds
					}
				}
				b.ReportMetric((processTime(b)-began).Seconds()*1e6/float64(b.N*rows*40), "cpu-us/row")
			})
		}
	}
}
