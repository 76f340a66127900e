package batch

import (
	"slices"

	"github.com/millrace/millrace/runtime/types"
)

// resolve follows Const and Dict to the value slices: the Vec and position
// of row i's value, and whether the row is NULL (or an error).
func (v *Vec) resolve(i int) (*Vec, int, bool) {
	null := false
	for {
		switch v.Enc {
		case Const:
			i = 0
		case Dict:
			if v.Valid != nil && !v.Valid.Get(i) {
				return v.Dict, 0, true
			}
			i = int(v.Codes[i])
			v = v.Dict
			continue
		}
		if v.Valid != nil && !v.Valid.Get(i) {
			null = true
		}
		return v, i, null
	}
}

// Put sets row i of v, a Flat Vec, to row j of src, which may be of any
// encoding and must have the same layout; NULL, error and nested values
// included. Rows come in ascending order, each at most once after Reset;
// PadOffsets completes them.
func (v *Vec) Put(i int, src *Vec, j int) {
	s, k, null := src.resolve(j)
	if null {
		v.nullRow(i)
		if src.HasErrs() {
			if e := src.Err(j); e != nil {
				v.SetErr(i, e.Code, e.Where, e.Message)
			}
		}
		return
	}
	if v.Valid != nil {
		v.Valid.Set(i)
	}
	switch v.Type.Physical() {
	case types.PhysBool:
		v.Bools.Put(i, s.Bools.Get(k))
	case types.PhysInt8:
		v.I8[i] = s.I8[k]
	case types.PhysInt16:
		v.I16[i] = s.I16[k]
	case types.PhysInt32:
		v.I32[i] = s.I32[k]
	case types.PhysInt64:
		v.I64[i] = s.I64[k]
	case types.PhysFloat32:
		v.F32[i] = s.F32[k]
	case types.PhysFloat64:
		v.F64[i] = s.F64[k]
	case types.PhysDecimal128:
		v.D128[i] = s.D128[k]
	case types.PhysBytes:
		v.PutBytes(i, s.Data[s.Offsets[k]:s.Offsets[k+1]])
	case types.PhysList, types.PhysMap:
		v.padTo(i)
		for c, child := range v.Children {
			for x := s.Offsets[k]; x < s.Offsets[k+1]; x++ {
				child.Append(s.Children[c], int(x))
			}
		}
		v.EndList()
	case types.PhysRow:
		for c, child := range v.Children {
			child.Put(i, s.Children[c], k)
		}
	}
}

// nullRow makes row i NULL with a readable value; fields of a ROW included.
func (v *Vec) nullRow(i int) {
	v.SetNull(i)
	switch v.Type.Physical() {
	case types.PhysBytes, types.PhysList, types.PhysMap:
		v.padTo(i + 1)
	case types.PhysRow:
		for _, c := range v.Children {
			c.nullRow(i)
		}
	}
}

// NullRow makes row i of a Flat Vec NULL, in each field too for a ROW. Rows
// of variable layouts come in ascending order.
func (v *Vec) NullRow(i int) { v.nullRow(i) }

// Append adds row j of src as a new row to v, a Flat Vec.
func (v *Vec) Append(src *Vec, j int) {
	v.Grow(1)
	v.Put(v.Len-1, src, j)
}

// AppendNull adds a NULL row to v, a Flat Vec.
func (v *Vec) AppendNull() {
	v.Grow(1)
	v.nullRow(v.Len - 1)
}

// Grow adds n rows to a Flat Vec whose rows are all written; the new values
// are unspecified and not NULL, and variable layouts wait for their Put.
func (v *Vec) Grow(n int) {
	v.PadOffsets()
	old := v.Len
	v.Len += n
	if v.Valid != nil {
		v.Valid = growBits(v.Valid, old, v.Len, true)
	}
	switch v.Type.Physical() {
	case types.PhysBool:
		v.Bools = growBits(v.Bools, old, v.Len, false)
	case types.PhysInt8:
		v.I8 = grow(v.I8, n)
	case types.PhysInt16:
		v.I16 = grow(v.I16, n)
	case types.PhysInt32:
		v.I32 = grow(v.I32, n)
	case types.PhysInt64:
		v.I64 = grow(v.I64, n)
	case types.PhysFloat32:
		v.F32 = grow(v.F32, n)
	case types.PhysFloat64:
		v.F64 = grow(v.F64, n)
	case types.PhysDecimal128:
		v.D128 = grow(v.D128, n)
	case types.PhysRow:
		for _, c := range v.Children {
			c.Grow(n)
		}
	}
}

func grow[T any](s []T, n int) []T {
	return slices.Grow(s, n)[:len(s)+n]
}

// growBits extends a bitmap from old to n bits; new bits are v.
func growBits(b Bitmap, old, n int, v bool) Bitmap {
	need := BitmapBytes(n)
	for len(b) < need {
		b = append(b, 0)
	}
	b = b[:need]
	for i := old; i < n; i++ {
		b.Put(i, v)
	}
	return b
}

// Take makes v a Flat Vec of the rows of src that sel lists, in that order
// (nil: all rows), repetitions allowed. v must not share memory with src.
func (v *Vec) Take(src *Vec, sel Sel) {
	n := src.Len
	if sel != nil {
		n = len(sel)
	}
	v.Reset(src.Type, n)
	if src.Enc == Flat && !src.HasErrs() && v.takeFixed(src, sel) {
		v.takeValid(src, sel)
		return
	}
	if sel == nil {
		for i := 0; i < n; i++ {
			v.Put(i, src, i)
		}
	} else {
		for i, r := range sel {
			v.Put(i, src, int(r))
		}
	}
	v.PadOffsets()
}

func (v *Vec) takeValid(src *Vec, sel Sel) {
	if src.Valid == nil {
		return
	}
	v.AllValid(v.Len)
	if sel == nil {
		copy(v.Valid, src.Valid)
		return
	}
	for i, r := range sel {
		if !src.Valid.Get(int(r)) {
			v.Valid.Clear(i)
		}
	}
}

func (v *Vec) takeFixed(src *Vec, sel Sel) bool {
	switch v.Type.Physical() {
	case types.PhysBool:
		if sel == nil {
			copy(v.Bools, src.Bools)
			return true
		}
		for i, r := range sel {
			if src.Bools.Get(int(r)) {
				v.Bools.Set(i)
			}
		}
	case types.PhysInt8:
		take(v.I8, src.I8, sel)
	case types.PhysInt16:
		take(v.I16, src.I16, sel)
	case types.PhysInt32:
		take(v.I32, src.I32, sel)
	case types.PhysInt64:
		take(v.I64, src.I64, sel)
	case types.PhysFloat32:
		take(v.F32, src.F32, sel)
	case types.PhysFloat64:
		take(v.F64, src.F64, sel)
	case types.PhysDecimal128:
		take(v.D128, src.D128, sel)
	case types.PhysBytes:
		v.takeBytes(src, sel)
	default:
		return false
	}
	return true
}

func take[T any](dst, src []T, sel Sel) {
	if sel == nil {
		copy(dst, src[:len(dst)])
		return
	}
	for i, r := range sel {
		dst[i] = src[r]
	}
}

func (v *Vec) takeBytes(src *Vec, sel Sel) {
	if sel == nil {
		base := src.Offsets[0]
		v.Data = append(v.Data, src.Data[base:src.Offsets[src.Len]]...)
		for i := 1; i <= src.Len; i++ {
			v.Offsets = append(v.Offsets, src.Offsets[i]-base)
		}
		return
	}
	size := 0
	for _, r := range sel {
		size += int(src.Offsets[r+1] - src.Offsets[r])
	}
	v.Data, v.Offsets = slices.Grow(v.Data, size), slices.Grow(v.Offsets, len(sel))
	for _, r := range sel {
		v.Data = append(v.Data, src.Data[src.Offsets[r]:src.Offsets[r+1]]...)
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
}

// Flatten makes v a Flat copy of src, whatever its encoding.
func (v *Vec) Flatten(src *Vec) { v.Take(src, nil) }

// Clone returns an independent Flat copy.
func (v *Vec) Clone() *Vec {
	c := new(Vec)
	c.Flatten(v)
	return c
}

// Take makes b the rows of src that sel lists in ascending order (nil: all),
// columns copied, with their kinds and watermarks. Positions are kept: runs
// keep the offsets they dispose of, with the rows that remain.
func (b *Batch) Take(src *Batch, sel Sel) {
	b.Reset(src.Schema)
	b.Len = src.Len
	if sel != nil {
		b.Len = len(sel)
	}
	for i := range src.Cols {
		b.Cols[i].Take(&src.Cols[i], sel)
	}
	b.Kinds = takeSlice(src.Kinds, sel)
	b.RowIndex = takeSlice(src.RowIndex, sel)
	b.Watermark = takeSlice(src.Watermark, sel)
	b.takeRuns(src, sel)
}

func takeSlice[T any](src []T, sel Sel) []T {
	if src == nil {
		return nil
	}
	if sel == nil {
		return slices.Clone(src)
	}
	out := make([]T, len(sel))
	take(out, src, sel)
	return out
}

func (b *Batch) takeRuns(src *Batch, sel Sel) {
	b.Runs = append(b.Runs, src.Runs...)
	b.Notes = append(b.Notes, src.Notes...)
	if sel == nil {
		b.OffsetDelta = slices.Clone(src.OffsetDelta)
		return
	}
	if len(src.Runs) == 0 {
		return
	}
	b.OffsetDelta = make([]int32, len(sel))
	k := 0
	for i := range b.Runs {
		r := &b.Runs[i]
		from := src.Runs[i]
		end := from.FirstRow + from.Rows
		r.FirstRow = int32(k)
		for k < len(sel) && sel[k] < end {
			b.OffsetDelta[k] = int32(src.Offset(&from, int(sel[k])) - from.BaseOffset)
			k++
		}
		r.Rows = int32(k) - r.FirstRow
	}
}

// CopyRows sets the rows that sel lists to the same rows of src, NULLs
// included, if both have one fixed-width layout and src is Flat or Const
// without errors; else it does nothing and returns false. Unlike Put it takes
// rows in any order and again.
func (v *Vec) CopyRows(src *Vec, sel Sel) bool {
	if src.Enc == Dict || src.HasErrs() {
		return false
	}
	m := int32(-1)
	if src.Enc == Const {
		m = 0
	}
	switch v.Type.Physical() {
	case types.PhysBool:
		for _, i := range sel {
			v.Bools.Put(int(i), src.Bools.Get(int(i&m)))
		}
	case types.PhysInt8:
		copyRows(v.I8, src.I8, sel, m)
	case types.PhysInt16:
		copyRows(v.I16, src.I16, sel, m)
	case types.PhysInt32:
		copyRows(v.I32, src.I32, sel, m)
	case types.PhysInt64:
		copyRows(v.I64, src.I64, sel, m)
	case types.PhysFloat32:
		copyRows(v.F32, src.F32, sel, m)
	case types.PhysFloat64:
		copyRows(v.F64, src.F64, sel, m)
	case types.PhysDecimal128:
		copyRows(v.D128, src.D128, sel, m)
	default:
		return false
	}
	if src.Valid == nil && v.Valid == nil {
		return true
	}
	if v.Valid == nil {
		v.AllValid(v.Len)
	}
	for _, i := range sel {
		v.Valid.Put(int(i), src.Valid == nil || src.Valid.Get(int(i&m)))
	}
	return true
}

func copyRows[T any](dst, src []T, sel Sel, m int32) {
	for _, i := range sel {
		dst[i] = src[i&m]
	}
}
