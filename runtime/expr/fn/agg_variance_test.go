package fn_test

import (
	"testing"

	"github.com/millrace/millrace/runtime/types"
)

// TestVariance: the values are fractions worked out by hand; NULL for fewer
// than two values of a sample is that of the SQL standard.
func TestVariance(t *testing.T) {
	lib := library(t)
	dbl, flt := types.NewDouble(), types.NewFloat()
	for _, c := range []struct {
		sql  string
		typ  types.Type
		rows []string
		want string
	}{
		{"VAR_POP(x)", dbl, []string{"2", "4", "4", "4", "5", "5", "7", "9"}, "4.0"},
		{"STDDEV_POP(x)", dbl, []string{"2", "4", "4", "4", "5", "5", "7", "9"}, "2.0"},
		{"VAR_SAMP(x)", dbl, []string{"1", "2", "3", "4"}, "1.6666666666666667"},
		{"VARIANCE(x)", dbl, []string{"1", "2", "3", "4"}, "1.6666666666666667"},
		{"VAR_SAMP(x)", flt, []string{"1", "2", "3", "4"}, "1.6666666"},
		{"STDDEV_SAMP(x)", dbl, []string{"1", "NULL", "3", "5"}, "2.0"},
		{"VAR_POP(DISTINCT x)", dbl, []string{"1", "1", "1", "3"}, "1.0"},
		{"VAR_POP(x)", dbl, []string{"5"}, "0.0"}, {"STDDEV_POP(x)", dbl, []string{"5"}, "0.0"}, {"VAR_SAMP(x)", dbl, []string{"5"}, "NULL"}, {"STDDEV_SAMP(x)", dbl, []string{"NULL", "5"}, "NULL"},
		{"VAR_POP(x)", dbl, nil, "NULL"}, {"STDDEV_POP(x)", dbl, []string{"NULL"}, "NULL"},
		// A one-pass sum in DOUBLE loses all digits here; the variance of
		// b, b+1, b+2 is 2/3 for every b.
		{"VAR_POP(x)", dbl, []string{"1e15", "1000000000000001", "1000000000000002"}, "0.6666666666666666"},
		{"VAR_POP(x)", dbl, []string{"0", "0", "0"}, "0.0"}, {"VAR_POP(x)", dbl, []string{"-1", "1"}, "1.0"},
		{"STDDEV_POP(x)", dbl, []string{"1e-200", "-1e-200"}, "0.0"}, // the variance 1e-400 is no DOUBLE but 0
		{"VAR_POP(x)", dbl, []string{"1e200", "-1e200"}, "Infinity"},
		{"VAR_POP(x)", dbl, []string{"1.5e300", "1.5e300"}, "0.0"},
		{"VAR_POP(x)", dbl, []string{"NaN", "1"}, "NaN"}, {"STDDEV_SAMP(x)", dbl, []string{"Infinity", "1"}, "NaN"},
	} {
		if got := aggregateOnce(t, lib, c.sql, c.typ, c.rows); got != c.want {
			t.Errorf("%s over %v = %s, want %s", c.sql, c.rows, got, c.want)
		}
	}
}
