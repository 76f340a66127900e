package operator

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// BenchmarkWindowAggregate folds batches of 4,096 rows into 10,000 keys with
// COUNT, SUM and LAST_VALUE; it reports rows per second and the memory of a key.
func BenchmarkWindowAggregate(b *testing.B) {
	in := &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewString()}, {Name: "ts", Type: types.NewTimestamp(3)}, {Name: "v", Type: types.NewBigInt()}}}
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		b.Fatal(err)
	}
	op := &graph.WindowAggregate{Window: graph.Window{Size: 3_600_000}, Time: 1, Keys: []int{0}}
	out := &batch.Schema{Fields: []types.Field{in.Fields[0]}}
	for _, c := range []struct {
		name string
		cols []int
	}{{"COUNT", nil}, {"SUM", []int{2}}, {"LAST_VALUE", []int{2}}} {
		a := graph.Aggregate{Name: c.name, Text: c.name}
		var args []fn.Arg
		for _, i := range c.cols {
			col := expr.NewColumn(in, i)
			a.Args, args = append(a.Args, col), append(args, fn.Arg{Type: col.T})
		}
		f, _ := lib.Aggregate(c.name)
		if a.Bound, err = f.Bind(args, fn.AggOptions{}); err != nil {
			b.Fatal(err)
		}
		op.Aggregates = append(op.Aggregates, a)
		out.Fields = append(out.Fields, types.Field{Name: c.name, Type: a.Bound.Return})
	}
	for _, n := range []string{"window_start", "window_end", "window_time"} {
		out.Fields = append(out.Fields, types.Field{Name: n, Type: types.NewTimestamp(3)})
	}
	w, err := NewWindowAggregate(op, in, out)
	if err != nil {
		b.Fatal(err)
	}
	const rows = 4096
	var batches []*KeyedRows
	for k := range 16 {
		x := &batch.Batch{Schema: in, Len: rows, Cols: make([]batch.Vec, 3), Runs: []batch.Run{{Rows: rows, BaseOffset: int64(k * rows)}}}
		for i := range x.Cols {
			x.Cols[i].Reset(in.Fields[i].Type, rows)
		}
		sel := make(batch.Sel, rows)
		for i := range rows {
			n := (k*rows + i) * 7919 % 10_000
			x.Cols[0].PutString(i, fmt.Sprintf("user-%06d", n))
			x.Cols[1].I64[i] = int64(k*rows+i) * 1000
			x.Cols[2].I64[i] = int64(i)
			sel[i] = int32(i)
		}
		hashes := make([]uint64, rows)
		batch.HashRows(hashes, []*batch.Vec{&x.Cols[0]}, nil)
		batches = append(batches, &KeyedRows{Batch: x, Sel: sel, Hashes: hashes, Topic: "t", Partitions: []int32{0}})
	}
	ctx := expr.NewContext(nil, 1)
	res := &Results{Dead: func(*batch.Batch, *batch.ValueError) {}}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := w.Fold(ctx, batches[i%16], res); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(w.Bytes())/10_000, "B/key")
}
