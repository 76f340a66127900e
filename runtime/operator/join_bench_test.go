package operator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// BenchmarkSpilledJoins joins 200,000 rows on the left with 200,000 on the right by an
// integer, each key once on either side, in batches of 4,096: with memory for all of
// them, and with memory for a tenth. Joins of inputs that end give their rows at the
// end, which counts; those of streams as they come.
func BenchmarkSpilledJoins(b *testing.B) {
	for _, streams := range []bool{false, true} {
		for _, tenth := range []bool{false, true} {
			b.Run(fmt.Sprintf("streams=%t/spilled=%t", streams, tenth), func(b *testing.B) { benchJoin(b, streams, tenth) })
		}
	}
}

func benchJoin(b *testing.B, streams, tenth bool) {
	const rows, keys = 4096, 200_000
	op := &graph.Join{Keys: []graph.JoinKey{{Left: 0, Right: 0}}, Changes: streams}
	var inputs []*KeyedRows
	rng := rand.New(rand.NewPCG(1, 2))
	order := [2][]int{rng.Perm(keys), rng.Perm(keys)}
	for at := 0; at < keys; at += rows {
		for side := range 2 {
			var in []change
			for _, k := range order[side][at:min(at+rows, keys)] {
				in = append(in, change{k: int64(k), v: 1})
			}
			x := changesOf(in)
			x.Input, x.Batch.Kinds = side, nil
			inputs = append(inputs, x)
		}
	}
	ctx := expr.NewContext(nil, 1)
	var most, written int64
	b.ResetTimer()
	began := processTime(b)
	for range b.N {
		k, err := NewJoin(op, pairSchema, pairSchema, graph.PairSchema(pairSchema, pairSchema))
		if err != nil {
			b.Fatal(err)
		}
		got, budget := 0, int64(1)<<60
		res := &Results{Emit: func(x *batch.Batch) error { got += x.Len; return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
		s := k.(Spilling)
		var store *spill.Store
		if tenth {
			// A tenth of what the same rows take in memory, see state-B/row.
			budget = 2 * keys * 40 / 10
			if streams {
				budget = 2 * keys * 56 / 10
			}
			store = spill.New(vfs.NewOS(), b.TempDir()+"/spill")
			s.SpillTo(store, budget)
		}
		for n, in := range inputs {
			if err := s.Fold(ctx, in, res); err != nil {
				b.Fatal(err)
			}
			most = max(most, s.Bytes())
			if n%4 == 0 && s.Bytes() > budget {
				if err := s.Spill(); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := s.Advance(ctx, batch.MaxWatermark, res); err != nil {
			b.Fatal(err)
		}
		if got != keys {
			b.Fatalf("%d rows, want %d", got, keys)
		}
		if store != nil {
			written = store.Written()
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	b.ReportMetric((processTime(b)-began).Seconds()*1e6/float64(2*keys*b.N), "cpu-us/row")
	b.ReportMetric(float64(most)/(2*keys), "state-B/row")
	b.ReportMetric(float64(written)/1e6, "written-MB")
}
