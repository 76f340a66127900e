package operator

import (
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
)

// BenchmarkOrderedWaiting orders a stream by row time, of which 100,000 rows wait for
// the watermark, which comes with each of b.N batches of 128 rows and fires as many.
func BenchmarkOrderedWaiting(b *testing.B) {
	const rows, waiting = 128, 100_000
	o, err := NewOver(&graph.Over{Time: 1, Order: []graph.SortKey{{Column: 1}}}, timedSchema, timedSchema)
	if err != nil {
		b.Fatal(err)
	}
	got := 0
	res := &Results{Emit: func(x *batch.Batch) error { got += x.Len; return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
	ctx := expr.NewContext(nil, 0)
	next := int64(0)
	fold := func() {
		in := make([][2]int64, rows)
		for i := range in {
			in[i] = [2]int64{next % 1000, next ^ 7} // a little out of order
			next++
		}
		if err := o.Fold(ctx, timed(in...), res); err != nil {
			b.Fatal(err)
		}
	}
	for next < waiting {
		fold()
	}
	first := next
	b.ReportAllocs()
	b.ResetTimer()
	began := processTime(b)
	for range b.N {
		fold()
		if err := o.Advance(ctx, next-first-1, res); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if got != rows*b.N {
		b.Fatalf("%d rows, want %d", got, rows*b.N)
	}
	b.ReportMetric((processTime(b)-began).Seconds()*1e6/float64(rows*b.N), "cpu-us/row")
}
