package print

import (
	"strconv"

	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// AppendValue appends row i of v as Flink's print sink shows it: null, numbers
// plain, times in ISO form, arrays [a, b], maps {k=v}, rows +I[a, b].
func AppendValue(dst []byte, v *batch.Vec, i int) []byte {
	if v.IsNull(i) {
		return append(dst, "null"...)
	}
	for v.Enc == batch.Dict {
		i, v = int(v.Codes[i]), v.Dict
	}
	i = v.Index(i)
	t := v.Type
	switch t.Kind {
	case types.Boolean:
		return strconv.AppendBool(dst, v.Bools.Get(i))
	case types.TinyInt:
		return strconv.AppendInt(dst, int64(v.I8[i]), 10)
	case types.SmallInt:
		return strconv.AppendInt(dst, int64(v.I16[i]), 10)
	case types.Int, types.IntervalYearMonth:
		return strconv.AppendInt(dst, int64(v.I32[i]), 10)
	case types.BigInt, types.IntervalDaySecond:
		return strconv.AppendInt(dst, v.I64[i], 10)
	case types.Float:
		return scalar.AppendFloat32(dst, v.F32[i])
	case types.Double:
		return scalar.AppendFloat64(dst, v.F64[i])
	case types.Decimal:
		if t.Physical() == types.PhysInt64 {
			return types.AppendDecimal(dst, types.DecimalFromInt64(v.I64[i]), t.Scale)
		}
		return types.AppendDecimal(dst, v.D128[i], t.Scale)
	case types.Date:
		return scalar.AppendDate(dst, v.I32[i])
	case types.Time:
		return scalar.AppendTimeOfDay(dst, v.I32[i])
	case types.Timestamp, types.TimestampLTZ:
		return scalar.AppendTimestamp(dst, v.I64[i], scalar.ISO8601, t.Kind == types.TimestampLTZ, t.Precision)
	case types.Binary, types.Varbinary:
		dst = append(dst, '[')
		for k, b := range v.Bytes(i) {
			if k > 0 {
				dst = append(dst, ", "...)
			}
			dst = strconv.AppendInt(dst, int64(int8(b)), 10)
		}
		return append(dst, ']')
	case types.Array:
		dst = append(dst, '[')
		for k := v.Offsets[i]; k < v.Offsets[i+1]; k++ {
			if k > v.Offsets[i] {
				dst = append(dst, ", "...)
			}
			dst = AppendValue(dst, v.Children[0], int(k))
		}
		return append(dst, ']')
	case types.Map:
		dst = append(dst, '{')
		for k := v.Offsets[i]; k < v.Offsets[i+1]; k++ {
			if k > v.Offsets[i] {
				dst = append(dst, ", "...)
			}
			dst = AppendValue(dst, v.Children[0], int(k))
			dst = append(dst, '=')
			dst = AppendValue(dst, v.Children[1], int(k))
		}
		return append(dst, '}')
	case types.Row:
		dst = append(dst, "+I["...)
		for c, child := range v.Children {
			if c > 0 {
				dst = append(dst, ", "...)
			}
			dst = AppendValue(dst, child, i)
		}
		return append(dst, ']')
	}
	return append(dst, v.Bytes(i)...)
}
