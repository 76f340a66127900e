package redis

import (
	"strconv"

	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// flat looks through encodings: the vector that holds the value, and its place.
func flat(v *batch.Vec, i int) (*batch.Vec, int) {
	for v.Enc == batch.Dict {
		i, v = int(v.Codes[i]), v.Dict
	}
	return v, v.Index(i)
}

// appendText appends a value that is not NULL: text and bytes as they are, numbers
// in decimal, times in SQL's form.
func appendText(dst []byte, v *batch.Vec, i int) []byte {
	v, i = flat(v, i)
	switch v.Type.Kind {
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
		if v.Type.Physical() == types.PhysInt64 {
			return types.AppendDecimal(dst, types.DecimalFromInt64(v.I64[i]), v.Type.Scale)
		}
		return types.AppendDecimal(dst, v.D128[i], v.Type.Scale)
	case types.Date:
		return scalar.AppendDate(dst, v.I32[i])
	case types.Time:
		return scalar.AppendTimeOfDay(dst, v.I32[i])
	case types.Timestamp, types.TimestampLTZ:
		return scalar.AppendTimestamp(dst, v.I64[i], scalar.SQL, v.Type.Kind == types.TimestampLTZ, v.Type.Precision)
	}
	return append(dst, v.Bytes(i)...)
}

// nested reports a type that has no text of its own.
func nested(t types.Type) bool {
	return t.Kind == types.Array || t.Kind == types.Map || t.Kind == types.Row
}

// exactScore is up to where a double holds every whole number.
const exactScore = 1 << 53

// score gives the value of a score column, and why it is none.
func score(v *batch.Vec, i int) (x float64, refused string) {
	if v.IsNull(i) {
		return 0, "NULL is no score"
	}
	v, i = flat(v, i)
	switch v.Type.Kind {
	case types.TinyInt:
		return float64(v.I8[i]), ""
	case types.SmallInt:
		return float64(v.I16[i]), ""
	case types.Int:
		return float64(v.I32[i]), ""
	case types.BigInt:
		if n := v.I64[i]; n > exactScore || n < -exactScore {
			return 0, strconv.FormatInt(n, 10) + " is beyond 2^53: a score, a double, does not hold it exactly"
		}
		return float64(v.I64[i]), ""
	case types.Float:
		x = float64(v.F32[i])
	default:
		x = v.F64[i]
	}
	if x != x {
		return 0, "NaN is no score"
	}
	return x, ""
}

func scoreType(t types.Type) bool {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Float, types.Double:
		return true
	}
	return false
}
