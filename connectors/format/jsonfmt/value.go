package jsonfmt

import (
	"encoding/base64"
	"slices"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// value decodes the value at p, which lies within depth objects and arrays,
// and appends exactly one value, NULL or error to the node's column.
func (d *Decoder) value(n *node, p, depth int) int {
	b := d.b
	if p >= len(b) {
		return ^p
	}
	c := b[p]
	if c == 'n' {
		if p = scanLiteral(b, p, "null"); p > 0 {
			d.null(n)
		}
		return p
	}
	switch n.op {
	case opString:
		return d.str(n, p, depth)
	case opInt:
		if c == '-' || c-'0' <= 9 {
			return d.integer(n, p)
		}
	case opRow:
		if c == '{' {
			return d.rowValue(n, p, depth)
		}
		return d.mismatch(n, p, depth)
	case opArray:
		if c == '[' {
			return d.list(n, p, depth)
		}
		return d.mismatch(n, p, depth)
	case opMap:
		if c == '{' {
			return d.mapValue(n, p, depth)
		}
		return d.mismatch(n, p, depth)
	case opBool:
		if c == 't' || c == 'f' {
			return d.boolean(n, p)
		}
	}
	return d.scalar(n, p, depth)
}

func (d *Decoder) rowValue(n *node, p, depth int) int {
	if depth++; depth > maxDepth {
		d.tooDeep = true
		return ^p
	}
	format.BeginRow(n.vec)
	if p = d.object(n.row, p+1, n.vec.Len, depth); p > 0 {
		n.vec.Len++
	}
	return p
}

func (d *Decoder) boolean(n *node, p int) int {
	word := "true"
	if d.b[p] == 'f' {
		word = "false"
	}
	if p = scanLiteral(d.b, p, word); p > 0 {
		format.AppendBool(n.vec, len(word) == 4)
	}
	return p
}

// str decodes into STRING: strings are unescaped, anything else stands as it
// is written.
func (d *Decoder) str(n *node, p, depth int) int {
	b, v := d.b, n.vec
	if b[p] != '"' {
		end := d.skip(b, p, depth)
		if end > 0 {
			d.text(n, b[p:end], b[p:end])
		}
		return end
	}
	end, plain := d.scanString(b, p+1)
	if end < 0 {
		return end
	}
	raw := b[p+1 : end]
	switch {
	case plain && len(raw) <= n.maxLen && format.Room(v, len(raw)):
		format.AppendBytes(v, raw)
	case plain:
		d.text(n, raw, b[p:end+1])
	default:
		var ok bool
		if d.scratch, ok = unescape(d.scratch[:0], raw); ok {
			d.text(n, d.scratch, b[p:end+1])
		} else {
			d.fail(n, batch.CodeTypeMismatch, format.Mismatch, func() string {
				return format.Excerpt(b[p:end+1]) + " has half of a surrogate pair, which is no character"
			})
		}
	}
	return end + 1
}

// text appends s, which was written as token, if it is short enough.
func (d *Decoder) text(n *node, s, token []byte) {
	switch {
	case len(s) > n.maxLen && utf8.RuneCount(s) > n.maxLen:
		d.unfit(n, token, tooLong)
	case !format.Room(n.vec, len(s)):
		d.unfit(n, token, noRoom)
	default:
		format.AppendBytes(n.vec, s)
	}
}

// integer decodes a number into an integer type.
func (d *Decoder) integer(n *node, p int) int {
	b := d.b
	i := p
	neg := b[i] == '-'
	if neg {
		i++
	}
	start := i
	var u uint64
	for i < len(b) && b[i]-'0' <= 9 {
		u = u*10 + uint64(b[i]-'0')
		i++
	}
	// Up to 18 digits cannot overflow.
	if digits := i - start; digits == 0 || digits > 18 || b[start] == '0' && digits > 1 ||
		i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
		return d.number(n, p)
	}
	x := int64(u)
	if neg {
		x = -x
	}
	if !appendInt(n, x) {
		d.unfit(n, b[p:i], outOfRange)
	}
	return i
}

func appendInt(n *node, x int64) bool {
	v := n.vec
	if n.bits == 64 {
		format.AppendInt64(v, x)
		return true
	}
	if !scalar.FitsInt(x, n.bits) {
		return false
	}
	switch n.bits {
	case 32:
		format.AppendInt32(v, int32(x))
	case 16:
		format.AppendInt16(v, int16(x))
	default:
		format.AppendInt8(v, int8(x))
	}
	return true
}

// number decodes any number into a numeric type.
func (d *Decoder) number(n *node, p int) int {
	end, integer := scanNumber(d.b, p)
	if end > 0 {
		d.convert(n, d.b[p:end], d.b[p:end], integer)
	}
	return end
}

// scalar decodes strings, numbers and literals into types other than STRING.
func (d *Decoder) scalar(n *node, p, depth int) int {
	b := d.b
	switch c := b[p]; {
	case c == '"':
		end, plain := d.scanString(b, p+1)
		if end < 0 {
			return end
		}
		text := b[p+1 : end]
		if !plain {
			var ok bool
			if d.scratch, ok = unescape(d.scratch[:0], text); !ok {
				d.unfit(n, b[p:end+1], notOfType)
				return end + 1
			}
			text = d.scratch
		}
		d.convertString(n, text, b[p:end+1])
		return end + 1
	case c == '-' || c-'0' <= 9:
		switch n.op {
		case opInt, opDecimal, opFloat32, opFloat64:
			return d.number(n, p)
		}
	}
	return d.mismatch(n, p, depth)
}

// convertString converts the content of a string, written as token.
func (d *Decoder) convertString(n *node, text, token []byte) {
	switch n.op {
	case opTimestamp:
		x, res := scalar.Timestamp(text, n.standard, n.zoned, n.typ.Precision)
		switch res {
		case scalar.OK:
			format.AppendInt64(n.vec, x)
		case scalar.OutOfRange:
			d.unfit(n, token, outOfRange)
		default:
			d.unfit(n, token, notOfType)
		}
	case opDate:
		x, ok := scalar.Date(text)
		if !ok {
			d.unfit(n, token, notOfType)
			return
		}
		format.AppendInt32(n.vec, x)
	case opTime:
		x, ok := scalar.TimeOfDay(text, n.typ.Precision)
		if !ok {
			d.unfit(n, token, notOfType)
			return
		}
		format.AppendInt32(n.vec, x)
	case opBool:
		x, ok := scalar.Bool(scalar.Trim(text))
		if !ok {
			d.unfit(n, token, notOfType)
			return
		}
		format.AppendBool(n.vec, x)
	case opBytes:
		d.base64(n, text, token)
	case opInt:
		x, ok := scalar.Int(scalar.Trim(text))
		if !ok || !appendInt(n, x) {
			d.unfit(n, token, notOfType)
		}
	default:
		d.convert(n, scalar.Trim(text), token, false)
	}
}

// convert converts the text of a number; integer: it has no fraction and no
// exponent.
func (d *Decoder) convert(n *node, text, token []byte, integer bool) {
	switch n.op {
	case opInt:
		parse := scalar.IntFromNumber
		if integer {
			parse = scalar.Int
		}
		if x, ok := parse(text); !ok {
			why := notOfType
			if integer {
				why = outOfRange
			}
			d.unfit(n, token, why)
		} else if !appendInt(n, x) {
			d.unfit(n, token, outOfRange)
		}
	case opFloat64:
		x, ok := scalar.Float64(text)
		if !ok {
			d.unfit(n, token, notOfType)
			return
		}
		format.AppendFloat64(n.vec, x)
	case opFloat32:
		x, ok := scalar.Float32(text)
		if !ok {
			d.unfit(n, token, notOfType)
			return
		}
		format.AppendFloat32(n.vec, x)
	case opDecimal:
		d.decimal(n, text, token)
	}
}

func (d *Decoder) decimal(n *node, text, token []byte) {
	x, inexact, ok := scalar.Decimal(text, n.typ.Precision, n.typ.Scale)
	if !ok {
		d.unfit(n, token, notOfType)
		return
	}
	if inexact {
		if d.inexactFails {
			d.unfit(n, token, tooManyDigits)
			return
		}
		d.a.Count(int(n.column), format.Rounded)
	}
	if n.typ.Physical() == types.PhysInt64 {
		format.AppendInt64(n.vec, int64(x.Lo))
	} else {
		format.AppendDecimal128(n.vec, x)
	}
}

func (d *Decoder) base64(n *node, text, token []byte) {
	v := n.vec
	size := base64.StdEncoding.DecodedLen(len(text))
	if !format.Room(v, size) {
		d.unfit(n, token, noRoom)
		return
	}
	at := len(v.Data)
	v.Data = slices.Grow(v.Data, size)
	m, err := base64.StdEncoding.Decode(v.Data[at:at+size], text)
	if err != nil {
		d.unfit(n, token, notOfType)
		return
	}
	if m > n.maxLen {
		d.unfit(n, token, tooLong)
		return
	}
	v.Data = v.Data[:at+m]
	v.Offsets = append(v.Offsets, int32(at+m))
	v.Len++
}

// mismatch checks a value of a wrong kind and makes it an error.
func (d *Decoder) mismatch(n *node, p, depth int) int {
	end := d.skip(d.b, p, depth)
	if end > 0 {
		d.unfit(n, d.b[p:end], notOfType)
	}
	return end
}
