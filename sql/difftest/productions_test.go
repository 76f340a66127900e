package difftest

import (
	"slices"
	"strings"
)

// kind is the type of an expression, as the generator knows it.
//
//	i INT   b BIGINT   m DECIMAL(12, 2)   d DOUBLE   s STRING   o BOOLEAN
//	D DATE   t TIMESTAMP(6)   h SMALLINT   F FLOAT   w DECIMAL(30, 10)   T TIME(0)
//	A ARRAY<INT>   V ARRAY<STRING>   M MAP<STRING, INT>   R ROW<x INT, y STRING>
//	I INTERVAL DAY TO SECOND: no column has it
//	f DOUBLE whose last bits depend on the library: only selected, never compared
//
// Operands may also be literals: n an integer 0..6, z one of -3..6, p a pattern
// of LIKE, r a regular expression, c one or two characters, u a word for JSON.
type kind byte

// values are the kinds that columns have, keys may be and every generic form takes;
// nested are those that generic forms without an order take.
const (
	values = "ibmdsoDthFwT"
	nested = "AVMR"
)

var ourNames = map[kind]string{'i': "INT", 'b': "BIGINT", 'm': "DECIMAL(12, 2)", 'd': "DOUBLE", 'f': "DOUBLE", 's': "STRING",
	'o': "BOOLEAN", 'D': "DATE", 't': "TIMESTAMP(6)", 'h': "SMALLINT", 'F': "FLOAT", 'w': "DECIMAL(30, 10)", 'T': "TIME(0)",
	'A': "ARRAY<INT>", 'V': "ARRAY<STRING>", 'M': "MAP<STRING, INT>", 'R': "ROW<x INT, y STRING>"}

var duckNames = map[kind]string{'i': "INTEGER", 'b': "BIGINT", 'm': "DECIMAL(12, 2)", 'd': "DOUBLE", 'f': "DOUBLE", 's': "VARCHAR",
	'o': "BOOLEAN", 'D': "DATE", 't': "TIMESTAMP", 'h': "SMALLINT", 'F': "FLOAT", 'w': "DECIMAL(30, 10)", 'T': "TIME",
	'A': "INTEGER[]", 'V': "VARCHAR[]", 'M': "MAP(VARCHAR, INTEGER)", 'R': "STRUCT(x INTEGER, y VARCHAR)"}

// production is a form of an expression. $1, $2... are its operands; a DuckDB
// text of "" is the same as ours, and a rule names why it is not.
type production struct {
	name string
	kind kind
	ours string
	duck string
	args string
	rule string
}

// generic are forms for every kind of values; K stands for the kind.
var generic = []production{
	{"case", 'K', "CASE WHEN $1 THEN $2 WHEN $3 THEN $4 END", "", "oKoK", ""},
	{"case-else", 'K', "CASE WHEN $1 THEN $2 ELSE $3 END", "", "oKK", ""},
	{"case-value", 'K', "CASE $1 WHEN $2 THEN $3 ELSE $4 END", "", "iiKK", ""},
	{"coalesce", 'K', "COALESCE($1, $2)", "", "KK", ""},
	{"ifnull", 'K', "IFNULL($1, $2)", "", "KK", ""},
	{"nullif", 'K', "NULLIF($1, $2)", "", "KK", ""},
	{"if", 'K', "IF($1, $2, $3)", "CASE WHEN $1 THEN $2 ELSE $3 END", "oKK", ""},
	{"null", 'K', "CAST(NULL AS $T)", "", "", ""},
	{"eq", 'o', "($1 = $2)", "", "KK", ""},
	{"ne", 'o', "($1 <> $2)", "", "KK", ""},
	{"distinct-from", 'o', "($1 IS DISTINCT FROM $2)", "", "KK", ""},
	{"not-distinct-from", 'o', "($1 IS NOT DISTINCT FROM $2)", "", "KK", ""},
	{"is-null", 'o', "($1 IS NULL)", "", "K", ""},
	{"is-not-null", 'o', "($1 IS NOT NULL)", "", "K", ""},
	{"in", 'o', "($1 IN ($2, $3))", "", "KKK", ""},
	{"in-null", 'o', "($1 IN ($2, NULL, $3))", "", "KKK", ""},
	{"not-in-null", 'o', "($1 NOT IN ($2, NULL))", "", "KK", ""},
	{"in-many", 'o', "($1 IN ($2, $3, $4, $5, $6))", "", "KKKKKK", ""},
	{"coalesce-three", 'K', "COALESCE($1, $2, $3)", "", "KKK", ""},
	{"not-in", 'o', "($1 NOT IN ($2, $3))", "", "KKK", ""},
}

// ofNested are the generic forms that nested kinds take.
var ofNested = []string{"case", "case-else", "coalesce", "ifnull", "if", "null", "is-null", "is-not-null"}

// ordered are forms for every kind but booleans.
var ordered = []production{
	{"lt", 'o', "($1 < $2)", "", "KK", ""},
	{"le", 'o', "($1 <= $2)", "", "KK", ""},
	{"gt", 'o', "($1 > $2)", "", "KK", ""},
	{"ge", 'o', "($1 >= $2)", "", "KK", ""},
	{"between", 'o', "($1 BETWEEN $2 AND $3)", "", "KKK", ""},
	{"not-between", 'o', "($1 NOT BETWEEN $2 AND $3)", "", "KKK", ""},
	{"greatest", 'K', "GREATEST($1, $2)", "greatest_strict($1, $2)", "KK", "greatest-null"},
	{"least", 'K', "LEAST($1, $2)", "least_strict($1, $2)", "KK", "greatest-null"},
}

// special are the forms of one kind each.
var special = []production{
	{"and", 'o', "($1 AND $2)", "", "oo", ""},
	{"or", 'o', "($1 OR $2)", "", "oo", ""},
	{"not", 'o', "(NOT $1)", "", "o", ""},
	{"is-true", 'o', "($1 IS TRUE)", "", "o", ""},
	{"is-not-true", 'o', "($1 IS NOT TRUE)", "", "o", ""},
	{"is-false", 'o', "($1 IS FALSE)", "", "o", ""},
	{"is-not-false", 'o', "($1 IS NOT FALSE)", "", "o", ""},
	{"is-unknown", 'o', "($1 IS UNKNOWN)", "($1 IS NULL)", "o", ""},
	{"mixed-lt", 'o', "($1 < $2)", "", "im", ""},
	{"mixed-eq", 'o', "($1 = $2)", "", "bm", ""},
	{"mixed-ge", 'o', "($1 >= $2)", "", "bi", ""},
	{"mixed-gt-double", 'o', "($1 > $2)", "", "id", ""},
	{"date-lt-timestamp", 'o', "(CAST($1 AS TIMESTAMP(6)) < $2)", "(CAST($1 AS TIMESTAMP) < $2)", "Dt", ""},
	{"like", 'o', "($1 LIKE $2)", "", "sp", ""},
	{"not-like", 'o', "($1 NOT LIKE $2)", "", "sp", ""},
	{"regexp", 'o', "REGEXP($1, $2)", "regexp_matches($1, $2)", "sr", ""},
	{"array-contains", 'o', "ARRAY_CONTAINS($2, $1)", "array_contains_null($2, $1)", "iA", "array-contains-null"},
	{"array-contains-text", 'o', "ARRAY_CONTAINS($2, $1)", "array_contains_null($2, $1)", "sV", "array-contains-null"},
	{"like-any", 'o', "($1 LIKE $2)", "", "ss", ""},
	{"like-escape", 'o', "($1 LIKE 'a!_%' ESCAPE '!')", "", "s", ""},
	{"between-symmetric", 'o', "($1 BETWEEN SYMMETRIC $2 AND $3)", "($1 BETWEEN least_strict($2, $3) AND greatest_strict($2, $3))", "iii", "symmetric"},
	{"bool-try-text", 'o', "TRY_CAST($1 AS BOOLEAN)", "", "s", ""},
	{"bool-cast", 'o', "CAST($1 AS BOOLEAN)", "", "i", ""},

	{"int-add", 'i', "($1 + $2)", "", "ii", ""},
	{"int-sub", 'i', "($1 - $2)", "", "ii", ""},
	{"int-mul", 'i', "($1 * $2)", "", "ii", ""},
	{"int-div", 'i', "($1 / $2)", "CAST(div_int($1, $2) AS INTEGER)", "ii", "integer-division"},
	{"int-mod", 'i', "($1 % $2)", "CAST(mod_strict($1, $2) AS INTEGER)", "ii", "integer-division"},
	{"int-neg", 'i', "(- $1)", "", "i", ""},
	{"int-abs", 'i', "ABS($1)", "", "i", ""},
	{"int-sign", 'i', "SIGN($1)", "CAST(sign($1) AS INTEGER)", "i", ""},
	{"int-of-bigint", 'i', "CAST($1 AS INT)", "CAST($1 AS INTEGER)", "b", ""},
	{"int-try-bigint", 'i', "TRY_CAST($1 AS INT)", "TRY_CAST($1 AS INTEGER)", "b", ""},
	{"int-of-decimal", 'i', "CAST($1 AS INT)", "CAST(trunc($1) AS INTEGER)", "m", "cast-cuts"},
	{"int-of-double", 'i', "CAST($1 AS INT)", "CAST(trunc($1) AS INTEGER)", "d", "cast-cuts"},
	{"int-of-bool", 'i', "CAST($1 AS INT)", "CAST($1 AS INTEGER)", "o", ""},
	{"int-try-text", 'i', "TRY_CAST(REPLACE($1, '.', 'y') AS INT)", "TRY_CAST(replace($1, '.', 'y') AS INTEGER)", "s", ""},
	{"int-tinyint", 'i', "CAST(CAST($1 AS TINYINT) AS INT)", "", "i", ""},
	{"int-smallint", 'i', "CAST(TRY_CAST($1 AS SMALLINT) AS INT)", "", "b", ""},
	{"cardinality", 'i', "CARDINALITY($1)", "CAST(len($1) AS INTEGER)", "A", ""},
	{"item-int", 'i', "($2)[$1 + 1]", "", "nA", ""},
	{"position-any", 'i', "POSITION($1 IN $2)", "CAST(position($1 IN $2) AS INTEGER)", "ss", ""},
	{"int-round", 'i', "ROUND($1, -1)", "CAST(round($1, -1) AS INTEGER)", "i", ""},
	{"char-length", 'i', "CHAR_LENGTH($1)", "CAST(length($1) AS INTEGER)", "s", ""},
	{"position", 'i', "POSITION($1 IN $2)", "CAST(position($1 IN $2) AS INTEGER)", "cs", ""},
	{"instr", 'i', "INSTR($1, $2)", "CAST(instr($1, $2) AS INTEGER)", "sc", ""},
	{"locate", 'i', "LOCATE($1, $2)", "CAST(instr($2, $1) AS INTEGER)", "cs", ""},

	{"big-of-int", 'b', "CAST($1 AS BIGINT)", "", "i", ""},
	{"big-add", 'b', "($1 + $2)", "", "bi", ""},
	{"big-sub", 'b', "($1 - $2)", "", "bb", ""},
	{"big-mul", 'b', "($1 * $2)", "", "bi", ""},
	{"big-div", 'b', "($1 / $2)", "CAST(div_int($1, $2) AS BIGINT)", "bi", "integer-division"},
	{"big-mod", 'b', "MOD($1, $2)", "CAST(mod_strict($1, $2) AS BIGINT)", "bb", "integer-division"},
	{"big-neg", 'b', "(- $1)", "", "b", ""},
	{"big-abs", 'b', "ABS($1)", "", "b", ""},
	{"big-of-decimal", 'b', "CAST($1 AS BIGINT)", "CAST(trunc($1) AS BIGINT)", "m", "cast-cuts"},
	{"big-of-text", 'b', "TRY_CAST(CAST($1 AS STRING) AS BIGINT)", "TRY_CAST(CAST($1 AS VARCHAR) AS BIGINT)", "b", ""},
	{"year", 'b', "YEAR($1)", "year($1)", "t", ""},
	{"month", 'b', "EXTRACT(MONTH FROM $1)", "month($1)", "D", ""},
	{"day", 'b', "DAYOFMONTH($1)", "day($1)", "t", ""},
	{"quarter", 'b', "QUARTER($1)", "quarter($1)", "D", ""},
	{"week", 'b', "WEEK($1)", "week($1)", "D", ""},
	{"day-of-year", 'b', "DAYOFYEAR($1)", "dayofyear($1)", "t", ""},
	{"day-of-week", 'b', "DAYOFWEEK($1)", "(dayofweek($1) + 1)", "D", "sunday-is-1"},
	{"hour", 'b', "HOUR($1)", "hour($1)", "t", ""},
	{"minute", 'b', "EXTRACT(MINUTE FROM $1)", "minute($1)", "t", ""},
	{"second", 'b', "SECOND($1)", "second($1)", "t", ""},
	{"isoyear", 'b', "EXTRACT(ISOYEAR FROM $1)", "isoyear($1)", "D", ""},
	{"century", 'b', "EXTRACT(CENTURY FROM $1)", "century($1)", "D", ""},
	{"decade", 'b', "EXTRACT(DECADE FROM $1)", "decade($1)", "D", ""},
	{"iso-day-of-week", 'b', "EXTRACT(ISODOW FROM $1)", "isodow($1)", "D", ""},
	{"diff-second", 'b', "CAST(TIMESTAMPDIFF(MINUTE, $1, $2) AS BIGINT)", "date_sub('minute', $1, $2)", "tt", ""},
	{"diff-week", 'b', "CAST(TIMESTAMPDIFF(WEEK, $1, $2) AS BIGINT)", "date_sub('week', $1, $2)", "tt", ""},
	{"diff-quarter", 'b', "CAST(TIMESTAMPDIFF(QUARTER, $1, $2) AS BIGINT)", "date_sub('quarter', $1, $2)", "tt", ""},
	{"diff-date-day", 'b', "CAST(TIMESTAMPDIFF(DAY, $1, $2) AS BIGINT)", "date_sub('day', $1, $2)", "DD", ""},
	{"diff-date-month", 'b', "CAST(TIMESTAMPDIFF(MONTH, $1, $2) AS BIGINT)", "date_sub('month', $1, $2)", "DD", ""},
	{"diff-day", 'b', "CAST(TIMESTAMPDIFF(DAY, $1, $2) AS BIGINT)", "date_sub('day', $1, $2)", "tt", ""},
	{"diff-hour", 'b', "CAST(TIMESTAMPDIFF(HOUR, $1, $2) AS BIGINT)", "date_sub('hour', $1, $2)", "tt", ""},
	{"diff-month", 'b', "CAST(TIMESTAMPDIFF(MONTH, $1, $2) AS BIGINT)", "date_sub('month', $1, $2)", "tt", ""},
	{"diff-year", 'b', "CAST(TIMESTAMPDIFF(YEAR, $1, $2) AS BIGINT)", "date_sub('year', $1, $2)", "tt", ""},

	{"dec-add", 'm', "CAST(($1 + $2) AS DECIMAL(12, 2))", "", "mm", ""},
	{"dec-sub", 'm', "CAST(($1 - $2) AS DECIMAL(12, 2))", "", "mi", ""},
	{"dec-mul", 'm', "CAST(($1 * $2) AS DECIMAL(12, 2))", "", "mm", ""},
	{"dec-mul-int", 'm', "CAST(($1 * $2) AS DECIMAL(12, 2))", "", "mi", ""},
	{"dec-div", 'm', "CAST(($1 / $2) AS DECIMAL(12, 2))", "CAST(div_decimal($1, $2) AS DECIMAL(12, 2))", "mm", "decimal-division"},
	{"dec-mod", 'm', "CAST(($1 % $2) AS DECIMAL(12, 2))", "CAST(mod_strict($1, $2) AS DECIMAL(12, 2))", "mm", "integer-division"},
	{"dec-neg", 'm', "(- $1)", "", "m", ""},
	{"dec-abs", 'm', "ABS($1)", "", "m", ""},
	{"dec-ceil", 'm', "CAST(CEIL($1) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-floor", 'm', "CAST(FLOOR($1) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-round", 'm', "CAST(ROUND($1, 1) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-round-0", 'm', "CAST(ROUND($1) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-truncate", 'm', "CAST(TRUNCATE($1) AS DECIMAL(12, 2))", "CAST(trunc($1) AS DECIMAL(12, 2))", "m", ""},
	{"dec-narrow", 'm', "CAST(CAST($1 AS DECIMAL(12, 1)) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-try-narrow", 'm', "CAST(TRY_CAST($1 AS DECIMAL(4, 2)) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-wide-mul", 'm', "CAST((CAST($1 AS DECIMAL(18, 5)) * CAST($2 AS DECIMAL(15, 3))) AS DECIMAL(12, 2))", "", "mm", ""},
	{"dec-wide-add", 'm', "CAST((CAST($1 AS DECIMAL(30, 8)) + $2) AS DECIMAL(12, 2))", "", "mi", ""},
	{"dec-of-double", 'm', "CAST($1 AS DECIMAL(12, 2))", "", "d", ""},
	{"dec-try-double", 'm', "CAST(TRY_CAST($1 AS DECIMAL(5, 1)) AS DECIMAL(12, 2))", "", "d", ""},
	{"dec-try-any-text", 'm', "TRY_CAST($1 AS DECIMAL(12, 2))", "", "s", ""},
	{"dec-round-tens", 'm', "CAST(ROUND($1, -1) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-round-3", 'm', "CAST(ROUND($1, 3) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-truncate-1", 'm', "CAST(TRUNCATE($1, 1) AS DECIMAL(12, 2))", "CAST(trunc($1 * 10) * 0.1 AS DECIMAL(12, 2))", "m", "truncate-digits"},
	{"dec-sign", 'm', "CAST(SIGN($1) AS DECIMAL(12, 2))", "", "m", ""},
	{"dec-of-int", 'm', "CAST($1 AS DECIMAL(12, 2))", "", "i", ""},
	{"dec-of-text", 'm', "TRY_CAST(CAST($1 AS STRING) AS DECIMAL(12, 2))", "TRY_CAST(CAST($1 AS VARCHAR) AS DECIMAL(12, 2))", "m", ""},

	{"dbl-add", 'd', "($1 + $2)", "", "dd", ""},
	{"dbl-sub", 'd', "($1 - $2)", "", "dd", ""},
	{"dbl-mul", 'd', "($1 * $2)", "", "dd", ""},
	{"dbl-mul-int", 'd', "($1 * $2)", "", "di", ""},
	{"dbl-div", 'd', "($1 / 4)", "", "d", ""},
	{"dbl-neg", 'd', "(- $1)", "", "d", ""},
	{"dbl-abs", 'd', "ABS($1)", "", "d", ""},
	{"dbl-ceil", 'd', "CEIL($1)", "", "d", ""},
	{"dbl-floor", 'd', "FLOOR($1)", "", "d", ""},
	{"dbl-round", 'd', "ROUND($1)", "", "d", ""},
	{"dbl-truncate", 'd', "TRUNCATE($1)", "trunc($1)", "d", ""},
	{"dbl-sign", 'd', "SIGN($1)", "CAST(sign($1) AS DOUBLE)", "d", ""},
	{"dbl-sqrt", 'd', "SQRT(ABS($1))", "", "d", ""},
	{"dbl-mod", 'd', "($1 % 4)", "", "d", ""},
	{"dbl-try-any-text", 'd', "TRY_CAST($1 AS DOUBLE)", "nullif_infinite(TRY_CAST($1 AS DOUBLE))", "s", "double-range"},
	{"dbl-of-int", 'd', "CAST($1 AS DOUBLE)", "", "i", ""},
	{"dbl-of-dec", 'd', "CAST($1 AS DOUBLE)", "", "m", ""},
	{"dbl-of-text", 'd', "TRY_CAST(CAST($1 AS STRING) AS DOUBLE)", "TRY_CAST(CAST($1 AS VARCHAR) AS DOUBLE)", "m", ""},
	{"exp", 'f', "EXP($1)", "", "i", ""},
	{"ln", 'f', "LN(ABS($1) + 1)", "", "m", ""},
	{"log10", 'f', "LOG10(ABS($1) + 1)", "", "d", ""},
	{"power", 'f', "POWER($1, $2)", "", "in", ""},
	{"dbl-div-any", 'f', "($1 / $2)", "", "dn", ""},

	{"concat", 's', "CONCAT($1, $2)", "($1 || $2)", "ss", "concat-null"},
	{"concat-bars", 's', "($1 || $2)", "", "ss", ""},
	{"concat-ws", 's', "CONCAT_WS($1, $2, $3)", "", "css", ""},
	{"concat-three", 's', "CONCAT($1, $2, $3)", "($1 || $2 || $3)", "scs", "concat-null"},
	{"concat-ws-any", 's', "CONCAT_WS($1, $2, $3)", "", "sss", ""},
	{"chr", 's', "CHR($1 + 97)", "chr($1 + 97)", "n", ""},
	{"item-text", 's', "($2)[$1 + 1]", "", "nV", ""},
	{"hex-int", 's', "HEX($1)", "hex($1)", "i", ""},
	{"replace-any", 's', "REPLACE($1, NULLIF($2, ''), $3)", "", "sss", ""},
	{"substring-end", 's', "SUBSTRING($1, - $2 - 1, $3)", "substring_end($1, - $2 - 1, $3)", "snn", "substring-outside"},
	{"split-index-any", 's', "SPLIT_INDEX($1, $2, $3)", "split_index($1, $2, $3)", "scn", "split-index"},
	{"upper", 's', "UPPER($1)", "", "s", ""},
	{"lower", 's', "LOWER($1)", "", "s", ""},
	{"trim", 's', "TRIM($1)", "trim($1, ' ')", "s", "trim-blanks"},
	{"trim-chars", 's', "TRIM(BOTH $2 FROM $1)", "trim($1, $2)", "sc", ""},
	{"ltrim", 's', "LTRIM($1)", "ltrim($1, ' ')", "s", "trim-blanks"},
	{"rtrim", 's', "RTRIM($1, $2)", "", "sc", ""},
	{"substring", 's', "SUBSTRING($1, $2 + 1, $3)", "substring($1, $2 + 1, $3)", "snn", "substring-zero"},
	{"substring-from", 's', "SUBSTRING($1 FROM $2 + 1)", "substring($1, $2 + 1)", "sn", "substring-zero"},
	{"left", 's', "LEFT($1, $2)", "", "sn", ""},
	{"right", 's', "RIGHT($1, $2)", "", "sn", ""},
	{"replace", 's', "REPLACE($1, $2, $3)", "", "scc", ""},
	{"lpad", 's', "LPAD($1, $2, $3)", "", "snc", ""},
	{"rpad", 's', "RPAD($1, $2, $3)", "", "snc", ""},
	{"repeat", 's', "REPEAT($1, $2)", "", "sz", ""},
	{"reverse", 's', "REVERSE($1)", "", "s", ""},
	{"md5", 's', "MD5($1)", "", "s", ""},
	{"sha256", 's', "SHA256($1)", "", "s", ""},
	{"base64", 's', "TO_BASE64($1)", "base64(encode($1))", "s", ""},
	{"unbase64", 's', "FROM_BASE64(TO_BASE64($1))", "decode(from_base64(base64(encode($1))))", "s", ""},
	{"hex", 's', "HEX($1)", "hex($1)", "s", ""},
	{"split-index", 's', "SPLIT_INDEX($1, ',', $2)", "split_index($1, ',', $2)", "sn", "split-index"},
	{"regexp-extract", 's', "REGEXP_EXTRACT($1, $2)", "regexp_extract_null($1, $2)", "sr", "regexp-extract-null"},
	{"regexp-replace", 's', "REGEXP_REPLACE($1, $2, '_')", "regexp_replace($1, $2, '_', 'g')", "sr", ""},
	{"text-of-int", 's', "CAST($1 AS STRING)", "CAST($1 AS VARCHAR)", "i", ""},
	{"text-of-big", 's', "CAST($1 AS STRING)", "CAST($1 AS VARCHAR)", "b", ""},
	{"text-of-dec", 's', "CAST($1 AS STRING)", "CAST($1 AS VARCHAR)", "m", ""},
	{"text-of-bool", 's', "CAST($1 AS STRING)", "upper(CAST($1 AS VARCHAR))", "o", "boolean-text"},
	{"text-of-date", 's', "CAST($1 AS STRING)", "CAST($1 AS VARCHAR)", "D", ""},
	{"text-of-timestamp", 's', "CAST(CAST($1 AS TIMESTAMP(6)) AS STRING)", "strftime($1, '%Y-%m-%d %H:%M:%S.%f')", "t", "timestamp-text"},
	{"date-format", 's', "DATE_FORMAT($1, 'yyyy-MM-dd HH:mm:ss')", "strftime($1, '%Y-%m-%d %H:%M:%S')", "t", ""},
	{"date-format-short", 's', "DATE_FORMAT($1, 'yyMMdd.SSS')", "strftime($1, '%y%m%d.%g')", "t", ""},

	{"date-of-timestamp", 'D', "CAST($1 AS DATE)", "", "t", ""},
	{"date-plus-day", 'D', "($1 + INTERVAL '10' DAY)", "CAST($1 + INTERVAL '10' DAY AS DATE)", "D", "date-arithmetic"},
	{"date-minus-month", 'D', "($1 - INTERVAL '1' MONTH)", "CAST($1 - INTERVAL '1' MONTH AS DATE)", "D", "date-arithmetic"},
	{"date-floor-month", 'D', "FLOOR($1 TO MONTH)", "CAST(date_trunc('month', $1) AS DATE)", "D", ""},
	{"date-floor-year", 'D', "FLOOR($1 TO YEAR)", "CAST(date_trunc('year', $1) AS DATE)", "D", ""},
	{"date-floor-week", 'D', "FLOOR($1 TO WEEK)", "CAST(date_trunc('week', $1 + 1) - INTERVAL '1' DAY AS DATE)", "D", "week-of-sunday"},
	{"date-ceil-month", 'D', "CEIL($1 TO MONTH)", "CAST(ceil_to($1, 'month', to_months(1)) AS DATE)", "D", "ceil-to"},
	{"date-ceil-year", 'D', "CEIL($1 TO YEAR)", "CAST(ceil_to($1, 'year', to_years(1)) AS DATE)", "D", "ceil-to"},
	{"date-plus-year-month", 'D', "($1 + INTERVAL '1-2' YEAR TO MONTH)", "CAST($1 + INTERVAL '14' MONTH AS DATE)", "D", "date-arithmetic"},
	{"date-of-text", 'D', "CAST(CAST($1 AS STRING) AS DATE)", "CAST(CAST($1 AS VARCHAR) AS DATE)", "D", ""},
	{"date-try-text", 'D', "TRY_CAST(SUBSTRING($1, 1, 10) AS DATE)", "CASE WHEN regexp_matches($1, '^ *[0-9]{4}-') THEN TRY_CAST(substring($1, 1, 10) AS DATE) END", "s", "year-digits"},
	{"to-date", 'D', "TO_DATE($1, 'yyyy-MM-dd')", "CASE WHEN regexp_matches($1, '^ *[0-9]{4}-') THEN CAST(try_strptime($1, '%Y-%m-%d') AS DATE) END", "s", "year-digits"},

	{"timestamp-of-date", 't', "CAST($1 AS TIMESTAMP(6))", "CAST($1 AS TIMESTAMP)", "D", ""},
	{"timestamp-plus-hour", 't', "($1 + INTERVAL '5' HOUR)", "", "t", ""},
	{"timestamp-minus-day", 't', "($1 - INTERVAL '1' DAY)", "", "t", ""},
	{"timestamp-plus-month", 't', "($1 + INTERVAL '1' MONTH)", "", "t", ""},
	{"timestamp-minus-year", 't', "($1 - INTERVAL '1' YEAR)", "", "t", ""},
	{"timestampadd", 't', "TIMESTAMPADD(MINUTE, $2, $1)", "($1 + to_minutes($2))", "tz", ""},
	{"timestampadd-month", 't', "TIMESTAMPADD(MONTH, $2, $1)", "($1 + to_months($2))", "tz", ""},
	{"floor-second", 't', "FLOOR($1 TO SECOND)", "date_trunc('second', $1)", "t", ""},
	{"floor-hour", 't', "FLOOR($1 TO HOUR)", "date_trunc('hour', $1)", "t", ""},
	{"floor-day", 't', "FLOOR($1 TO DAY)", "CAST(date_trunc('day', $1) AS TIMESTAMP)", "t", ""},
	{"floor-month", 't', "FLOOR($1 TO MONTH)", "CAST(date_trunc('month', $1) AS TIMESTAMP)", "t", ""},
	{"floor-quarter", 't', "FLOOR($1 TO QUARTER)", "CAST(date_trunc('quarter', $1) AS TIMESTAMP)", "t", ""},
	{"floor-year", 't', "FLOOR($1 TO YEAR)", "CAST(date_trunc('year', $1) AS TIMESTAMP)", "t", ""},
	{"ceil-hour", 't', "CEIL($1 TO HOUR)", "ceil_to($1, 'hour', to_hours(1))", "t", "ceil-to"},
	{"ceil-month", 't', "CEIL($1 TO MONTH)", "ceil_to($1, 'month', to_months(1))", "t", "ceil-to"},
	{"timestamp-plus-mixed", 't', "($1 + INTERVAL '1 02:03:04.5' DAY TO SECOND)", "($1 + INTERVAL '26 hours 3 minutes 4.5 seconds')", "t", ""},
	{"timestamp-minus-negative", 't', "($1 - INTERVAL -'90' SECOND)", "($1 + INTERVAL '90' SECOND)", "t", ""},
	{"timestampadd-day", 't', "TIMESTAMPADD(DAY, $2, $1)", "($1 + to_days($2))", "tz", ""},
	{"timestampadd-year", 't', "TIMESTAMPADD(YEAR, $2, $1)", "($1 + to_years($2))", "tz", ""},
	{"timestampadd-quarter", 't', "TIMESTAMPADD(QUARTER, $2, $1)", "($1 + to_months(3 * $2))", "tz", ""},
	{"timestampadd-week", 't', "TIMESTAMPADD(WEEK, $2, $1)", "($1 + to_days(7 * $2))", "tz", ""},
	{"floor-minute", 't', "FLOOR($1 TO MINUTE)", "date_trunc('minute', $1)", "t", ""},
	{"ceil-second", 't', "CEIL($1 TO SECOND)", "ceil_to($1, 'second', to_seconds(1))", "t", "ceil-to"},
	{"ceil-day", 't', "CEIL($1 TO DAY)", "ceil_to($1, 'day', to_days(1))", "t", "ceil-to"},
	{"ceil-quarter", 't', "CEIL($1 TO QUARTER)", "ceil_to($1, 'quarter', to_months(3))", "t", "ceil-to"},
	{"ceil-year", 't', "CEIL($1 TO YEAR)", "ceil_to($1, 'year', to_years(1))", "t", "ceil-to"},
	{"floor-week", 't', "FLOOR($1 TO WEEK)", "CAST(date_trunc('week', $1 + INTERVAL '1' DAY) - INTERVAL '1' DAY AS TIMESTAMP)", "t", "week-of-sunday"},
	{"timestamp-try-text", 't', "TRY_CAST(SUBSTRING($1, 1, 19) AS TIMESTAMP(6))", "CASE WHEN regexp_matches($1, '^ *[0-9]{4}-') THEN TRY_CAST(substring($1, 1, 19) AS TIMESTAMP) END", "s", "year-digits"},
	{"timestamp-cut", 't', "CAST(CAST($1 AS TIMESTAMP(3)) AS TIMESTAMP(6))", "date_trunc('millisecond', $1)", "t", "fractions-cut"},
	{"timestamp-of-text", 't', "CAST(CAST($1 AS STRING) AS TIMESTAMP(6))", "CAST(CAST($1 AS VARCHAR) AS TIMESTAMP)", "t", ""},
	{"to-timestamp", 't', "CAST(TO_TIMESTAMP(DATE_FORMAT($1, 'yyyyMMdd HHmmss'), 'yyyyMMdd HHmmss') AS TIMESTAMP(6))", "date_trunc('second', $1)", "t", ""},
}

// productions are all of them, the generic ones once a kind.
func productions() []production {
	out := slices.Concat(special, exact, timely, texts, numbers, mixed, collections)
	for i := range len(values + nested) {
		k := kind((values + nested)[i])
		forms := generic
		switch {
		case strings.ContainsRune(nested, rune(k)):
			forms = slices.DeleteFunc(slices.Clone(generic), func(p production) bool { return !slices.Contains(ofNested, p.name) })
		case k != 'o':
			forms = slices.Concat(generic, ordered)
		}
		for _, p := range forms {
			p.name += "/" + string(k)
			p.args = strings.ReplaceAll(p.args, "K", string(k))
			if p.kind == 'K' {
				p.kind = k
			}
			if strings.Contains(p.ours, "$T") {
				p.duck = strings.ReplaceAll(p.ours, "$T", duckNames[k])
				p.ours = strings.ReplaceAll(p.ours, "$T", ourNames[k])
			}
			out = append(out, p)
		}
	}
	for i := range out {
		if out[i].duck == "" {
			out[i].duck = out[i].ours
		}
	}
	return out
}
