package fn_test

import "testing"

// TestJSONQuotes: the escapes that Flink's function page lists, and what it
// says of values that are no JSON strings.
func TestJSONQuotes(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"JSON_QUOTE('abc')", `"abc"`}, {`JSON_QUOTE('a"\/b')`, `"a\"\\\/b"`}, {"JSON_QUOTE('a\tb\nc\rd\be\ff')", `"a\tb\nc\rd\be\ff"`}, {"JSON_QUOTE('')", `""`},
		{"JSON_QUOTE('日')", `"\u65e5"`}, {"JSON_QUOTE('😀')", `"\ud83d\ude00"`}, {"JSON_QUOTE(NULL)", "NULL"}, {"JSON_QUOTE(1)", "bind: JSON_QUOTE(1): argument 1 of JSON_QUOTE must be a string (CAST it), not INT"},
		{`JSON_UNQUOTE('"abc"')`, "abc"}, {`JSON_UNQUOTE('"a\"\\\/b"')`, `a"\/b`}, {`JSON_UNQUOTE('"\u65e5\ud83d\ude00"')`, "日😀"}, {`JSON_UNQUOTE('""')`, ""}, {"JSON_UNQUOTE(NULL)", "NULL"},
		{"JSON_UNQUOTE('abc')", "abc"}, {`JSON_UNQUOTE('"abc')`, `"abc`}, {`JSON_UNQUOTE('"')`, `"`}, {`JSON_UNQUOTE('"a"b"')`, `"a"b"`}, {`JSON_UNQUOTE('"\x"')`, `"\x"`}, {`JSON_UNQUOTE('"\u00"')`, `"\u00"`}, {`JSON_UNQUOTE('"a" ')`, `"a" `},
		{"JSON_UNQUOTE('[1]')", "[1]"}, {"JSON_UNQUOTE('')", ""}, {"JSON_UNQUOTE('\"a\tb\"')", "\"a\tb\""},
		{`JSON_UNQUOTE(JSON_QUOTE('a"/\é日😀')) = 'a"/\é日😀'`, "TRUE"},
	})
}
