package fn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
)

func TestSubstringPositions(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"SUBSTRING('ABC',0)", "ABC"}, {"SUBSTRING('ABC',-2,2)", "BC"}, {"SUBSTRING('ABC',2,100)", "BC"}, {"SUBSTRING('ABC',1,-1)", "NULL"},
		{"SUBSTRING('ABC',9)", ""}, {"SUBSTRING('日本語',2,1)", "本"}, {"SUBSTRING('ABC',-9)", ""}, {"SUBSTR('ABC', 2)", "BC"}, {"SUBSTRING('', 1, 5)", ""},
		{"LEFT('abc', -1)", ""}, {"RIGHT('abc', -1)", ""}, {"LEFT('abc', 9)", "abc"}, {"RIGHT('日本語', 2)", "本語"}, {"SUBSTRING('ABC', 9223372036854775807)", ""},
	})
}

func TestConcatWithNull(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"CONCAT('a',NULL,'b')", "NULL"}, {"'a'||NULL", "NULL"}, {"CONCAT_WS('~','AA',NULL,'BB','','CC')", "AA~BB~~CC"}, {"CONCAT_WS(NULL,'a','b')", "NULL"},
		{"CONCAT_WS('~', NULL, NULL)", ""}, {"SPLIT_INDEX('a,b',',',5)", "NULL"}, {"SPLIT_INDEX('a,b',',',-1)", "NULL"}, {"SPLIT_INDEX('a,b,',',',2)", ""}, {"SPLIT_INDEX('', ',', 0)", "NULL"},
		{"CONCAT('a', 1)", "bind: CONCAT('a', 1): argument 2 of CONCAT must be a string (CAST it), not INT"},
	})
}

func TestTextFunctions(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"UPPER('straße')", "STRASSE"}, {"LOWER('ÀB')", "àb"}, {"INITCAP('o''neil éLAN')", "O'Neil Élan"}, {"TRIM('　x　')", "　x　"}, {"TRIM('日x日', '日')", "x"},
		{"POSITION('', 'abc')", "1"}, {"LOCATE('a', 'abca', 2)", "4"}, {"LOCATE('a', 'abc', 0)", "1"}, {"INSTR('abc', NULL)", "NULL"}, {"LPAD('日', 3, 'ab')", "ab日"}, {"RPAD('x', 0, 'y')", ""},
		{"LPAD('x', 5, '')", "NULL"}, {"REPEAT('x', -1)", ""}, {"REPLACE('aaa', 'a', '')", ""}, {"REPLACE('abc', '', 'x')", "xaxbxcx"}, {"CHR(0) = ''", "FALSE"}, {"CHR(-1)", ""}, {"REVERSE('')", ""},
		{"LPAD('x', 20000000, 'y')", "error:value_too_large"}, {"HEX(-1)", "FFFFFFFFFFFFFFFF"}, {"HEX('日')", "E697A5"}, {"TYPEOF(CAST('x' AS STRING))", "STRING NOT NULL"},
		{"CAST('日本語' AS VARCHAR(2))", "日本"}, {"CAST('ab' AS CHAR(5)) || '|'", "ab|"}, {"CAST(12345 AS VARCHAR(3))", "123"}, {"CAST(x'C3' AS STRING)", "error:cast"}, {"CAST(CAST('é' AS BYTES) AS STRING)", "é"},
	})
}

func TestLike(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"'abc' LIKE 'abc'", "TRUE"}, {"'abc' LIKE 'ab'", "FALSE"}, {"'abc' LIKE '%'", "TRUE"}, {"'' LIKE '%'", "TRUE"}, {"'' LIKE ''", "TRUE"}, {"'abc' LIKE '_'", "FALSE"},
		{"'aXbXc' LIKE 'a%b%c'", "TRUE"}, {"'abab' LIKE '%ab'", "TRUE"}, {"'aab' LIKE 'a_b'", "TRUE"}, {"'日本' LIKE '_本'", "TRUE"}, {"'a%' LIKE 'a\\%'", "FALSE"}, {"'a\\%' LIKE 'a\\%'", "TRUE"}, {"'ab' LIKE 'a\\%'", "FALSE"},
		{"'a\\b' LIKE 'a\\b'", "TRUE"}, {"'ABC' LIKE 'abc'", "FALSE"}, {"'a\nb' LIKE 'a%b'", "TRUE"}, {"'aa' LIKE 'a%a'", "TRUE"}, {"'a' LIKE 'a%a'", "FALSE"}, {"'abcabd' LIKE '%ab_'", "TRUE"}, {"'xaby' LIKE '%a_%'", "TRUE"},
		{"'ab' LIKE NULL", "NULL"}, {"LIKE('a_', 'a!_', '!')", "TRUE"}, {"LIKE('ab', 'a!b', '!')", `bind: LIKE('ab', 'a!b', '!'): pattern "a!b": the escape character must be followed by %, _ or itself`},
	})
}

func TestRegexpIsRE2(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"REGEXP('abc', '')", "FALSE"}, {"REGEXP_EXTRACT('a1b22', '[0-9]+')", "1"}, {"REGEXP_EXTRACT('a1', '([a-z])([0-9])', 3)", "NULL"}, {"REGEXP_EXTRACT('a1', '([a-z])([0-9])', -1)", "NULL"},
		{"REGEXP_REPLACE('aXb', '(a)X(b)', '$2$1')", "$2$1"}, {"REGEXP_REPLACE('a', 'a', '\\$1')", "\\$1"},
		{"REGEXP('x', SUBSTRING('a(', 1))", "error:invalid_argument"}, {"REGEXP('abc', SUBSTRING('xb', 2))", "TRUE"},
	})
	lib := library(t)
	for pattern, want := range map[string]struct {
		offset int
		text   string
	}{"a(?=b)": {1, "look-around"}, "(?<!a)b": {0, "look-around"}, `(a)\1`: {3, "back-references"}, "a(": {0, "missing closing"}} {
		_, err := exprtext.Parse(lib, nil, "REGEXP('x', '"+pattern+"')")
		var ae *fn.ArgError
		if !errors.As(err, &ae) || ae.Arg != 1 || ae.Offset != want.offset || !strings.Contains(ae.Msg, want.text) {
			t.Errorf("%s: %v (offset %v), want %q at %d", pattern, err, ae, want.text, want.offset)
		}
	}
}

func TestJSONFunctions(t *testing.T) {
	doc := `'{"id":1,"q":"a\"b","tags":["x"],"n":null,"big":12345678901234567890,"f":1.10,"d":{"k":"v", "k": "w"},"u":"\u65e5\ud83d\ude00\ud800"}'`
	runCases(t, "UTC", []sqlCase{
		{"JSON_VALUE(" + doc + ", '$.id')", "1"}, {"JSON_VALUE(" + doc + ", '$.q')", `a"b`}, {"JSON_QUERY(" + doc + ", '$.tags')", `["x"]`}, {"JSON_VALUE(" + doc + ", '$.none')", "NULL"},
		{"JSON_VALUE(" + doc + ", '$.tags')", "NULL"}, {"JSON_VALUE(" + doc + ", '$.n')", "NULL"}, {"JSON_VALUE(" + doc + ", '$.big')", "12345678901234567890"}, {"JSON_VALUE(" + doc + ", '$.f')", "1.10"},
		{"JSON_VALUE(" + doc + ", '$.d.k')", "w"}, {"JSON_VALUE(" + doc + ", '$.u')", "日😀\uFFFD"}, {"JSON_VALUE(" + doc + ", '$[''id'']')", "1"}, {"JSON_VALUE(" + doc + ", '$.tags[0]')", "x"}, {"JSON_VALUE(" + doc + ", '$.tags[-1]')", "x"},
		{"JSON_VALUE(" + doc + ", 'lax $.none', 'DEFAULT', 'e', 'DEFAULT', 'x')", "e"}, {"JSON_VALUE(" + doc + ", '$.none', 'DEFAULT', 'e', 'DEFAULT', 'x')", "x"}, {"JSON_VALUE(" + doc + ", '$.none', 'NULL', '', 'ERROR', '')", "error:invalid_argument"},
		{"JSON_QUERY('{ \"a\" : [ 1 , \"b c\" ] }', '$')", `{"a":[1,"b c"]}`}, {"JSON_QUERY('[1,2]', '$[*]')", "[1,2]"}, {"JSON_QUERY('[]', '$[*]')", "[]"}, {"JSON_VALUE('[1]', '$[*]')", "NULL"}, {"JSON_QUERY('[1,2]', '$[*]', 'CONDITIONAL')", "[1,2]"}, {"JSON_QUERY('[1]', '$', 'UNCONDITIONAL')", "[[1]]"},
		{"JSON_QUERY('x', '$', 'WITHOUT', 'NULL', 'EMPTY ARRAY')", "[]"}, {"JSON_EXISTS('x', '$')", "FALSE"}, {"JSON_EXISTS('x', '$', 'TRUE')", "TRUE"}, {"JSON_EXISTS('{\"a\":[{\"b\":1}]}', '$.a[*].b')", "TRUE"},
		{"JSON_VALUE(NULL, '$.a')", "NULL"}, {"'' IS JSON", "FALSE"}, {"'01' IS JSON", "FALSE"}, {"'[1,]' IS JSON", "FALSE"}, {"'{\"a\":1} x' IS JSON", "FALSE"}, {"' \"x\" ' IS JSON SCALAR", "TRUE"}, {"CAST(NULL AS STRING) IS JSON", "FALSE"},
		{"JSON_STRING(TIMESTAMP '2024-05-01 08:09:10.120')", `"2024-05-01T08:09:10.120"`}, {"JSON_STRING(1.50)", "1.50"}, {"JSON_STRING(CAST('NaN' AS DOUBLE))", `"NaN"`}, {"JSON_STRING(ROW(1, 'x'))", `{"EXPR$0":1,"EXPR$1":"x"}`},
		{"JSON_VALUE('{}', 'a')", `bind: JSON_VALUE('{}', 'a'): path "a": a path begins with $`}, {"JSON_VALUE('{}', '$..a')", `bind: JSON_VALUE('{}', '$..a'): path "$..a": recursive descent (..) is not supported`},
	})
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	runCases(t, "UTC", []sqlCase{{"'" + deep + "' IS JSON", "FALSE"}, {"'" + deep[1000:3000] + "' IS JSON", "TRUE"}})
}

func TestCollections(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"ARRAY[1, 2][0]", "bind: ARRAY[1, 2][0]: elements of an ARRAY are counted from 1"}, {"ARRAY[1, 2][1 - 1]", "NULL"}, {"ARRAY[1, 2.5]", "[1.0, 2.5]"}, {"MAP['a', 1, 'a', 2]", "{a=2}"},
		{"MAP[CAST(NULL AS STRING), 1]", "error:invalid_argument"}, {"ARRAY[1/0, 2][2]", "2"}, {"ARRAY[1/0, 2][1]", "error:division_by_zero"}, {"ARRAY_CONTAINS(ARRAY[1.50], 1.5)", "TRUE"},
		{"STR_TO_MAP('a=1=2,b')", "{a=1=2, b=NULL}"}, {"STR_TO_MAP('')", "{}"}, {"ROW(1, 'a') = ROW(1, 'a')", "TRUE"}, {"ARRAY[1] <> ARRAY[1, 2]", "TRUE"}, {"CAST(ARRAY[1, 2] AS ARRAY<STRING>)", "[1, 2]"},
		{"CAST(ARRAY['1', 'x'] AS ARRAY<INT>)[1]", "1"}, {"CAST(ARRAY['1', 'x'] AS ARRAY<INT>)", "error:cast"}, {"TRY_CAST(ARRAY['1', 'x'] AS ARRAY<INT>)", "[1, NULL]"}, {"CAST(MAP['k', '1'] AS MAP<STRING, INT>)['k']", "1"}, {"CAST(ROW(1, '2') AS ROW<a BIGINT, b INT>).b", "2"},
	})
}

func TestErrorsCarryTheExpression(t *testing.T) {
	lib := library(t)
	e, err := exprtext.Parse(lib, nil, "CAST(SUBSTRING('abc', 1) AS INT) + 1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := expr.Compile([]expr.Expr{e}, exprtext.OneRow().Schema, expr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := newOut(1)
	p.Eval(expr.NewContext(nil, 0), exprtext.OneRow(), nil, out)
	got := out[0].Err(0)
	if got == nil || got.Code != "cast" || got.Where != "CAST(SUBSTRING('abc', 1) AS INT)" || got.Message != `"abc" is not INT` {
		t.Errorf("error %+v", got)
	}
}
