package fn_test

import (
	"testing"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
	"github.com/millrace/millrace/runtime/types"
)

type sqlCase struct{ sql, want string }

func runCases(t *testing.T, zone string, cases []sqlCase) {
	t.Helper()
	lib := library(t)
	z, err := types.LoadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		ctx := expr.NewContext(z, 1)
		ctx.Now = exampleNow
		if got := evalText(t, lib, ctx, c.sql); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.sql, got, c.want)
		}
	}
}

func TestIntegerDivisionAndModulo(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"7/2", "3"}, {"-7/2", "-3"}, {"-7%3", "-1"}, {"7%-3", "1"}, {"MOD(-7,3)", "-1"},
		{"1.0/3", "0.333333333333"}, {"CAST(1 AS DOUBLE)/0", "Infinity"}, {"1/0", "error:division_by_zero"},
		{"CAST(NULL AS INT)/0", "NULL"}, {"1.5/0", "error:division_by_zero"}, {"1.5 % 0", "error:division_by_zero"},
		{"CAST(0 AS DOUBLE)/0", "NaN"}, {"5 % CAST(0 AS DOUBLE)", "NaN"},
	})
}

func TestIntegerOverflowIsAnError(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"2147483647 + 1", "error:overflow"}, {"-2147483648 - 1", "error:overflow"}, {"65536 * 65536", "error:overflow"},
		{"9223372036854775807 + 1", "error:overflow"}, {"9223372036854775807 * 2", "error:overflow"},
		{"CAST('-9223372036854775808' AS BIGINT) / -1", "error:overflow"}, {"CAST('-9223372036854775808' AS BIGINT) % -1", "0"},
		{"ABS(CAST('-2147483648' AS INT))", "error:overflow"}, {"CAST(100 AS TINYINT) + CAST(100 AS TINYINT)", "error:overflow"},
		{"CAST('-9223372036854775808' AS BIGINT) * -1", "error:overflow"}, {"3037000499 * 3037000499", "9223372030926249001"},
	})
}

func TestDecimalResultTypes(t *testing.T) {
	lib := library(t)
	for _, c := range []struct{ sql, typ, want string }{
		{"CAST('10.1' AS DECIMAL(38,19)) * CAST('10.2' AS DECIMAL(38,19))", "DECIMAL(38, 6)", "103.020000"},
		{"CAST(1 AS DECIMAL(10,2)) * CAST(1 AS DECIMAL(10,2))", "DECIMAL(21, 4)", "1.0000"},
		{"CAST('-99999999.99' AS DECIMAL(10,2)) * CAST('99999999.99' AS DECIMAL(10,2))", "DECIMAL(21, 4)", "-9999999998000000.0001"},
		{"CAST('-999999999.999999999' AS DECIMAL(18,9)) * CAST('-999999999.999999999' AS DECIMAL(18,9))", "DECIMAL(37, 18)", "999999999999999998.000000000000000001"},
		{"CAST('-1.5' AS DECIMAL(3,1)) * CAST('2.5' AS DECIMAL(3,1))", "DECIMAL(7, 2)", "-3.75"},
		{"1.0/3", "DECIMAL(13, 12)", "0.333333333333"},
		{"CAST('1.10' AS DECIMAL(5,2)) + 1", "DECIMAL(13, 2)", "2.10"},
		{"CAST('5.5' AS DECIMAL(5,2)) % CAST('2' AS DECIMAL(3,1))", "DECIMAL(4, 2)", "1.50"},
		{"COALESCE(CAST(1 AS DECIMAL(5,2)), 1)", "DECIMAL(12, 2)", "1.00"},
		{"CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)) + 1", "DECIMAL(38, 0)", "error:overflow"},
		{"CAST(1 AS DECIMAL(38,0)) / CAST('0.00000000000000000000000000000000000003' AS DECIMAL(38,38))", "DECIMAL(38, 6)", "error:overflow"},
		{"CAST(1 AS DECIMAL(38,0)) / CAST('0.3' AS DECIMAL(38,38))", "DECIMAL(38, 6)", "3.333333"},
	} {
		e, err := exprtext.Parse(lib, nil, c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if got := e.Type().WithNullable(true).String(); got != c.typ {
			t.Errorf("%s is %s, want %s", c.sql, got, c.typ)
		}
		if got := exprtext.Eval(expr.NewContext(nil, 1), e, exprtext.OneRow(), 0); got != c.want {
			t.Errorf("%s = %s, want %s", c.sql, got, c.want)
		}
	}
}

func TestDecimalRoundingAndRange(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"CAST('1.005' AS DECIMAL(10,2))", "1.01"}, {"CAST('-0.005' AS DECIMAL(10,2))", "-0.01"},
		{"CAST('99999999.994' AS DECIMAL(10,2))", "99999999.99"}, {"CAST('99999999.995' AS DECIMAL(10,2))", "error:overflow"},
		{"CAST('123456789.995' AS DECIMAL(10,2))", "error:overflow"}, {"CAST('1e-3' AS DECIMAL(10,2))", "0.00"},
		{"TRY_CAST('123456789.995' AS DECIMAL(10,2))", "NULL"}, {"CAST('12 ' AS DECIMAL(10,2))", "12.00"},
		{"CAST('1,5' AS DECIMAL(10,2))", "error:cast"}, {"CAST('1_000' AS INT)", "error:cast"},
		{"CAST(1.005 AS DECIMAL(10,2))", "1.01"}, {"CAST(CAST('1.005' AS DOUBLE) AS DECIMAL(10,2))", "1.01"},
		{"CAST(CAST('NaN' AS DOUBLE) AS DECIMAL(10,2))", "error:overflow"},
		{"ROUND(2.5)", "3"}, {"ROUND(-2.5)", "-3"}, {"ROUND(2.45, 1)", "2.5"}, {"ROUND(CAST(2.5 AS DOUBLE))", "3.0"},
		{"ROUND(CAST(1.005 AS DOUBLE), 2)", "1.01"}, {"ROUND(CAST(-0.4 AS DOUBLE))", "0.0"}, {"ROUND(CAST(99.96 AS DOUBLE), 1)", "100.0"},
		{"ROUND(1250, -2)", "1300"}, {"ROUND(-1250, -2)", "-1300"}, {"ROUND(1249, -2)", "1200"}, {"ROUND(2147483647, -1)", "error:overflow"},
		{"ROUND(9.99, 1)", "10.0"}, {"ROUND(155.5, -1)", "160"}, {"TRUNCATE(-42.345, 2)", "-42.34"}, {"TRUNCATE(42.345, -1)", "40"},
		{"FLOOR(-0.5)", "-1"}, {"CEIL(-0.5)", "0"}, {"FLOOR(CAST(-0.5 AS DOUBLE))", "-1.0"},
	})
}

func TestNumberToText(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"CAST(CAST(10000000 AS DOUBLE) AS STRING)", "1.0E7"}, {"CAST(0.1 AS STRING)", "0.1"},
		{"CAST(CAST(12345678901 AS BIGINT) AS STRING)", "12345678901"},
		{"CAST(CAST('0.000000027' AS DECIMAL(10,9)) AS STRING)", "0.000000027"},
		{"CAST(CAST(100 AS DOUBLE) AS STRING)", "100.0"}, {"CAST(CAST('1e-3' AS DOUBLE) AS STRING)", "0.001"},
		{"CAST(CAST('9.99e-4' AS DOUBLE) AS STRING)", "9.99E-4"}, {"CAST(CAST(1234567.5 AS DOUBLE) AS STRING)", "1234567.5"},
		{"CAST(CAST('1e21' AS DOUBLE) AS STRING)", "1.0E21"}, {"CAST(CAST('-0' AS DOUBLE) AS STRING)", "-0.0"},
		{"CAST(CAST(0.1 AS FLOAT) AS STRING)", "0.1"}, {"CAST(TRUE AS STRING)", "TRUE"},
		{"CAST(CAST('-0.01' AS DECIMAL(38,4)) AS STRING)", "-0.0100"},
		{"CAST(CAST('-12345678901234567890.1234' AS DECIMAL(38,4)) AS STRING)", "-12345678901234567890.1234"},
	})
}

func TestCastTextToNumber(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"CAST('9007199254740993' AS BIGINT)", "9007199254740993"}, {"CAST('9223372036854775807' AS BIGINT)", "9223372036854775807"},
		{"CAST('9223372036854775808' AS BIGINT)", "error:overflow"}, {"CAST('-9223372036854775808' AS BIGINT)", "-9223372036854775808"},
		{"CAST(' 12 ' AS INT)", "12"}, {"CAST('' AS INT)", "error:cast"}, {"CAST('3.7' AS INT)", "3"}, {"CAST('abc' AS INT)", "error:cast"},
		{"CAST('99999999999999999999' AS BIGINT)", "error:overflow"}, {"TRY_CAST('abc' AS INT)", "NULL"}, {"TRY_CAST('300' AS TINYINT)", "NULL"},
		{"CAST('1e400' AS DOUBLE)", "error:overflow"}, {"CAST('NaN' AS DOUBLE)", "NaN"}, {"CAST('Infinity' AS DOUBLE)", "Infinity"},
		{"CAST('-Infinity' AS DOUBLE)", "-Infinity"}, {"CAST('-inf' AS DOUBLE)", "error:cast"}, {"CAST('0x10' AS DOUBLE)", "error:cast"},
		{"CAST('yes' AS BOOLEAN)", "TRUE"}, {"CAST('F' AS BOOLEAN)", "FALSE"}, {"CAST('maybe' AS BOOLEAN)", "error:cast"},
		{"CAST('12345678901234567890123456789012345678' AS DECIMAL(38,0))", "12345678901234567890123456789012345678"},
	})
}

func TestNarrowingCastIsChecked(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"CAST(300 AS TINYINT)", "error:overflow"}, {"TRY_CAST(300 AS TINYINT)", "NULL"}, {"CAST(3000000000 AS INT)", "error:overflow"},
		{"CAST(CAST(1e10 AS DOUBLE) AS INT)", "error:overflow"}, {"CAST(CAST(3.9 AS DOUBLE) AS INT)", "3"}, {"CAST(-3.9 AS INT)", "-3"},
		{"CAST(CAST('9223372036854775807' AS DOUBLE) AS BIGINT)", "error:overflow"}, {"CAST(CAST('NaN' AS DOUBLE) AS INT)", "error:overflow"},
		{"CAST(CAST('1e300' AS DOUBLE) AS FLOAT)", "error:overflow"}, {"CAST(123.456 AS DECIMAL(4,2))", "error:overflow"},
		{"CAST(TRUE AS INT)", "1"}, {"CAST(0 AS BOOLEAN)", "FALSE"}, {"CAST(0.0 AS BOOLEAN)", "FALSE"}, {"CAST(TRUE AS DECIMAL(3,1))", "1.0"},
		{"CAST(1714521600 AS TIMESTAMP(3))", "bind: CAST(1714521600 AS TIMESTAMP(3)): INT is not cast to TIMESTAMP(3); use TO_TIMESTAMP_LTZ(n, 0) for seconds or (n, 3) for milliseconds"},
	})
}

func TestComparisonAcrossNumericTypes(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"9007199254740993 = 9007199254740992.0", "FALSE"}, {"1 < 1.5", "TRUE"}, {"CAST(0.1 AS DOUBLE) = 0.1", "TRUE"},
		{"CAST('12345678901234567890123456789012345678' AS DECIMAL(38,0)) > CAST('0.1' AS DECIMAL(38,38))", "TRUE"},
		{"CAST('-12345678901234567890123456789012345678' AS DECIMAL(38,0)) > CAST('0.1' AS DECIMAL(38,38))", "FALSE"},
		{"1.10 = 1.1", "TRUE"},
		{"IN(1.10, 1, 1.1)", "TRUE"}, {"CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)", "FALSE"}, {"GREATEST(1, 2.5)", "2.5"}, {"LEAST('b', 'a', 'c')", "a"},
	})
}

func TestThreeValuedLogic(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"TRUE AND TRUE", "TRUE"}, {"TRUE AND FALSE", "FALSE"}, {"NULL AND FALSE", "FALSE"}, {"NULL AND TRUE", "NULL"}, {"NULL AND NULL", "NULL"},
		{"TRUE OR NULL", "TRUE"}, {"FALSE OR NULL", "NULL"}, {"NULL OR NULL", "NULL"}, {"NOT NULL", "NULL"},
		{"1/0 = 1 AND FALSE", "FALSE"}, {"FALSE AND 1/0 = 1", "FALSE"}, {"1/0 = 1 OR TRUE", "TRUE"}, {"TRUE OR 1/0 = 1", "TRUE"},
		{"1/0 = 1 AND TRUE", "error:division_by_zero"}, {"NULL AND 1/0 = 1", "error:division_by_zero"}, {"1/0 = 1 OR NULL", "error:division_by_zero"},
		{"1/0 IS NULL", "error:division_by_zero"}, {"COALESCE(1/0, 1)", "error:division_by_zero"}, {"COALESCE(NULL, 2, 1/0)", "2"},
		{"IF(1/0 = 1, 1, 2)", "error:division_by_zero"}, {"NULLIF(1, 1/0)", "error:division_by_zero"}, {"TRY_CAST(1/0 AS STRING)", "error:division_by_zero"},
		{"IN(1, 1, NULL)", "TRUE"}, {"NOT IN(2, 1, NULL)", "NULL"}, {"NOT IN(CAST(NULL AS INT), 1, 2)", "NULL"}, {"NOT IN(2, 1, 3)", "TRUE"},
		{"IN(1, 1, 1/0)", "TRUE"}, {"IN(2, 1, 1/0)", "error:division_by_zero"},
		{"BETWEEN(2, 3, 1/0)", "FALSE"}, {"ROW(1, NULL) IS NULL", "FALSE"},
	})
}
