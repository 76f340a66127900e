package userfunc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// library is that of a program with functions of its own.
func library(t testing.TB, fs ...userfunc.Function) *fn.Library {
	t.Helper()
	set, err := userfunc.NewSet(fs...)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := fn.NewLibrary(fn.LibraryOptions{Extra: set.Extra()})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// ints is a BIGINT column; -1 stands for NULL.
func ints(xs ...int64) batch.Vec {
	var v batch.Vec
	v.Reset(types.NewBigInt(), len(xs))
	for i, x := range xs {
		v.I64[i] = x
		if x == -1 {
			v.SetNull(i)
		}
	}
	return v
}

// texts is a STRING column; "-" stands for NULL.
func texts(xs ...string) batch.Vec {
	var v batch.Vec
	v.Reset(types.NewString(), len(xs))
	for i, x := range xs {
		if x == "-" {
			v.NullRow(i)
			continue
		}
		v.PutString(i, x)
	}
	v.PadOffsets()
	return v
}

func batchOf(cols ...batch.Vec) *batch.Batch {
	b := &batch.Batch{Schema: &batch.Schema{}, Cols: cols, Len: cols[0].Len}
	for i := range cols {
		b.Schema.Fields = append(b.Schema.Fields, types.Field{Name: string(rune('a' + i)), Type: cols[i].Type})
	}
	return b
}

// call evaluates a function over the columns of b, and shows the rows as text.
func call(t testing.TB, lib *fn.Library, name string, b *batch.Batch, sel batch.Sel) []string {
	t.Helper()
	f, ok := lib.Lookup(name)
	if !ok {
		t.Fatalf("no function %s", name)
	}
	var args []expr.Expr
	for i := range b.Cols {
		args = append(args, expr.NewColumn(b.Schema, i))
	}
	e, err := expr.NewCall(f, args...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := expr.Compile([]expr.Expr{e}, b.Schema, expr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]batch.Vec, 1)
	p.Eval(expr.NewContext(nil, 1), b, sel, out)
	return shown(&out[0], b.Len, sel)
}

// shown are the rows of sel, as text.
func shown(v *batch.Vec, n int, sel batch.Sel) []string {
	var got []string
	for i := range n {
		if sel != nil && !slices.Contains(sel, int32(i)) {
			continue
		}
		switch err := v.Err(i); {
		case err != nil:
			got = append(got, string(err.Code)+" at "+err.Where+": "+err.Message)
		case v.IsNull(i):
			got = append(got, "NULL")
		default:
			got = append(got, v.Text(i))
		}
	}
	return got
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// TestScalarRows: values, NULL, an error and a panic, each its own row's.
func TestScalarRows(t *testing.T) {
	repeat := userfunc.Scalar2("SHOUT", func(n int64, s string) (string, error) {
		if n == 7 {
			return "", errors.New("seven is refused")
		}
		if n == 13 {
			var m map[string]int
			m[s] = 1
		}
		return strings.Repeat(s, int(n)), nil
	}, userfunc.Options{})
	lib := library(t, repeat)
	b := batchOf(ints(2, -1, 7, 13, 0, 3), texts("ab", "x", "x", "x", "x", "-"))
	want(t, call(t, lib, "shout", b, nil), "abab", "NULL", "user_function at SHOUT(a, b): SHOUT: seven is refused",
		"user_function at SHOUT(a, b): SHOUT: panic: assignment to entry in nil map", "", "NULL")
	want(t, call(t, lib, "SHOUT", b, batch.Sel{0, 4}), "abab", "")

	var dict batch.Vec
	values := texts("y", "zz")
	dict.Type, dict.Enc, dict.Len, dict.Dict, dict.Codes = values.Type, batch.Dict, 3, &values, []int32{1, 0, 1}
	want(t, call(t, lib, "SHOUT", batchOf(ints(1, 2, 2), dict), nil), "zz", "yy", "zzzz")
}

// TestScalarNulls: a Null argument is seen, the others make the result NULL.
func TestScalarNulls(t *testing.T) {
	f := userfunc.Scalar2("OR_ELSE", func(x userfunc.Null[string], n int64) (userfunc.Null[string], error) {
		switch {
		case x.Valid:
			return x, nil
		case n == 0:
			return userfunc.Null[string]{}, nil
		}
		return userfunc.Some(fmt.Sprint(n)), nil
	}, userfunc.Options{})
	lib := library(t, f)
	want(t, call(t, lib, "OR_ELSE", batchOf(texts("x", "-", "-", "y"), ints(1, 2, 0, -1)), nil), "x", "2", "NULL", "NULL")
}

// TestScalarArguments: functions of none, three and four arguments take them in
// their order, and NULL among them makes the result NULL.
func TestScalarArguments(t *testing.T) {
	lib := library(t,
		userfunc.Scalar0("HERE", func() (string, error) { return "here", nil }, userfunc.Options{}),
		userfunc.Scalar3("BETWIXT", func(a string, n int64, b string) (string, error) { return fmt.Sprint(a, n, b), nil }, userfunc.Options{}),
		userfunc.Scalar4("ALL_FOUR", func(a, b string, m, n int64) (string, error) { return fmt.Sprint(a, b, m, "/", n), nil }, userfunc.Options{}))
	if f, _ := lib.Lookup("HERE"); f == nil {
		t.Error("no function without arguments")
	} else if e, err := expr.NewCall(f); err != nil {
		t.Error(err)
	} else if x, ok := expr.Fold(e).(*expr.Literal); !ok || x.String() != "'here'" {
		t.Errorf("HERE() is %v", expr.Fold(e))
	}
	want(t, call(t, lib, "BETWIXT", batchOf(texts("a", "-", "c", "d"), ints(1, 2, -1, 4), texts("w", "x", "y", "-")), nil), "a1w", "NULL", "NULL", "NULL")
	want(t, call(t, lib, "ALL_FOUR", batchOf(texts("a", "b"), texts("w", "x"), ints(1, 2), ints(3, -1)), nil), "aw1/3", "NULL")
}

// TestScalarTypes: each Go type goes in and comes out as it was.
func TestScalarTypes(t *testing.T) {
	same := []userfunc.Function{
		identity[bool]("SAME_BOOL"), identity[int8]("SAME_TINYINT"), identity[int16]("SAME_SMALLINT"), identity[int32]("SAME_INT"), identity[int64]("SAME_BIGINT"),
		identity[float32]("SAME_FLOAT"), identity[float64]("SAME_DOUBLE"), identity[string]("SAME_STRING"), identity[[]byte]("SAME_BYTES"), identity[time.Time]("SAME_TIME"),
		identity[userfunc.Null[bool]]("NULL_BOOL"), identity[userfunc.Null[int64]]("NULL_BIGINT"), identity[userfunc.Null[string]]("NULL_STRING"),
		identity[userfunc.Null[[]byte]]("NULL_BYTES"), identity[userfunc.Null[time.Time]]("NULL_TIME"),
	}
	lib := library(t, same...)
	column := func(typ types.Type, fill func(v *batch.Vec)) batch.Vec {
		var v batch.Vec
		v.Reset(typ, 3)
		fill(&v)
		v.SetNull(1)
		v.PadOffsets()
		return v
	}
	bytes := func(v *batch.Vec) { v.PutString(0, "ab"); v.PutString(2, "\xff") }
	for name, v := range map[string]batch.Vec{
		"BOOL":     column(types.NewBoolean(), func(v *batch.Vec) { v.Bools.Set(2) }),
		"TINYINT":  column(types.NewTinyInt(), func(v *batch.Vec) { v.I8[0], v.I8[2] = -128, 127 }),
		"SMALLINT": column(types.NewSmallInt(), func(v *batch.Vec) { v.I16[0], v.I16[2] = -32768, 1 }),
		"INT":      column(types.NewInt(), func(v *batch.Vec) { v.I32[0], v.I32[2] = -1<<31, 5 }),
		"BIGINT":   ints(5, -1, 1<<62),
		"FLOAT":    column(types.NewFloat(), func(v *batch.Vec) { v.F32[0], v.F32[2] = 0.5, -3 }),
		"DOUBLE":   column(types.NewDouble(), func(v *batch.Vec) { v.F64[0], v.F64[2] = 0.1, 1e300 }),
		"STRING":   texts("ä", "-", ""),
		"BYTES":    column(types.NewBytes(), bytes),
		"TIME":     column(types.NewTimestampLTZ(6), func(v *batch.Vec) { v.I64[0], v.I64[2] = -1, 1700000000123456 }),
	} {
		var wanted []string
		for i := range 3 {
			wanted = append(wanted, v.Text(i))
		}
		wanted[1] = "NULL"
		for _, kind := range []string{"SAME_", "NULL_"} {
			if _, ok := lib.Lookup(kind + name); ok {
				t.Run(kind+name, func(t *testing.T) { want(t, call(t, lib, kind+name, batchOf(v), nil), wanted...) })
			}
		}
	}
}

func identity[V userfunc.Value](name string) userfunc.Function {
	return userfunc.Scalar1(name, func(v V) (V, error) { return v, nil }, userfunc.Options{})
}

// TestVectorPanics: the rows that are well keep their values, also behind half of
// a value.
func TestVectorPanics(t *testing.T) {
	f := userfunc.Vector("REVERSED", userfunc.Signature{Params: []types.Type{types.NewString()}, Return: types.NewString()}, func(r *userfunc.Rows) {
		for _, i := range r.Sel {
			text := r.Args[0].Bytes(int(i))
			if len(text) == 0 {
				r.Fail(i, errors.New("nothing to reverse"))
				continue
			}
			r.Out.BeginBytes(int(i))
			for k := len(text) - 1; k >= 0; k-- {
				if text[k] == '!' {
					panic("an exclamation mark")
				}
				r.Out.Data = append(r.Out.Data, text[k])
			}
			r.Out.EndBytes()
		}
	}, userfunc.Options{})
	lib := library(t, f)
	want(t, call(t, lib, "REVERSED", batchOf(texts("abc", "x!y", "", "-", "de")), nil), "cba",
		"user_function at REVERSED(a): REVERSED: panic: an exclamation mark",
		"user_function at REVERSED(a): REVERSED: nothing to reverse", "NULL", "ed")
}

// TestLongMessages: what a function says is cut, on a rune's boundary.
func TestLongMessages(t *testing.T) {
	f := userfunc.Scalar1("LONG_TALE", func(string) (string, error) { return "", errors.New(strings.Repeat("ä", 500)) }, userfunc.Options{})
	want(t, call(t, library(t, f), "LONG_TALE", batchOf(texts("x")), nil),
		"user_function at LONG_TALE(a): LONG_TALE: "+strings.Repeat("ä", 128)+"...")
}

// TestRegistration: everything that is wrong is said at once.
func TestRegistration(t *testing.T) {
	id := identity[string]
	_, err := userfunc.NewSet(id("UPPER"), id("MINE"), id("MINE"), id("mine"), id("ROW_NUMBER"), id("SELECT"), id("SUM"),
		userfunc.Scalar1[string, string]("NOTHING", nil, userfunc.Options{}), userfunc.Function{},
		userfunc.Aggregate1("HALF", userfunc.Fold1[int64, int64, int64]{}, userfunc.Options{}),
		userfunc.Aggregate1("CHANCE", userfunc.Fold1[int64, int64, int64]{}, userfunc.Options{NonDeterministic: true}))
	if err == nil {
		t.Fatal("all is well")
	}
	for _, part := range []string{
		"user function ROW_NUMBER: the name has a meaning in SQL; choose another",
		"user function SELECT: the name is a reserved word; choose another",
		"user function NOTHING: the Go function is nil",
		"a Function that was made by none of",
		"user function HALF: an aggregate needs Add, Merge, Result, Save, Load",
		"user function CHANCE: an aggregate must be deterministic",
		`user function "mine": a name is a letter and then letters, digits and _, in upper case`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("missing: %s\n%s", part, err)
		}
	}
	for name, wanted := range map[string]string{
		"UPPER": "user function UPPER: there is a built-in function of this name; choose another",
		"SUM":   "user function SUM: there is a built-in function of this name; choose another",
		"||":    `user function "||": a name is a letter`,
	} {
		if _, err := userfunc.NewSet(id(name)); err == nil || !strings.HasPrefix(err.Error(), wanted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := userfunc.NewSet(id("MINE"), id("MINE")); err == nil || err.Error() != "user function MINE is registered twice" {
		t.Error(err)
	}
	var none *userfunc.Set
	if x := none.Extra(); len(x.Functions)+len(x.Aggregates) > 0 {
		t.Error("nil is not the empty set")
	}
}

// TestArguments: count and types of arguments are errors of the statement.
func TestArguments(t *testing.T) {
	lib := library(t, identity[int32]("SINGLE"))
	f, _ := lib.Lookup("SINGLE")
	for _, x := range []struct {
		args []expr.Expr
		want string
	}{
		{nil, "SINGLE takes 1 argument, not 0"},
		{[]expr.Expr{expr.Text("x")}, "argument 1 of SINGLE: CHAR(1) is not implicitly cast to INT"},
		{[]expr.Expr{expr.Int(types.NewBigInt(), 1)}, "argument 1 of SINGLE: BIGINT is not implicitly cast to INT"},
	} {
		if _, err := expr.NewCall(f, x.args...); err == nil || err.Error() != x.want {
			t.Errorf("%v: %v, want %s", x.args, err, x.want)
		}
	}
}

// TestFolding: calls of constants are computed once, if they may be.
func TestFolding(t *testing.T) {
	lib := library(t, identity[string]("FIXED"),
		userfunc.Scalar1("CHANCE", func(s string) (string, error) { return s, nil }, userfunc.Options{NonDeterministic: true}))
	for name, fold := range map[string]bool{"FIXED": true, "CHANCE": false} {
		f, _ := lib.Lookup(name)
		e, err := expr.NewCall(f, expr.Text("x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, folded := expr.Fold(e).(*expr.Literal); folded != fold {
			t.Errorf("%s: folded %v", name, folded)
		}
	}
}

func BenchmarkScalar(b *testing.B) {
	lib := library(b,
		userfunc.Scalar2("ADD_UP", func(x, y int64) (int64, error) { return x + y, nil }, userfunc.Options{}),
		userfunc.Scalar1("TAIL", func(s string) (string, error) { return s[1:], nil }, userfunc.Options{}))
	const rows = 4096
	xs, ss := make([]int64, rows), make([]string, rows)
	for i := range xs {
		xs[i], ss[i] = int64(i), fmt.Sprintf("page-%d", i)
	}
	plus, _ := lib.Lookup("+")
	for _, x := range []struct {
		name string
		f    *fn.Function
		in   *batch.Batch
	}{
		{"bigint", first(lib.Lookup("ADD_UP")), batchOf(ints(xs...), ints(xs...))},
		{"string", first(lib.Lookup("TAIL")), batchOf(texts(ss...))},
		{"built-in plus", plus, batchOf(ints(xs...), ints(xs...))},
	} {
		b.Run(x.name, func(b *testing.B) {
			var args []expr.Expr
			for i := range x.in.Cols {
				args = append(args, expr.NewColumn(x.in.Schema, i))
			}
			e, err := expr.NewCall(x.f, args...)
			if err != nil {
				b.Fatal(err)
			}
			p, err := expr.Compile([]expr.Expr{e}, x.in.Schema, expr.Options{})
			if err != nil {
				b.Fatal(err)
			}
			out, ctx := make([]batch.Vec, 1), expr.NewContext(nil, 1)
			b.ReportAllocs()
			for b.Loop() {
				p.Eval(ctx, x.in, nil, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}

func first[A, B any](a A, _ B) A { return a }
