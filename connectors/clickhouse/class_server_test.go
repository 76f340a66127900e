//go:build services

package clickhouse

import (
	"strconv"
	"strings"
	"testing"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// TestClassesOfCodes: each code is the error that the server calls so, in the class that
// its meaning calls for.
func TestClassesOfCodes(t *testing.T) {
	numbers := map[string]int32{}
	for line := range strings.Lines(ask(t, "SELECT number, errorCodeToName(toUInt32(number)) FROM numbers(1100)")) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		if name != "" {
			numbers[name] = int32(n)
		}
	}
	known := 0
	for class, names := range map[class]string{
		classRetry: "UNEXPECTED_END_OF_FILE READONLY TOO_MANY_SIMULTANEOUS_QUERIES NO_FREE_CONNECTION QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING " +
			"MEMORY_LIMIT_EXCEEDED NOT_ENOUGH_SPACE NO_ACTIVE_REPLICAS TOO_FEW_LIVE_REPLICAS",
		classPressure: "TOO_MANY_PARTS",
		// The block may be there.
		classUnknown: "TIMEOUT_EXCEEDED SOCKET_TIMEOUT NETWORK_ERROR ABORTED TABLE_IS_READ_ONLY UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE " +
			"UNKNOWN_STATUS_OF_INSERT QUERY_WAS_CANCELLED SYSTEM_ERROR KEEPER_EXCEPTION",
		classSchema: "NO_SUCH_COLUMN_IN_TABLE NUMBER_OF_COLUMNS_DOESNT_MATCH CANNOT_READ_ALL_DATA UNKNOWN_TABLE UNKNOWN_DATABASE TOO_LARGE_STRING_SIZE " +
			"TABLE_IS_DROPPED CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN",
		classData: "CANNOT_PARSE_TEXT CANNOT_PARSE_INPUT_ASSERTION_FAILED CANNOT_PARSE_DATE CANNOT_PARSE_DATETIME TYPE_MISMATCH ARGUMENT_OUT_OF_BOUND " +
			"CANNOT_CONVERT_TYPE CANNOT_PARSE_NUMBER ILLEGAL_DIVISION VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE FUNCTION_THROW_IF_VALUE_IS_NON_ZERO " +
			"DECIMAL_OVERFLOW VIOLATED_CONSTRAINT",
		classStop: "BAD_ARGUMENTS UNKNOWN_IDENTIFIER SYNTAX_ERROR UNKNOWN_SETTING UNKNOWN_USER WRONG_PASSWORD REQUIRED_PASSWORD IP_ADDRESS_NOT_ALLOWED " +
			"DATABASE_ACCESS_DENIED ACCESS_DENIED AUTHENTICATION_FAILED",
	} {
		for name := range strings.FieldsSeq(names) {
			code, ok := numbers[name]
			if !ok {
				t.Errorf("the server knows no error %s", name)
				continue
			}
			known++
			if got := classOf(&ch.Exception{Code: code}); got != class {
				t.Errorf("%s (%d) is of class %d, want %d", name, code, got, class)
			}
			if _, ok := classes[code]; !ok {
				t.Errorf("%s (%d) is not classified", name, code)
			}
		}
	}
	if known != len(classes) {
		t.Errorf("%d codes are classified, %d are looked at", len(classes), known)
	}
}
