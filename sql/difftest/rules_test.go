package difftest

// rewrites are the differences that DuckDB's side of a production spells out:
// what the words mean here, by Flink's documents unless said otherwise.
var rewrites = map[string]string{
	"integer-division":    "integers divide to integers, cut towards zero, and x / 0 is an error; DuckDB's / gives DOUBLE, its // and % of 0 give NULL",
	"decimal-division":    "DECIMAL / DECIMAL is DECIMAL by Flink's rule, rounded half up; DuckDB divides as DOUBLE",
	"greatest-null":       "GREATEST and LEAST are NULL if an argument is; DuckDB skips NULL",
	"concat-null":         "CONCAT is NULL if an argument is; DuckDB skips NULL",
	"cast-cuts":           "a CAST from DECIMAL or DOUBLE to an integer cuts the fraction; DuckDB rounds",
	"sunday-is-1":         "DAYOFWEEK counts from Sunday = 1; DuckDB from Sunday = 0",
	"trim-blanks":         "TRIM takes off the blank U+0020; DuckDB every space of Unicode",
	"substring-zero":      "SUBSTRING from 0 means from 1; DuckDB counts a place before the first, so positions begin at 1",
	"split-index":         "SPLIT_INDEX counts from 0 and gives NULL where there is no part; DuckDB from 1 and empty",
	"regexp-extract-null": "REGEXP_EXTRACT gives NULL where nothing matches; DuckDB the empty string",
	"boolean-text":        "BOOLEAN is written TRUE; DuckDB writes true",
	"timestamp-text":      "TIMESTAMP(6) is written with six digits; DuckDB leaves zeros out",
	"date-arithmetic":     "DATE plus interval is DATE; DuckDB's is TIMESTAMP",
	"ceil-to":             "CEIL TO unit exists here alone",
	"average-of-integers": "AVG of integers keeps the type and cuts the fraction; DuckDB's is DOUBLE",
	"average-of-decimals": "AVG of DECIMAL(12, 2) is DECIMAL(38, 6), rounded half up; DuckDB's is DOUBLE",
	"null-order":          "NULL sorts as the smallest value; DuckDB puts it last",
	"array-contains-null": "ARRAY_CONTAINS of NULL finds a NULL element; DuckDB gives NULL",
	"symmetric":           "BETWEEN SYMMETRIC takes the bounds in either order (SQL:2023); DuckDB does not have it",
	"truncate-digits":     "TRUNCATE of DECIMAL stays exact; DuckDB's trunc has no digits",
	"substring-outside":   "SUBSTRING is empty where it begins before the text; DuckDB counts the missing places",
	"double-range":        "text of a number too large for DOUBLE is an error, so TRY_CAST gives NULL, as other CASTs that do not fit (docs/sql/deviations.md); Flink and DuckDB give infinity",
	"year-digits":         "text of a date has a year of four digits here (SQL:2023); DuckDB takes fewer",
	"week-of-sunday":      "FLOOR TO WEEK goes back to Sunday; DuckDB to Monday",
	"fractions-cut":       "a CAST to fewer digits of a second cuts; spelled out",
	"count-columns":       "COUNT(DISTINCT a, b) leaves out rows with a NULL; DuckDB has one argument",
}

// macros spell the rewrites in DuckDB.
var macros = []string{
	// The strict ones evaluate both operands: an error of one is an error, whatever the other is.
	`CREATE MACRO div_int(a, b) AS CASE WHEN b = 0 THEN CASE WHEN a IS NULL THEN NULL ELSE error('division by zero') END ELSE CAST(a AS HUGEINT) // b END`,
	`CREATE MACRO mod_strict(a, b) AS CASE WHEN b = 0 THEN CASE WHEN a IS NULL THEN NULL ELSE error('division by zero') END ELSE a % b END`,
	// 100 a and 100 b are integers; |a / b| with 15 digits is (2 |a| 10^15 + |b|) div (2 |b|).
	`CREATE MACRO div_decimal_abs(a, b) AS (2 * CAST(abs(a) * 100 AS HUGEINT) * 1000000000000000 + CAST(abs(b) * 100 AS HUGEINT)) // (2 * CAST(abs(b) * 100 AS HUGEINT))`,
	`CREATE MACRO div_decimal(a, b) AS CASE WHEN b = 0 THEN CASE WHEN a IS NULL THEN NULL ELSE error('division by zero') END ELSE
		CAST(CAST(sign(a) AS INTEGER) * CAST(sign(b) AS INTEGER) * (div_decimal_abs(a, b) // 10000000000000 * 10 + CASE WHEN div_decimal_abs(a, b) % 10000000000000 >= 5000000000000 THEN 10 ELSE 0 END) // 10 AS DECIMAL(24, 0)) * CAST('0.01' AS DECIMAL(3, 2)) END`,
	`CREATE MACRO greatest_strict(a, b) AS CASE WHEN CAST(a IS NULL AS INTEGER) + CAST(b IS NULL AS INTEGER) > 0 THEN NULL ELSE greatest(a, b) END`,
	`CREATE MACRO least_strict(a, b) AS CASE WHEN CAST(a IS NULL AS INTEGER) + CAST(b IS NULL AS INTEGER) > 0 THEN NULL ELSE least(a, b) END`,
	`CREATE MACRO split_index(s, sep, n) AS CASE WHEN s = '' THEN NULL ELSE string_split(s, sep)[n + 1] END`,
	`CREATE MACRO regexp_extract_null(s, p) AS CASE WHEN regexp_matches(s, p) THEN regexp_extract(s, p) END`,
	`CREATE MACRO ceil_to(t, unit, step) AS CASE WHEN t = date_trunc(unit, t) THEN t ELSE date_trunc(unit, t) + step END`,
	`CREATE MACRO array_contains_null(a, x) AS CASE WHEN x IS NULL THEN len(list_filter(a, lambda e: e IS NULL)) > 0 ELSE list_contains(a, x) END`,
	`CREATE MACRO substring_end(s, p, n) AS CASE WHEN length(s) + p < 0 THEN '' ELSE substring(s, p, n) END`,
	`CREATE MACRO nullif_infinite(x) AS CASE WHEN NOT isinf(x) THEN x END`,
	// The sum in cents, s; the mean with six digits is (2 |s| 10^4 + n) div (2 n).
	`CREATE MACRO mean_decimal(s, n) AS CASE WHEN n > 0 THEN CAST(CAST(sign(s) AS INTEGER) * ((2 * CAST(abs(s) * 100 AS HUGEINT) * 10000 + n) // (2 * n)) AS DECIMAL(28, 0)) * CAST('0.000001' AS DECIMAL(7, 6)) END`,
}

// exclusions are what is not generated, or passes, and why.
var exclusions = map[string]string{
	"eager-error":    "DuckDB failed and Millrace did not: here an error matters only where its value is needed (docs/sql/README.md, Errors are values); counted",
	"folded-error":   "Millrace failed and DuckDB did not, but does without its optimizer, which takes operators of a constant NULL for NULL and prunes; counted",
	"null-constant":  "Millrace failed and DuckDB did not, in a query with a NULL written out or made of constants: DuckDB takes an operator of one for NULL without evaluating its other operand; counted",
	"padded-null":    "Millrace failed and DuckDB did not, in a filter over an outer join: DuckDB knows the columns of a side without rows for NULL, and takes an operator of NULL for NULL without evaluating its other operand; counted",
	"null-and-error": "Millrace failed and DuckDB did not, in a filter with AND or BETWEEN: NULL AND error is an error here, DuckDB's filter drops the row at the NULL; counted",
	"nan":            "NaN is not equal to itself here (IEEE 754), but is in DuckDB, which also refuses roots of negative numbers: not generated",
	"last-bits":      "EXP, LN, LOG10, POWER, quotients, and SUM and AVG of DOUBLE are selected and compared to ten digits, never compared in SQL: libraries differ in the last bits, and Millrace sums exactly",
	"double-text":    "DOUBLE as text has Java's form here: not generated",
	"fraction-text":  "text with a fraction is no integer here, in DuckDB it is rounded: text casts start from integers or two characters",
	"offset-text":    "text of a time with an offset (+5) is no DATE or TIMESTAMP here, but is in DuckDB: casts of text take 10 and 19 characters",
	"special-case":   "letters whose upper or lower case has another length (as in German sharp s) and combining marks, which DuckDB reverses with their letter: not in the data",
	"boolean-order":  "BOOLEAN is not ordered by < here: not generated",
	"minimum-length": "negative lengths of SUBSTRING and LPAD are NULL here, errors or counted from the end in DuckDB: not generated",
}
