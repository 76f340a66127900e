package parquetfmt

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	pgo "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// pageHeaderByte reports whether a byte lies in a page header rather than in a
// checksummed body.
func pageHeaderByte(data []byte, m *format.FileMetaData, at int) bool {
	pos := 4
	for _, c := range m.RowGroups[0].Columns {
		end := pos + int(c.MetaData.TotalCompressedSize)
		for pos < end {
			in := &byteCounter{b: data[pos:end]}
			var h format.PageHeader
			if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in)).Decode(&h); err != nil {
				return false
			}
			if at >= pos && at < pos+in.n {
				return true
			}
			pos += in.n + int(h.CompressedPageSize)
		}
	}
	return at < 4
}

type byteCounter struct {
	b []byte
	n int
}

func (c *byteCounter) Read(p []byte) (int, error) {
	n := copy(p, c.b[c.n:])
	c.n += n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *byteCounter) ReadByte() (byte, error) {
	var p [1]byte
	_, err := c.Read(p[:])
	return p[0], err
}

// refoot gives a file another footer.
func refoot(t *testing.T, data []byte, m *format.FileMetaData) []byte {
	t.Helper()
	n := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	b, err := thrift.Marshal(new(thrift.CompactProtocol), m)
	if err != nil {
		t.Fatal(err)
	}
	out := append(bytes.Clone(data[:len(data)-8-n]), b...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b)))
	return append(out, magic...)
}

// TestForeignUnsigned: unsigned columns of another writer keep their values in
// the next wider type and are errors where they do not fit.
func TestForeignUnsigned(t *testing.T) {
	type row struct {
		A uint32 `parquet:"a"`
		B uint64 `parquet:"b"`
		C *int32 `parquet:"c,optional"`
	}
	var out bytes.Buffer
	w := pgo.NewGenericWriter[row](&out)
	if _, err := w.Write([]row{{A: 4294967295, B: 18446744073709551615}, {A: 1, B: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	fields := f.Fields()
	if fields[0].Type.String() != "BIGINT NOT NULL" || fields[1].Type.String() != "DECIMAL(20, 0) NOT NULL" {
		t.Fatalf("fields %v", fields)
	}
	rows := readBack(t, out.Bytes(), fields, 10)
	if rows[0][0] != int64(4294967295) || rows[0][1] != "18446744073709551615" || rows[0][2] != nil {
		t.Errorf("%v", rows[0])
	}
	r, err := f.ReadRowGroup(0, []types.Field{{Name: "A", Type: types.NewInt()}, {Name: "b", Type: types.NewBigInt()}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cols := make([]batch.Vec, 2)
	if n, err := r.Read(cols, 10); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	for c := range cols {
		if e := cols[c].Err(0); e == nil || e.Code != batch.CodeOverflow || !cols[c].IsNull(0) {
			t.Errorf("column %d row 0: %v", c, e)
		}
		if cols[c].Err(1) != nil || cols[c].IsNull(1) {
			t.Errorf("column %d row 1 is not a value", c)
		}
	}
	if rep := mustVerify(t, out.Bytes()); rep.Columns[1].Max != "18446744073709551615" {
		t.Errorf("%s", rep)
	}
}

// TestForeignArrow reads a file of Arrow's writer: other encodings, data pages
// v2, columns of other names and widths.
func TestForeignArrow(t *testing.T) {
	mem := memory.DefaultAllocator
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "Id", Type: arrow.PrimitiveTypes.Int16},
		{Name: "amount", Type: &arrow.Decimal128Type{Precision: 9, Scale: 1}, Nullable: true},
		{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_ms, Nullable: true},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float32},
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	for i := range 2500 {
		b.Field(0).(*array.Int16Builder).Append(int16(i))
		if i%3 == 0 {
			b.Field(1).AppendNull()
		} else if err := b.Field(1).AppendValueFromString("-12.5"); err != nil {
			t.Fatal(err)
		}
		b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(i - 1000))
		l := b.Field(3).(*array.ListBuilder)
		switch i % 4 {
		case 0:
			l.AppendNull()
		case 1:
			l.Append(true)
		default:
			l.Append(true)
			l.ValueBuilder().(*array.StringBuilder).AppendNull()
			l.ValueBuilder().(*array.StringBuilder).Append("x")
		}
		b.Field(4).(*array.Float32Builder).Append(float32(i) / 2)
	}
	rec := b.NewRecord()
	for _, v := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
		var out bytes.Buffer
		w, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(parquet.WithDataPageVersion(v)), pqarrow.DefaultWriterProps())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		fields := []types.Field{
			{Name: "f", Type: types.NewDouble()}, {Name: "id", Type: types.NewBigInt()},
			{Name: "amount", Type: types.NewDecimal(38, 3)}, {Name: "at", Type: types.NewTimestamp(6)},
			{Name: "tags", Type: types.NewArray(types.NewString())}, {Name: "absent", Type: types.NewString()},
			{Name: "absent_list", Type: types.NewArray(types.NewInt())},
		}
		rows := readBack(t, out.Bytes(), fields, 700)
		if len(rows) != 2500 {
			t.Fatalf("%d rows", len(rows))
		}
		for i, row := range rows {
			amount, tags := any("-12500"), any([]any{nil, "x"})
			if i%3 == 0 {
				amount = nil
			}
			if i%4 == 0 {
				tags = nil
			} else if i%4 == 1 {
				tags = []any{}
			}
			compareRows(t, "row", [][]any{{float64(i) / 2, int64(i), amount, int64(i-1000) * 1000, tags, nil, nil}}, [][]any{row})
		}
		if rep, err := Verify(bytes.NewReader(out.Bytes()), int64(out.Len())); err != nil || rep.Rows != 2500 {
			t.Fatalf("%v %s", err, rep)
		}
	}
}

// TestProjectionOfRows: fields of a ROW by name; a ROW none of whose fields
// the file has keeps its own NULLs.
func TestProjectionOfRows(t *testing.T) {
	typ := types.NewRow(types.Field{Name: "a", Type: types.NewInt()}, types.Field{Name: "b", Type: types.NewArray(types.NewInt())})
	var v batch.Vec
	v.Reset(typ, 3)
	v.SetNull(1)
	copy(v.Children[0].I32, []int32{1, 0, 3})
	v.Children[0].SetNull(1)
	v.Children[1].SetNull(1)
	v.Children[1].Offsets = append(v.Children[1].Offsets, 0, 0, 2)
	v.Children[1].Children[0].Reset(types.NewInt(), 2)
	copy(v.Children[1].Children[0].I32, []int32{7, 8})
	data := writeFile(t, Options{}, []types.Field{{Name: "r", Type: typ}}, v)
	read := func(fs ...types.Field) [][]any {
		return readBack(t, data, []types.Field{{Name: "r", Type: types.NewRow(fs...)}}, 2)
	}
	bigs := types.NewArray(types.NewBigInt())
	compareRows(t, "b and new", [][]any{{[]any{[]any{}, nil}}, {nil}, {[]any{[]any{int64(7), int64(8)}, nil}}},
		read(types.Field{Name: "b", Type: bigs}, types.Field{Name: "new", Type: types.NewString()}))
	compareRows(t, "new only", [][]any{{[]any{nil}}, {nil}, {[]any{nil}}}, read(types.Field{Name: "new", Type: types.NewString()}))
	f, err := OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadRowGroup(0, []types.Field{{Name: "r", Type: types.NewInt()}}); err == nil || !strings.Contains(err.Error(), "cannot be read as INT") {
		t.Error(err)
	}
}

// TestSkip: a split can be resumed at any row.
func TestSkip(t *testing.T) {
	v := i64Vec(types.NewBigInt(), make([]int64, 10000)...)
	for i := range v.I64 {
		v.I64[i] = int64(i)
	}
	fields := []types.Field{{Name: "i", Type: v.Type}}
	data := writeFile(t, Options{PageBytes: 1000, RowGroupBytes: 30000}, fields, v)
	f, err := OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	groups := f.RowGroups()
	if len(groups) < 2 {
		t.Fatalf("%d row groups", len(groups))
	}
	for _, to := range []int64{0, 1, 999, groups[1].Rows} {
		r, err := f.ReadRowGroup(1, fields)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Skip(to); err != nil {
			t.Fatal(err)
		}
		cols := make([]batch.Vec, 1)
		n, err := r.Read(cols, math.MaxInt)
		if to == groups[1].Rows {
			if err != io.EOF {
				t.Errorf("after the last row: %d %v", n, err)
			}
		} else if err != nil || cols[0].I64[0] != groups[1].FirstRow+to || int64(n) != groups[1].Rows-to {
			t.Errorf("skip to %d: %d rows from %d, %v", to, n, cols[0].I64[0], err)
		}
		r.Close()
	}
}
