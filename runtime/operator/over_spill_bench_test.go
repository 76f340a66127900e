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

// BenchmarkSpilledOver gives b.N batches of 4,096 rows, of 100,000 integer keys all alike,
// to OVER by row time: the number of the row, and of the rows up to two before it. 25 batches
// wait for the watermark. With memory for all keys and rows, and with memory for a tenth.
func BenchmarkSpilledOver(b *testing.B) {
	for _, tenth := range []bool{false, true} {
		b.Run(fmt.Sprintf("spilled=%t", tenth), func(b *testing.B) { benchOver(b, tenth) })
	}
}

func benchOver(b *testing.B, tenth bool) {
	const rows, keys, waits = 4096, 100_000, 25
	calls, out := rowTimeCalls(b)
	out.Fields = append(out.Fields[:3:3], out.Fields[4])
	o, err := NewOver(&graph.Over{Time: 1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, Calls: []graph.OverCall{calls[0], calls[2]}}, timedSchema, out)
	if err != nil {
		b.Fatal(err)
	}
	budget, peak := int64(1)<<60, int64(0)
	store := spill.New(vfs.NewOS(), b.TempDir()+"/spill")
	if tenth {
		budget = keys * overBytes / 10
		o.SpillTo(store, budget)
	}
	rng, ctx := rand.New(rand.NewPCG(1, 2)), expr.NewContext(nil, 1)
	res := &Results{Emit: func(*batch.Batch) error { return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
	var batches []*KeyedRows
	for n := range int64(2*waits + b.N) {
		in := make([][2]int64, rows)
		for i := range in {
			in[i] = [2]int64{rng.Int64N(keys), 10*n + rng.Int64N(10)}
		}
		batches = append(batches, timed(in...))
	}
	fold := func(n int) {
		if err := o.Fold(ctx, batches[n], res); err != nil {
			b.Fatal(err)
		}
		if n%4 == 0 {
			if peak = max(peak, o.Bytes()); o.Bytes() > budget {
				if err := o.Spill(); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := o.Advance(ctx, int64(10*(n-waits)), res); err != nil {
			b.Fatal(err)
		}
	}
	for n := range 2 * waits {
		fold(n)
	}
	b.ResetTimer()
	began := processTime(b)
	for n := range b.N {
		fold(2*waits + n)
	}
	b.StopTimer()
	b.ReportMetric((processTime(b)-began).Seconds()*1e6/float64(rows*b.N), "cpu-us/row")
	b.ReportMetric(float64(peak)/keys, "B/key")
	if tenth {
		b.ReportMetric(float64(store.Bytes())/(1<<20), "MB-disk")
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}

// overBytes is what a key of BenchmarkSpilledOver takes in memory, with its rows that wait,
// see B/key.
const overBytes = 400
