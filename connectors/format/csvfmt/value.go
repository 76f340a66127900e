package csvfmt

import (
	"encoding/base64"

	"github.com/millrace/millrace/connectors/format"
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
		elem, rest, more := d.cut(text)
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
	if d.hive && v.Type.IsString() {
		text = d.withoutEscapes(text)
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

// appendText converts text to the Vec's scalar type and appends it, bytes in Base64;
// ok false leaves the Vec as it was.
func appendText(v *batch.Vec, text []byte) (ok, inexact bool) {
	if !v.Type.IsBinary() {
		return format.AppendText(v, text)
	}
	x, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return false, false
	}
	return format.AppendText(v, x)
}
