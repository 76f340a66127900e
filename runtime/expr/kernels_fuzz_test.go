package expr_test

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
	"github.com/millrace/millrace/runtime/types"
)

// absent and broken are the texts of a NULL and of an error.
const absent, broken = "<null>", "<error>"

// referenceColumns are what random expressions are over, with their values.
var referenceColumns = []struct {
	name  string
	typ   types.Type
	texts []string
}{
	{"i", types.NewInt(), []string{"0", "1", "-3", "7", "2147483647", "-2147483648", "65536", absent, broken}},
	{"h", types.NewSmallInt(), []string{"0", "-1", "32767", "-32768", "12", absent}},
	{"j", types.NewBigInt(), []string{"5", "0", "-9223372036854775808", "9223372036854775807", "3037000500", "-1", absent}},
	{"m", types.NewDecimal(10, 2), []string{"1.50", "-0.01", "99999999.99", "-99999999.99", "0.00", absent, broken}},
	{"w", types.NewDecimal(30, 6), []string{"1.500000", "-123456789012345678901234.500001", "999999999999999999999999.999999", "0.000001", absent}},
	{"d", types.NewDouble(), []string{"0.5", "-1.25", "0", "1e300", "NaN", "Infinity", "3", absent, broken}},
	{"s", types.NewString(), []string{"abc", "", "日本語", "12", " -7.5 ", "a%b", "1e2", "AbÉ", absent, broken}},
	{"u", types.NewString(), []string{"%b%", "a", "_本_", "a\\%b", "9223372036854775808", "0.005", "日", absent}},
	{"p", types.NewBoolean(), []string{"true", "false", absent, broken}},
	{"q", types.NewBoolean(), []string{"false", "true", absent}},
	{"t", types.NewTimestamp(3), []string{"2024-02-29 23:59:59.999", "1969-12-31 23:59:59.999", "2024-05-01 08:00:00.000", "1900-01-31 00:00:00.001", "2020-12-31 12:30:00.000", absent}},
}

// kernels is what all inputs of the fuzzer share.
type kernels struct {
	lib    *fn.Library
	schema *batch.Schema
	pools  []batch.Vec
	values [][]scalar
}

func newKernels(t testing.TB) *kernels {
	t.Helper()
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k := &kernels{lib: lib, schema: &batch.Schema{}, pools: make([]batch.Vec, len(referenceColumns)), values: make([][]scalar, len(referenceColumns))}
	for c, col := range referenceColumns {
		k.schema.Fields = append(k.schema.Fields, types.Field{Name: col.name, Type: col.typ})
		pool := &k.pools[c]
		pool.Reset(col.typ, 0)
		for _, s := range col.texts {
			k.values[c] = append(k.values[c], referenceValue(t, col.typ, s))
			if s == absent || s == broken {
				pool.AppendNull()
				if s == broken {
					pool.SetErr(pool.Len-1, batch.CodeTypeMismatch, col.name, "bad")
				}
				continue
			}
			e, err := expr.NewCast(expr.Text(s), col.typ, false)
			if err != nil {
				t.Fatal(err)
			}
			p, err := expr.Compile([]expr.Expr{e}, &batch.Schema{}, expr.Options{})
			if err != nil {
				t.Fatal(err)
			}
			out := make([]batch.Vec, 1)
			p.Eval(expr.NewContext(nil, 0), exprtext.OneRow(), nil, out)
			pool.Append(&out[0], 0)
		}
		pool.PadOffsets()
	}
	return k
}

// referenceValue reads a value of a column with the standard library.
func referenceValue(t testing.TB, typ types.Type, s string) scalar {
	t.Helper()
	switch {
	case s == absent:
		return null
	case s == broken:
		return failure
	case typ.Kind == types.Boolean:
		return boolean(s == "true")
	case typ.IsString():
		return text(s)
	case typ.Kind == types.Timestamp:
		at, err := time.Parse("2006-01-02 15:04:05.000", s)
		if err != nil {
			t.Fatal(err)
		}
		return scalar{t: at}
	case typ.Kind == types.Double:
		f, err := types.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return scalar{f: f}
	}
	n, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatal(s)
	}
	return number(n)
}

// show is a value as exprtext.Show has it; all errors are one.
func show(v scalar, typ types.Type) string {
	switch {
	case v.err:
		return "error"
	case v.null:
		return "NULL"
	case typ.Kind == types.Boolean:
		return map[bool]string{true: "TRUE", false: "FALSE"}[v.b]
	case typ.IsString():
		return v.s
	case typ.Kind == types.Timestamp:
		return v.t.Format("2006-01-02 15:04:05.000")
	case typ.Kind == types.Double:
		return string(types.AppendFloat(nil, v.f, 64))
	}
	return v.n.FloatString(typ.Scale)
}

// check draws an expression and rows out of data, and compares.
func (k *kernels) check(t testing.TB, data []byte) {
	t.Helper()
	d := &drawer{choices{data}}
	rows := 1 + d.of(12)
	codes := make([][]int32, len(referenceColumns))
	in := &batch.Batch{Schema: k.schema, Len: rows}
	for c := range referenceColumns {
		codes[c] = make([]int32, rows)
		encoding := d.of(3)
		for r := range codes[c] {
			if r > 0 && encoding == 2 {
				codes[c][r] = codes[c][0]
				continue
			}
			codes[c][r] = int32(d.of(k.pools[c].Len))
		}
		v := &batch.Vec{Type: referenceColumns[c].typ, Enc: batch.Dict, Len: rows, Codes: codes[c], Dict: &k.pools[c]}
		switch encoding {
		case 0:
			v = v.Clone()
		case 2:
			flat := new(batch.Vec)
			flat.SetConst(v, 0, rows)
			v = flat
		}
		in.Cols = append(in.Cols, *v)
	}
	want := d.any(1 + d.of(4))
	e, err := exprtext.Parse(k.lib, k.schema, want.sql)
	if err != nil {
		t.Fatalf("%s: %v", want.sql, err)
	}
	if !e.Type().EqualIgnoringNull(want.typ) && !(e.Type().IsString() && want.typ.IsString()) {
		t.Fatalf("%s is %s, want %s", want.sql, e.Type(), want.typ)
	}
	p, err := expr.Compile([]expr.Expr{e}, k.schema, expr.Options{})
	if err != nil {
		t.Fatalf("%s: %v", want.sql, err)
	}
	ctx := expr.NewContext(nil, 1)
	out := make([]batch.Vec, 1)
	p.Eval(ctx, in, nil, out)
	row := make([]scalar, len(referenceColumns))
	for r := range rows {
		var with []string
		for c := range row {
			row[c] = k.values[c][codes[c][r]]
			with = append(with, referenceColumns[c].name+"="+referenceColumns[c].texts[codes[c][r]])
		}
		got := exprtext.Show(ctx, &out[0], r)
		if strings.HasPrefix(got, "error:") && out[0].Err(r) != nil {
			got = "error"
		}
		if w := show(want.eval(row), want.typ); got != w {
			t.Fatalf("%s\n= %s, want %s\nwith %s", want.sql, got, w, strings.Join(with, " "))
		}
	}
}

// FuzzKernels: expressions and rows made out of bytes give what the reference
// gives, one row at a time.
func FuzzKernels(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		f.Add(randomBytes(r))
	}
	k := newKernels(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 4096 {
			k.check(t, data)
		}
	})
}

// TestKernelsAgainstReference is FuzzKernels by chance, for each test run.
func TestKernelsAgainstReference(t *testing.T) {
	k := newKernels(t)
	r := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		k.check(t, randomBytes(r))
	}
}

func randomBytes(r *rand.Rand) []byte {
	data := make([]byte, 40+r.IntN(160))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}
