package fn_test

import (
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
	"github.com/millrace/millrace/runtime/types"
)

// mixedBatch has rows of every kind: full, empty, NULL, repeated.
func mixedBatch(t *testing.T) *batch.Batch {
	t.Helper()
	ints, strs := types.NewArray(types.NewInt()), types.NewArray(types.NewString())
	m := types.NewMap(types.NewString(), types.NewInt())
	none := "NULL"
	cols := []struct {
		name string
		typ  types.Type
		rows [6]string
	}{
		{"a", ints, [6]string{"ARRAY[3, 1, 3, NULL]", none, "ARRAY[7]", "ARRAY_REMOVE(ARRAY[1], 1)", "ARRAY[5, 4, 3, 2, 1]", "ARRAY[NULL, 2]"}},
		{"b", ints, [6]string{"ARRAY[1]", "ARRAY[2]", none, "ARRAY[1, NULL]", "ARRAY[4, 4, 9]", "ARRAY[NULL, 3]"}},
		{"w", strs, [6]string{"ARRAY['x', NULL, 'y']", "ARRAY['z']", none, "ARRAY['', 'q']", "ARRAY['日', '本']", "ARRAY['k']"}},
		{"m", m, [6]string{"MAP['a', 1]", none, "MAP['b', 2, 'c', 3]", "MAP['a', 5, 'b', 6]", "MAP['z', 0]", "MAP['a', 1]"}},
		{"o", m, [6]string{"MAP['a', 9, 'q', 1]", "MAP['a', 1]", "MAP['c', 0]", none, "MAP['y', 1, 'z', 2]", "MAP['b', 1]"}},
		{"s", types.NewString(), [6]string{"'a1b22'", "'日x日'", none, "''", "'x,,y'", "'%41+b'"}},
		{"p", types.NewString(), [6]string{"'[0-9]+'", "'日*'", "'a'", "','", none, "'b'"}},
		{"n", types.NewInt(), [6]string{"1", "-2", "3", none, "0", "256"}},
		{"x", types.NewDouble(), [6]string{"0.5", "-1", "1e300", "0", none, "2"}},
	}
	lib := library(t)
	b := &batch.Batch{Schema: &batch.Schema{}, Len: 6, Cols: make([]batch.Vec, len(cols))}
	for c, col := range cols {
		b.Schema.Fields = append(b.Schema.Fields, types.Field{Name: col.name, Type: col.typ})
		v := &b.Cols[c]
		v.Reset(col.typ, 0)
		for _, src := range col.rows {
			e, err := exprtext.Parse(lib, nil, src)
			if err != nil {
				t.Fatal(err)
			}
			if e, err = expr.NewCast(e, col.typ, false); err != nil {
				t.Fatal(err)
			}
			p, err := expr.Compile([]expr.Expr{e}, &batch.Schema{}, expr.Options{})
			if err != nil {
				t.Fatal(err)
			}
			out := newOut(1)
			p.Eval(expr.NewContext(nil, 0), exprtext.OneRow(), nil, out)
			v.Append(&out[0], 0)
		}
		v.PadOffsets()
	}
	return b
}

// TestColumnsAgreeWithRows evaluates over many rows at once, over a selection
// with gaps and over each row alone: the values must be the same.
func TestColumnsAgreeWithRows(t *testing.T) {
	lib, in := library(t), mixedBatch(t)
	for _, src := range []string{
		"ARRAY_APPEND(a, n)", "ARRAY_PREPEND(a, 1)", "ARRAY_CONCAT(a, b, a)", "ARRAY_DISTINCT(a)", "ARRAY_UNION(a, b)", "ARRAY_EXCEPT(a, b)", "ARRAY_INTERSECT(a, b)", "ARRAY_REVERSE(w)", "ARRAY_REMOVE(a, n)",
		"ARRAY_POSITION(a, 3)", "ARRAY_SLICE(a, n, -1)", "ARRAY_SLICE(w, 2)", "ARRAY_SORT(a, n > 0)", "ARRAY_SORT(w)", "ARRAY_MAX(a)", "ARRAY_MIN(w)", "ARRAY_JOIN(w, s)", "ARRAY_JOIN(w, '-', s)", "ELEMENT(a)",
		"MAP_ENTRIES(m)", "MAP_FROM_ARRAYS(b, a)", "MAP_FROM_ARRAYS(w, a)", "MAP_UNION(m, o)", "SPLIT(s, ',')", "SPLIT(s, '')", "REGEXP_COUNT(s, p)", "REGEXP_INSTR(s, p)", "REGEXP_SUBSTR(s, p)", "REGEXP_EXTRACT_ALL(s, p, 0)",
		"REGEXP_EXTRACT_ALL(s, '(a)|(x)', 2)", "OVERLAY(s, 'zz', 2)", "OVERLAY(s, p, 1, n)", "ELT(n, s, p)", "STARTSWITH(s, p)", "ENDSWITH(s, 'b')", "BTRIM(s, 'ab')", "ASCII(s)", "IS_ALPHA(s)", "IS_DIGIT(s)", "IS_DECIMAL(s)",
		"SHA1(s)", "SHA2(s, n)", "SHA384(s)", "URL_ENCODE(s)", "URL_DECODE(s)", "UNHEX(s)", "BIN(n)", "JSON_QUOTE(s)", "JSON_UNQUOTE(p)", "JSON_OBJECT('a', a, 's', s, 'ABSENT', 'vv')", "JSON_ARRAY(n, m, 'NULL', 'vv')", "LOG(2, x)", "LOG2(x)", "ATAN2(x, n)", "SIN(x)", "DEGREES(x)", "PI() * x",
	} {
		e, err := exprtext.Parse(lib, in.Schema, src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		p, err := expr.Compile([]expr.Expr{e}, in.Schema, expr.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := expr.NewContext(nil, 1)
		for _, sel := range []batch.Sel{{0, 1, 2, 3, 4, 5}, {1, 3, 4}, {0, 2, 5}, {5}} {
			out := newOut(1)
			p.Eval(ctx, in, sel, out)
			for _, i := range sel {
				want := exprtext.Eval(expr.NewContext(nil, 1), e, in, int(i))
				if got := exprtext.Show(ctx, &out[0], int(i)); got != want {
					t.Errorf("%s, rows %v, row %d: %s, alone %s", src, sel, i, got, want)
				}
			}
		}
	}
}
