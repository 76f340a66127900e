package format

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// BeginRow makes the fields of a PhysRow Vec ready for the values of its next row:
// NULL rows before it have not reached them yet, since most fields of records with a
// row a kind of event would be made of nothing else.
func BeginRow(v *batch.Vec) {
	for _, c := range v.Children {
		if c.Len < v.Len {
			padNulls(c, v.Len)
		}
	}
}

// padNulls appends NULLs up to length n.
func padNulls(v *batch.Vec, n int) {
	from, k := v.Len, n-v.Len
	switch v.Type.Physical() {
	case types.PhysBool:
		for len(v.Bools) < batch.BitmapBytes(n) {
			v.Bools = append(v.Bools, 0)
		}
		for i := from; i < n; i++ {
			v.Bools.Put(i, false)
		}
	case types.PhysInt8:
		v.I8 = append(v.I8, make([]int8, k)...)
	case types.PhysInt16:
		v.I16 = append(v.I16, make([]int16, k)...)
	case types.PhysInt32:
		v.I32 = append(v.I32, make([]int32, k)...)
	case types.PhysInt64:
		v.I64 = append(v.I64, make([]int64, k)...)
	case types.PhysFloat32:
		v.F32 = append(v.F32, make([]float32, k)...)
	case types.PhysFloat64:
		v.F64 = append(v.F64, make([]float64, k)...)
	case types.PhysDecimal128:
		v.D128 = append(v.D128, make([]types.Decimal128, k)...)
	case types.PhysBytes:
		padOffsets(v, k, int32(len(v.Data)))
	case types.PhysList, types.PhysMap:
		padOffsets(v, k, int32(v.Children[0].Len))
	}
	v.Len = n
	growValid(v, n)
	for i := from; i < n; {
		if i&7 == 0 && i+8 <= n {
			v.Valid[i>>3] = 0
			i += 8
			continue
		}
		v.Valid.Clear(i)
		i++
	}
}

func padOffsets(v *batch.Vec, k int, end int32) {
	for range k {
		v.Offsets = append(v.Offsets, end)
	}
}
