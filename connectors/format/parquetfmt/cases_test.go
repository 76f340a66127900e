package parquetfmt

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// writeFile writes one batch and returns the file.
func writeFile(t testing.TB, o Options, fields []types.Field, cols ...batch.Vec) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, fields, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(cols) > 0 {
		if err := w.Write(cols, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// mustVerify fails unless the second reader finds nothing wrong.
func mustVerify(t testing.TB, data []byte) *Report {
	t.Helper()
	rep, err := Verify(bytes.NewReader(data), int64(len(data)))
	if err != nil || !rep.OK() {
		t.Fatalf("%v\n%s", err, rep)
	}
	return rep
}

// decimalVec makes a DECIMAL column of unscaled numbers given as text.
func decimalVec(t types.Type, unscaled ...string) batch.Vec {
	var v batch.Vec
	v.Reset(t, len(unscaled))
	for i, s := range unscaled {
		x, ok := new(big.Int).SetString(s, 10)
		if !ok {
			panic(s)
		}
		if t.Physical() == types.PhysInt64 {
			v.I64[i] = x.Int64()
		} else {
			v.D128[i] = dec128(x)
		}
	}
	return v
}

// TestNegativeDecimals: sign extension and carries, in all three physical
// forms, by Arrow and by the second reader.
func TestNegativeDecimals(t *testing.T) {
	long := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	long.Neg(long).Add(long, big.NewInt(1)) // -(10^34) + 0.0001 at scale 4
	fields := []types.Field{
		{Name: "d9", Type: types.NewDecimal(9, 2)},
		{Name: "d18", Type: types.NewDecimal(18, 4)},
		{Name: "d38", Type: types.NewDecimal(38, 4)},
	}
	cols := []batch.Vec{
		decimalVec(fields[0].Type, "-1", "-100", "-20000000", "-256", "-25600", "110", "999999999", "-999999999"),
		decimalVec(fields[1].Type, "-100", "-10000", "-2000000000", "-2560000", "-256", "11000", "999999999999999999", "-999999999999999999"),
		decimalVec(fields[2].Type, "-100", "-10000", "-2000000000", "-2560000", "-256", "11000", long.String(), strings.Repeat("9", 38)),
	}
	for _, ints := range []bool{false, true} {
		data := writeFile(t, Options{DecimalIntegers: ints}, fields, cols...)
		want := make([][]any, 8)
		for i := range want {
			for c := range cols {
				want[i] = append(want[i], plainValue(&cols[c], i))
			}
		}
		compareRows(t, "arrow", want, readArrow(t, data, 3))
		compareRows(t, "ours", want, readBack(t, data, fields, 100))
		rep := mustVerify(t, data)
		if rep.Columns[0].Min != "-9999999.99" || rep.Columns[0].Max != "9999999.99" || rep.Columns[2].Min != "-9999999999999999999999999999999999.9999" {
			t.Errorf("bounds: %+v", rep.Columns)
		}
	}
	// Hive's width for each precision (ParquetHiveSerDe.PRECISION_TO_BYTE_COUNT).
	widths := []int{1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 9, 9, 10, 10, 11, 11, 11, 12, 12, 13, 13, 13, 14, 14, 15, 15, 16, 16, 16}
	for i, w := range widths {
		if decimalWidth(i+1) != w {
			t.Errorf("DECIMAL(%d) takes %d bytes, want %d", i+1, decimalWidth(i+1), w)
		}
	}
}

func i64Vec(t types.Type, vals ...int64) batch.Vec {
	var v batch.Vec
	v.Reset(t, len(vals))
	copy(v.I64, vals)
	return v
}

// TestTimestamps: the zone flag, units, and times before 1970.
func TestTimestamps(t *testing.T) {
	const noon = 1714566896789000 // 2024-05-01 12:34:56.789 as if UTC, us
	fields := []types.Field{
		{Name: "ts", Type: types.NewTimestamp(6)}, {Name: "ltz", Type: types.NewTimestampLTZ(6)},
		{Name: "ts9", Type: types.NewTimestamp(9)}, {Name: "ltz9", Type: types.NewTimestampLTZ(9)},
	}
	vals := []int64{noon, -1, 0, -62135596800000000, 253402300799999999} // years 1 and 9999
	nanos := []int64{noon * 1000, -1, 0, math.MinInt64, math.MaxInt64}
	cols := []batch.Vec{i64Vec(fields[0].Type, vals...), i64Vec(fields[1].Type, vals...), i64Vec(fields[2].Type, nanos...), i64Vec(fields[3].Type, nanos...)}
	data := writeFile(t, Options{}, fields, cols...)
	m, err := readFooter(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"TIMESTAMP(isAdjustedToUTC=false,unit=MICROS)", "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)",
		"TIMESTAMP(isAdjustedToUTC=false,unit=NANOS)", "TIMESTAMP(isAdjustedToUTC=true,unit=NANOS)"}
	for i, s := range want {
		if got := m.Schema[i+1].LogicalType.String(); got != s {
			t.Errorf("column %d: %s, want %s", i, got, s)
		}
	}
	rep := mustVerify(t, data)
	if rep.Columns[0].Min != "0001-01-01 00:00:00" || rep.Columns[1].Max != "9999-12-31 23:59:59.999999Z" {
		t.Errorf("bounds: %s", rep)
	}
	for _, o := range []Options{{}, {Int96Timestamps: true}} {
		data := writeFile(t, o, fields, cols...)
		for i, row := range readBack(t, data, fields, 10) {
			for c := range row {
				if w := plainValue(&cols[c], i); row[c] != w {
					t.Errorf("%+v: row %d column %d: %v, want %v", o, i, c, row[c], w)
				}
			}
		}
		mustVerify(t, data)
	}
	// INT96 of -1 us is the last microsecond of Julian day 2440587.
	if b := appendInt96(nil, -1, 1_000_000); le64(b) != 86399999999000 || le32(b[8:]) != 2440587 {
		t.Errorf("INT96 of -1 us: % x", b)
	}
	// A finer fraction is cut toward the past, not rounded and not to zero.
	cut := []types.Field{{Name: "ts9", Type: types.NewTimestamp(6)}, {Name: "ts", Type: types.NewTimestamp(3)}}
	rows := readBack(t, writeFile(t, Options{}, fields, cols...), cut, 10)
	if rows[1][0] != int64(-1) || rows[1][1] != int64(-1000) || rows[0][1] != int64(noon) {
		t.Errorf("cut: %v", rows[:2])
	}
}

// TestNullColumns: dictionary columns that are NULL throughout, alternately,
// and only in the first row group.
func TestNullColumns(t *testing.T) {
	str := types.NewString()
	fields := []types.Field{{Name: "all", Type: str}, {Name: "some", Type: str}, {Name: "late", Type: str}}
	var out bytes.Buffer
	w, err := NewWriter(&out, fields, Options{RowGroupBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	for group := range 2 {
		cols := make([]batch.Vec, 3)
		for c := range cols {
			cols[c].Reset(str, n)
			for i := range n {
				null := c == 0 || c == 1 && i%2 == 0 || c == 2 && group == 0
				if null {
					cols[c].SetNull(i)
				} else {
					cols[c].Data = append(cols[c].Data, 'a')
				}
				cols[c].Offsets = append(cols[c].Offsets, int32(len(cols[c].Data)))
			}
		}
		if err := w.Write(cols, nil); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	st, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	for c, nulls := range []int64{2 * n, n, n} {
		if st.Columns[c].Nulls != nulls {
			t.Errorf("column %d: %d nulls, want %d", c, st.Columns[c].Nulls, nulls)
		}
	}
	rep := mustVerify(t, out.Bytes())
	if len(rep.RowGroups) != 2 || rep.Columns[0].Nulls != 2*n || rep.Columns[0].Min != "" || rep.Columns[2].Min != `"a"` {
		t.Errorf("%s", rep)
	}
	rows := readArrow(t, out.Bytes(), 3)
	if rows[1][0] != nil || rows[1][1] != "a" || rows[0][1] != nil || rows[n-1][2] != nil || rows[n][2] != "a" {
		t.Errorf("rows %v %v", rows[1], rows[n])
	}
}

// TestNoRows: a file without rows is valid, with its schema.
func TestNoRows(t *testing.T) {
	fields := []types.Field{{Name: "a", Type: types.NewArray(types.NewInt())}, {Name: "b", Type: types.NewString()}}
	for _, data := range [][]byte{
		writeFile(t, Options{}, fields),
		writeFile(t, Options{}, fields, *randomVec(rand.New(rand.NewPCG(1, 1)), fields[0].Type, 0, 0, 0, false),
			*randomVec(rand.New(rand.NewPCG(1, 1)), fields[1].Type, 0, 0, 0, false)),
	} {
		if rep := mustVerify(t, data); rep.Rows != 0 {
			t.Errorf("%s", rep)
		}
		if rows := readArrow(t, data, 2); len(rows) != 0 {
			t.Errorf("arrow reads %v", rows)
		}
		f, err := OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil || f.Rows() != 0 || len(f.RowGroups()) != 0 {
			t.Fatal(err)
		}
		if got := f.Fields(); got[0].Type.String() != "ARRAY<INT>" || got[1].Type.String() != "STRING" {
			t.Errorf("fields %v", got)
		}
	}
}

// TestNoUnsigned: nothing we write has an unsigned annotation.
func TestNoUnsigned(t *testing.T) {
	var fields []types.Field
	for i, typ := range []types.Type{types.NewTinyInt(), types.NewSmallInt(), types.NewInt(), types.NewBigInt(), types.NewDecimal(20, 0)} {
		fields = append(fields, types.Field{Name: fmt.Sprint("c", i), Type: typ})
	}
	schema, _, _, err := buildSchema(fields, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range schema {
		if v, ok := e.LogicalType.Value.(*format.IntType); ok && !v.IsSigned {
			t.Errorf("%s is unsigned", e.Name)
		}
		if e.ConvertedType.Valid && e.ConvertedType.V >= deprecated.Uint8 && e.ConvertedType.V <= deprecated.Uint64 {
			t.Errorf("%s is %v", e.Name, e.ConvertedType.V)
		}
	}
}

// TestFloatBounds: NaN is no bound, zeros cover both signs.
func TestFloatBounds(t *testing.T) {
	var v batch.Vec
	v.Reset(types.NewDouble(), 4)
	copy(v.F64, []float64{math.NaN(), 0, math.Copysign(0, -1), math.NaN()})
	fields := []types.Field{{Name: "f", Type: v.Type}}
	var out bytes.Buffer
	w, _ := NewWriter(&out, fields, Options{DictionaryBytes: -1})
	if err := w.Write([]batch.Vec{v}, nil); err != nil {
		t.Fatal(err)
	}
	st, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if lo, hi := leF64(st.Columns[0].Min), leF64(st.Columns[0].Max); !math.Signbit(lo) || lo != 0 || math.Signbit(hi) || hi != 0 {
		t.Errorf("bounds %v %v", lo, hi)
	}
	mustVerify(t, out.Bytes())
}

// TestRefusals: what cannot be stored is refused by name.
func TestRefusals(t *testing.T) {
	for _, typ := range []types.Type{types.Simple(types.IntervalYearMonth), types.NewRow(), {Kind: types.Null},
		types.NewArray(types.Simple(types.IntervalDaySecond)), types.NewDecimal(39, 0)} {
		if _, err := NewWriter(io.Discard, []types.Field{{Name: "c", Type: typ}}, Options{}); !errors.Is(err, ErrUnsupportedType) {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if _, err := NewWriter(io.Discard, nil, Options{}); err == nil {
		t.Error("no columns: no error")
	}
	two := []types.Field{{Name: "c", Type: types.NewInt()}, {Name: "c", Type: types.NewInt()}}
	if _, err := NewWriter(io.Discard, two, Options{}); err == nil {
		t.Error("same name twice: no error")
	}
	// An error value refuses the batch before anything is taken.
	var a, b batch.Vec
	a.Reset(types.NewInt(), 3)
	b.Reset(types.NewArray(types.NewInt()), 3)
	b.Offsets = append(b.Offsets, 1, 2, 3)
	b.Children[0].Reset(types.NewInt(), 3)
	b.Children[0].SetErr(1, batch.CodeOverflow, "b", "too large")
	fields := []types.Field{{Name: "a", Type: a.Type}, {Name: "b", Type: b.Type}}
	w, err := NewWriter(io.Discard, fields, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]batch.Vec{a, b}, nil); !errors.Is(err, ErrValueError) || w.Rows() != 0 {
		t.Fatalf("%v, %d rows", err, w.Rows())
	}
	if err := w.Write([]batch.Vec{a, b}, batch.Sel{0, 2}); err != nil {
		t.Fatal(err)
	}
	if st, err := w.Close(); err != nil || st.Rows != 2 {
		t.Fatal(st, err)
	}
	if err := w.Write([]batch.Vec{a, b}, nil); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	// A decimal beyond its precision is refused, never cut.
	d := decimalVec(types.NewDecimal(4, 0), "99999")
	w, _ = NewWriter(io.Discard, []types.Field{{Name: "d", Type: d.Type}}, Options{})
	if err := w.Write([]batch.Vec{d}, nil); err == nil {
		t.Fatal("99999 went into DECIMAL(4, 0)")
	}
	if _, err := ParseCompression("lz4"); !errors.Is(err, ErrNotYet) {
		t.Error(err)
	}
}

// failingWriter accepts n bytes and then fails, or lies about the length.
type failingWriter struct {
	left  int
	short bool
}

var errDisk = errors.New("no space left")

func (f *failingWriter) Write(b []byte) (int, error) {
	if len(b) <= f.left {
		f.left -= len(b)
		return len(b), nil
	}
	n := f.left
	f.left = 0
	if f.short {
		return n, nil
	}
	return n, errDisk
}

// TestFailingWriter: whichever byte cannot be written, Close tells.
func TestFailingWriter(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	fields := []types.Field{{Name: "a", Type: types.NewString()}, {Name: "b", Type: types.NewArray(types.NewBigInt())}}
	cols := []batch.Vec{*randomVec(r, fields[0].Type, 300, 0.1, 20, false), *randomVec(r, fields[1].Type, 300, 0.1, 0, false)}
	run := func(w io.Writer) (int64, error) {
		p, err := NewWriter(w, fields, Options{RowGroupBytes: 2000, PageBytes: 500, Compression: None})
		if err != nil {
			return 0, err
		}
		for lo := 0; lo < 300; lo += 50 {
			sel := batch.Sel{}
			for i := lo; i < lo+50; i++ {
				sel = append(sel, int32(i))
			}
			if err := p.Write(cols, sel); err != nil {
				// The error is final.
				if _, again := p.Close(); !errors.Is(again, err) && again.Error() != err.Error() {
					return 0, fmt.Errorf("Close after %w gives %v", err, again)
				}
				return 0, err
			}
		}
		st, err := p.Close()
		return st.Bytes, err
	}
	size, err := run(&failingWriter{left: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for n := range int(size) {
		if _, err := run(&failingWriter{left: n}); !errors.Is(err, errDisk) {
			t.Fatalf("failing after %d of %d bytes: %v", n, size, err)
		}
		if _, err := run(&failingWriter{left: n, short: true}); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("short after %d of %d bytes: %v", n, size, err)
		}
	}
}

// TestGolden: a file of the first release stays readable, and the writer still
// gives the same bytes for it.
func TestGolden(t *testing.T) {
	path := filepath.Join("testdata", "golden-v1.parquet")
	fields := []types.Field{
		{Name: "id", Type: types.NewBigInt()},
		{Name: "name", Type: types.NewString()},
		{Name: "price", Type: types.NewDecimal(12, 2)},
		{Name: "at", Type: types.NewTimestampLTZ(3)},
		{Name: "tags", Type: types.NewArray(types.NewString())},
		{Name: "attrs", Type: types.NewMap(types.NewString(), types.NewInt())},
		{Name: "actor", Type: types.NewRow(types.Field{Name: "login", Type: types.NewString()}, types.Field{Name: "bot", Type: types.NewBoolean()})},
	}
	r := rand.New(rand.NewPCG(20, 26))
	cols := make([]batch.Vec, len(fields))
	var want [][]any
	for c, f := range fields {
		cols[c] = *randomVec(r, f.Type, 40, 0.2, 7, false)
	}
	for i := range 40 {
		var row []any
		for c := range cols {
			row = append(row, plainValue(&cols[c], i))
		}
		want = append(want, row)
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, fields, Options{Compression: None})
	if err != nil {
		t.Fatal(err)
	}
	w.SetMetadata("millrace.artifact", "golden")
	if err := w.Write(cols, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, out.Bytes()) {
		t.Error("the writer gives other bytes than the golden file")
	}
	compareRows(t, "ours", want, readBack(t, data, fields, 100))
	compareRows(t, "arrow", want, readArrow(t, data, len(fields)))
	mustVerify(t, data)
}

// TestVerifyFindsDamage: each flipped bit of a small file is reported or
// changes nothing that anyone reads.
func TestVerifyFindsDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	fields := []types.Field{{Name: "a", Type: types.NewString()}, {Name: "b", Type: types.NewInt()}}
	cols := []batch.Vec{*randomVec(r, fields[0].Type, 200, 0.1, 9, false), *randomVec(r, fields[1].Type, 200, 0.1, 0, false)}
	data := writeFile(t, Options{}, fields, cols...)
	m, err := readFooter(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	pagesEnd := 4
	for _, c := range m.RowGroups[0].Columns {
		pagesEnd += int(c.MetaData.TotalCompressedSize)
	}
	missed := 0
	for at := range data {
		bad := bytes.Clone(data)
		bad[at] ^= 1 << (at % 8)
		rep, err := Verify(bytes.NewReader(bad), int64(len(bad)))
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		if rep.OK() {
			missed++
			if at < pagesEnd && !pageHeaderByte(data, m, at) {
				t.Errorf("a flipped bit in page byte %d goes unnoticed", at)
			}
		}
	}
	t.Logf("%d of %d single-bit flips change nothing that is checked (header and footer hints)", missed, len(data))
	// Wrong statistics are found.
	m.RowGroups[0].Columns[1].MetaData.Statistics.MaxValue = []byte{0, 0, 0, 0x80}
	if rep, _ := Verify(bytes.NewReader(refoot(t, data, m)), int64(len(refoot(t, data, m)))); rep.OK() || !strings.Contains(rep.String(), "maximum") {
		t.Errorf("wrong maximum: %s", rep)
	}
	m.RowGroups[0].NumRows++
	if rep, _ := Verify(bytes.NewReader(refoot(t, data, m)), int64(len(refoot(t, data, m)))); rep.OK() {
		t.Errorf("wrong row count: %s", rep)
	}
}
