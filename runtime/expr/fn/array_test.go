package fn_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestArrayFunctions: the values of Flink's CollectionFunctionsITCase.
func TestArrayFunctions(t *testing.T) {
	none := "CAST(NULL AS ARRAY<INT>)"
	rows := "ARRAY[ROW(TRUE, DATE '2022-04-20'), ROW(TRUE, DATE '1990-10-14'), NULL]"
	runCases(t, "UTC", []sqlCase{
		{"ARRAY_APPEND(ARRAY[1, 2], NULL)", "[1, 2, NULL]"}, {"ARRAY_APPEND(" + none + ", 1)", "NULL"}, {"ARRAY_APPEND(ARRAY['Hello', 'World'], '!')", "[Hello, World, !]"},
		{"ARRAY_APPEND(ARRAY['a'], 1)", "bind: ARRAY_APPEND(ARRAY['a'], 1): the elements are CHAR(1), not INT"}, {"ARRAY_APPEND(1, 1)", "bind: ARRAY_APPEND(1, 1): argument 1 of ARRAY_APPEND must be an ARRAY, not INT"},
		{"ARRAY_PREPEND(ARRAY[1, 2], 1)", "[1, 1, 2]"}, {"ARRAY_PREPEND(" + none + ", 1)", "NULL"}, {"ARRAY_PREPEND(ARRAY['Hello', 'World'], NULL)", "[NULL, Hello, World]"},
		{"ARRAY_DISTINCT(ARRAY[NULL, 1, 2, 3, 4, 5, 4, 3, 2, 1, NULL])", "[NULL, 1, 2, 3, 4, 5]"}, {"ARRAY_DISTINCT(" + none + ")", "NULL"}, {"ARRAY_DISTINCT(ARRAY['Hello', 'Hello'])", "[Hello]"},
		{"CARDINALITY(ARRAY_DISTINCT(ARRAY[ROW(1, 'a'), ROW(1, 'a'), NULL]))", "2"},
		{"ARRAY_POSITION(ARRAY[NULL, 1, 2, 2, NULL], 2)", "3"}, {"ARRAY_POSITION(ARRAY[NULL, 1], NULL)", "NULL"}, {"ARRAY_POSITION(" + none + ", 2)", "NULL"}, {"ARRAY_POSITION(" + rows + ", ROW(TRUE, DATE '1990-10-14'))", "2"},
		{"ARRAY_POSITION(ARRAY[ARRAY[1, NULL, 3], ARRAY[0]], ARRAY[0, 1])", "0"}, {"ARRAY_POSITION(ARRAY[1], TRUE)", "bind: ARRAY_POSITION(ARRAY[1], TRUE): the elements are INT, not BOOLEAN"},
		{"ARRAY_REMOVE(ARRAY[1, 2, 2], 2)", "[1]"}, {"ARRAY_REMOVE(ARRAY[1, 2, 2], 42)", "[1, 2, 2]"}, {"ARRAY_REMOVE(ARRAY[1, 2, 2], CAST(NULL AS INT))", "[1, 2, 2]"}, {"ARRAY_REMOVE(" + none + ", 12)", "NULL"}, {"ARRAY_REMOVE(" + none + ", NULL)", "NULL"},
		{"ARRAY_REMOVE(ARRAY[NULL, NULL, 1], NULL)", "[1]"}, {"ARRAY_REMOVE(ARRAY[ARRAY[1, NULL, 3], ARRAY[0], ARRAY[1]], ARRAY[0])", "[[1, NULL, 3], [1]]"},
		{"ARRAY_REVERSE(ARRAY[1, 2, 2, NULL])", "[NULL, 2, 2, 1]"}, {"ARRAY_REVERSE(" + none + ")", "NULL"},
		{"ARRAY_UNION(ARRAY[1, 2, NULL], ARRAY[1, NULL, 4])", "[1, 2, NULL, 4]"}, {"ARRAY_UNION(ARRAY[1], ARRAY[2, NULL])", "[1, 2, NULL]"}, {"ARRAY_UNION(" + none + ", ARRAY[1, NULL, 4])", "NULL"}, {"ARRAY_UNION(ARRAY[1], " + none + ")", "NULL"},
		{"ARRAY_CONCAT(ARRAY[1, 2, NULL], ARRAY[1, NULL, 4])", "[1, 2, NULL, 1, NULL, 4]"}, {"ARRAY_CONCAT(ARRAY[1, 2, NULL])", "[1, 2, NULL]"}, {"ARRAY_CONCAT(" + none + ", ARRAY[1], ARRAY[2])", "NULL"}, {"ARRAY_CONCAT(ARRAY[1], ARRAY[2.5])", "[1.0, 2.5]"},
		{"ARRAY_CONCAT(ARRAY['123'], ARRAY[123])", "bind: ARRAY_CONCAT(ARRAY['123'], ARRAY[123]): the elements are CHAR(3), not INT"},
		{"ARRAY_EXCEPT(ARRAY[1, 2, 2], ARRAY[1, NULL, 4])", "[2]"}, {"ARRAY_EXCEPT(ARRAY[1, 2, 2], ARRAY[42])", "[1, 2]"}, {"ARRAY_EXCEPT(ARRAY[1, 2, 3, 2, 4, 2], ARRAY[2, 2])", "[1, 3, 4]"}, {"ARRAY_EXCEPT(ARRAY[1], " + none + ")", "NULL"},
		{"ARRAY_EXCEPT(ARRAY[NULL, NULL, 1], ARRAY[NULL, 42])", "[1]"}, {"ARRAY_EXCEPT(ARRAY[1], ARRAY['hi'])", "bind: ARRAY_EXCEPT(ARRAY[1], ARRAY['hi']): the elements are INT, not CHAR(2)"},
		{"ARRAY_INTERSECT(ARRAY[1, 1, 2], ARRAY[1, NULL, 4])", "[1]"}, {"ARRAY_INTERSECT(ARRAY[1, 1, 2], ARRAY[3, 4])", "[]"}, {"ARRAY_INTERSECT(" + none + ", ARRAY[1])", "NULL"}, {"ARRAY_INTERSECT(ARRAY[NULL, NULL, 1], ARRAY[NULL, 42])", "[NULL]"},
		{"ARRAY_MAX(ARRAY[1, 2, NULL])", "2"}, {"ARRAY_MAX(" + none + ")", "NULL"}, {"ARRAY_MAX(ARRAY[1.2, NULL, 3.4, 8.0])", "8.0"}, {"ARRAY_MAX(ARRAY['a', NULL, 'bc', 'd', 'def'])", "def"}, {"ARRAY_MAX(ARRAY[DATE '2022-01-02', DATE '2092-07-19', DATE '2012-05-16'])", "2092-07-19"},
		{"ARRAY_MIN(ARRAY[1, 2, NULL])", "1"}, {"ARRAY_MIN(ARRAY[CAST(NULL AS INT)])", "NULL"}, {"ARRAY_MIN(ARRAY[CAST('99999999999999999999' AS DECIMAL(38, 0)), -1])", "-1"}, {"ARRAY_MAX(ARRAY_REMOVE(ARRAY[1], 1))", "NULL"},
		{"ARRAY_MAX(ARRAY[TRUE])", "bind: ARRAY_MAX(ARRAY[TRUE]): ARRAY_MAX of an array of BOOLEAN: its values have no order"}, {"ARRAY_MAX(ARRAY[ARRAY[1]])", "bind: ARRAY_MAX(ARRAY[ARRAY[1]]): ARRAY_MAX of an array of ARRAY: its values have no order"},
		{"ARRAY_JOIN(ARRAY['abv', 'bbb', 'cb'], '+')", "abv+bbb+cb"}, {"ARRAY_JOIN(ARRAY['a', 'b', NULL], '+', 'abc')", "a+b+abc"}, {"ARRAY_JOIN(ARRAY['a', 'b', NULL], '+', '')", "a+b+"}, {"ARRAY_JOIN(ARRAY['a', 'b', NULL], '+')", "a+b"}, {"ARRAY_JOIN(ARRAY[NULL, '1', NULL], '+', ' ')", " +1+ "},
		{"ARRAY_JOIN(ARRAY['a'], NULL)", "NULL"}, {"ARRAY_JOIN(ARRAY['a'], '+', NULL)", "NULL"}, {"ARRAY_JOIN(CAST(NULL AS ARRAY<STRING>), '+')", "NULL"}, {"ARRAY_JOIN(ARRAY[1], '+')", "bind: ARRAY_JOIN(ARRAY[1], '+'): argument 1 of ARRAY_JOIN must be an ARRAY of strings, not ARRAY<INT NOT NULL>"},
		{"ELEMENT(ARRAY[1])", "1"}, {"ELEMENT(ARRAY[1, 2])", "error:invalid_argument"}, {"ELEMENT(" + none + ")", "NULL"}, {"ELEMENT(ARRAY_REMOVE(ARRAY[1], 1))", "NULL"},
		{"ARRAY_REVERSE(ARRAY[1/0])", "error:division_by_zero"},
	})
}

// TestArraySlice: the values of Flink's CollectionFunctionsITCase.
func TestArraySlice(t *testing.T) {
	five, eight := "ARRAY[1, 2, 3, 4, 5]", "ARRAY[NULL, 1, 2, 3, 4, 5, 6, NULL]"
	all := "[NULL, 1, 2, 3, 4, 5, 6, NULL]"
	for _, c := range []struct{ array, offsets, want string }{
		{five, "-123", "[1, 2, 3, 4, 5]"}, {five, "0", "[1, 2, 3, 4, 5]"}, {five, "-3", "[3, 4, 5]"}, {five, "9", "[]"}, {five, "-123, -231", "[]"}, {five, "-5, -5", "[1]"}, {five, "-6, -5", "[1]"},
		{five, "5, 6", "[5]"}, {five, "20, 30", "[]"}, {five, "-123, 123", "[1, 2, 3, 4, 5]"}, {eight, "0, 8", all}, {eight, "0, 9", all}, {eight, "0, -1", all}, {eight, "1, 0", "[NULL]"}, {eight, "-1, 15", "[NULL]"},
		{eight, "8, 15", "[NULL]"}, {eight, "NULL, 15", "NULL"}, {eight, "1, NULL", "NULL"}, {"CAST(NULL AS ARRAY<INT>)", "1, 3", "NULL"}, {"ARRAY_REMOVE(ARRAY[1], 1)", "0, 0", "[]"},
		{five, "9223372036854775807", "[]"}, {five, "-9223372036854775807, 9223372036854775807", "[1, 2, 3, 4, 5]"},
	} {
		runCases(t, "UTC", []sqlCase{{fmt.Sprintf("ARRAY_SLICE(%s, %s)", c.array, c.offsets), c.want}})
	}
	runCases(t, "UTC", []sqlCase{{"ARRAY_SLICE(ARRAY[1], TRUE, 2)", "bind: ARRAY_SLICE(ARRAY[1], TRUE, 2): argument 2 of ARRAY_SLICE must be an integer, not BOOLEAN"}})
}

// TestArraySort: the values of Flink's CollectionFunctionsITCase.
func TestArraySort(t *testing.T) {
	a := "ARRAY[1, 2, 2, NULL]"
	runCases(t, "UTC", []sqlCase{
		{"ARRAY_SORT(" + a + ")", "[NULL, 1, 2, 2]"}, {"ARRAY_SORT(" + a + ", FALSE)", "[2, 2, 1, NULL]"}, {"ARRAY_SORT(" + a + ", TRUE)", "[NULL, 1, 2, 2]"}, {"ARRAY_SORT(" + a + ", NULL)", "NULL"},
		{"ARRAY_SORT(" + a + ", TRUE, TRUE)", "[NULL, 1, 2, 2]"}, {"ARRAY_SORT(" + a + ", TRUE, FALSE)", "[1, 2, 2, NULL]"}, {"ARRAY_SORT(" + a + ", FALSE, TRUE)", "[NULL, 2, 2, 1]"}, {"ARRAY_SORT(" + a + ", FALSE, FALSE)", "[2, 2, 1, NULL]"},
		{"ARRAY_SORT(" + a + ", FALSE, NULL)", "NULL"}, {"ARRAY_SORT(CAST(NULL AS ARRAY<INT>))", "NULL"},
		{"ARRAY_SORT(ARRAY[1.2, 3.5, 4.7, 1.3, 1.0, 5.0])", "[1.0, 1.2, 1.3, 3.5, 4.7, 5.0]"}, {"ARRAY_SORT(ARRAY['a', 'cv', 'dc', 'rerer', '234', '12'])", "[12, 234, a, cv, dc, rerer]"},
		{"ARRAY_SORT(ARRAY['a', 'cv', 'dc', 'rerer', '234', '12'], FALSE)", "[rerer, dc, cv, a, 234, 12]"}, {"ARRAY_SORT(ARRAY[DATE '2022-01-02', DATE '2012-05-16'])", "[2012-05-16, 2022-01-02]"},
		{"ARRAY_SORT(ARRAY[CAST('NaN' AS DOUBLE), 1e300, -1e300])", "[-1.0E300, 1.0E300, NaN]"},
		{"ARRAY_SORT(ARRAY[ROW(1)])", "bind: ARRAY_SORT(ARRAY[ROW(1)]): ARRAY_SORT of an array of ROW: its values have no order"},
	})
}

// TestSetsOfManyElements goes beyond the first size of the hash table.
func TestSetsOfManyElements(t *testing.T) {
	var all, odd []string
	for i := 0; i < 200; i++ {
		all = append(all, fmt.Sprint(i%100))
		if i%2 == 1 && i < 100 {
			odd = append(odd, fmt.Sprint(i))
		}
	}
	a, b := "ARRAY["+strings.Join(all, ", ")+"]", "ARRAY["+strings.Join(odd, ", ")+"]"
	runCases(t, "UTC", []sqlCase{
		{"ARRAY_DISTINCT(" + a + ")", "[" + strings.Join(all[:100], ", ") + "]"},
		{"ARRAY_INTERSECT(" + a + ", " + b + ")", "[" + strings.Join(odd, ", ") + "]"},
		{"CARDINALITY(ARRAY_EXCEPT(" + a + ", " + b + "))", "50"},
	})
}

// TestMapFunctions: MAP_ENTRIES as in Flink's MapFunctionITCase, the others as
// its function page says.
func TestMapFunctions(t *testing.T) {
	runCases(t, "UTC", []sqlCase{
		{"MAP_ENTRIES(MAP[1, 'value1'])", "[(1, value1)]"}, {"MAP_ENTRIES(CAST(NULL AS MAP<INT, STRING>))", "NULL"}, {"MAP_ENTRIES(MAP['a', CAST(NULL AS INT)])[1].`value`", "NULL"}, {"MAP_ENTRIES(MAP['a', 1, 'b', 2])[2].`key`", "b"},
		{"MAP_ENTRIES(ARRAY[1])", "bind: MAP_ENTRIES(ARRAY[1]): argument 1 of MAP_ENTRIES must be a MAP, not ARRAY<INT NOT NULL>"},
		{"MAP_FROM_ARRAYS(ARRAY[1, 2], ARRAY['a', NULL])", "{1=a, 2=NULL}"}, {"MAP_FROM_ARRAYS(ARRAY[1, 1], ARRAY['a', 'b'])", "{1=b}"}, {"MAP_FROM_ARRAYS(ARRAY[1], ARRAY['a', 'b'])", "error:invalid_argument"},
		{"MAP_FROM_ARRAYS(ARRAY[1, NULL], ARRAY[1, 2])", "error:invalid_argument"}, {"MAP_FROM_ARRAYS(CAST(NULL AS ARRAY<INT>), ARRAY[1])", "NULL"}, {"MAP_FROM_ARRAYS(ARRAY[1], CAST(NULL AS ARRAY<INT>))", "NULL"},
		{"MAP_UNION(MAP['a', 1], MAP['b', 2])", "{a=1, b=2}"}, {"MAP_UNION(MAP['a', 1], MAP['a', 2], MAP['a', 3])", "{a=3}"}, {"MAP_UNION(MAP['a', 1])", "{a=1}"}, {"MAP_UNION(MAP['a', 1], CAST(NULL AS MAP<STRING, INT>))", "NULL"},
		{"MAP_UNION(MAP['a', 1], MAP['b', 2.5])", "{a=1.0, b=2.5}"}, {"MAP_UNION(MAP['a', 1], MAP[1, 1])", "bind: MAP_UNION(MAP['a', 1], MAP[1, 1]): MAP<INT, INT NOT NULL> has no common type with MAP<CHAR(1), INT NOT NULL>"},
	})
}
