package expr_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
	"github.com/millrace/millrace/runtime/types"
)

// The columns that random expressions are over: name, type, texts to draw
// from ("" is NULL, "!" an error).
var columnPool = []struct {
	name  string
	typ   types.Type
	texts []string
}{
	{"i", types.NewInt(), []string{"0", "1", "-3", "2147483647", "", "!", "7"}},
	{"j", types.NewBigInt(), []string{"0", "5", "-9223372036854775808", "9007199254740993", ""}},
	{"d", types.NewDouble(), []string{"0.5", "-1.25", "1e300", "NaN", "", "!"}},
	{"m", types.NewDecimal(10, 2), []string{"1.50", "-0.01", "99999999.99", ""}},
	{"w", types.NewDecimal(30, 6), []string{"1.5", "-123456789012345678901234.5", "", "!"}},
	{"s", types.NewString(), []string{"abc", "", "日本語", "12", "2024-05-01 10:11:12", "!", "{\"a\": [1, \"x\"]}"}},
	{"b", types.NewBoolean(), []string{"true", "false", "", "!"}},
	{"t", types.NewTimestamp(3), []string{"1969-12-31 23:59:59.999", "2024-05-01 08:00:00", ""}},
	{"l", types.NewTimestampLTZ(6), []string{"1969-12-31 23:59:59.999999", "2024-03-10 10:30:00", ""}},
}

var propertyExprs = []string{
	"i + 1", "i * j", "i / (i - 1)", "j % i", "m * m", "m / i", "w - m", "d + i", "-i", "ABS(j)", "ROUND(m, 1)", "ROUND(d, 1)", "FLOOR(w)",
	"i = j", "m < w", "s > 'abc'", "b AND i > 0", "b OR 1/i > 0", "NOT b", "i IS NULL", "s IS NOT NULL", "b IS TRUE", "i IS DISTINCT FROM j",
	"(i > 0 AND j > 0) OR d > 0", "1/i > 0 AND b AND 10/i > 1", "IN(i, 1, 7)", "IN(i, 1, NULL)", "IN(j, i, 5)", "BETWEEN(i, 0, j)",
	"CASE WHEN b THEN i WHEN i > 0 THEN 1/i ELSE j END", "IF(i = 0, 0, 100/i)", "COALESCE(s, CAST(i AS STRING))", "COALESCE(1/i, j)", "NULLIF(i, 1)",
	"CASE WHEN i > 0 THEN s || 'x' END", "IFNULL(m, w)", "GREATEST(i, j)", "LEAST(d, m)", "CAST(s AS INT)", "TRY_CAST(s AS INT)", "CAST(d AS INT)",
	"CAST(m AS STRING)", "CAST(w AS DECIMAL(10, 2))", "CAST(i AS BOOLEAN)", "CAST(s AS TIMESTAMP(3))", "CAST(l AS TIMESTAMP(3))", "CAST(t AS TIMESTAMP_LTZ(3))", "CAST(l AS STRING)",
	"CAST(t AS DATE)", "UPPER(s)", "SUBSTRING(s, i)", "SUBSTRING(s, 2, i)", "CHAR_LENGTH(s)", "s || '-' || CAST(i AS STRING)", "CONCAT_WS('-', s, CAST(b AS STRING))",
	"REPLACE(s, 'b', 'xx')", "LPAD(s, i, '*')", "SPLIT_INDEX(s, 'b', 0)", "s LIKE '%b%'", "REGEXP_EXTRACT(s, '[a-z]+')", "REVERSE(s)", "MD5(s)",
	"DATE_FORMAT(t, 'yyyy-MM-dd HH')", "DATE_FORMAT(l, 'yyyyMMddHH')", "EXTRACT('HOUR', l)", "FLOOR(l, 'DAY')", "CEIL(t, 'MONTH')", "TIMESTAMPADD('MONTH', i, t)", "TIMESTAMPDIFF('HOUR', t, l)",
	"t + INTERVAL '1' DAY", "TO_TIMESTAMP(s)", "JSON_VALUE(s, '$.a[1]')", "JSON_QUERY(s, '$.a')", "JSON_EXISTS(s, '$.a')", "s IS JSON", "JSON_STRING(ROW(i, s))",
	"ARRAY[i, 1/i][1]", "ARRAY[s, 'x'][i]", "CARDINALITY(ARRAY[1/i, 2])", "ARRAY_CONTAINS(ARRAY[i, 7], i)", "MAP['k', s, 'q', 'z']['k']", "ROW(i, s) = ROW(1, 'abc')",
	"MAP[s, i]", "ROW(i, ARRAY[d], MAP['a', m])", "UPPER(s) || UPPER(s)", "CASE WHEN b THEN UPPER(s) ELSE LOWER(UPPER(s)) END", "(i + 1) * (i + 1)", "FROM_BASE64(s)", "PARSE_URL(s, 'HOST')",
	"CAST(t AS TIMESTAMP(6))", "CAST(m AS DECIMAL(12, 2))", "CAST(CAST(t AS TIMESTAMP(6)) AS STRING)", "COALESCE(m, 1.5)", "STR_TO_MAP(s, 'b', 'a')", "TYPEOF(i)", "CURRENT_TIMESTAMP", "UNIX_TIMESTAMP(s)",
}

// randomColumn draws n rows of a column in a random encoding.
func randomColumn(r *rand.Rand, c int, n int) *batch.Vec {
	col := columnPool[c]
	pool := new(batch.Vec)
	pool.Reset(col.typ, 0)
	for _, text := range col.texts {
		switch {
		case text == "!":
			pool.AppendNull()
			pool.SetErr(pool.Len-1, batch.CodeTypeMismatch, col.name, "bad")
		case text == "" && !col.typ.IsString():
			pool.AppendNull()
		default:
			e, err := expr.NewCast(expr.Text(text), col.typ, false)
			if err != nil {
				panic(err)
			}
			p, err := expr.Compile([]expr.Expr{e}, &batch.Schema{}, expr.Options{})
			if err != nil {
				panic(err)
			}
			out := make([]batch.Vec, 1)
			p.Eval(expr.NewContext(nil, 0), exprtext.OneRow(), nil, out)
			pool.Append(&out[0], 0)
		}
	}
	pool.PadOffsets()
	codes := make([]int32, n)
	for i := range codes {
		codes[i] = int32(r.IntN(pool.Len))
	}
	dict := &batch.Vec{Type: col.typ, Enc: batch.Dict, Len: n, Codes: codes, Dict: pool}
	switch r.IntN(4) {
	case 0:
		v := new(batch.Vec)
		v.SetConst(dict, 0, n)
		return v
	case 1:
		return dict
	}
	return dict.Clone()
}

// TestVectorisedEqualsRowByRow evaluates every expression over random columns
// in random encodings, selections and batch sizes, with and without shared
// subexpressions, and against one-row batches of flat columns.
func TestVectorisedEqualsRowByRow(t *testing.T) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	schema := &batch.Schema{}
	for _, c := range columnPool {
		schema.Fields = append(schema.Fields, types.Field{Name: c.name, Type: c.typ})
	}
	exprs := make([]expr.Expr, len(propertyExprs))
	for i, src := range propertyExprs {
		if exprs[i], err = exprtext.Parse(lib, schema, src); err != nil {
			t.Fatal(err)
		}
	}
	all, err := expr.Compile(exprs, schema, expr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	unshared, err := expr.Compile(exprs, schema, expr.Options{NoSharing: true})
	if err != nil {
		t.Fatal(err)
	}
	zone, err := types.LoadZone("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	ctx, rowCtx := expr.NewContext(zone, 1), expr.NewContext(zone, 1)
	ctx.Now, rowCtx.Now = 1714566896789000, 1714566896789000
	singles := make([]*expr.Program, len(exprs))
	for i, e := range exprs {
		if singles[i], err = expr.Compile([]expr.Expr{e}, schema, expr.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	out, out2 := make([]batch.Vec, len(exprs)), make([]batch.Vec, len(exprs))
	for seed := uint64(1); seed <= 60; seed++ {
		r := rand.New(rand.NewPCG(seed, 99))
		n := 1 + r.IntN(40)
		in := &batch.Batch{Schema: schema, Len: n}
		for c := range columnPool {
			in.Cols = append(in.Cols, *randomColumn(r, c, n))
		}
		sel := batch.Sel(nil)
		rows := ctx.All(n)
		if r.IntN(2) == 0 {
			sel = batch.Sel{}
			for i := 0; i < n; i++ {
				if r.IntN(3) > 0 {
					sel = append(sel, int32(i))
				}
			}
			rows = sel
		}
		all.Eval(ctx, in, sel, out)
		unshared.Eval(ctx, in, sel, out2)
		for _, row := range rows {
			one := &batch.Batch{Schema: schema, Len: 1, Cols: make([]batch.Vec, len(in.Cols))}
			for c := range in.Cols {
				one.Cols[c].Take(&in.Cols[c], batch.Sel{row})
			}
			for i := range exprs {
				var want [1]batch.Vec
				singles[i].Eval(rowCtx, one, nil, want[:])
				w := describe(rowCtx, &want[0], 0)
				if got := describe(ctx, &out[i], int(row)); got != w {
					t.Fatalf("seed %d row %d of %d: %s = %s in the batch, %s alone", seed, row, n, propertyExprs[i], got, w)
				}
				if got := describe(ctx, &out2[i], int(row)); got != w {
					t.Fatalf("seed %d row %d of %d: %s = %s unshared, %s alone", seed, row, n, propertyExprs[i], got, w)
				}
			}
		}
		for i := range out {
			checkVec(t, &out[i], n, propertyExprs[i])
		}
	}
}

// describe shows a value with its error in full.
func describe(ctx *expr.Context, v *batch.Vec, row int) string {
	if e := v.DeepErr(row); e != nil {
		return fmt.Sprintf("error %s %s %s", e.Code, e.Where, e.Message)
	}
	return exprtext.Show(ctx, v, row)
}

// checkVec verifies the invariants of a result.
func checkVec(t *testing.T, v *batch.Vec, n int, what string) {
	t.Helper()
	if v.Len != n {
		t.Fatalf("%s: length %d of %d", what, v.Len, n)
	}
	for i := 1; i < len(v.Offsets); i++ {
		if v.Offsets[i] < v.Offsets[i-1] {
			t.Fatalf("%s: offsets fall at %d", what, i)
		}
	}
	if v.Enc == batch.Flat && len(v.Offsets) > 0 && v.Type.Physical() == types.PhysBytes && len(v.Offsets) != n+1 {
		t.Fatalf("%s: %d offsets for %d rows", what, len(v.Offsets), n)
	}
	for i := 1; i < len(v.Errs); i++ {
		if v.Errs[i].Row <= v.Errs[i-1].Row {
			t.Fatalf("%s: errors out of order", what)
		}
	}
}

// reference evaluates the kernels of arithmetic and comparison once more, the
// slow way, in float64 and int64 of Go.
func TestArithmeticAgainstGo(t *testing.T) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	schema := &batch.Schema{Fields: []types.Field{{Name: "a", Type: types.NewBigInt()}, {Name: "b", Type: types.NewBigInt()}}}
	var exprs []expr.Expr
	for _, src := range []string{"a + b", "a - b", "a * b", "a / b", "a % b", "a < b", "CAST(a AS DOUBLE) / CAST(b AS DOUBLE)"} {
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
	const n = 2000
	in := &batch.Batch{Schema: schema, Len: n, Cols: make([]batch.Vec, 2)}
	for c := range in.Cols {
		in.Cols[c].Reset(types.NewBigInt(), n)
		for i := range in.Cols[c].I64 {
			in.Cols[c].I64[i] = []int64{r.Int64() >> (r.IntN(63)), -(r.Int64() >> (r.IntN(63))), 0, math.MinInt64, math.MaxInt64}[r.IntN(5)]
		}
	}
	out := make([]batch.Vec, len(exprs))
	p.Eval(expr.NewContext(nil, 0), in, nil, out)
	for i := 0; i < n; i++ {
		a, b := in.Cols[0].I64[i], in.Cols[1].I64[i]
		want := goArithmetic(a, b)
		for k := range out {
			got := exprtext.Show(expr.NewContext(nil, 0), &out[k], i)
			if want[k] != "" && got != want[k] {
				t.Fatalf("%s with a=%d b=%d = %s, want %s", exprs[k], a, b, got, want[k])
			}
		}
	}
}

func goArithmetic(a, b int64) [7]string {
	sum, diff := a+b, a-b
	w := [7]string{fmt.Sprint(sum), fmt.Sprint(diff)}
	if (b > 0 && sum < a) || (b < 0 && sum > a) {
		w[0] = "error:overflow"
	}
	if (b > 0 && diff > a) || (b < 0 && diff < a) {
		w[1] = "error:overflow"
	}
	x, _ := types.DecimalFromInt64(a).Mul(types.DecimalFromInt64(b))
	if p, ok := x.Int64(); ok {
		w[2] = fmt.Sprint(p)
	} else {
		w[2] = "error:overflow"
	}
	switch {
	case b == 0:
		w[3], w[4] = "error:division_by_zero", "error:division_by_zero"
	case b == -1 && a == math.MinInt64:
		w[3], w[4] = "error:overflow", "0"
	default:
		w[3], w[4] = fmt.Sprint(a/b), fmt.Sprint(a%b)
	}
	w[5] = map[bool]string{true: "TRUE", false: "FALSE"}[a < b]
	w[6] = string(types.AppendFloat(nil, float64(a)/float64(b), 64))
	return w
}
