package fn_test

import "testing"

// TestJSONConstructors: the values of Flink's function page.
func TestJSONConstructors(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"JSON_OBJECT('NULL', '')", "{}"}, {"JSON_OBJECT('K1', 'V1', 'K2', 'V2', 'NULL', 'vv')", `{"K1":"V1","K2":"V2"}`},
		{"JSON_OBJECT('K1', CAST(NULL AS STRING), 'NULL', 'v')", `{"K1":null}`}, {"JSON_OBJECT('K1', CAST(NULL AS STRING), 'ABSENT', 'v')", "{}"}, {"JSON_OBJECT('a', NULL, 'b', 1, 'ABSENT', 'vv')", `{"b":1}`}, {"JSON_OBJECT('a', NULL, 'NULL', 'v')", `{"a":null}`},
		{"JSON_OBJECT('K1', JSON_OBJECT('K2', 'V', 'NULL', 'v'), 'NULL', 'j')", `{"K1":{"K2":"V"}}`}, {"JSON_OBJECT('K1', '{\"a\":1}', 'NULL', 'v')", `{"K1":"{\"a\":1}"}`},
		{"JSON_OBJECT('q\"k', TRUE, 'd', 1.50, 'a', ARRAY[1, NULL], 'NULL', 'vvv')", `{"q\"k":true,"d":1.50,"a":[1,null]}`},
		{"JSON_ARRAY('ABSENT', '')", "[]"}, {"JSON_ARRAY(1, '2', 'ABSENT', 'vv')", `[1,"2"]`}, {"JSON_ARRAY(CAST(NULL AS STRING), 'NULL', 'v')", "[null]"}, {"JSON_ARRAY(CAST(NULL AS STRING), 'ABSENT', 'v')", "[]"},
		{"JSON_ARRAY(JSON_ARRAY(1, 'ABSENT', 'v'), 'ABSENT', 'j')", "[[1]]"}, {"JSON_ARRAY(NULL, 1, NULL, 2, 'ABSENT', 'vvvv')", "[1,2]"},
		{"JSON_ARRAY(1/0, 'ABSENT', 'v')", "error:division_by_zero"},
		{"JSON_OBJECT('a', 1, 'a', 2, 'NULL', 'vv')", `bind: JSON_OBJECT('a', 1, 'a', 2, 'NULL', 'vv'): key "a" stands twice in JSON_OBJECT`},
		{"JSON_OBJECT(CONCAT('a', 'b'), 1, 'NULL', 'v')", `bind: JSON_OBJECT(CONCAT('a', 'b'), 1, 'NULL', 'v'): a key of JSON_OBJECT must be a string literal`},
	})
}
