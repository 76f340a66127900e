package csvfmt

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// append appends one value, NULL or error.
func (d *Decoder) append(c *column, text []byte) {
	v := c.vec
	if v.Type.Kind != types.Array {
		d.appendScalar(c, v, text)
		return
	}
	if d.hasNull && string(text) == d.null {
		d.nullValue(c, v)
		return
	}
	for len(text) > 0 {
		elem, rest, more := bytes.Cut(text, []byte(d.element))
		d.appendScalar(c, v.Children[0], elem)
		if more && len(rest) == 0 {
			d.appendScalar(c, v.Children[0], nil)
		}
		text = rest
	}
	format.CloseList(v)
}

func (d *Decoder) appendScalar(c *column, v *batch.Vec, text []byte) {
	if d.hasNull && string(text) == d.null {
		d.nullValue(c, v)
		return
	}
	if ok, inexact := appendText(v, text); !ok {
		s := `"` + format.Excerpt(text) + `" is not ` + v.Type.WithNullable(true).String()
		d.fail(c, v, batch.CodeTypeMismatch, format.Mismatch, s)
	} else if inexact {
		d.a.Count(c.number, format.Rounded)
	}
}

func (d *Decoder) nullValue(c *column, v *batch.Vec) {
	if v.Type.Nullable {
		format.AppendNull(v)
		return
	}
	d.fail(c, v, batch.CodeNullInNotNull, format.NullInNotNull, "NULL in a NOT NULL column")
}

func (d *Decoder) missing(c *column) {
	if c.vec.Type.Nullable {
		d.a.Count(c.number, format.Missing)
		format.AppendNull(c.vec)
		return
	}
	d.fail(c, c.vec, batch.CodeNullInNotNull, format.NullInNotNull, "the field of a NOT NULL column is missing")
}

func (d *Decoder) fail(c *column, v *batch.Vec, code batch.Code, counter format.Counter, message string) {
	d.a.Count(c.number, counter)
	if d.policy.Nulls() && v.Type.Nullable {
		d.a.Count(c.number, format.Nulled)
		format.AppendNull(v)
		return
	}
	format.AppendErr(v, code, c.field.Name, message)
}

// appendText converts text to the Vec's scalar type and appends it; ok false
// leaves the Vec as it was.
func appendText(v *batch.Vec, text []byte) (ok, inexact bool) {
	t := &v.Type
	switch t.Kind {
	case types.Char, types.Varchar:
		if len(text) > t.Length && utf8.RuneCount(text) > t.Length || !format.Room(v, len(text)) {
			return false, false
		}
		format.AppendBytes(v, text)
		return true, false
	case types.Binary, types.Varbinary:
		x, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil || len(x) > t.Length || !format.Room(v, len(x)) {
			return false, false
		}
		format.AppendBytes(v, x)
		return true, false
	case types.Date:
		x, ok := scalar.Date(text)
		if ok {
			format.AppendInt32(v, x)
		}
		return ok, false
	case types.Time:
		x, ok := scalar.TimeOfDay(text, t.Precision)
		if ok {
			format.AppendInt32(v, x)
		}
		return ok, false
	case types.Timestamp, types.TimestampLTZ:
		x, res := scalar.Timestamp(text, scalar.SQL, t.Kind == types.TimestampLTZ, t.Precision)
		if res == scalar.OK {
			format.AppendInt64(v, x)
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
			format.AppendBool(v, x)
		}
		return ok, false
	case types.Float:
		x, ok := scalar.Float32(text)
		if ok {
			format.AppendFloat32(v, x)
		}
		return ok, false
	case types.Double:
		x, ok := scalar.Float64(text)
		if ok {
			format.AppendFloat64(v, x)
		}
		return ok, false
	case types.Decimal:
		x, inexact, ok := scalar.Decimal(text, v.Type.Precision, v.Type.Scale)
		if !ok {
			return false, false
		}
		if v.Type.Physical() == types.PhysInt64 {
			format.AppendInt64(v, int64(x.Lo))
		} else {
			format.AppendDecimal128(v, x)
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
			format.AppendInt8(v, int8(x))
		}
	case types.PhysInt16:
		if ok = scalar.FitsInt(x, 16); ok {
			format.AppendInt16(v, int16(x))
		}
	case types.PhysInt32:
		if ok = scalar.FitsInt(x, 32); ok {
			format.AppendInt32(v, int32(x))
		}
	default:
		format.AppendInt64(v, x)
	}
	return ok, false
}
