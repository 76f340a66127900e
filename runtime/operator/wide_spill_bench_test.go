package operator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// BenchmarkSpilledWide merges 200,000 rows of 50 branches, in batches of one, into the window
// of a wide table with 300 columns and 20,000 integer keys, each of which 10 rows reach, and
// lets it go out: with memory for all of it, and with memory for a tenth.
func BenchmarkSpilledWide(b *testing.B) {
	const rows, each, keys, branches = 200_000, 4000, 20_000, 50
	op := &graph.WideMerge{}
	fresh := wideOf(b, op, branches, 1)
	rng := rand.New(rand.NewPCG(1, 2))
	var batches []*KeyedRows
	for n := range rows / each {
		var in []click
		for range each {
			in = append(in, click{k: rng.Int64N(keys), v: rng.Int64N(1000), ts: 5})
		}
		x := clicksOf(in, 0)
		x.Input = n % branches
		batches = append(batches, x)
	}
	var all int64
	for _, tenth := range []bool{false, true} {
		b.Run(fmt.Sprintf("spilled=%t", tenth), func(b *testing.B) {
			var spent time.Duration
			var peak, written int64
			for range b.N {
				w, ctx := fresh(), expr.NewContext(nil, 1)
				store, budget := spill.New(vfs.NewOS(), b.TempDir()+"/spill"), int64(1)<<60
				if tenth {
					budget = all / 10
					w.SpillTo(store, budget)
				}
				got := 0
				res := &Results{Emit: func(x *batch.Batch) error { got += x.Len; return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
				began := processTime(b)
				for _, in := range batches {
					if err := w.Fold(ctx, in, res); err != nil {
						b.Fatal(err)
					}
					if peak = max(peak, w.Bytes()); w.Bytes() > budget {
						if err := w.Spill(); err != nil {
							b.Fatal(err)
						}
					}
				}
				if err := w.Advance(ctx, batch.MaxWatermark, res); err != nil || got < keys*9/10 {
					b.Fatalf("%d rows: %v", got, err)
				}
				spent += processTime(b) - began
				written = store.Written()
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
			if !tenth {
				all = peak
			}
			b.ReportMetric(spent.Seconds()*1e6/float64(rows*b.N), "cpu-us/row")
			b.ReportMetric(float64(peak)/(1<<20), "MB-memory")
			b.ReportMetric(float64(written)/(1<<20), "MB-written")
		})
	}
}
