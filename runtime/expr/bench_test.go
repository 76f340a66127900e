package expr_test

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
	"github.com/millrace/millrace/runtime/types"
)

// benchBatch has n rows of typical columns, no errors, some NULLs in "k".
func benchBatch(n int) *batch.Batch {
	s := &batch.Schema{Fields: []types.Field{
		{Name: "a", Type: types.NewBigInt()}, {Name: "b", Type: types.NewBigInt()}, {Name: "k", Type: types.NewBigInt()}, {Name: "d", Type: types.NewDouble()},
		{Name: "m", Type: types.NewDecimal(10, 2)}, {Name: "s", Type: types.NewString()}, {Name: "ts", Type: types.NewTimestampLTZ(3)}, {Name: "j", Type: types.NewString()},
		{Name: "t", Type: types.NewString()},
	}}
	b := &batch.Batch{Schema: s, Len: n, Cols: make([]batch.Vec, len(s.Fields))}
	for i, f := range s.Fields {
		b.Cols[i].Reset(f.Type, n)
	}
	for i := 0; i < n; i++ {
		for _, c := range []int{0, 1, 2, 4} {
			b.Cols[c].I64[i] = int64(i*7919%1000 + c)
		}
		if i%10 == 0 {
			b.Cols[2].SetNull(i)
		}
		b.Cols[3].F64[i] = float64(i) / 3
		b.Cols[5].PutString(i, fmt.Sprintf("PushEvent-%d", i%50))
		b.Cols[6].I64[i] = 1714521600000000 + int64(i)*250_000
		b.Cols[7].PutString(i, fmt.Sprintf(`{"id": %d, "actor": {"login": "user%d", "id": %d}, "tags": ["x", "y"]}`, i, i%7, i*3))
		b.Cols[8].PutString(i, fmt.Sprint(i*31))
	}
	return b
}

var benchExprs = map[string][]string{
	"add":          {"a + b"},
	"add_nulls":    {"a + k"},
	"compare":      {"a > 500"},
	"and":          {"a > 500 AND b < 900 AND s = 'PushEvent-7'"},
	"case":         {"CASE WHEN a > 500 THEN a ELSE b END"},
	"decimal_mul":  {"m * m"},
	"decimal_add":  {"m + m"},
	"upper":        {"UPPER(s)"},
	"like":         {"s LIKE '%Event-1%'"},
	"cast_int":     {"CAST(t AS BIGINT)"},
	"cast_string":  {"CAST(a AS STRING)"},
	"date_format":  {"DATE_FORMAT(ts, 'yyyy-MM-dd')", "DATE_FORMAT(ts, 'HH')"},
	"json_3_paths": {"JSON_VALUE(j, '$.id')", "JSON_VALUE(j, '$.actor.login')", "JSON_VALUE(j, '$.actor.id')"},
	"in_list":      {"IN(a, 1, 5, 9, 500)"},
}

func compileBench(tb testing.TB, in *batch.Batch, srcs []string) *expr.Program {
	tb.Helper()
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	var exprs []expr.Expr
	for _, src := range srcs {
		e, err := exprtext.Parse(lib, in.Schema, src)
		if err != nil {
			tb.Fatal(err)
		}
		exprs = append(exprs, e)
	}
	p, err := expr.Compile(exprs, in.Schema, expr.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func BenchmarkEval(b *testing.B) {
	const n = 4096
	in := benchBatch(n)
	for name, srcs := range benchExprs {
		b.Run(name, func(b *testing.B) {
			p := compileBench(b, in, srcs)
			ctx := expr.NewContext(nil, 1)
			out := make([]batch.Vec, len(srcs))
			p.Eval(ctx, in, nil, out)
			b.ReportAllocs()
			for b.Loop() {
				p.Eval(ctx, in, nil, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}

func BenchmarkHashRows(b *testing.B) {
	const n = 4096
	in := benchBatch(n)
	cols := []*batch.Vec{&in.Cols[0], &in.Cols[5], &in.Cols[6]}
	hashes := make([]uint64, n)
	for b.Loop() {
		batch.HashRows(hashes, cols, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}

// TestNoAllocationPerRow: once warm, a batch of four times the rows allocates
// no more often.
func TestNoAllocationPerRow(t *testing.T) {
	small, large := benchBatch(500), benchBatch(4000)
	for name, srcs := range benchExprs {
		p := compileBench(t, small, srcs)
		ctx := expr.NewContext(nil, 1)
		out := make([]batch.Vec, len(srcs))
		allocs := func(in *batch.Batch) float64 {
			return testing.AllocsPerRun(5, func() { p.Eval(ctx, in, nil, out) })
		}
		// The large batch first: it makes the memory that is kept.
		many, few := allocs(large), allocs(small)
		if many > few+2 || many > 20 {
			t.Errorf("%s: %v allocations for 4,000 rows, %v for 500", name, many, few)
		}
	}
}
