package userfunc_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// pairs gives the pairs of "a=1,b=,c": a value may be NULL.
func pairs(text string, out *userfunc.Emit2[string, userfunc.Null[int64]]) error {
	for p := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(p, "=")
		switch {
		case p == "":
			continue
		case !ok:
			return fmt.Errorf("%q is no pair", p)
		case value == "":
			out.Row(key, userfunc.Null[int64]{})
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			panic(err)
		}
		out.Row(key, userfunc.Some(n))
	}
	return nil
}

// TestTableRows: any number of rows, NULL, an error and a panic behind rows that were
// given already. The rows of other calls do not change with them.
func TestTableRows(t *testing.T) {
	lib := library(t, userfunc.Table1("PAIRS", []string{"key", "value"}, pairs, userfunc.Options{}))
	b := batchOf(texts("a=1,b=,c=3", "-", "", "d=4,e", "f=5,g=x", "h=6"))
	rows := []string{"[(a, 1), (b, NULL), (c, 3)]", "NULL", "[]", `user_function at PAIRS(a): PAIRS: "e" is no pair`,
		`user_function at PAIRS(a): PAIRS: panic: strconv.ParseInt: parsing "x": invalid syntax`, "[(h, 6)]"}
	want(t, call(t, lib, "pairs", b, nil), rows...)
	want(t, call(t, lib, "PAIRS", b, batch.Sel{0, 3, 5}), rows[0], rows[3], rows[5])
	want(t, call(t, lib, "PAIRS", b, batch.Sel{3, 4}), rows[3], rows[4])
}

// TestTableNulls: an argument of type Null is given as it is.
func TestTableNulls(t *testing.T) {
	f := func(n userfunc.Null[int64], s string, b bool, x []byte, out *userfunc.Emit4[userfunc.Null[int64], string, bool, []byte]) error {
		for range max(n.V, 1) {
			out.Row(n, s, b, x)
		}
		return nil
	}
	lib := library(t, userfunc.Table4("ALL_OF", []string{"n", "s", "b", "x"}, f, userfunc.Options{}))
	var bools, bytes batch.Vec
	bools.Reset(types.NewBoolean(), 3)
	bools.Bools.Put(1, true)
	bytes.Reset(types.NewBytes(), 3)
	for i := range 3 {
		bytes.PutString(i, strings.Repeat("x", i))
	}
	want(t, call(t, lib, "ALL_OF", batchOf(ints(2, -1, 4), texts("p", "q", "-"), bools, bytes), nil),
		"[(2, p, FALSE, ), (2, p, FALSE, )]", "[(NULL, q, TRUE, 78)]", "NULL")
}

// TestTableArguments: two and three arguments, two and three columns, in their order.
func TestTableArguments(t *testing.T) {
	lib := library(t,
		userfunc.Table2("REPEATED", []string{"s", "i"}, func(s string, n int64, out *userfunc.Emit2[string, int64]) error {
			for i := range n {
				out.Row(s, i)
			}
			return nil
		}, userfunc.Options{}),
		userfunc.Table3("TURNED", []string{"c", "b", "a"}, func(a int64, b string, c int64, out *userfunc.Emit3[int64, string, int64]) error {
			if a == 0 {
				return errors.New("no turn")
			}
			out.Row(c, b, a)
			out.Row(a, b, c)
			return nil
		}, userfunc.Options{}))
	want(t, call(t, lib, "REPEATED", batchOf(texts("p", "q", "r"), ints(2, 0, 1)), nil), "[(p, 0), (p, 1)]", "[]", "[(r, 0)]")
	want(t, call(t, lib, "TURNED", batchOf(ints(1, 0, 2), texts("p", "q", "r"), ints(7, 8, 9)), nil),
		"[(7, p, 1), (1, p, 7)]", "user_function at TURNED(a, b, c): TURNED: no turn", "[(9, r, 2), (2, r, 9)]")
}

// TestTableLimit: a call that gives too many rows is an error, of its row alone.
func TestTableLimit(t *testing.T) {
	lib := library(t, userfunc.Table1("SERIES", []string{"i"}, func(n int64, out *userfunc.Emit1[int64]) error {
		for i := range n {
			out.Row(i)
		}
		return nil
	}, userfunc.Options{}))
	got := call(t, lib, "SERIES", batchOf(ints(2, userfunc.MaxTableRows, userfunc.MaxTableRows+1, 1)), nil)
	if rows := strings.Count(got[1], ",") + 1; rows != userfunc.MaxTableRows {
		t.Errorf("%d rows, want %d", rows, userfunc.MaxTableRows)
	}
	got[1] = ""
	want(t, got, "[(0), (1)]", "", "user_function at SERIES(a): SERIES: more than 65536 rows for one row", "[(0)]")
}

// TestVectorTable: rows of types that Go has no word for.
func TestVectorTable(t *testing.T) {
	halves := func(r *userfunc.Rows) {
		for _, i := range r.Sel {
			n := r.Args[0].Int64(int(i))
			if n < 0 {
				r.Fail(i, errors.New("below zero"))
				continue
			}
			r.Out.BeginList(int(i))
			rows := r.Out.Children[0]
			for k := range n {
				rows.Grow(1)
				rows.Children[0].SetDecimal(rows.Len-1, types.DecimalFromInt64(5*k))
			}
			r.Out.EndList()
		}
	}
	lib := library(t, userfunc.VectorTable("HALVES", userfunc.TableSignature{Params: []types.Type{types.NewBigInt()},
		Columns: []types.Field{{Name: "half", Type: types.NewDecimal(10, 1).NotNull()}}}, halves, userfunc.Options{}))
	want(t, call(t, lib, "HALVES", batchOf(ints(3, -1, -2, 1)), nil), "[(0.0), (0.5), (1.0)]", "NULL", "user_function at HALVES(a): HALVES: below zero", "[(0.0)]")
}

// TestTableMistakes: what NewSet refuses.
func TestTableMistakes(t *testing.T) {
	_, err := userfunc.NewSet(
		userfunc.Table1("FEW", []string{"a"}, pairs, userfunc.Options{}),
		userfunc.Table1("TWICE", []string{"a", "a"}, pairs, userfunc.Options{}),
		userfunc.Table1("NAMELESS", []string{"a", ""}, pairs, userfunc.Options{}),
		userfunc.Table1[string, userfunc.Emit1[string]]("NOTHING", []string{"a"}, nil, userfunc.Options{}),
		userfunc.VectorTable("EMPTY", userfunc.TableSignature{}, func(*userfunc.Rows) {}, userfunc.Options{}),
	)
	if err == nil {
		t.Fatal("no error")
	}
	want(t, strings.Split(err.Error(), "\n"),
		"user function FEW: 1 names for 2 columns",
		`user function TWICE: there are two columns "a"`,
		"user function NAMELESS: a column has no name",
		"user function NOTHING: the Go function is nil",
		"user function EMPTY: a table function needs columns")
}

// TestTableAllocations: a row allocates nothing but what the function itself does.
func TestTableAllocations(t *testing.T) {
	lib := library(t, userfunc.Table1("SERIES", []string{"i", "s"}, func(n int64, out *userfunc.Emit2[int64, string]) error {
		for i := range n {
			out.Row(i, "text")
		}
		return nil
	}, userfunc.Options{}))
	few, many := make([]int64, 10), make([]int64, 1000)
	for i := range many {
		many[i] = 5
	}
	copy(few, many)
	a, b := evaluation(t, lib, "SERIES", batchOf(ints(few...))), evaluation(t, lib, "SERIES", batchOf(ints(many...)))
	if x, y := testing.AllocsPerRun(20, a), testing.AllocsPerRun(20, b); y > x+2 {
		t.Errorf("%v allocations for 10 rows, %v for 1000", x, y)
	}
}

// evaluation is a call over a batch, to be repeated in the same memory.
func evaluation(t *testing.T, lib *fn.Library, name string, b *batch.Batch) func() {
	t.Helper()
	f, ok := lib.Lookup(name)
	if !ok {
		t.Fatalf("no function %s", name)
	}
	e, err := expr.NewCall(f, expr.NewColumn(b.Schema, 0))
	if err != nil {
		t.Fatal(err)
	}
	p, err := expr.Compile([]expr.Expr{e}, b.Schema, expr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, ctx := make([]batch.Vec, 1), expr.NewContext(nil, 1)
	return func() { p.Eval(ctx, b, nil, out) }
}
