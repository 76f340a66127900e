package format

import (
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// The Append functions add one value at the end of a Vec that was emptied by
// Vec.Reset(t, 0). While a column is built Vec.Len is the number of values
// appended, and Valid, if not nil, may be shorter than Len: bits that are not
// there yet are set; the fields of a row may be shorter, see BeginRow. Seal makes it
// whole.

// AppendBool appends to a PhysBool Vec.
func AppendBool(v *batch.Vec, x bool) {
	i := v.Len
	if i>>3 >= len(v.Bools) {
		v.Bools = append(v.Bools, 0)
	}
	v.Bools.Put(i, x)
	v.Len = i + 1
}

// AppendInt8 appends to a PhysInt8 Vec.
func AppendInt8(v *batch.Vec, x int8) { v.I8 = append(v.I8, x); v.Len++ }

// AppendInt16 appends to a PhysInt16 Vec.
func AppendInt16(v *batch.Vec, x int16) { v.I16 = append(v.I16, x); v.Len++ }

// AppendInt32 appends to a PhysInt32 Vec.
func AppendInt32(v *batch.Vec, x int32) { v.I32 = append(v.I32, x); v.Len++ }

// AppendInt64 appends to a PhysInt64 Vec.
func AppendInt64(v *batch.Vec, x int64) { v.I64 = append(v.I64, x); v.Len++ }

// AppendFloat32 appends to a PhysFloat32 Vec.
func AppendFloat32(v *batch.Vec, x float32) { v.F32 = append(v.F32, x); v.Len++ }

// AppendFloat64 appends to a PhysFloat64 Vec.
func AppendFloat64(v *batch.Vec, x float64) { v.F64 = append(v.F64, x); v.Len++ }

// AppendDecimal128 appends to a PhysDecimal128 Vec.
func AppendDecimal128(v *batch.Vec, x types.Decimal128) { v.D128 = append(v.D128, x); v.Len++ }

// AppendBytes appends to a PhysBytes Vec; see Room.
func AppendBytes(v *batch.Vec, x []byte) {
	v.Data = append(v.Data, x...)
	v.Offsets = append(v.Offsets, int32(len(v.Data)))
	v.Len++
}

// AppendString is AppendBytes of a string.
func AppendString(v *batch.Vec, x string) {
	v.Data = append(v.Data, x...)
	v.Offsets = append(v.Offsets, int32(len(v.Data)))
	v.Len++
}

// Room reports whether n more bytes fit into a PhysBytes Vec, whose offsets
// are 32 bit.
func Room(v *batch.Vec, n int) bool { return len(v.Data)+n <= math.MaxInt32 }

// CloseList ends the list or map whose elements were appended to the children.
func CloseList(v *batch.Vec) {
	v.Offsets = append(v.Offsets, int32(v.Children[0].Len))
	v.Len++
}

// AppendNull appends a NULL; a NULL row is NULL in each of its fields, which BeginRow
// and Seal see to.
func AppendNull(v *batch.Vec) {
	appendZero(v)
	clearValid(v, v.Len-1)
}

// AppendFrom appends row j of another column of the type.
func AppendFrom(v, src *batch.Vec, j int) {
	Seal(v)
	v.Append(src, j)
}

// AppendErr appends a value that is an error.
func AppendErr(v *batch.Vec, code batch.Code, where, message string) {
	row := v.Len
	AppendNull(v)
	v.Errs = append(v.Errs, batch.ValueError{Row: int32(row), Code: code, Where: where, Message: message})
}

func appendZero(v *batch.Vec) {
	switch v.Type.Physical() {
	case types.PhysBool:
		AppendBool(v, false)
		return
	case types.PhysInt8:
		v.I8 = append(v.I8, 0)
	case types.PhysInt16:
		v.I16 = append(v.I16, 0)
	case types.PhysInt32:
		v.I32 = append(v.I32, 0)
	case types.PhysInt64:
		v.I64 = append(v.I64, 0)
	case types.PhysFloat32:
		v.F32 = append(v.F32, 0)
	case types.PhysFloat64:
		v.F64 = append(v.F64, 0)
	case types.PhysDecimal128:
		v.D128 = append(v.D128, types.Decimal128{})
	case types.PhysBytes:
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	case types.PhysList, types.PhysMap:
		v.Offsets = append(v.Offsets, int32(v.Children[0].Len))
	}
	v.Len++
}

func clearValid(v *batch.Vec, i int) {
	growValid(v, i+1)
	v.Valid.Clear(i)
}

func growValid(v *batch.Vec, n int) {
	nb := batch.BitmapBytes(n)
	if v.Valid == nil {
		v.Valid = make(batch.Bitmap, 0, max(nb, 128))
	}
	for len(v.Valid) < nb {
		v.Valid = append(v.Valid, 0xff)
	}
}

// Truncate drops the values from n on, and whatever was begun and not ended.
func Truncate(v *batch.Vec, n int) {
	switch v.Type.Physical() {
	case types.PhysBool:
		// Bits beyond Len are overwritten by the next append.
	case types.PhysInt8:
		v.I8 = v.I8[:n]
	case types.PhysInt16:
		v.I16 = v.I16[:n]
	case types.PhysInt32:
		v.I32 = v.I32[:n]
	case types.PhysInt64:
		v.I64 = v.I64[:n]
	case types.PhysFloat32:
		v.F32 = v.F32[:n]
	case types.PhysFloat64:
		v.F64 = v.F64[:n]
	case types.PhysDecimal128:
		v.D128 = v.D128[:n]
	case types.PhysBytes:
		v.Offsets = v.Offsets[:n+1]
		v.Data = v.Data[:v.Offsets[n]]
	case types.PhysList, types.PhysMap:
		v.Offsets = v.Offsets[:n+1]
		for _, c := range v.Children {
			Truncate(c, int(v.Offsets[n]))
		}
	case types.PhysRow:
		for _, c := range v.Children {
			Truncate(c, min(n, c.Len)) // shorter where the last rows are NULL
		}
	}
	if v.Valid != nil {
		for i := n; i < v.Len && i>>3 < len(v.Valid); i++ {
			v.Valid.Set(i)
		}
	}
	for len(v.Errs) > 0 && int(v.Errs[len(v.Errs)-1].Row) >= n {
		v.Errs = v.Errs[:len(v.Errs)-1]
	}
	v.Len = n
}

// Seal makes the validity of a built column, and of its children, whole.
func Seal(v *batch.Vec) {
	if v.Valid != nil {
		growValid(v, v.Len)
	}
	if v.Type.Physical() == types.PhysRow {
		BeginRow(v)
	}
	for _, c := range v.Children {
		Seal(c)
	}
}
