package fn_test

import (
	"testing"

	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// TestDiffersFromFlink holds the deliberate deviations of expressions: what
// Flink gives stands behind each.
func TestDiffersFromFlink(t *testing.T) {
	for name, cases := range map[string][]sqlCase{
		"decimal overflow is an error, not NULL": {
			{"CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) + 1", "error:overflow"},
			{"CAST(12345 AS DECIMAL(4, 1))", "error:overflow"}, {"TRY_CAST(12345 AS DECIMAL(4, 1))", "NULL"},
		},
		"integer arithmetic does not wrap": {
			{"2147483647 + 1", "error:overflow"}, {"2147483647 * 2", "error:overflow"}, {"ABS(CAST('-2147483648' AS INT))", "error:overflow"},
		},
		"narrowing casts do not wrap or saturate": {
			{"CAST(3000000000 AS INT)", "error:overflow"}, {"CAST(CAST(1e20 AS DOUBLE) AS BIGINT)", "error:overflow"}, {"TRY_CAST(3000000000 AS INT)", "NULL"},
		},
		"impossible dates are errors, not rolled": {
			{"CAST('2023-02-29 00:00:00' AS TIMESTAMP(3))", "error:cast"}, {"TO_DATE('2023-02-29')", "NULL"}, {"TO_TIMESTAMP('2023-02-30', 'yyyy-MM-dd')", "NULL"}, {"CAST('24:00:01' AS TIME)", "error:cast"},
		},
		"UNIX_TIMESTAMP of bad text is NULL":   {{"UNIX_TIMESTAMP('nonsense')", "NULL"}},
		"JSON_VALUE keeps the text of numbers": {{`JSON_VALUE('{"a":1.10}', '$.a')`, "1.10"}, {`JSON_VALUE('{"a":1e2}', '$.a')`, "1e2"}},
		"doubles have the shortest digits":     {{"CAST(CAST('2e23' AS DOUBLE) AS STRING)", "2.0E23"}},
		"errors of branches not taken do not matter": {
			{"FALSE AND 1/0 = 1", "FALSE"}, {"1/0 = 1 AND FALSE", "FALSE"}, {"CASE WHEN TRUE THEN 1 ELSE 1/0 END", "1"},
		},
	} {
		t.Run(name, func(t *testing.T) { runCases(t, "UTC", cases) })
	}
	t.Run("SUM of INT is BIGINT unless switched off", func(t *testing.T) {
		for _, off := range []bool{false, true} {
			lib, err := fn.NewLibrary(fn.LibraryOptions{NoSumWidening: off})
			if err != nil {
				t.Fatal(err)
			}
			b, _ := bindAgg(t, lib, "SUM(x)", types.NewInt())
			if want := map[bool]string{false: "BIGINT", true: "INT"}[off]; b.Return.String() != want {
				t.Errorf("NoSumWidening %v: %s, want %s", off, b.Return, want)
			}
			got := aggregateOnce(t, lib, "SUM(x)", types.NewInt(), []string{"2147483647", "1"})
			if want := map[bool]string{false: "2147483648", true: "error:overflow"}[off]; got != want {
				t.Errorf("NoSumWidening %v: %s, want %s", off, got, want)
			}
		}
	})
}
