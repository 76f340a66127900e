package fn_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// TestExactVariance: values worked out by hand; those of Flink are in
// sql/flinktest.
func TestExactVariance(t *testing.T) {
	lib := library(t)
	big38 := types.NewDecimal(38, 0)
	for _, c := range []struct {
		sql  string
		typ  types.Type
		rows []string
		want string
	}{
		{"VAR_POP(x)", types.NewInt(), []string{"0", "0", "2"}, "0"}, // 8/9
		{"VAR_SAMP(x)", types.NewInt(), []string{"0", "0", "2"}, "1"},
		{"STDDEV_POP(x)", types.NewTinyInt(), []string{"-128", "127"}, "127"},
		{"VAR_POP(x)", types.NewTinyInt(), []string{"-128", "127"}, "error:overflow"},
		{"VAR_POP(x)", types.NewBigInt(), []string{"9223372036854775807", "9223372036854775807"}, "0"},
		{"VAR_SAMP(x)", types.NewBigInt(), []string{"7"}, "NULL"}, {"VAR_POP(x)", types.NewBigInt(), []string{"NULL"}, "NULL"},
		{"VAR_POP(x)", types.NewDecimal(10, 2), []string{"1.10", "2.25", "2.26"}, "0.296467"},
		{"STDDEV_SAMP(x)", types.NewDecimal(20, 8), []string{"1.12345678", "2.25"}, "0.79658635"},
		{"STDDEV_POP(x)", big38, []string{"99999999999999999999999999999999", "-99999999999999999999999999999999"}, "99999999999999999999999999999999.000000"},
		{"VAR_POP(x)", big38, []string{"99999999999999999999999999999999", "-99999999999999999999999999999999"}, "error:overflow"},
	} {
		if got := aggregateOnce(t, lib, c.sql, c.typ, c.rows); got != c.want {
			t.Errorf("%s of %s over %v = %s, want %s", c.sql, c.typ, c.rows, got, c.want)
		}
	}
}

// TestExactVarianceOfRandomNumbers against fractions, over states that are merged.
func TestExactVarianceOfRandomNumbers(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	agg, _ := library(t).Aggregate("VAR_POP")
	typ := types.NewDecimal(12, 3)
	bound, err := agg.Bind([]fn.Arg{{Type: typ}}, fn.AggOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		n := 1 + r.IntN(40)
		var in batch.Vec
		in.Reset(typ, n)
		sum, squares := new(big.Int), new(big.Int)
		for i := range n {
			x := r.Int64N(2e11) - 1e11
			in.I64[i] = x
			b := big.NewInt(x)
			sum.Add(sum, b)
			squares.Add(squares, new(big.Int).Mul(b, b))
		}
		acc := bound.New()
		acc.Resize(3)
		groups := make([]int32, n)
		for i := range groups {
			groups[i] = int32(i % 2)
		}
		acc.Update(groups, []batch.Vec{in}, nil, nil)
		for g := range 2 {
			if err := acc.MergeState(2, acc.AppendState(nil, g)); err != nil {
				t.Fatal(err)
			}
		}
		var out batch.Vec
		acc.Emit([]int32{2}, "", &out)
		num := new(big.Int).Sub(squares.Mul(squares, big.NewInt(int64(n))), sum.Mul(sum, sum))
		want := new(big.Rat).SetFrac(num, big.NewInt(int64(n)*int64(n)*1_000_000)).FloatString(6)
		if got := out.Text(0); got != want {
			t.Errorf("seed %d: %s of %d values, want %s", seed, got, n, want)
		}
	}
}
