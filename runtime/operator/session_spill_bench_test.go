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

// BenchmarkSpilledSessions counts, adds up and takes the greatest value of sessions (COUNT,
// SUM, MAX) of 400,000 rows by one of 400,000 keys each, in batches of 4,000 with a watermark
// behind each: a row goes on with a session that is there four times of five, and about 40,000
// are open at a time. With memory for all of them, and for a tenth.
func BenchmarkSpilledSessions(b *testing.B) {
	const rows, each, open = 400_000, 4000, 40_000
	op := &graph.WindowAggregate{Window: graph.Window{Kind: graph.Session, Size: 10_000}}
	out := changesOut(b, op)
	rng := rand.New(rand.NewPCG(1, 2))
	var batches []*KeyedRows
	next := int64(0)
	for n := range rows / each {
		var in []click
		for i := range each {
			k := next
			if n > 0 && rng.IntN(5) > 0 {
				k = max(next-1-rng.Int64N(open/5), 0)
			} else {
				next++
			}
			in = append(in, click{k: k, v: rng.Int64N(1000), ts: int64(n*each+i) / 4})
		}
		x := clicksOf(in, 0)
		x.Batch.Kinds = nil
		batches = append(batches, x)
	}
	var all int64
	for _, tenth := range []bool{false, true} {
		b.Run(fmt.Sprintf("spilled=%t", tenth), func(b *testing.B) {
			var spent time.Duration
			var peak, written int64
			for range b.N {
				k, err := NewSessionAggregate(op, clickSchema, out)
				if err != nil {
					b.Fatal(err)
				}
				store, budget := spill.New(vfs.NewOS(), b.TempDir()+"/spill"), int64(1)<<60
				if tenth {
					budget = all / 10
					k.SpillTo(store, budget)
				}
				ctx, got := expr.NewContext(nil, 1), 0
				res := &Results{Emit: func(x *batch.Batch) error { got += x.Len; return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
				began := processTime(b)
				for n, in := range batches {
					if err := k.Fold(ctx, in, res); err != nil {
						b.Fatal(err)
					}
					if peak = max(peak, k.Bytes()); k.Bytes() > budget {
						if err := k.Spill(); err != nil {
							b.Fatal(err)
						}
					}
					if err := k.Advance(ctx, int64(n*each)/4, res); err != nil {
						b.Fatal(err)
					}
				}
				if err := k.Advance(ctx, batch.MaxWatermark, res); err != nil || got < int(next) {
					b.Fatalf("%d sessions of %d keys: %v", got, next, err)
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
