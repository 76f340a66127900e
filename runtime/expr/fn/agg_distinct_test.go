package fn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// texts are distinct values of several lengths about the one up to which a set
// keeps them in its map, among them such that differ in trailing zeros alone.
func texts() []string {
	var out []string
	for n := range 40 {
		for _, c := range []string{"x", "\x00"} {
			out = append(out, strings.Repeat("a", n)+c)
		}
	}
	return out
}

// TestDistinctOfAnyLength: each text is one value, also after a merge of states.
func TestDistinctOfAnyLength(t *testing.T) {
	agg, _ := library(t).Aggregate("COUNT")
	bound, err := agg.Bind([]fn.Arg{{Type: types.NewString()}}, fn.AggOptions{Distinct: true})
	if err != nil {
		t.Fatal(err)
	}
	values := texts()
	var in batch.Vec
	in.Reset(types.NewString(), 2*len(values))
	for i := range 2 * len(values) {
		in.PutString(i, values[i%len(values)])
	}
	in.PadOffsets()
	acc := bound.New()
	acc.Resize(2)
	acc.Update(make([]int32, 2*len(values)), []batch.Vec{in}, nil, nil)
	if err := acc.MergeState(1, acc.AppendState(nil, 0)); err != nil {
		t.Fatal(err)
	}
	before := acc.Bytes()
	if err := acc.MergeState(1, acc.AppendState(nil, 0)); err != nil {
		t.Fatal(err)
	}
	if acc.Bytes() != before {
		t.Errorf("the same values again took %d bytes", acc.Bytes()-before)
	}
	var out batch.Vec
	acc.Emit([]int32{0, 1}, "", &out)
	if got, want := fmt.Sprint(out.I64[:2]), fmt.Sprint([]int{len(values), len(values)}); got != want {
		t.Errorf("distinct values %s, want %s", got, want)
	}
	acc.Clear(0)
	acc.Clear(1)
	if left := acc.Bytes(); left > 64 {
		t.Errorf("%d bytes are left of cleared groups", left)
	}
}

func BenchmarkCountDistinct(b *testing.B) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		b.Fatal(err)
	}
	agg, _ := lib.Aggregate("COUNT")
	bound, err := agg.Bind([]fn.Arg{{Type: types.NewBigInt()}}, fn.AggOptions{Distinct: true})
	if err != nil {
		b.Fatal(err)
	}
	const rows = 1 << 16
	var in batch.Vec
	in.Reset(types.NewBigInt(), rows)
	groups := make([]int32, rows)
	for i := range rows {
		in.I64[i] = int64(i) * 7919
		groups[i] = int32(i % 16)
	}
	b.ReportAllocs()
	for b.Loop() {
		acc := bound.New()
		acc.Resize(16)
		acc.Update(groups, []batch.Vec{in}, nil, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
