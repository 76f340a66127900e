package fn_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// TestRowsTakenBackLeaveNothing folds rows, takes some back, in steps with results
// asked for and state saved between; what is left is what the plain aggregate gives
// over the rows that are left.
func TestRowsTakenBackLeaveNothing(t *testing.T) {
	lib := library(t)
	values := map[types.Kind][]string{
		types.BigInt:  {"1", "-7", "9223372036854775807", "NULL", "3"},
		types.Double:  {"0.1", "1e300", "-1e300", "NULL", "3.5", "NaN", "Infinity", "-Infinity", "-0.0", "0.0"},
		types.Varchar: {"a", "b", "", "日本", "NULL"},
		types.Decimal: {"1.25", "-99999999.99", "NULL", "0.01"},
	}
	calls := []struct {
		sql string
		typ types.Type
	}{
		{"COUNT(*)", types.NewBigInt()}, {"COUNT(x)", types.NewString()}, {"SUM(x)", types.NewBigInt()}, {"AVG(x)", types.NewBigInt()},
		{"SUM(x)", types.NewDouble()}, {"AVG(x)", types.NewDouble()}, {"SUM(x)", types.NewDecimal(10, 2)}, {"AVG(x)", types.NewDecimal(20, 2)},
		{"MIN(x)", types.NewDouble()}, {"MAX(x)", types.NewBigInt()}, {"MAX(x)", types.NewString()}, {"MIN(x)", types.NewDecimal(20, 2)},
		{"FIRST_VALUE(x)", types.NewString()}, {"LAST_VALUE(x)", types.NewDouble()}, {"COUNT(DISTINCT x)", types.NewDouble()},
		{"SUM(DISTINCT x)", types.NewBigInt()}, {"AVG(DISTINCT x)", types.NewDecimal(10, 2)}, {"LISTAGG(x)", types.NewString()},
		{"LISTAGG(x, '-')", types.NewString()}, {"LISTAGG(DISTINCT x)", types.NewString()}, {"ARRAY_AGG(x)", types.NewBigInt()},
		{"VAR_POP(x)", types.NewDouble()}, {"STDDEV_SAMP(x)", types.NewDouble()}, {"VAR_SAMP(DISTINCT x)", types.NewDouble()},
	}
	for seed := uint64(1); seed <= 60; seed++ {
		r := rand.New(rand.NewPCG(seed, 11))
		for _, c := range calls {
			b, star := bindAgg(t, lib, c.sql, c.typ)
			rb := fn.Retracting(b)
			acc := rb.New()
			acc.Resize(3)
			type row struct {
				text  string
				key   int
				group int32
			}
			var left []row
			fold := func(rows []row, f func([]int32, []batch.Vec, *batch.Vec, batch.Sel)) {
				texts, keys, groups := make([]string, len(rows)), make([]int, len(rows)), make([]int32, len(rows))
				for i, x := range rows {
					texts[i], keys[i], groups[i] = x.text, x.key, x.group
				}
				var args []batch.Vec
				if !star {
					args = []batch.Vec{*column(t, c.typ, texts)}
				}
				f(groups, args, orderColumn(keys), nil)
			}
			for step := range 6 {
				var come []row
				for range r.IntN(12) {
					vs := values[c.typ.Kind]
					come = append(come, row{vs[r.IntN(len(vs))], r.IntN(8), int32(r.IntN(3))})
				}
				fold(come, acc.Update)
				left = append(left, come...)
				r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
				n := r.IntN(len(left) + 1)
				fold(left[:n], acc.(fn.Retractor).Retract)
				left = left[n:]
				if step%2 == 0 {
					again := rb.New()
					again.Resize(3)
					for g := range 3 {
						if err := again.MergeState(g, acc.AppendState(nil, g)); err != nil {
							t.Fatal(err)
						}
					}
					acc = again
				} else {
					moved := rb.New()
					moved.Resize(3)
					moved.Merge(acc, []int32{0, 1, 2})
					acc = moved
				}
				want := b.New()
				want.Resize(3)
				fold(left, want.Update)
				var got, exp batch.Vec
				acc.Emit([]int32{0, 1, 2}, "x", &got)
				want.Emit([]int32{0, 1, 2}, "x", &exp)
				for g := range 3 {
					if (got.Err(g) != nil) != (exp.Err(g) != nil) || !bytes.Equal(batch.AppendExact(nil, &got, g), batch.AppendExact(nil, &exp, g)) {
						t.Fatalf("seed %d, step %d: %s over %v: group %d is not what the rows that are left give", seed, step, c.sql, left, g)
					}
				}
			}
			acc.Clear(1)
			var out, empty batch.Vec
			acc.Emit([]int32{1}, "x", &out)
			none := b.New()
			none.Resize(1)
			none.Emit([]int32{0}, "x", &empty)
			if !bytes.Equal(batch.AppendExact(nil, &out, 0), batch.AppendExact(nil, &empty, 0)) {
				t.Fatalf("%s: a cleared group is not empty", c.sql)
			}
		}
	}
}
