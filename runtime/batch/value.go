package batch

import (
	"github.com/millrace/millrace/runtime/types"
)

// Int64 is the value of row i of a Flat or Const Vec of an integer layout
// (PhysInt8..PhysInt64), whatever the type means by it.
func (v *Vec) Int64(i int) int64 {
	i = v.Index(i)
	switch v.Type.Physical() {
	case types.PhysInt8:
		return int64(v.I8[i])
	case types.PhysInt16:
		return int64(v.I16[i])
	case types.PhysInt32:
		return int64(v.I32[i])
	}
	return v.I64[i]
}

// SetInt64 sets row i of a Flat Vec of an integer layout, or of DECIMAL; it
// does not check the range.
func (v *Vec) SetInt64(i int, x int64) {
	switch v.Type.Physical() {
	case types.PhysInt8:
		v.I8[i] = int8(x)
	case types.PhysInt16:
		v.I16[i] = int16(x)
	case types.PhysInt32:
		v.I32[i] = int32(x)
	case types.PhysInt64:
		v.I64[i] = x
	case types.PhysDecimal128:
		v.D128[i] = types.DecimalFromInt64(x)
	}
}

// Float64 is the value of row i of a Flat or Const FLOAT or DOUBLE Vec.
func (v *Vec) Float64(i int) float64 {
	i = v.Index(i)
	if v.Type.Kind == types.Float {
		return float64(v.F32[i])
	}
	return v.F64[i]
}

// SetFloat64 sets row i of a Flat FLOAT or DOUBLE Vec.
func (v *Vec) SetFloat64(i int, x float64) {
	if v.Type.Kind == types.Float {
		v.F32[i] = float32(x)
	} else {
		v.F64[i] = x
	}
}

// Decimal is the unscaled value of row i of a Flat or Const DECIMAL Vec of
// either layout.
func (v *Vec) Decimal(i int) types.Decimal128 {
	i = v.Index(i)
	if v.Type.Precision <= 18 {
		return types.DecimalFromInt64(v.I64[i])
	}
	return v.D128[i]
}

// SetDecimal sets row i of a Flat DECIMAL Vec; the value must fit the
// precision.
func (v *Vec) SetDecimal(i int, d types.Decimal128) {
	if v.Type.Precision <= 18 {
		v.I64[i] = int64(d.Lo)
	} else {
		v.D128[i] = d
	}
}

// Bool is the value of row i of a Flat or Const BOOLEAN Vec.
func (v *Vec) Bool(i int) bool { return v.Bools.Get(v.Index(i)) }

// PutBytes sets row i of a Flat PhysBytes Vec. Rows come in ascending order;
// rows that are left out become empty. Call PadOffsets after the last.
func (v *Vec) PutBytes(i int, b []byte) {
	v.padTo(i)
	v.Data = append(v.Data, b...)
	v.Offsets = append(v.Offsets, int32(len(v.Data)))
}

// PutString is PutBytes of a string.
func (v *Vec) PutString(i int, s string) {
	v.padTo(i)
	v.Data = append(v.Data, s...)
	v.Offsets = append(v.Offsets, int32(len(v.Data)))
}

// BeginBytes opens row i for appending to v.Data directly; EndBytes closes it.
func (v *Vec) BeginBytes(i int) { v.padTo(i) }

// EndBytes closes the row that BeginBytes opened.
func (v *Vec) EndBytes() { v.Offsets = append(v.Offsets, int32(len(v.Data))) }

// BeginList opens row i of a Flat ARRAY or MAP Vec for appending to its
// children; EndList closes it.
func (v *Vec) BeginList(i int) { v.padTo(i) }

// EndList closes the row that BeginList opened.
func (v *Vec) EndList() { v.Offsets = append(v.Offsets, int32(v.Children[0].Len)) }

// padTo appends empty rows until rows 0..i-1 exist.
func (v *Vec) padTo(i int) {
	last := v.Offsets[len(v.Offsets)-1]
	for len(v.Offsets) <= i {
		v.Offsets = append(v.Offsets, last)
	}
}

// PadOffsets completes the offsets of a variable layout to Len rows, so that
// rows never written are empty; ROW fields are completed too.
func (v *Vec) PadOffsets() {
	if v.Enc != Flat {
		return
	}
	switch v.Type.Physical() {
	case types.PhysBytes, types.PhysList, types.PhysMap:
		v.padTo(v.Len)
	case types.PhysRow:
		for _, c := range v.Children {
			c.PadOffsets()
		}
	}
}

// Range is the span of the children's rows of row i of an ARRAY or MAP Vec of
// encoding Flat or Const.
func (v *Vec) Range(i int) (from, to int) {
	i = v.Index(i)
	return int(v.Offsets[i]), int(v.Offsets[i+1])
}

// SetConst makes v a Const Vec of n rows, all equal to row i of src (which
// may be of any encoding), its NULL or error included. The value is copied.
func (v *Vec) SetConst(src *Vec, i, n int) {
	v.Reset(src.Type, 1)
	v.Put(0, src, i)
	v.PadOffsets()
	v.Enc, v.Len = Const, n
}

// SetAllNull makes v a Const Vec of n NULLs of type t.
func (v *Vec) SetAllNull(t types.Type, n int) {
	v.Reset(t, 1)
	v.nullRow(0)
	v.PadOffsets()
	if t.Physical() == types.PhysBool {
		v.Bools.Clear(0)
	}
	v.Enc, v.Len = Const, n
}

// DeepErr is the error of row i or the first one inside its nested value.
func (v *Vec) DeepErr(i int) *ValueError {
	if e := v.Err(i); e != nil {
		return e
	}
	if len(v.Children) == 0 && v.Dict == nil || v.IsNull(i) {
		return nil
	}
	if v.Enc == Dict {
		return v.Dict.DeepErr(int(v.Codes[i]))
	}
	i = v.Index(i)
	switch v.Type.Physical() {
	case types.PhysRow:
		for _, c := range v.Children {
			if e := c.DeepErr(i); e != nil {
				return e
			}
		}
	case types.PhysList, types.PhysMap:
		for _, c := range v.Children {
			if !c.HasDeepErrs() {
				continue
			}
			for j := int(v.Offsets[i]); j < int(v.Offsets[i+1]); j++ {
				if e := c.DeepErr(j); e != nil {
					return e
				}
			}
		}
	}
	return nil
}

// HasDeepErrs reports whether any row, dictionary value or nested value is an
// error.
func (v *Vec) HasDeepErrs() bool {
	if v.HasErrs() {
		return true
	}
	if v.Enc == Dict {
		return v.Dict.HasDeepErrs()
	}
	for _, c := range v.Children {
		if c.HasDeepErrs() {
			return true
		}
	}
	return false
}

// HasNulls reports whether any row may be NULL or an error.
func (v *Vec) HasNulls() bool {
	return v.Valid != nil || v.Enc == Dict && v.Dict.HasNulls()
}
