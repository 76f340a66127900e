package parquetfmt

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// randomType gives a type that Parquet can store, nested up to depth.
func randomType(r *rand.Rand, depth int) types.Type {
	n := 18
	if depth > 0 {
		n = 21
	}
	switch r.IntN(n) {
	case 0:
		return types.NewBoolean()
	case 1:
		return types.NewTinyInt()
	case 2:
		return types.NewSmallInt()
	case 3:
		return types.NewInt()
	case 4:
		return types.NewBigInt()
	case 5:
		return types.NewFloat()
	case 6:
		return types.NewDouble()
	case 7, 8, 9:
		p := 1 + r.IntN(38)
		return types.NewDecimal(p, r.IntN(p+1))
	case 10:
		return types.NewVarchar(20)
	case 11:
		return types.NewString()
	case 12:
		return types.NewBytes()
	case 13:
		return types.NewDate()
	case 14:
		return types.NewTime(3)
	case 15:
		return types.NewTimestamp([]int{3, 6, 9}[r.IntN(3)])
	case 16:
		return types.NewTimestampLTZ([]int{3, 6, 9}[r.IntN(3)])
	case 17:
		return types.NewString()
	case 18:
		return types.NewArray(randomType(r, depth-1))
	case 19:
		return types.NewMap(types.NewString(), randomType(r, depth-1))
	}
	var fs []types.Field
	for i := range 1 + r.IntN(3) {
		fs = append(fs, types.Field{Name: fmt.Sprintf("f%d", i), Type: randomType(r, depth-1)})
	}
	return types.NewRow(fs...)
}

// randomVec fills a column of n rows. nulls is the share of NULLs; distinct
// bounds the number of different values, 0 for no bound.
func randomVec(r *rand.Rand, t types.Type, n int, nulls float64, distinct int, allowEnc bool) *batch.Vec {
	if allowEnc && n > 0 {
		switch r.IntN(6) {
		case 0:
			c := randomVec(r, t, 1, nulls, distinct, false)
			c.Enc, c.Len = batch.Const, n
			return c
		case 1:
			d := randomVec(r, t, 1+r.IntN(20), nulls, distinct, false)
			v := &batch.Vec{Type: t, Enc: batch.Dict, Len: n, Dict: d, Codes: make([]int32, n)}
			for i := range v.Codes {
				v.Codes[i] = int32(r.IntN(d.Len))
			}
			if r.IntN(2) == 0 {
				for i := range n {
					if r.Float64() < nulls {
						v.SetNull(i)
					}
				}
			}
			return v
		}
	}
	v := new(batch.Vec)
	v.Reset(t, n)
	if t.Nullable && nulls > 0 {
		for i := range n {
			if r.Float64() < nulls {
				v.SetNull(i)
			}
		}
	}
	pick := func() uint64 {
		if distinct > 0 {
			return uint64(r.IntN(distinct)) * 0x9e3779b97f4a7c15
		}
		return r.Uint64()
	}
	switch t.Physical() {
	case types.PhysBool:
		for i := range n {
			v.Bools.Put(i, pick()>>63 == 1)
		}
	case types.PhysInt8:
		for i := range n {
			v.I8[i] = int8(pick() >> 40)
		}
	case types.PhysInt16:
		for i := range n {
			v.I16[i] = int16(pick() >> 40)
		}
	case types.PhysInt32:
		for i := range n {
			v.I32[i] = int32(pick() >> 32)
			switch t.Kind {
			case types.Time:
				v.I32[i] = int32(pick() % 86400000)
			case types.Date:
				v.I32[i] = int32(pick()%2000000) - 1000000
			}
		}
	case types.PhysInt64:
		for i := range n {
			x := int64(pick())
			switch {
			case t.Kind == types.Decimal:
				x %= pow10(t.Precision)
			case t.IsTimestamp() && t.Precision <= 3:
				x = x % 1e12 * 1000
			case t.IsTimestamp() && t.Precision <= 6:
				x %= 1e16
			}
			v.I64[i] = x
		}
	case types.PhysFloat32:
		for i := range n {
			v.F32[i] = float32(int32(pick()>>32)) / 64
		}
	case types.PhysFloat64:
		for i := range n {
			v.F64[i] = float64(int64(pick())) / 64
			if pick()%50 == 0 {
				v.F64[i] = math.Inf(1)
			}
		}
	case types.PhysDecimal128:
		lim := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision)), nil)
		for i := range n {
			x := new(big.Int).SetUint64(pick())
			x.Mul(x, new(big.Int).SetUint64(pick()))
			x.Rem(x, lim)
			if pick()&(1<<40) != 0 {
				x.Neg(x)
			}
			v.D128[i] = dec128(x)
		}
	case types.PhysBytes:
		for range n {
			k := pick()
			switch k % 20 {
			case 0:
			case 1:
				v.Data = append(v.Data, fmt.Sprintf("%0*d", 40+k%60, k)...)
			default:
				v.Data = append(v.Data, fmt.Sprintf("é%d", k%100000)...)
			}
			v.Offsets = append(v.Offsets, int32(len(v.Data)))
		}
	case types.PhysList, types.PhysMap:
		total := 0
		for range n {
			if r.IntN(3) > 0 {
				total += r.IntN(4)
			}
			v.Offsets = append(v.Offsets, int32(total))
		}
		if t.Kind == types.Map {
			v.Children[0] = randomVec(r, *t.Key, total, 0, 0, false)
			v.Children[1] = randomVec(r, *t.Elem, total, nulls, distinct, true)
		} else {
			v.Children[0] = randomVec(r, *t.Elem, total, nulls, distinct, true)
		}
	case types.PhysRow:
		for i, f := range t.Fields {
			v.Children[i] = randomVec(r, f.Type, n, nulls, distinct, true)
		}
	}
	return v
}

func pow10(p int) int64 {
	x := int64(1)
	for range p {
		x *= 10
	}
	return x
}

func dec128(x *big.Int) types.Decimal128 {
	lo := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	return types.Decimal128{Lo: lo, Hi: new(big.Int).Rsh(x, 64).Int64()}
}

func bigOf(d types.Decimal128) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(d.Hi), 64)
	return x.Or(x, new(big.Int).SetUint64(d.Lo))
}

// plainValue is row i of v as a plain Go value: the form in which results of
// different readers are compared. Decimals are the unscaled number as text,
// lists and rows []any, maps a list of pairs.
func plainValue(v *batch.Vec, i int) any {
	if v.IsNull(i) {
		return nil
	}
	for v.Enc == batch.Dict {
		i, v = int(v.Codes[i]), v.Dict
	}
	i = v.Index(i)
	switch v.Type.Physical() {
	case types.PhysBool:
		return v.Bools.Get(i)
	case types.PhysInt8:
		return int64(v.I8[i])
	case types.PhysInt16:
		return int64(v.I16[i])
	case types.PhysInt32:
		return int64(v.I32[i])
	case types.PhysInt64:
		if v.Type.Kind == types.Decimal {
			return fmt.Sprint(v.I64[i])
		}
		return v.I64[i]
	case types.PhysFloat32:
		return float64(v.F32[i])
	case types.PhysFloat64:
		return v.F64[i]
	case types.PhysDecimal128:
		return bigOf(v.D128[i]).String()
	case types.PhysBytes:
		return string(v.Bytes(i))
	case types.PhysList:
		out := []any{}
		for k := v.Offsets[i]; k < v.Offsets[i+1]; k++ {
			out = append(out, plainValue(v.Children[0], int(k)))
		}
		return out
	case types.PhysMap:
		out := []any{}
		for k := v.Offsets[i]; k < v.Offsets[i+1]; k++ {
			out = append(out, []any{plainValue(v.Children[0], int(k)), plainValue(v.Children[1], int(k))})
		}
		return out
	}
	out := []any{}
	for _, c := range v.Children {
		out = append(out, plainValue(c, i))
	}
	return out
}
