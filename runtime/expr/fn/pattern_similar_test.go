package fn_test

import "testing"

// TestSimilarTo: constant patterns have Flink's stored answers in sql/flinktest;
// here are those known row by row, and what is said of bad ones.
func TestSimilarTo(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"'abc' SIMILAR TO LOWER('A(B|X)C')", "TRUE"}, {"'abd' SIMILAR TO LOWER('A(B|X)C')", "FALSE"}, {"CAST(NULL AS STRING) SIMILAR TO 'a'", "NULL"},
		{"'a%c' SIMILAR TO LOWER('A!%C') ESCAPE '!'", "TRUE"}, {"'abc' SIMILAR TO LOWER('A!%C') ESCAPE LOWER('!')", "FALSE"},
		{"'abc' SIMILAR TO LOWER('A(')", "error:invalid_argument"}, {"'abc' SIMILAR TO 'a' ESCAPE LOWER('AB')", "error:invalid_argument"},
		{"'a' SIMILAR TO '[a'", `bind: 'a' SIMILAR TO '[a': pattern "[a": [ without ]`}, {"'a' SIMILAR TO 'a]'", `bind: 'a' SIMILAR TO 'a]': pattern "a]": ] without [`},
		{"'a' SIMILAR TO 'a{x}'", `bind: 'a' SIMILAR TO 'a{x}': pattern "a{x}": { must begin a repetition, {n}, {n,} or {n,m}`},
		{"'a' SIMILAR TO '(?i)A'", `bind: 'a' SIMILAR TO '(?i)A': pattern "(?i)A": nothing before ? to repeat`},
		{"'a' SIMILAR TO '[[:X:]]'", `bind: 'a' SIMILAR TO '[[:X:]]': pattern "[[:X:]]": no such class of characters: [:X:]]`},
		{"'a' SIMILAR TO '[a&&b]'", `bind: 'a' SIMILAR TO '[a&&b]': pattern "[a&&b]": && inside of [ ] is not supported`},
		{"'a' SIMILAR TO '[(]'", `bind: 'a' SIMILAR TO '[(]': pattern "[(]": ( inside of [ ] needs the ESCAPE character`},
		{"'axx' SIMILAR TO 'a)|(b'", `bind: 'axx' SIMILAR TO 'a)|(b': pattern "a)|(b": ) without (`}, {"'a' SIMILAR TO '((a)'", `bind: 'a' SIMILAR TO '((a)': pattern "((a)": ( without )`},
		{"'a)' SIMILAR TO '(a!))' ESCAPE '!'", "TRUE"}, {"'ab' SIMILAR TO '(a)(b|(c))'", "TRUE"},
		{"'(' SIMILAR TO '[!(]' ESCAPE '!'", "TRUE"}, {"'a' SIMILAR TO 'a' ESCAPE ''", `bind: 'a' SIMILAR TO 'a' ESCAPE '': ESCAPE "" is not one character`},
	})
}

// TestTranslate: what is replaced changes from row to row, and may be NULL.
func TestTranslate(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"TRANSLATE('a', CAST(NULL AS STRING), 'b')", "a"}, {"TRANSLATE('ab', 'a', CAST(NULL AS STRING))", "b"}, {"TRANSLATE(CAST(NULL AS STRING), 'a', 'b')", "NULL"},
		{"TRANSLATE('aéa', LOWER('É'), 'e')", "aea"}, {"TRANSLATE('日本', '日本', '本日')", "本日"}, {"TRANSLATE('', 'a', 'b')", ""},
	})
}

// TestIntervalProducts: 2^63 ms and 2^31 months are out of range.
func TestIntervalProducts(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"DATE '2024-02-28' + 2 * INTERVAL '1' DAY", "2024-03-01"}, {"DATE '2024-03-31' + INTERVAL '1' MONTH * -1", "2024-02-29"},
		{"INTERVAL '1' DAY * 9223372036854775807", "error:overflow"}, {"INTERVAL '2' MONTH * 2147483647", "error:overflow"},
		{"EXTRACT('SECOND', INTERVAL '90' SECOND)", "30"}, {"EXTRACT('MONTH', INTERVAL '14' MONTH)", "2"},
		{"EXTRACT('MONTH', INTERVAL '3' DAY)", "bind: EXTRACT('MONTH', INTERVAL '3' DAY): INTERVAL DAY TO SECOND has no such field"},
	})
}

// TestDateBesideTimestamp: Flink compares neither without a CAST.
func TestDateBesideTimestamp(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"DATE '2024-01-02' = TIMESTAMP '2024-01-02 00:00:00'", "bind: DATE '2024-01-02' = TIMESTAMP '2024-01-02 00:00:00': = cannot compare DATE with TIMESTAMP(0); CAST one of them"},
		{"CAST(DATE '2024-01-02' AS TIMESTAMP(3)) = TIMESTAMP '2024-01-02 00:00:00'", "TRUE"},
		{"IN(DATE '2024-01-02', TIMESTAMP '2024-01-02 00:00:00')", "bind: IN(DATE '2024-01-02', TIMESTAMP '2024-01-02 00:00:00'): IN cannot compare DATE with TIMESTAMP(0); CAST one of them"},
		{"IN(CAST(16777216 AS FLOAT), 16777217)", "FALSE"}, {"CAST(16777216 AS FLOAT) = 16777217", "FALSE"}, {"CAST(16777216 AS FLOAT) + 1", "1.6777216E7"},
	})
}

// TestSigma: the rule of Unicode's SpecialCasing for the final sigma.
func TestSigma(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"LOWER('ΟΔΟΣ ΣΟΦΟΣ')", "οδος σοφος"}, {"LOWER('Σ')", "σ"}, {"LOWER('ΑΣ''Α')", "ασ'α"}, {"LOWER('ΑΣ-Α')", "ας-α"}, {"LOWER('1Σ')", "1σ"},
	})
}

// TestDateFormatWeeks: the answers of Java's DateTimeFormatter for the United
// States, stored in sql/flinktest for literals.
func TestDateFormatWeeks(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"DATE_FORMAT(DATE '2024-12-28', 'e w W F')", "7 52 4 7"}, {"DATE_FORMAT(DATE '2024-12-29', 'e w W')", "1 1 5"},
		{"DATE_FORMAT(DATE '2021-01-03', LOWER('EE WW'))", "01 02"}, {"TO_DATE('2024-03-05 3', 'yyyy-MM-dd e')", "2024-03-05"}, {"TO_DATE('2024-03-05 4', 'yyyy-MM-dd e')", "NULL"},
		{"TO_DATE('0044-03-15 BC', 'yyyy-MM-dd G')", "-0043-03-15"},
	})
}
