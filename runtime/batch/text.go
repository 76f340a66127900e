package batch

import (
	"encoding/hex"
	"strconv"

	"github.com/millrace/millrace/runtime/types"
)

// AppendText appends row i of v, of any encoding, as CAST to STRING writes it:
// TIMESTAMP_LTZ in the given zone (nil: UTC), NULL as NULL, nested values as
// [a, b], {k=v}, (a, b); BYTES are shown as hexadecimal digits.
func AppendText(dst []byte, v *Vec, i int, zone *types.Zone) []byte {
	v, i, null := v.resolve(i)
	if null {
		return append(dst, "NULL"...)
	}
	t := v.Type
	switch t.Kind {
	case types.Boolean:
		if v.Bools.Get(i) {
			return append(dst, "TRUE"...)
		}
		return append(dst, "FALSE"...)
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return strconv.AppendInt(dst, v.Int64(i), 10)
	case types.Float:
		return types.AppendFloat(dst, float64(v.F32[i]), 32)
	case types.Double:
		return types.AppendFloat(dst, v.F64[i], 64)
	case types.Decimal:
		return types.AppendDecimal(dst, v.Decimal(i), t.Scale)
	case types.Char, types.Varchar:
		return append(dst, v.Data[v.Offsets[i]:v.Offsets[i+1]]...)
	case types.Binary, types.Varbinary:
		return hex.AppendEncode(dst, v.Data[v.Offsets[i]:v.Offsets[i+1]])
	case types.Date:
		return types.AppendDate(dst, int64(v.I32[i]))
	case types.Time:
		return types.AppendTime(dst, v.I32[i], t.Precision)
	case types.Timestamp:
		return types.AppendTimestamp(dst, v.I64[i], t, ' ')
	case types.TimestampLTZ:
		x := v.I64[i]
		if zone != nil {
			x = zone.ToLocal(x, t.UnitsPerSecond())
		}
		return types.AppendTimestamp(dst, x, t, ' ')
	case types.IntervalYearMonth:
		return types.AppendIntervalMonths(dst, v.I32[i])
	case types.IntervalDaySecond:
		return types.AppendIntervalMillis(dst, v.I64[i])
	}
	return appendNestedText(dst, v, i, zone)
}

func appendNestedText(dst []byte, v *Vec, i int, zone *types.Zone) []byte {
	switch v.Type.Kind {
	case types.Array:
		dst = append(dst, '[')
		for j := v.Offsets[i]; j < v.Offsets[i+1]; j++ {
			if j > v.Offsets[i] {
				dst = append(dst, ", "...)
			}
			dst = AppendText(dst, v.Children[0], int(j), zone)
		}
		return append(dst, ']')
	case types.Map:
		dst = append(dst, '{')
		for j := v.Offsets[i]; j < v.Offsets[i+1]; j++ {
			if j > v.Offsets[i] {
				dst = append(dst, ", "...)
			}
			dst = append(AppendText(dst, v.Children[0], int(j), zone), '=')
			dst = AppendText(dst, v.Children[1], int(j), zone)
		}
		return append(dst, '}')
	}
	dst = append(dst, '(')
	for c, child := range v.Children {
		if c > 0 {
			dst = append(dst, ", "...)
		}
		dst = AppendText(dst, child, i, zone)
	}
	return append(dst, ')')
}

// Text is AppendText as a string, TIMESTAMP_LTZ in UTC; for messages and tests.
func (v *Vec) Text(i int) string { return string(AppendText(nil, v, i, nil)) }
