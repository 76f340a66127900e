package batch

import "github.com/millrace/millrace/runtime/types"

// AppendVec adds all rows of src to v, a Flat Vec of the same layout.
func (v *Vec) AppendVec(src *Vec) { v.AppendRows(src, nil) }

// AppendRows adds the rows of src that sel lists, in that order (nil: all), to
// v, a Flat Vec of the same layout; src may be of any encoding.
func (v *Vec) AppendRows(src *Vec, sel Sel) {
	if src.Enc == Flat && !src.HasErrs() && v.appendFlat(src, sel) {
		return
	}
	if sel == nil {
		for i := 0; i < src.Len; i++ {
			v.Append(src, i)
		}
	} else {
		for _, i := range sel {
			v.Append(src, int(i))
		}
	}
	v.PadOffsets()
}

// appendFlat is AppendRows for fixed-width values and bytes.
func (v *Vec) appendFlat(src *Vec, sel Sel) bool {
	n := src.Len
	if sel != nil {
		n = len(sel)
	}
	phys := v.Type.Physical()
	if phys > types.PhysBytes {
		return false
	}
	old := v.Len
	v.Grow(n)
	switch phys {
	case types.PhysBool:
		for k := 0; k < n; k++ {
			v.Bools.Put(old+k, src.Bools.Get(pick(sel, k)))
		}
	case types.PhysInt8:
		take(v.I8[old:], src.I8, sel)
	case types.PhysInt16:
		take(v.I16[old:], src.I16, sel)
	case types.PhysInt32:
		take(v.I32[old:], src.I32, sel)
	case types.PhysInt64:
		take(v.I64[old:], src.I64, sel)
	case types.PhysFloat32:
		take(v.F32[old:], src.F32, sel)
	case types.PhysFloat64:
		take(v.F64[old:], src.F64, sel)
	case types.PhysDecimal128:
		take(v.D128[old:], src.D128, sel)
	case types.PhysBytes:
		for k := 0; k < n; k++ {
			i := pick(sel, k)
			v.Data = append(v.Data, src.Data[src.Offsets[i]:src.Offsets[i+1]]...)
			v.Offsets = append(v.Offsets, int32(len(v.Data)))
		}
	}
	if src.Valid != nil {
		for k := 0; k < n; k++ {
			if !src.Valid.Get(pick(sel, k)) {
				v.SetNull(old + k)
			}
		}
	}
	return true
}

// pick is row k of a selection.
func pick(sel Sel, k int) int {
	if sel == nil {
		return k
	}
	return int(sel[k])
}
