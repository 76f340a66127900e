package fn_test

import "testing"

// TestAnalysis compares with the decimal expansions of the On-Line
// Encyclopedia of Integer Sequences, to 12 digits, and with the exact values
// and special cases that java.lang.Math documents.
func TestAnalysis(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"ROUND(SIN(1), 12)", "0.841470984808"},  // A049469
		{"ROUND(COS(1), 12)", "0.540302305868"},  // A049470
		{"ROUND(TAN(1), 12)", "1.557407724655"},  // A049471
		{"ROUND(COT(1), 12)", "0.642092615934"},  // A073449
		{"ROUND(SINH(1), 12)", "1.175201193644"}, // A073742
		{"ROUND(COSH(1), 12)", "1.543080634815"}, // A073743
		{"ROUND(TANH(1), 12)", "0.761594155956"}, // A073744
		{"ROUND(ASIN(1), 12)", "1.570796326795"}, // A019669, pi/2
		{"ROUND(ACOS(0), 12)", "1.570796326795"}, // A019669
		{"ROUND(ATAN(1), 12)", "0.785398163397"}, // A003881, pi/4
		{"ROUND(ATAN2(1, 1), 12)", "0.785398163397"},
		{"ROUND(LOG2(10), 12)", "3.321928094887"},                                                                       // A020862
		{"ROUND(LOG(10), 12)", "2.302585092994"},                                                                        // A002392
		{"ROUND(LOG(10, 2), 12)", "0.301029995664"},                                                                     // A007524
		{"DEGREES(PI())", "180.0"}, {"RADIANS(180)", "3.141592653589793"}, {"ROUND(DEGREES(1), 12)", "57.295779513082"}, // A072097
		{"PI()", "3.141592653589793"}, {"E()", "2.718281828459045"},
		{"ATAN2(0, -1)", "3.141592653589793"}, {"ATAN2(0, 0)", "0.0"}, {"TANH(1000)", "1.0"}, {"COSH(1000)", "Infinity"},
		{"ASIN(2)", "NaN"}, {"ACOS(-1.5)", "NaN"}, {"LOG2(0)", "-Infinity"}, {"LOG(-1)", "NaN"}, {"LOG2(-1)", "NaN"}, {"COT(0)", "Infinity"},
		{"SIN(CAST(NULL AS DOUBLE))", "NULL"}, {"LOG(2, NULL)", "NULL"}, {"ATAN2(NULL, 1)", "NULL"}, {"LOG2(NULL)", "NULL"}, {"DEGREES(NULL)", "NULL"},
		{"SIN('x')", "bind: SIN('x'): argument 1 of SIN must be a number, not CHAR(1)"}, {"PI(1)", "bind: PI(1): PI takes no arguments, not 1"},
		{"LOG(1, 2, 3)", "bind: LOG(1, 2, 3): LOG takes 1 to 2 arguments, not 3"},
	})
}

// TestBinAndRandInteger: BIN is Java's Long.toBinaryString; its examples are
// of Flink's function page.
func TestBinAndRandInteger(t *testing.T) {
	ones := "1111111111111111111111111111111111111111111111111111111111111111"
	runCases(t, "UTC", []sqlCase{
		{"BIN(4)", "100"}, {"BIN(12)", "1100"}, {"BIN(0)", "0"}, {"BIN(-1)", ones}, {"BIN(CAST('-9223372036854775808' AS BIGINT))", "1" + "000000000000000000000000000000000000000000000000000000000000000"},
		{"BIN(NULL)", "NULL"}, {"BIN(1.5)", "bind: BIN(1.5): argument 1 of BIN must be an integer, not DECIMAL(2, 1)"},
		{"RAND_INTEGER(1)", "0"}, {"RAND_INTEGER(10) < 10", "TRUE"}, {"RAND_INTEGER(10) >= 0", "TRUE"}, {"RAND_INTEGER(NULL)", "NULL"},
		{"RAND_INTEGER(0)", "error:invalid_argument"}, {"RAND_INTEGER(-5)", "error:invalid_argument"}, {"RAND_INTEGER(3000000000)", "error:invalid_argument"},
	})
}
