package batch

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/millrace/millrace/runtime/types"
)

// The Arrow form of a batch is for IPC: spill files and exchange between
// processes. It holds the columns alone (no kinds, positions or watermarks)
// and shares their memory. Our types decide Arrow's, never the reverse:
// DECIMAL up to 18 digits is an int64 (the unscaled value), as it is stored;
// TIMESTAMP_LTZ is a timestamp with zone UTC; INTERVAL DAY TO SECOND is a
// duration. Each field's metadata names the SQL type.

// ArrowTypeKey is the metadata key of a field's SQL type.
const ArrowTypeKey = "millrace.type"

// ArrowType is the Arrow type of a column.
func ArrowType(t types.Type) arrow.DataType {
	switch t.Kind {
	case types.Boolean, types.Null:
		return arrow.FixedWidthTypes.Boolean
	case types.TinyInt:
		return arrow.PrimitiveTypes.Int8
	case types.SmallInt:
		return arrow.PrimitiveTypes.Int16
	case types.Int:
		return arrow.PrimitiveTypes.Int32
	case types.BigInt:
		return arrow.PrimitiveTypes.Int64
	case types.Float:
		return arrow.PrimitiveTypes.Float32
	case types.Double:
		return arrow.PrimitiveTypes.Float64
	case types.Decimal:
		if t.Precision <= 18 {
			return arrow.PrimitiveTypes.Int64
		}
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case types.Char, types.Varchar:
		return arrow.BinaryTypes.String
	case types.Binary, types.Varbinary:
		return arrow.BinaryTypes.Binary
	case types.Date:
		return arrow.FixedWidthTypes.Date32
	case types.Time:
		return arrow.FixedWidthTypes.Time32ms
	case types.Timestamp, types.TimestampLTZ:
		at := &arrow.TimestampType{Unit: arrow.Microsecond}
		if t.Precision > 6 {
			at.Unit = arrow.Nanosecond
		}
		if t.Kind == types.TimestampLTZ {
			at.TimeZone = "UTC"
		}
		return at
	case types.IntervalYearMonth:
		return arrow.FixedWidthTypes.MonthInterval
	case types.IntervalDaySecond:
		return arrow.FixedWidthTypes.Duration_ms
	case types.Array:
		return arrow.ListOfField(arrowField("element", *t.Elem))
	case types.Map:
		m := arrow.MapOf(ArrowType(*t.Key), ArrowType(*t.Elem))
		m.SetItemNullable(t.Elem.Nullable)
		return m
	}
	fields := make([]arrow.Field, len(t.Fields))
	for i, f := range t.Fields {
		fields[i] = arrowField(f.Name, f.Type)
	}
	return arrow.StructOf(fields...)
}

func arrowField(name string, t types.Type) arrow.Field {
	return arrow.Field{Name: name, Type: ArrowType(t), Nullable: t.Nullable,
		Metadata: arrow.NewMetadata([]string{ArrowTypeKey}, []string{t.String()})}
}

// ArrowSchema is the Arrow schema of a schema.
func ArrowSchema(s *Schema) *arrow.Schema {
	fields := make([]arrow.Field, len(s.Fields))
	for i, f := range s.Fields {
		fields[i] = arrowField(f.Name, f.Type)
	}
	return arrow.NewSchema(fields, nil)
}

// ToArrow shows the columns of b as a record, without a copy but for Const and
// Dict columns, which are made flat. The record shares b's memory and lives as
// long. A batch that holds error values has no Arrow form.
func ToArrow(b *Batch, schema *arrow.Schema) (arrow.Record, error) {
	cols := make([]arrow.Array, len(b.Cols))
	for i := range b.Cols {
		v := &b.Cols[i]
		if v.HasDeepErrs() {
			return nil, fmt.Errorf("column %s holds error values, which Arrow cannot", b.Schema.Fields[i].Name)
		}
		data := arrowData(v, b.Schema.Fields[i].Type, b.Len)
		cols[i] = array.MakeFromData(data)
		data.Release()
	}
	return array.NewRecord(schema, cols, int64(b.Len)), nil
}

func arrowData(v *Vec, t types.Type, n int) arrow.ArrayData {
	if v.Enc != Flat {
		v = v.Clone()
	}
	nulls := 0
	var valid *memory.Buffer
	if v.Valid != nil {
		nulls = n - v.Valid.Count(n)
		valid = memory.NewBufferBytes(v.Valid[:BitmapBytes(n)])
	}
	buf := func(b []byte) []*memory.Buffer { return []*memory.Buffer{valid, memory.NewBufferBytes(b)} }
	dt := ArrowType(t)
	fixed := func(b []byte) arrow.ArrayData { return array.NewData(dt, n, buf(b), nil, nulls, 0) }
	switch t.Physical() {
	case types.PhysBool:
		return fixed(v.Bools[:BitmapBytes(n)])
	case types.PhysInt8:
		return fixed(arrow.Int8Traits.CastToBytes(v.I8[:n]))
	case types.PhysInt16:
		return fixed(arrow.Int16Traits.CastToBytes(v.I16[:n]))
	case types.PhysInt32:
		return fixed(arrow.Int32Traits.CastToBytes(v.I32[:n]))
	case types.PhysInt64:
		return fixed(arrow.Int64Traits.CastToBytes(v.I64[:n]))
	case types.PhysFloat32:
		return fixed(arrow.Float32Traits.CastToBytes(v.F32[:n]))
	case types.PhysFloat64:
		return fixed(arrow.Float64Traits.CastToBytes(v.F64[:n]))
	case types.PhysDecimal128:
		return fixed(decimalBytes(v.D128[:n]))
	case types.PhysBytes:
		bufs := append(buf(arrow.Int32Traits.CastToBytes(v.Offsets[:n+1])), memory.NewBufferBytes(v.Data))
		return array.NewData(dt, n, bufs, nil, nulls, 0)
	case types.PhysList:
		child := arrowData(v.Children[0], *t.Elem, v.Children[0].Len)
		defer child.Release()
		return array.NewData(dt, n, buf(arrow.Int32Traits.CastToBytes(v.Offsets[:n+1])), []arrow.ArrayData{child}, nulls, 0)
	case types.PhysMap:
		keys := arrowData(v.Children[0], *t.Key, v.Children[0].Len)
		items := arrowData(v.Children[1], *t.Elem, v.Children[1].Len)
		entries := array.NewData(dt.(*arrow.MapType).ValueType(), v.Children[0].Len, []*memory.Buffer{nil}, []arrow.ArrayData{keys, items}, 0, 0)
		defer func() { keys.Release(); items.Release(); entries.Release() }()
		return array.NewData(dt, n, buf(arrow.Int32Traits.CastToBytes(v.Offsets[:n+1])), []arrow.ArrayData{entries}, nulls, 0)
	}
	kids := make([]arrow.ArrayData, len(v.Children))
	for i, c := range v.Children {
		kids[i] = arrowData(c, t.Fields[i].Type, n)
		defer kids[i].Release()
	}
	return array.NewData(dt, n, []*memory.Buffer{valid}, kids, nulls, 0)
}

// FromArrow makes b the columns of a record, sharing its memory where the
// layout allows: always, but for bitmaps of a record that was sliced. The
// caller keeps the record alive as long as b. The record's types must be those
// of ArrowSchema(schema).
func FromArrow(b *Batch, schema *Schema, rec arrow.Record) error {
	if int(rec.NumCols()) != len(schema.Fields) {
		return fmt.Errorf("the record has %d columns, the schema %d", rec.NumCols(), len(schema.Fields))
	}
	for i, f := range schema.Fields {
		if got, want := rec.Column(i).DataType(), ArrowType(f.Type); !arrow.TypeEqual(got, want) {
			return fmt.Errorf("column %s is %s in the record, not %s", f.Name, got, want)
		}
	}
	b.Reset(schema)
	b.Len = int(rec.NumRows())
	for i, f := range schema.Fields {
		b.Cols[i] = Vec{}
		fromArrow(&b.Cols[i], f.Type, rec.Column(i).Data())
	}
	return nil
}

func fromArrow(v *Vec, t types.Type, d arrow.ArrayData) {
	n, off := d.Len(), d.Offset()
	v.Type, v.Enc, v.Len = t, Flat, n
	bufs := d.Buffers()
	if d.NullN() != 0 && bufs[0] != nil {
		v.Valid = shiftedBits(bufs[0].Bytes(), off, n)
	}
	bytesOf := func(i int) []byte {
		if i >= len(bufs) || bufs[i] == nil {
			return nil
		}
		return bufs[i].Bytes()
	}
	switch t.Physical() {
	case types.PhysBool:
		v.Bools = shiftedBits(bytesOf(1), off, n)
	case types.PhysInt8:
		v.I8 = arrow.Int8Traits.CastFromBytes(bytesOf(1))[off : off+n]
	case types.PhysInt16:
		v.I16 = arrow.Int16Traits.CastFromBytes(bytesOf(1))[off : off+n]
	case types.PhysInt32:
		v.I32 = arrow.Int32Traits.CastFromBytes(bytesOf(1))[off : off+n]
	case types.PhysInt64:
		v.I64 = arrow.Int64Traits.CastFromBytes(bytesOf(1))[off : off+n]
	case types.PhysFloat32:
		v.F32 = arrow.Float32Traits.CastFromBytes(bytesOf(1))[off : off+n]
	case types.PhysFloat64:
		v.F64 = arrow.Float64Traits.CastFromBytes(bytesOf(1))[off : off+n]
	case types.PhysDecimal128:
		v.D128 = decimalsOf(bytesOf(1))[off : off+n]
	case types.PhysBytes:
		v.Offsets, v.Data = offsetsOf(bytesOf(1), off, n), bytesOf(2)
	case types.PhysList:
		v.Offsets = offsetsOf(bytesOf(1), off, n)
		v.Children = []*Vec{new(Vec)}
		fromArrow(v.Children[0], *t.Elem, d.Children()[0])
	case types.PhysMap:
		v.Offsets = offsetsOf(bytesOf(1), off, n)
		v.Children = []*Vec{new(Vec), new(Vec)}
		entries := d.Children()[0]
		for i, ct := range []types.Type{*t.Key, *t.Elem} {
			fromArrow(v.Children[i], ct, array.NewSliceData(entries.Children()[i], int64(entries.Offset()), int64(entries.Offset()+entries.Len())))
		}
	case types.PhysRow:
		for i, f := range t.Fields {
			c := new(Vec)
			fromArrow(c, f.Type, array.NewSliceData(d.Children()[i], int64(off), int64(off+n)))
			v.Children = append(v.Children, c)
		}
	}
}

// shiftedBits is n bits from bit off, shared when off is a whole byte.
func shiftedBits(b []byte, off, n int) Bitmap {
	if off%8 == 0 {
		return Bitmap(b[off/8 : off/8+BitmapBytes(n)])
	}
	out := Bitmap(nil).Resize(n, false)
	for i := 0; i < n; i++ {
		if bitutil.BitIsSet(b, off+i) {
			out.Set(i)
		}
	}
	return out
}

// offsetsOf is n+1 offsets; Arrow leaves the buffer out of an empty array.
func offsetsOf(b []byte, off, n int) []int32 {
	if n == 0 && len(b) == 0 {
		return []int32{0}
	}
	return arrow.Int32Traits.CastFromBytes(b)[off : off+n+1]
}
