package fn_test

import "testing"

// TestExtractFraction: the fraction of the second, as Flink's
// DateTimeUtils.convertExtract takes it; before 1970 it counts forward too.
func TestExtractFraction(t *testing.T) {
	runCases(t, "Asia/Shanghai", []sqlCase{
		{"EXTRACT('MILLISECOND', TIMESTAMP '2024-05-01 08:09:10.123456789')", "123"}, {"EXTRACT('MICROSECOND', TIMESTAMP '2024-05-01 08:09:10.123456789')", "123456"},
		{"EXTRACT('NANOSECOND', TIMESTAMP '2024-05-01 08:09:10.123456789')", "123456789"}, {"EXTRACT('NANOSECOND', TIMESTAMP '2024-05-01 08:09:10.5')", "500000000"}, {"EXTRACT('MILLISECOND', TIMESTAMP '2024-05-01 08:09:10')", "0"},
		{"EXTRACT('MILLISECOND', TIMESTAMP '1969-12-31 23:59:59.250')", "250"}, {"EXTRACT('MILLISECOND', TIME '10:20:30.456')", "456"}, {"EXTRACT('MICROSECOND', CAST(NULL AS TIMESTAMP(3)))", "NULL"},
		{"EXTRACT('MILLISECOND', TO_TIMESTAMP_LTZ(1714521600987, 3))", "987"}, {"EXTRACT('SECOND', TIME '10:20:30.456')", "30"}, {"EXTRACT('HOUR', TIME '10:20:30')", "10"},
		{"EXTRACT('MILLISECOND', DATE '2024-05-01')", "bind: EXTRACT('MILLISECOND', DATE '2024-05-01'): a DATE has no such field"},
		{"EXTRACT('DAY', TIME '10:20:30')", "bind: EXTRACT('DAY', TIME '10:20:30'): a TIME has no such field"},
	})
}
