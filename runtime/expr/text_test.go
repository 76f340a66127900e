package expr_test

import (
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
	"github.com/millrace/millrace/runtime/types"
)

func TestCanonicalText(t *testing.T) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	schema := &batch.Schema{}
	for _, c := range columnPool {
		schema.Fields = append(schema.Fields, types.Field{Name: c.name, Type: c.typ})
	}
	schema.Fields = append(schema.Fields, types.Field{Name: "地区", Type: types.NewRow(types.Field{Name: "x", Type: types.NewInt()})})
	for src, want := range map[string]string{
		"i+j*2": "CAST(i AS BIGINT) + (j * 2)", "not b and (i is null or b)": "(NOT b) AND ((i IS NULL) OR b)", "-i": "-i", "CASE WHEN b THEN 1 ELSE 2.5 END": "CASE WHEN b THEN 1.0 ELSE 2.5 END",
		"EXTRACT('YEAR', t)": "EXTRACT(YEAR FROM t)", "FLOOR(t, 'DAY')": "FLOOR(t TO DAY)", "TIMESTAMPADD('DAY', 1, t)": "TIMESTAMPADD(DAY, 1, t)", "s LIKE 'a''b%'": "s LIKE 'a''b%'", "LIKE(s, 'a', '!')": "s LIKE 'a' ESCAPE '!'",
		"IN(i, 1, 2)": "i IN (1, 2)", "try_cast(s as int)": "TRY_CAST(s AS INT)", "`地区`.x": "`地区`.x", "ARRAY[i][1]": "ARRAY[i][1]", "CURRENT_TIMESTAMP": "CURRENT_TIMESTAMP", "NOW()": "CURRENT_TIMESTAMP",
		"JSON_VALUE(s, '$.a', 'DEFAULT', 'x', 'ERROR', '')": "JSON_VALUE(s, '$.a' DEFAULT 'x' ON EMPTY ERROR ON ERROR)", "t = '2024-05-01 08:00:00'": "t = TIMESTAMP '2024-05-01 08:00:00.000'", "COALESCE(i, 0)": "COALESCE(i, 0)",
		"d > 1": "d > 1.0", "BETWEEN(i, 1, 3)": "(i >= 1) AND (i <= 3)", "POSITION('a', s)": "POSITION('a' IN s)", "s IS JSON": "s IS JSON", "NULLIF(i, 0)": "CASE WHEN i = 0 THEN CAST(NULL AS INT) ELSE i END",
	} {
		e, err := exprtext.Parse(lib, schema, src)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := e.String(); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}

// TestCommonSubexpressionIsEvaluatedOnce counts by a random function that is
// wrapped as deterministic.
func TestCommonSubexpressionIsEvaluatedOnce(t *testing.T) {
	calls := 0
	f := &fn.Function{Name: "COUNTED", User: &fn.User{Version: "1"}, Syntax: []string{"COUNTED(x)"}, Category: fn.CatArithmetic, Doc: "x",
		Bind: func(args []fn.Arg) (fn.Bound, error) {
			return fn.Bound{Params: []types.Type{types.NewInt()}, Return: types.NewInt(), Kernel: func(_ *fn.Context, a []*batch.Vec, sel batch.Sel, out *batch.Vec) {
				calls += len(sel)
				for _, i := range sel {
					out.I32[i] = a[0].I32[i]
				}
			}}, nil
		}}
	lib, err := fn.NewLibrary(fn.LibraryOptions{Extra: fn.Extra{Functions: []*fn.Function{f}}})
	if err != nil {
		t.Fatal(err)
	}
	schema := &batch.Schema{Fields: []types.Field{{Name: "x", Type: types.NewInt()}}}
	in := &batch.Batch{Schema: schema, Len: 10, Cols: make([]batch.Vec, 1)}
	in.Cols[0].Reset(types.NewInt(), 10)
	for i := range in.Cols[0].I32 {
		in.Cols[0].I32[i] = int32(i)
	}
	for _, c := range []struct {
		exprs []string
		want  int
	}{
		{[]string{"COUNTED(x) + 1", "COUNTED(x) + 2", "COUNTED(x)"}, 10},
		{[]string{"CASE WHEN x < 3 THEN COUNTED(x) ELSE 0 END"}, 3},
		{[]string{"CASE WHEN x < 3 THEN COUNTED(x) ELSE COUNTED(x) + 1 END"}, 10},
		{[]string{"COUNTED(x)", "CASE WHEN x < 3 THEN COUNTED(x) END"}, 10},
		{[]string{"x < 3 AND COUNTED(x) > 0"}, 3},
		{[]string{"CASE WHEN COUNTED(x) > 5 THEN COUNTED(x) ELSE -COUNTED(x) END"}, 10},
	} {
		var exprs []expr.Expr
		for _, src := range c.exprs {
			e, err := exprtext.Parse(lib, schema, src)
			if err != nil {
				t.Fatal(err)
			}
			exprs = append(exprs, e)
		}
		p, err := expr.Compile(exprs, schema, expr.Options{})
		if err != nil {
			t.Fatal(err)
		}
		calls = 0
		p.Eval(expr.NewContext(nil, 0), in, nil, make([]batch.Vec, len(exprs)))
		if calls != c.want {
			t.Errorf("%v: %d rows computed, want %d", c.exprs, calls, c.want)
		}
	}
}

func TestFilterSeparatesFailedRows(t *testing.T) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	schema := &batch.Schema{Fields: []types.Field{{Name: "x", Type: types.NewInt()}}}
	in := &batch.Batch{Schema: schema, Len: 5, Cols: make([]batch.Vec, 1)}
	in.Cols[0].Reset(types.NewInt(), 5)
	copy(in.Cols[0].I32, []int32{2, 0, -1, 4, 1})
	in.Cols[0].SetNull(3)
	e, err := exprtext.Parse(lib, schema, "10 / x > 1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := expr.CompileFilter(e, schema, expr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pass, failed := f.Eval(expr.NewContext(nil, 0), in, nil, nil, nil)
	if len(pass) != 2 || pass[0] != 0 || pass[1] != 4 {
		t.Errorf("passed %v, want rows 0 and 4", pass)
	}
	if len(failed) != 1 || failed[0].Row != 1 || failed[0].Code != batch.CodeDivisionByZero || failed[0].Where != "10 / x" {
		t.Errorf("failed %+v, want row 1", failed)
	}
	if pass, _ = f.Eval(expr.NewContext(nil, 0), in, batch.Sel{}, nil, nil); pass == nil || len(pass) != 0 {
		t.Errorf("no row selected gives %v, want an empty selection that is not nil", pass)
	}
}

func TestConstantFolding(t *testing.T) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	schema := &batch.Schema{Fields: []types.Field{{Name: "x", Type: types.NewInt()}}}
	for src, want := range map[string]string{
		"x + (1 + 2)": "x + 3", "1/0": "1 / 0", "UPPER('a') || 'b'": "'Ab'", "RAND()": "RAND()", "CURRENT_DATE": "CURRENT_DATE", "TO_DATE('2024-05-01')": "DATE '2024-05-01'", "FROM_UNIXTIME(0)": "FROM_UNIXTIME(0)",
		"CAST('2024-05-01 00:00:00' AS TIMESTAMP_LTZ(3))": "CAST('2024-05-01 00:00:00' AS TIMESTAMP_LTZ(3))", "x > 1 AND 1 = 1": "(x > 1) AND TRUE",
	} {
		e, err := exprtext.Parse(lib, schema, src)
		if err != nil {
			t.Fatal(err)
		}
		if got := expr.FoldAll(e).String(); got != want {
			t.Errorf("%s folds to %s, want %s", src, got, want)
		}
	}
}
