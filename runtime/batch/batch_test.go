package batch

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/types"
)

var row = types.NewRow(types.Field{Name: "a", Type: types.NewInt()}, types.Field{Name: "s", Type: types.NewString()})

// everyType is one type of each layout.
var everyType = []types.Type{
	types.NewBoolean(), types.NewTinyInt(), types.NewSmallInt(), types.NewInt(), types.NewBigInt(), types.NewFloat(), types.NewDouble(),
	types.NewDecimal(10, 2), types.NewDecimal(38, 10), types.NewString(), types.NewBytes(), types.NewDate(), types.NewTime(3), types.NewTimestamp(3),
	types.NewTimestamp(9), types.NewTimestampLTZ(6), types.Simple(types.IntervalYearMonth), types.Simple(types.IntervalDaySecond),
	types.NewArray(types.NewString()), types.NewMap(types.NewString(), types.NewInt()), row, types.NewArray(row), types.NewMap(types.NewInt(), types.NewArray(types.NewBigInt())),
}

// fill appends a random value of v's type.
func fill(r *rand.Rand, v *Vec, nullable bool) {
	if nullable && r.IntN(4) == 0 {
		v.AppendNull()
		return
	}
	v.Grow(1)
	put(r, v, v.Len-1)
}

func put(r *rand.Rand, v *Vec, i int) {
	switch v.Type.Physical() {
	case types.PhysBool:
		v.Bools.Put(i, r.IntN(2) == 0)
	case types.PhysInt8, types.PhysInt16, types.PhysInt32, types.PhysInt64:
		v.SetInt64(i, int64(r.IntN(200)-100))
	case types.PhysFloat32, types.PhysFloat64:
		v.SetFloat64(i, float64(r.IntN(9))/4)
	case types.PhysDecimal128:
		v.D128[i] = types.Decimal128{Lo: r.Uint64(), Hi: int64(r.IntN(100)) - 50}
	case types.PhysBytes:
		v.PutString(i, strings.Repeat("ö", r.IntN(4)))
	case types.PhysList, types.PhysMap:
		v.BeginList(i)
		for k := r.IntN(3); k > 0; k-- {
			if v.Type.Kind == types.Map {
				// Distinct keys by their number in the column.
				v.Children[0].Grow(1)
				if v.Type.Key.IsString() {
					v.Children[0].PutString(v.Children[0].Len-1, strings.Repeat("k", v.Children[0].Len))
				} else {
					v.Children[0].SetInt64(v.Children[0].Len-1, int64(v.Children[0].Len))
				}
				fill(r, v.Children[1], true)
			} else {
				fill(r, v.Children[0], true)
			}
		}
		for _, c := range v.Children {
			c.PadOffsets()
		}
		v.EndList()
	case types.PhysRow:
		for _, c := range v.Children {
			if r.IntN(4) == 0 {
				c.NullRow(i)
			} else {
				put(r, c, i)
			}
		}
	}
}

func randomVec(r *rand.Rand, t types.Type, n int) *Vec {
	v := new(Vec)
	v.Reset(t, 0)
	for i := 0; i < n; i++ {
		fill(r, v, true)
	}
	v.PadOffsets()
	return v
}

func same(t *testing.T, what string, a *Vec, i int, b *Vec, j int) {
	t.Helper()
	x, y := AppendExact(nil, a, i), AppendExact(nil, b, j)
	if !bytes.Equal(x, y) {
		t.Fatalf("%s: row %d is %s, row %d is %s", what, i, a.Text(i), j, b.Text(j))
	}
}

func TestTakeAppendConstDict(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		r := rand.New(rand.NewPCG(seed, 2))
		for _, typ := range everyType {
			n := r.IntN(40)
			v := randomVec(r, typ, n)
			sel := Sel{}
			codes := []int32{}
			for i := 0; i < n; i++ {
				if r.IntN(2) == 0 {
					sel = append(sel, int32(i))
				}
				codes = append(codes, int32(r.IntN(n)))
			}
			dict := &Vec{Type: typ, Enc: Dict, Len: n, Codes: codes, Dict: v}
			var a, b, c Vec
			a.Take(v, sel)
			b.Take(dict, sel)
			c.Reset(typ, 0)
			for k, i := range sel {
				same(t, "take", &a, k, v, int(i))
				same(t, "take of a dictionary", &b, k, v, int(codes[i]))
				c.Append(dict, int(i))
			}
			c.PadOffsets()
			for k := range sel {
				same(t, "append", &c, k, &b, k)
			}
			var d Vec
			d.Reset(typ, 0)
			d.AppendVec(v)
			d.AppendRows(v, sel)
			d.AppendRows(dict, sel)
			d.AppendVec(&a)
			if d.Len != n+3*len(sel) {
				t.Fatalf("%s: %d rows appended", typ, d.Len)
			}
			for i := 0; i < n; i++ {
				same(t, "appended column", &d, i, v, i)
			}
			for k, i := range sel {
				same(t, "appended rows", &d, n+k, v, int(i))
				same(t, "appended dictionary rows", &d, n+len(sel)+k, v, int(codes[i]))
				same(t, "appended again", &d, n+2*len(sel)+k, v, int(i))
			}
			if n > 0 {
				var k Vec
				k.SetConst(dict, n-1, 5)
				same(t, "const", &k, 4, v, int(codes[n-1]))
				same(t, "flat copy of const", k.Clone(), 4, v, int(codes[n-1]))
			}
		}
	}
}

func TestErrorsTravelWithRows(t *testing.T) {
	v := new(Vec)
	v.Reset(types.NewInt(), 4)
	v.SetErr(1, CodeOverflow, "w", "m")
	v.SetErr(3, CodeCast, "w", "m")
	var a Vec
	a.Take(v, Sel{1, 2, 3})
	if a.Err(0) == nil || a.Err(0).Code != CodeOverflow || a.Err(1) != nil || a.Err(2).Code != CodeCast || !a.IsNull(0) {
		t.Fatalf("errors after Take: %+v", a.Errs)
	}
	list := new(Vec)
	list.Reset(types.NewArray(types.NewInt()), 1)
	list.BeginList(0)
	list.Children[0].Append(v, 0)
	list.Children[0].Append(v, 3)
	list.EndList()
	if list.Err(0) != nil || list.DeepErr(0) == nil || list.DeepErr(0).Code != CodeCast || !list.HasDeepErrs() {
		t.Fatal("the error of an element is not found")
	}
	if c := list.Clone(); c.DeepErr(0) == nil {
		t.Fatal("the error of an element is lost in a copy")
	}
}

func TestEncodingRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, typ := range everyType {
		v := randomVec(r, typ, 50)
		var back Vec
		back.Reset(typ, 50)
		for i := 0; i < 50; i++ {
			enc := AppendExact(nil, v, i)
			rest, err := DecodeValue(&back, i, append(enc, 0xee))
			if err != nil || len(rest) != 1 {
				t.Fatalf("%s %s: %v, %d bytes left", typ, v.Text(i), err, len(rest))
			}
			for cut := 0; cut < len(enc); cut++ {
				var x Vec
				x.Reset(typ, 1)
				if _, err := DecodeValue(&x, 0, enc[:cut]); err == nil {
					t.Fatalf("%s %s: accepted when cut to %d bytes", typ, v.Text(i), cut)
				}
			}
		}
		back.PadOffsets()
		for i := 0; i < 50; i++ {
			same(t, "decode "+typ.String(), &back, i, v, i)
		}
	}
}

// one makes a column of one value.
func one(t types.Type, set func(v *Vec)) *Vec {
	v := new(Vec)
	v.Reset(t, 1)
	set(v)
	v.PadOffsets()
	return v
}

// goldenValues are the values of testdata/value_v1.txt, in order.
func goldenValues() (names []string, vecs []*Vec) {
	add := func(name string, t types.Type, set func(v *Vec)) {
		names = append(names, name)
		vecs = append(vecs, one(t, set))
	}
	i64 := func(x int64) func(*Vec) { return func(v *Vec) { v.SetInt64(0, x) } }
	f64 := func(x float64) func(*Vec) { return func(v *Vec) { v.SetFloat64(0, x) } }
	str := func(s string) func(*Vec) { return func(v *Vec) { v.PutString(0, s) } }
	add("NULL", types.NewInt(), func(v *Vec) { v.SetNull(0) })
	add("FALSE", types.NewBoolean(), func(v *Vec) {})
	add("TRUE", types.NewBoolean(), func(v *Vec) { v.Bools.Set(0) })
	add("INT 1", types.NewInt(), i64(1))
	add("BIGINT -1", types.NewBigInt(), i64(-1))
	add("FLOAT 1.5", types.NewFloat(), f64(1.5))
	add("DOUBLE -0.0", types.NewDouble(), f64(math.Copysign(0, -1)))
	add("DOUBLE NaN", types.NewDouble(), f64(math.Float64frombits(0xfff8000000000123)))
	add("DECIMAL(10,2) 1.50", types.NewDecimal(10, 2), i64(150))
	add("DECIMAL(38,1) 1.5", types.NewDecimal(38, 1), i64(15))
	add("DECIMAL(38,0) -2^70", types.NewDecimal(38, 0), func(v *Vec) { v.D128[0] = types.Decimal128{Hi: -64} })
	add("DECIMAL(5,2) 0.00", types.NewDecimal(5, 2), i64(0))
	add("STRING 日本", types.NewString(), str("日本"))
	add("CHAR(2) ab", types.NewChar(2), str("ab"))
	add("BYTES 00ff", types.NewBytes(), str("\x00\xff"))
	add("DATE 1969-12-31", types.NewDate(), i64(-1))
	add("TIME 00:00:01", types.NewTime(3), i64(1000))
	add("TIMESTAMP(6) 1969-12-31 23:59:59.999999", types.NewTimestamp(6), i64(-1))
	add("TIMESTAMP(9) 1969-12-31 23:59:59.999999", types.NewTimestamp(9), i64(-1000))
	add("TIMESTAMP_LTZ(3) 2024-05-01T00:00:00Z", types.NewTimestampLTZ(3), i64(1714521600000000))
	add("INTERVAL 14 MONTH", types.Simple(types.IntervalYearMonth), i64(14))
	add("INTERVAL 1 DAY", types.Simple(types.IntervalDaySecond), i64(86400000))
	add("ARRAY[1, NULL]", types.NewArray(types.NewInt()), func(v *Vec) {
		v.BeginList(0)
		v.Children[0].Grow(1)
		v.Children[0].SetInt64(0, 1)
		v.Children[0].AppendNull()
		v.EndList()
	})
	add("MAP[b=1, a=2]", types.NewMap(types.NewString(), types.NewInt()), func(v *Vec) {
		v.BeginList(0)
		for i, k := range []string{"b", "a"} {
			v.Children[0].Grow(1)
			v.Children[0].PutString(i, k)
			v.Children[1].Grow(1)
			v.Children[1].SetInt64(i, int64(i+1))
		}
		v.EndList()
	})
	add("ROW(1, x)", row, func(v *Vec) {
		v.Children[0].SetInt64(0, 1)
		v.Children[1].PutString(0, "x")
	})
	return names, vecs
}

// TestGoldenEncoding reads the file that fixes version 1 of the encoding: a
// line a value, "name TAB hex TAB xxh64".
func TestGoldenEncoding(t *testing.T) {
	file, err := os.ReadFile("testdata/value_v1.txt")
	if err != nil {
		t.Fatal(err)
	}
	names, vecs := goldenValues()
	lines := strings.Split(strings.TrimSpace(string(file)), "\n")
	if len(lines) != len(names) {
		t.Fatalf("%d lines for %d values", len(lines), len(names))
	}
	for i, v := range vecs {
		enc := AppendValue(nil, v, 0)
		var h [8]byte
		sum := xxhash.Sum64(enc)
		for k := range h {
			h[k] = byte(sum >> (56 - 8*k))
		}
		if got := names[i] + "\t" + hex.EncodeToString(enc) + "\t" + hex.EncodeToString(h[:]); got != lines[i] {
			t.Errorf("encoding changed:\n got %s\nwant %s", got, lines[i])
		}
		if k, _ := HashKey(nil, []*Vec{v}, 0); k != sum {
			t.Errorf("%s: key hash is not xxh64 of the encoding", names[i])
		}
	}
}

func TestRowHashIsOrderFree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a, b := randomVec(r, types.NewString(), 30), randomVec(r, types.NewBigInt(), 30)
	want := RowHash([]*Vec{a, b}, 30, nil)
	perm := Sel{}
	for _, i := range r.Perm(30) {
		perm = append(perm, int32(i))
	}
	var x, y Vec
	x.Take(a, perm)
	y.Take(b, perm)
	if got := RowHash([]*Vec{&x, &y}, 30, nil); got != want {
		t.Errorf("%x after a permutation, %x before", got, want)
	}
	if RowHash([]*Vec{b, a}, 30, nil) == want {
		t.Error("the order of columns does not matter")
	}
}

func TestOrderKeys(t *testing.T) {
	floats := []float64{math.Inf(-1), -1e300, -1, math.Copysign(0, -1), 0, 5e-324, 1, math.Inf(1), math.NaN()}
	var last []byte
	for i, f := range floats {
		k := AppendOrderValue(nil, one(types.NewDouble(), func(v *Vec) { v.F64[0] = f }), 0)
		if i > 0 && bytes.Compare(last, k) >= 0 {
			t.Errorf("%v does not come after %v", f, floats[i-1])
		}
		if g := FloatFromOrdered(OrderedFloat(f)); math.Float64bits(g) != math.Float64bits(f) && f == f {
			t.Errorf("%v comes back as %v", f, g)
		}
		last = k
	}
	last = nil
	for _, s := range []string{"", "\x00", "\x00a", "a", "a\x00", "a\x00b", "ab", "b"} {
		k := AppendOrderPosition(AppendOrderValue(nil, one(types.NewString(), func(v *Vec) { v.PutString(0, s) }), 0), "", "", 0, 0, 0)
		if last != nil && bytes.Compare(last, k) >= 0 {
			t.Errorf("%q is out of order", s)
		}
		last = k
	}
	if bytes.Compare(AppendOrderInt(nil, -5), AppendOrderInt(nil, 3)) >= 0 {
		t.Error("-5 does not come before 3")
	}
}

func TestArrowRoundTripThroughIPC(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	s := &Schema{}
	for i, typ := range everyType {
		s.Fields = append(s.Fields, types.Field{Name: string(rune('a' + i)), Type: typ})
	}
	for _, n := range []int{0, 1, 100} {
		b := &Batch{Schema: s, Len: n}
		for _, typ := range everyType {
			b.Cols = append(b.Cols, *randomVec(r, typ, n))
		}
		schema := ArrowSchema(s)
		rec, err := ToArrow(b, schema)
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		rd, err := ipc.NewReader(&buf)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rd.Read()
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, from, rows int, rec interface {
			NumRows() int64
		}, back *Batch) {
			t.Helper()
			if back.Len != rows {
				t.Fatalf("%s: %d rows of %d", what, back.Len, rows)
			}
			for c := range b.Cols {
				for i := 0; i < rows; i++ {
					same(t, what+" "+everyType[c].String(), &back.Cols[c], i, &b.Cols[c], from+i)
				}
			}
		}
		var back Batch
		if err := FromArrow(&back, s, got); err != nil {
			t.Fatal(err)
		}
		check("IPC", 0, n, got, &back)
		if n > 20 {
			part := rec.NewSlice(11, 51)
			var sliced Batch
			if err := FromArrow(&sliced, s, part); err != nil {
				t.Fatal(err)
			}
			check("slice", 11, 40, part, &sliced)
			if &sliced.Cols[4].I64[0] != &b.Cols[4].I64[11] {
				t.Error("a slice of int64 was copied")
			}
		}
	}
}

func TestBatchTakeKeepsPositions(t *testing.T) {
	s := &Schema{Fields: []types.Field{{Name: "x", Type: types.NewBigInt()}}}
	b := &Batch{Schema: s, Len: 5, Cols: make([]Vec, 1), Runs: []Run{{Partition: 0, FirstRow: 0, Rows: 3, BaseOffset: 100, EndOffset: 104}, {Partition: 2, FirstRow: 3, Rows: 2, BaseOffset: 7, EndOffset: 9}},
		OffsetDelta: []int32{0, 1, 1, 0, 1}, RowIndex: []int32{0, 0, 1, 0, 0}}
	b.Cols[0].Reset(types.NewBigInt(), 5)
	for i := range b.Cols[0].I64 {
		b.Cols[0].I64[i] = int64(i)
	}
	var out Batch
	out.Take(b, Sel{1, 2, 4})
	if out.Len != 3 || out.Runs[0].Rows != 2 || out.Runs[1].FirstRow != 2 || out.Runs[1].Rows != 1 {
		t.Fatalf("runs %+v", out.Runs)
	}
	for i, want := range []int64{101, 101, 8} {
		run := &out.Runs[0]
		if i == 2 {
			run = &out.Runs[1]
		}
		if got := out.Offset(run, i); got != want || out.Cols[0].I64[i] != []int64{1, 2, 4}[i] {
			t.Errorf("row %d: offset %d, want %d", i, got, want)
		}
	}
	if out.Index(1) != 1 || out.Runs[0].EndOffset != 104 {
		t.Error("row index or end offset lost")
	}
}
