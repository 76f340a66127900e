package fn_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
	"github.com/millrace/millrace/runtime/types"
)

// column reads texts as values of a type.
func column(t testing.TB, typ types.Type, rows []string) *batch.Vec {
	t.Helper()
	v := new(batch.Vec)
	v.Reset(typ, 0)
	for _, s := range rows {
		if s == "NULL" {
			v.AppendNull()
			continue
		}
		e, err := expr.NewCast(expr.Text(s), typ, false)
		if err != nil {
			t.Fatal(err)
		}
		p, err := expr.Compile([]expr.Expr{e}, &batch.Schema{}, expr.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out := make([]batch.Vec, 1)
		p.Eval(expr.NewContext(nil, 0), exprtext.OneRow(), nil, out)
		if e := out[0].Err(0); e != nil {
			t.Fatalf("%s: %s", s, e.Message)
		}
		v.Append(&out[0], 0)
	}
	v.PadOffsets()
	return v
}

// orderColumn numbers rows.
func orderColumn(keys []int) *batch.Vec {
	v := new(batch.Vec)
	v.Reset(types.NewBytes(), len(keys))
	for i, k := range keys {
		v.PutBytes(i, batch.AppendOrderInt(nil, int64(k)))
	}
	return v
}

// bindAgg binds "NAME([DISTINCT] x [, 'literal'])", or NAME(*).
func bindAgg(t testing.TB, lib *fn.Library, sql string, typ types.Type) (fn.BoundAggregate, bool) {
	t.Helper()
	name, rest, _ := strings.Cut(sql, "(")
	a, ok := lib.Aggregate(name)
	if !ok {
		t.Fatalf("no aggregate %s", name)
	}
	rest = strings.TrimSuffix(rest, ")")
	var args []fn.Arg
	opts := fn.AggOptions{}
	star := rest == "*"
	if !star {
		if r, ok := strings.CutPrefix(rest, "DISTINCT "); ok {
			opts.Distinct, rest = true, r
		}
		args = append(args, fn.Arg{Type: typ})
		if _, sep, ok := strings.Cut(rest, ", "); ok {
			args = append(args, expr.ArgsOf(expr.Text(strings.Trim(sep, "'")))...)
		}
	}
	b, err := a.Bind(args, opts)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return b, star
}

func TestEveryAggregateExample(t *testing.T) {
	lib := library(t)
	for _, a := range lib.Aggregates() {
		if len(a.Examples) == 0 {
			t.Errorf("%s has no example", a.Name)
		}
		for _, ex := range a.Examples {
			typ, err := exprtext.ParseType(ex.Type)
			if err != nil {
				t.Fatal(err)
			}
			if got := aggregateOnce(t, lib, ex.SQL, typ, ex.Rows); got != ex.Want {
				t.Errorf("%s over %s %v = %s, want %s", ex.SQL, ex.Type, ex.Rows, got, ex.Want)
			}
		}
	}
}

func aggregateOnce(t testing.TB, lib *fn.Library, sql string, typ types.Type, rows []string) string {
	b, star := bindAgg(t, lib, sql, typ)
	acc := b.New()
	acc.Resize(1)
	var args []batch.Vec
	if !star {
		args = []batch.Vec{*column(t, typ, rows)}
	}
	keys := make([]int, len(rows))
	for i := range keys {
		keys[i] = i
	}
	acc.Update(make([]int32, len(rows)), args, orderColumn(keys), nil)
	var out batch.Vec
	acc.Emit([]int32{0}, sql, &out)
	return exprtext.Show(expr.NewContext(nil, 0), &out, 0)
}

func TestAggregateOverflowAndEmptyInput(t *testing.T) {
	lib := library(t)
	big, d38 := types.NewBigInt(), types.NewDecimal(38, 0)
	nines := strings.Repeat("9", 38)
	for _, c := range []struct {
		sql  string
		typ  types.Type
		rows []string
		want string
	}{
		{"SUM(x)", types.NewInt(), []string{"2147483647", "2147483647"}, "4294967294"},
		{"SUM(x)", big, []string{"9223372036854775807", "1"}, "error:overflow"},
		{"SUM(x)", big, []string{"9223372036854775807", "1", "-1"}, "9223372036854775807"},
		{"AVG(x)", big, []string{"9223372036854775807", "9223372036854775807"}, "9223372036854775807"},
		{"AVG(x)", types.NewInt(), []string{"-3", "-4"}, "-3"},
		{"SUM(x)", d38, []string{nines, "1"}, "error:overflow"},
		{"SUM(x)", d38, []string{nines, nines, "-" + nines}, nines},
		{"AVG(x)", types.NewDecimal(10, 2), []string{"0.01", "0.02", "0.02"}, "0.016667"},
		{"SUM(x)", types.NewDouble(), []string{"0.1", "0.2", "0.3"}, "0.6"},
		{"SUM(x)", types.NewDouble(), []string{"1e308", "1e308", "-1e308"}, "1.0E308"},
		{"SUM(x)", types.NewDouble(), []string{"NaN", "1"}, "NaN"},
		{"SUM(x)", types.NewDouble(), []string{"Infinity", "-Infinity"}, "NaN"},
		{"SUM(x)", types.NewDouble(), []string{"-0.0", "-0.0"}, "-0.0"},
		{"SUM(x)", types.NewDouble(), []string{"4.9e-324", "4.9e-324"}, "1.0E-323"},
		{"SUM(x)", types.NewFloat(), []string{"16777216", "1", "1"}, "1.6777218E7"},
		{"MAX(x)", types.NewDouble(), []string{"1", "NaN"}, "NaN"},
		{"MIN(x)", types.NewDouble(), []string{"NaN", "-1.5"}, "-1.5"},
		{"MIN(x)", types.NewDate(), []string{"2024-01-01", "1969-12-31"}, "1969-12-31"},
		{"MIN(x)", d38, []string{"5", "-" + nines}, "-" + nines},
		{"COUNT(x)", big, nil, "0"}, {"SUM(x)", big, nil, "NULL"}, {"AVG(x)", big, nil, "NULL"}, {"MAX(x)", types.NewString(), nil, "NULL"},
		{"LISTAGG(x)", types.NewString(), nil, "NULL"}, {"ARRAY_AGG(x)", big, nil, "NULL"}, {"LAST_VALUE(x)", big, []string{"NULL"}, "NULL"},
		{"COUNT(DISTINCT x)", types.NewDouble(), []string{"0.0", "-0.0", "NaN", "NaN"}, "2"},
	} {
		if got := aggregateOnce(t, lib, c.sql, c.typ, c.rows); got != c.want {
			t.Errorf("%s over %v = %s, want %s", c.sql, c.rows, got, c.want)
		}
	}
}

// TestAggregatesDoNotDependOnOrder folds the same rows in many orders, splits
// and encodings; results and serialised states must be the same bytes.
func TestAggregatesDoNotDependOnOrder(t *testing.T) {
	lib := library(t)
	texts := map[types.Kind]func(r *rand.Rand) string{
		types.BigInt: func(r *rand.Rand) string { return []string{"1", "-7", "9223372036854775807", "NULL", "3"}[r.IntN(5)] },
		types.Double: func(r *rand.Rand) string {
			return []string{"0.1", "1e300", "-1e300", "1e-300", "NULL", "3.5", "-0.1", "-4294967296", "1e16"}[r.IntN(9)]
		},
		types.Varchar: func(r *rand.Rand) string { return []string{"a", "b", "", "日本", "NULL"}[r.IntN(5)] },
		types.Decimal: func(r *rand.Rand) string { return []string{"1.25", "-99999999.99", "NULL", "0.01"}[r.IntN(4)] },
	}
	for seed := uint64(1); seed <= 40; seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		for _, c := range []struct {
			sql string
			typ types.Type
		}{
			{"SUM(x)", types.NewBigInt()}, {"AVG(x)", types.NewBigInt()}, {"COUNT(x)", types.NewBigInt()}, {"COUNT(DISTINCT x)", types.NewDouble()},
			{"SUM(x)", types.NewDouble()}, {"AVG(x)", types.NewDouble()}, {"SUM(x)", types.NewDecimal(10, 2)}, {"AVG(x)", types.NewDecimal(20, 2)},
			{"MIN(x)", types.NewDouble()}, {"MAX(x)", types.NewString()}, {"MIN(x)", types.NewDecimal(20, 2)}, {"FIRST_VALUE(x)", types.NewString()},
			{"LAST_VALUE(x)", types.NewDouble()}, {"LISTAGG(x)", types.NewString()}, {"LISTAGG(DISTINCT x)", types.NewString()}, {"ARRAY_AGG(x)", types.NewBigInt()},
			{"SUM(DISTINCT x)", types.NewBigInt()}, {"VAR_POP(x)", types.NewDouble()}, {"STDDEV_SAMP(x)", types.NewDouble()}, {"VAR_SAMP(DISTINCT x)", types.NewDouble()},
		} {
			n := 1 + r.IntN(30)
			rows, keys, groups := make([]string, n), make([]int, n), make([]int32, n)
			for i := range rows {
				rows[i], keys[i], groups[i] = texts[c.typ.Kind](r), r.IntN(n), int32(r.IntN(3))
			}
			var want [3][]byte
			for attempt := 0; attempt < 4; attempt++ {
				perm := r.Perm(n)
				b, _ := bindAgg(t, lib, c.sql, c.typ)
				acc := foldShuffled(t, b, c.typ, rows, keys, groups, perm, r)
				var out batch.Vec
				acc.Emit([]int32{0, 1, 2}, "x", &out)
				for g := range want {
					got := batch.AppendExact(acc.AppendState(nil, g), &out, g)
					if attempt == 0 {
						want[g] = got
					} else if !bytes.Equal(want[g], got) {
						t.Fatalf("seed %d: %s over %v keys %v groups %v: order %v changes group %d", seed, c.sql, rows, keys, groups, perm, g)
					}
				}
			}
		}
	}
}

// foldShuffled folds rows in a permuted order through several accumulators
// that are merged, one of them by its serialised state.
func foldShuffled(t *testing.T, b fn.BoundAggregate, typ types.Type, rows []string, keys []int, groups []int32, perm []int, r *rand.Rand) fn.Accumulator {
	t.Helper()
	cut := r.IntN(len(perm) + 1)
	parts := [][]int{perm[:cut], perm[cut:]}
	total := b.New()
	total.Resize(3)
	for k, part := range parts {
		acc := b.New()
		acc.Resize(3)
		var texts []string
		var ks []int
		var gs []int32
		for _, i := range part {
			texts, ks, gs = append(texts, rows[i]), append(ks, keys[i]), append(gs, groups[i])
		}
		col := column(t, typ, texts)
		if r.IntN(2) == 0 {
			col = asDict(col)
		}
		acc.Update(gs, []batch.Vec{*col}, orderColumn(ks), nil)
		if k == 0 {
			total.Merge(acc, []int32{0, 1, 2})
			continue
		}
		for g := 0; g < 3; g++ {
			if err := total.MergeState(g, acc.AppendState(nil, g)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return total
}

// asDict gives the same rows through a dictionary in reverse order.
func asDict(v *batch.Vec) *batch.Vec {
	n := v.Len
	rev := make(batch.Sel, n)
	codes := make([]int32, n)
	for i := range rev {
		rev[i], codes[i] = int32(n-1-i), int32(n-1-i)
	}
	dict := new(batch.Vec)
	dict.Take(v, rev)
	return &batch.Vec{Type: v.Type, Enc: batch.Dict, Len: n, Codes: codes, Dict: dict}
}
