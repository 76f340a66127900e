//go:build services

package oracle_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest/oracle"
	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func field(name string, t types.Type) types.Field { return types.Field{Name: name, Type: t} }

// everyType is a column of each type that Parquet holds, nested ones with clock
// values inside.
func everyType() []types.Field {
	str, ts := types.NewString(), types.NewTimestamp(6)
	row := types.NewRow(field("id", types.NewBigInt()), field("at", ts), field("tags", types.NewArray(str)))
	list := []types.Type{
		types.NewBoolean(), types.NewTinyInt(), types.NewSmallInt(), types.NewInt(), types.NewBigInt(), types.NewFloat(), types.NewDouble(),
		types.NewDecimal(1, 0), types.NewDecimal(9, 2), types.NewDecimal(10, 10), types.NewDecimal(18, 4), types.NewDecimal(19, 0), types.NewDecimal(38, 10),
		types.NewChar(8), types.NewVarchar(20), str, types.NewBinary(4), types.NewBytes(),
		types.NewDate(), types.NewTime(3), types.NewTimestamp(3), ts, types.NewTimestamp(9),
		types.NewTimestampLTZ(3), types.NewTimestampLTZ(6), types.NewTimestampLTZ(9),
		types.NewArray(types.NewInt()), types.NewArray(types.NewArray(str)), types.NewArray(types.NewDecimal(20, 3)), types.NewArray(types.NewDate()),
		types.NewMap(str.NotNull(), types.NewBigInt()), types.NewMap(str.NotNull(), types.NewArray(types.NewTimestampLTZ(6))),
		row, types.NewArray(row), types.NewRow(field("inner", types.NewRow(field("b", types.NewBoolean()), field("d", types.NewDouble())))),
		types.NewBigInt().NotNull(),
	}
	var out []types.Field
	for i, t := range list {
		out = append(out, field(fmt.Sprintf("c%02d", i), t))
	}
	return out
}

// maker appends random values and gives each as text; see show.
type maker struct {
	*rand.Rand
	int96 bool // only times that INT96 readers hold
}

var texts = []string{"", "a", "millrace", "数据流", "émigré", "😀", "a'b\"c\\d", "tab\tnew\nline", "dt=2024-05-01/hr=08"}

const nullText = "NULL"

func (m *maker) value(v *batch.Vec, t types.Type) string {
	if t.Nullable && m.IntN(8) == 0 {
		format.AppendNull(v)
		return nullText
	}
	switch t.Kind {
	case types.Boolean:
		x := m.IntN(2) == 1
		format.AppendBool(v, x)
		return strconv.FormatBool(x)
	case types.TinyInt:
		x := int8(m.integer(8))
		format.AppendInt8(v, x)
		return fmt.Sprint(x)
	case types.SmallInt:
		x := int16(m.integer(16))
		format.AppendInt16(v, x)
		return fmt.Sprint(x)
	case types.Int:
		x := int32(m.integer(32))
		format.AppendInt32(v, x)
		return fmt.Sprint(x)
	case types.BigInt:
		x := m.integer(64)
		format.AppendInt64(v, x)
		return fmt.Sprint(x)
	case types.Float:
		x := []float32{0, float32(math.Copysign(0, -1)), 1.5, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), float32(m.NormFloat64())}[m.IntN(9)]
		format.AppendFloat32(v, x)
		return floatText(float64(x))
	case types.Double:
		x := []float64{0, math.Copysign(0, -1), 0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(), m.NormFloat64()}[m.IntN(9)]
		format.AppendFloat64(v, x)
		return floatText(x)
	case types.Decimal:
		return m.decimal(v, t)
	case types.Char, types.Varchar:
		x := texts[m.IntN(len(texts))]
		if t.Kind == types.Char {
			x = string([]rune(x)[:min(len([]rune(x)), t.Length)])
		}
		format.AppendString(v, x)
		return strconv.Quote(x)
	case types.Binary, types.Varbinary:
		n := m.IntN(9)
		if t.Kind == types.Binary {
			n = t.Length
		}
		x := make([]byte, n)
		for i := range x {
			x[i] = byte(m.Uint32())
		}
		format.AppendBytes(v, x)
		return "0x" + hex.EncodeToString(x)
	case types.Date:
		x := int32(m.between(-719162, 2932896)) // years 1 to 9999
		format.AppendInt32(v, x)
		return fmt.Sprint(x)
	case types.Time:
		x := int32(m.between(0, 86_399_999))
		format.AppendInt32(v, x)
		return fmt.Sprint(x)
	case types.Timestamp, types.TimestampLTZ:
		from, to := int64(-62_135_596_800), int64(253_402_300_799) // years 1 to 9999
		if t.Precision > 6 || m.int96 {
			from, to = -9_200_000_000, 9_200_000_000
		}
		x := m.between(from, to-1)*t.UnitsPerSecond() + m.between(0, t.UnitsPerSecond()-1)
		format.AppendInt64(v, x)
		return fmt.Sprint(x)
	}
	return m.nested(v, t)
}

func (m *maker) nested(v *batch.Vec, t types.Type) string {
	var parts []string
	switch t.Kind {
	case types.Array:
		for range m.IntN(4) {
			parts = append(parts, m.value(v.Children[0], *t.Elem))
		}
		format.CloseList(v)
		return "[" + strings.Join(parts, ",") + "]"
	case types.Map:
		for i := range m.IntN(4) {
			key := fmt.Sprintf("k%d", i)
			format.AppendString(v.Children[0], key)
			parts = append(parts, strconv.Quote(key)+"="+m.value(v.Children[1], *t.Elem))
		}
		format.CloseList(v)
		return "{" + strings.Join(parts, ",") + "}"
	}
	format.BeginRow(v)
	for i, f := range t.Fields {
		parts = append(parts, m.value(v.Children[i], f.Type))
	}
	v.Len++
	return "(" + strings.Join(parts, ",") + ")"
}

// integer favors the edges.
func (m *maker) integer(bits int) int64 {
	top := int64(1)<<(bits-1) - 1
	return []int64{0, 1, -1, top, -top - 1, m.between(-100, 100), int64(m.Uint64()) >> (64 - bits)}[m.IntN(7)]
}

func (m *maker) between(from, to int64) int64 { return from + m.Int64N(to-from+1) }

func (m *maker) decimal(v *batch.Vec, t types.Type) string {
	digits := make([]byte, 1+m.IntN(t.Precision))
	for i := range digits {
		digits[i] = byte('0' + m.IntN(10))
	}
	if m.IntN(6) == 0 {
		digits = []byte(strings.Repeat("9", t.Precision))
	}
	x, _ := new(big.Int).SetString(string(digits), 10)
	if m.IntN(2) == 0 {
		x.Neg(x)
	}
	if t.Physical() == types.PhysInt64 {
		format.AppendInt64(v, x.Int64())
	} else {
		two := new(big.Int).And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)))
		hi := new(big.Int).Rsh(two, 64).Uint64()
		lo := new(big.Int).And(two, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
		format.AppendDecimal128(v, types.Decimal128{Lo: lo, Hi: int64(hi)})
	}
	s := new(big.Int).Abs(x).String()
	if t.Scale > 0 {
		for len(s) <= t.Scale {
			s = "0" + s
		}
		s = s[:len(s)-t.Scale] + "." + s[len(s)-t.Scale:]
	}
	if x.Sign() < 0 {
		s = "-" + s
	}
	return s
}

func floatText(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// made is a file and what is in it.
type made struct {
	path   string
	fields []types.Field
	want   [][]string // by row
}

func write(t *testing.T, name string, seed uint64, rows int, o parquetfmt.Options) *made {
	t.Helper()
	f := &made{path: filepath.Join(t.TempDir(), name+".parquet"), fields: everyType()}
	if o.Int96Timestamps {
		f.fields = slices.DeleteFunc(f.fields, func(x types.Field) bool { return x.Type.IsNested() })
	}
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 3)), int96: o.Int96Timestamps}
	file, err := os.Create(f.path)
	check(t, err)
	w, err := parquetfmt.NewWriter(file, f.fields, o)
	check(t, err)
	for len(f.want) < rows {
		n := min(400, rows-len(f.want))
		cols := make([]batch.Vec, len(f.fields))
		for i := range cols {
			cols[i].Reset(f.fields[i].Type, 0)
		}
		for range n {
			var row []string
			for i := range cols {
				row = append(row, m.value(&cols[i], f.fields[i].Type))
			}
			f.want = append(f.want, row)
		}
		for i := range cols {
			format.Seal(&cols[i])
		}
		check(t, w.Write(cols, nil))
	}
	_, err = w.Close()
	check(t, err)
	check(t, file.Close())
	return f
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// show is a reader's value as text, by our type.
func show(t *testing.T, v any, typ types.Type) string {
	t.Helper()
	if v == nil {
		return nullText
	}
	switch x := v.(type) {
	case bool:
		return strconv.FormatBool(x)
	case json.Number:
		if typ.Kind != types.Float && typ.Kind != types.Double {
			return x.String()
		}
		f, err := strconv.ParseFloat(x.String(), 64)
		check(t, err)
		return floatText(f)
	case string:
		switch typ.Kind {
		case types.Float, types.Double:
			f, err := strconv.ParseFloat(x, 64)
			check(t, err)
			return floatText(f)
		case types.Char, types.Varchar:
			return strconv.Quote(x)
		}
		return x
	case map[string]any: // a row
		var parts []string
		for _, f := range typ.Fields {
			parts = append(parts, show(t, x[f.Name], f.Type))
		}
		return "(" + strings.Join(parts, ",") + ")"
	case []any:
		var parts []string
		for _, e := range x {
			if typ.Kind == types.Map {
				pair, ok := e.([]any) // pyarrow
				if o, is := e.(map[string]any); is {
					pair, ok = []any{o["key"], o["value"]}, true // map_entries
				}
				if !ok || len(pair) != 2 {
					t.Fatalf("a map entry is %v", e)
				}
				parts = append(parts, show(t, pair[0], types.NewString())+"="+show(t, pair[1], *typ.Elem))
			} else {
				parts = append(parts, show(t, e, *typ.Elem))
			}
		}
		if typ.Kind == types.Map {
			return "{" + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	t.Fatalf("a value of type %T", v)
	return ""
}

// stored is the SQL that gives a value as the integer that is stored, since
// clock values lose digits on their way out.
func stored(x string, t types.Type, depth int) string {
	v := fmt.Sprintf("x%d", depth)
	switch t.Kind {
	case types.Date:
		return "(" + x + " - DATE '1970-01-01')"
	case types.Time:
		return fmt.Sprintf("((hour(%s) * 60 + minute(%s)) * 60000 + microsecond(%s) // 1000)", x, x, x)
	case types.Timestamp, types.TimestampLTZ:
		if t.Precision > 6 {
			return "epoch_ns(" + x + ")"
		}
		return "epoch_us(" + x + ")"
	case types.Array:
		return fmt.Sprintf("list_transform(%s, lambda %s: %s)", x, v, stored(v, *t.Elem, depth+1))
	case types.Map:
		return fmt.Sprintf("list_transform(map_entries(%s), lambda %s: struct_pack(key := %s.key, value := %s))", x, v, v, stored(v+".value", *t.Elem, depth+1))
	case types.Row:
		var fs []string
		for _, f := range t.Fields {
			fs = append(fs, f.Name+" := "+stored(x+"."+f.Name, f.Type, depth))
		}
		return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN struct_pack(%s) END", x, strings.Join(fs, ", "))
	}
	return x
}

func (f *made) compare(t *testing.T, reader string, got *oracle.Table) {
	t.Helper()
	if len(got.Rows) != len(f.want) || len(got.Columns) != len(f.fields) {
		t.Fatalf("%s: %d rows of %d columns, want %d of %d", reader, len(got.Rows), len(got.Columns), len(f.want), len(f.fields))
	}
	for c := range f.fields {
		bad := 0
		for i := range f.want {
			if have := show(t, got.Rows[i][c], f.fields[c].Type); have != f.want[i][c] {
				if bad++; bad <= 3 {
					t.Errorf("%s: %s (%s, as %s), row %d: %s, want %s", reader, f.fields[c].Name, f.fields[c].Type, got.Types[c], i, have, f.want[i][c])
				}
			}
		}
	}
}

// TestParquetIsReadByOthers writes every type under every kind of option and
// compares what DuckDB and pyarrow see, value by value.
func TestParquetIsReadByOthers(t *testing.T) {
	const seed = 20240501
	for name, o := range map[string]parquetfmt.Options{
		"snappy":           {},
		"zstd":             {Compression: parquetfmt.Zstd},
		"gzip":             {Compression: parquetfmt.Gzip},
		"plain":            {Compression: parquetfmt.None, DictionaryBytes: -1},
		"small-pages":      {PageBytes: 512, RowGroupBytes: 64 << 10, DictionaryBytes: 1 << 10},
		"decimal-integers": {DecimalIntegers: true},
		"int96":            {Int96Timestamps: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := write(t, name, seed, 2500, o)
			var exprs []string
			for _, x := range f.fields {
				exprs = append(exprs, stored(x.Name, x.Type, 0)+" AS "+x.Name)
			}
			duck, arrow := f, f
			if o.Int96Timestamps {
				// DuckDB keeps the microseconds, pyarrow gives nanoseconds
				// whatever was declared.
				duck = f.times(func(ns int64, precision int) int64 {
					if precision <= 6 {
						return floor(ns, 1000)
					}
					return floor(ns, 1000) * 1000
				})
				arrow = f.times(func(ns int64, _ int) int64 { return ns })
			}
			duck.compare(t, "DuckDB", oracle.Query(t, "SELECT "+strings.Join(exprs, ", ")+" FROM read_parquet("+oracle.Quote(f.path)+")"))
			arrow.compare(t, "pyarrow", oracle.Parquet(t, f.path))
		})
	}
}

// times changes what is wanted of timestamps: f is given nanoseconds.
func (f *made) times(change func(ns int64, precision int) int64) *made {
	out := &made{path: f.path, fields: f.fields}
	for _, row := range f.want {
		row = slices.Clone(row)
		for c, x := range f.fields {
			if !x.Type.IsTimestamp() || row[c] == nullText {
				continue
			}
			v, _ := strconv.ParseInt(row[c], 10, 64) // it was printed by us
			if x.Type.Precision <= 6 {
				v *= 1000
			}
			row[c] = fmt.Sprint(change(v, x.Type.Precision))
		}
		out.want = append(out.want, row)
	}
	return out
}

func floor(x, by int64) int64 {
	if x < 0 {
		return -((-x + by - 1) / by)
	}
	return x / by
}

// Readers skip pages and row groups by our statistics: what a filter finds must
// be what is there.
func TestStatisticsHoldForOthers(t *testing.T) {
	const seed = 7
	f := write(t, "stats", seed, 5000, parquetfmt.Options{RowGroupBytes: 32 << 10, PageBytes: 1 << 10})
	from := " FROM read_parquet(" + oracle.Quote(f.path) + ")"
	for c, x := range f.fields {
		switch x.Type.Kind {
		case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Decimal, types.Varchar:
		default:
			continue
		}
		values := map[string]int{}
		for i := range f.want {
			values[f.want[i][c]]++
		}
		var asks, want []string
		for v, n := range values {
			if len(asks) == 20 {
				break
			}
			literal := v
			switch {
			case v == nullText:
				asks, want = append(asks, "count(*) FILTER (WHERE "+x.Name+" IS NULL)"), append(want, fmt.Sprint(n))
				continue
			case x.Type.Kind == types.Varchar:
				s, err := strconv.Unquote(v)
				check(t, err)
				literal = oracle.Quote(s)
			}
			asks = append(asks, "(SELECT count(*)"+from+" WHERE "+x.Name+" = "+literal+")")
			want = append(want, fmt.Sprint(n))
		}
		got := oracle.Query(t, "SELECT "+strings.Join(asks, ", ")+from)
		for i := range asks {
			if have := fmt.Sprint(got.Rows[0][i]); have != want[i] {
				t.Errorf("seed %d, column %s %s: %s gives %s, want %s", seed, x.Name, x.Type, asks[i], have, want[i])
			}
		}
	}
}

// TestQueryForms pins the protocol for those who count rows with it.
func TestQueryForms(t *testing.T) {
	got := oracle.Query(t, `SELECT 1::HUGEINT AS h, 1.50::DECIMAL(9,2) AS d, 'x'::BLOB AS b, [1, NULL] AS l, {'a': 1, 'b': NULL} AS s,
		'nan'::DOUBLE AS n, TIMESTAMP '2020-01-01 00:00:00.5' AS t, TIMESTAMPTZ '2020-01-01 08:00:00+08' AS z, NULL AS nothing, true AS yes`)
	line, err := json.Marshal(got.Rows)
	check(t, err)
	want := `[[1,"1.50","0x78",[1,null],{"a":1,"b":null},"NaN","2020-01-01T00:00:00.500000","2020-01-01T00:00:00+00:00",null,true]]`
	if string(line) != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	if n := oracle.Query(t, "SELECT count(*) FROM range(10000)").Value(t); n != "10000" {
		t.Errorf("%s rows", n)
	}
	if r := oracle.Query(t, "SELECT 1 WHERE false"); len(r.Rows) != 0 || len(r.Columns) != 1 {
		t.Errorf("an empty result is %+v", r)
	}
}
