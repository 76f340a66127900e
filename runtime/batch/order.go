package batch

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/runtime/types"
)

// Order keys compare with bytes.Compare as the values they are made of:
// NULL first, numbers by size, text by code point. They order the rows of
// FIRST_VALUE, LAST_VALUE, LISTAGG, ARRAY_AGG and wide-table versions.

// AppendOrderValue appends row i of v, a scalar column of any encoding. Floats
// are in total order: -0.0 before 0.0, NaN last.
func AppendOrderValue(dst []byte, v *Vec, i int) []byte {
	v, i, null := v.resolve(i)
	if null {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	switch v.Type.Physical() {
	case types.PhysBool:
		if v.Bools.Get(i) {
			return append(dst, 1)
		}
		return append(dst, 0)
	case types.PhysFloat32, types.PhysFloat64:
		return binary.BigEndian.AppendUint64(dst, uint64(OrderedFloat(v.Float64(i)))^1<<63)
	case types.PhysDecimal128:
		d := v.D128[i]
		dst = binary.BigEndian.AppendUint64(dst, uint64(d.Hi)^1<<63)
		return binary.BigEndian.AppendUint64(dst, d.Lo)
	case types.PhysBytes:
		return appendOrderBytes(dst, v.Data[v.Offsets[i]:v.Offsets[i+1]])
	case types.PhysList, types.PhysMap, types.PhysRow:
		return appendOrderBytes(dst, AppendValue(nil, v, i))
	}
	return binary.BigEndian.AppendUint64(dst, uint64(v.Int64(i))^1<<63)
}

// AppendOrderInt appends an integer, such as a row time or an offset.
func AppendOrderInt(dst []byte, x int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 1), uint64(x)^1<<63)
}

// AppendOrderPosition appends a row's origin, by which equal versions are told
// apart: branch label, topic name, partition, offset, row index.
func AppendOrderPosition(dst []byte, label, topic string, partition int32, offset int64, rowIndex int32) []byte {
	dst = appendOrderBytes(dst, []byte(label))
	dst = appendOrderBytes(dst, []byte(topic))
	dst = binary.BigEndian.AppendUint32(dst, uint32(partition)^1<<31)
	dst = binary.BigEndian.AppendUint64(dst, uint64(offset)^1<<63)
	return binary.BigEndian.AppendUint32(dst, uint32(rowIndex)^1<<31)
}

// appendOrderBytes escapes 0 as 0 FF and ends with 0 0, so that a prefix comes
// first.
func appendOrderBytes(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, c)
		if c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 0)
}

// OrderedFloat maps a double to an integer of the same total order.
func OrderedFloat(f float64) int64 {
	if f != f {
		return math.MaxInt64 // one NaN, after +Infinity
	}
	b := int64(math.Float64bits(f))
	return b ^ int64(uint64(b>>63)>>1)
}

// FloatFromOrdered is the inverse of OrderedFloat.
func FloatFromOrdered(x int64) float64 {
	if x == math.MaxInt64 {
		return math.NaN()
	}
	return math.Float64frombits(uint64(x ^ int64(uint64(x>>63)>>1)))
}
