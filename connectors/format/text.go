package format

import (
	"unicode/utf8"

	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// AppendText converts text to the Vec's scalar type and appends it: numbers in
// decimal, times in SQL's form, text and bytes as they are; whether text is UTF-8 is
// the caller's to know. ok false leaves the Vec as it was; inexact: digits behind a
// DECIMAL's scale were rounded.
func AppendText(v *batch.Vec, text []byte) (ok, inexact bool) {
	t := &v.Type
	switch t.Kind {
	case types.Char, types.Varchar:
		if len(text) > t.Length && utf8.RuneCount(text) > t.Length || !Room(v, len(text)) {
			return false, false
		}
		AppendBytes(v, text)
		return true, false
	case types.Binary, types.Varbinary:
		if len(text) > t.Length || !Room(v, len(text)) {
			return false, false
		}
		AppendBytes(v, text)
		return true, false
	case types.Date:
		x, ok := scalar.Date(text)
		if ok {
			AppendInt32(v, x)
		}
		return ok, false
	case types.Time:
		x, ok := scalar.TimeOfDay(text, t.Precision)
		if ok {
			AppendInt32(v, x)
		}
		return ok, false
	case types.Timestamp, types.TimestampLTZ:
		x, res := scalar.Timestamp(text, scalar.SQL, t.Kind == types.TimestampLTZ, t.Precision)
		if res == scalar.OK {
			AppendInt64(v, x)
		}
		return res == scalar.OK, false
	}
	return appendNumber(v, scalar.Trim(text))
}

func appendNumber(v *batch.Vec, text []byte) (ok, inexact bool) {
	switch v.Type.Kind {
	case types.Boolean:
		x, ok := scalar.Bool(text)
		if ok {
			AppendBool(v, x)
		}
		return ok, false
	case types.Float:
		x, ok := scalar.Float32(text)
		if ok {
			AppendFloat32(v, x)
		}
		return ok, false
	case types.Double:
		x, ok := scalar.Float64(text)
		if ok {
			AppendFloat64(v, x)
		}
		return ok, false
	case types.Decimal:
		x, inexact, ok := scalar.Decimal(text, v.Type.Precision, v.Type.Scale)
		if !ok {
			return false, false
		}
		if v.Type.Physical() == types.PhysInt64 {
			AppendInt64(v, int64(x.Lo))
		} else {
			AppendDecimal128(v, x)
		}
		return true, inexact
	}
	x, ok := scalar.Int(text)
	if !ok {
		return false, false
	}
	switch v.Type.Physical() {
	case types.PhysInt8:
		if ok = scalar.FitsInt(x, 8); ok {
			AppendInt8(v, int8(x))
		}
	case types.PhysInt16:
		if ok = scalar.FitsInt(x, 16); ok {
			AppendInt16(v, int16(x))
		}
	case types.PhysInt32:
		if ok = scalar.FitsInt(x, 32); ok {
			AppendInt32(v, int32(x))
		}
	default:
		AppendInt64(v, x)
	}
	return ok, false
}
