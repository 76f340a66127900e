package jsonfmt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// ErrNullMapKey is returned for a NULL key of a MAP when json.map-null-key.mode
// is FAIL.
var ErrNullMapKey = errors.New("a key of a map is NULL and json.map-null-key.mode is FAIL")

// Encoder writes rows as JSON objects on one line. Numbers that are not finite
// are written as strings, as Flink does, and read back as such.
type Encoder struct {
	fields   []encField
	standard scalar.Standard
	// nullMode is an index into mapNullModes.
	nullMode    int
	nullLiteral string
	plain       bool
	ignoreNulls bool
	safe        bool
}

type encField struct {
	column int
	// head is `"name":`, ready to be written.
	head []byte
}

var _ format.Encoder = (*Encoder)(nil)

// NewEncoder compiles an encoder. Errors are *connector.OptionError and
// *format.FieldTypeError.
func NewEncoder(c format.EncoderConfig) (*Encoder, error) {
	e := &Encoder{}
	var err error
	if e.standard, err = standardOption(c.Options); err != nil {
		return nil, err
	}
	if e.plain, err = boolOption(c.Options, keyPlainDecimal); err != nil {
		return nil, err
	}
	if e.ignoreNulls, err = boolOption(c.Options, keyIgnoreNulls); err != nil {
		return nil, err
	}
	mode := c.Options.Value(keyMapNullMode, "FAIL")
	e.nullMode = -1
	for i, m := range mapNullModes {
		if m == mode {
			e.nullMode = i
		}
	}
	if e.nullMode < 0 {
		return nil, format.BadValue(keyMapNullMode, mode, "FAIL, DROP or LITERAL")
	}
	e.nullLiteral = c.Options.Value(keyMapNullLiteral, "null")
	for i, f := range c.Fields {
		// What can be read can be written; the check is the same.
		if _, err := (&compiler{}).node(f.Type, f.Name); err != nil {
			return nil, err
		}
		e.fields = append(e.fields, encField{c.Column(i), append(AppendString(nil, []byte(f.Name)), ':')})
	}
	return e, nil
}

// SafeNumbers makes the encoder write DECIMALs, and BIGINTs beyond 2^53, as
// strings, for readers that hold numbers as doubles. It returns e.
func (e *Encoder) SafeNumbers() *Encoder { e.safe = true; return e }

// AppendRow implements format.Encoder.
func (e *Encoder) AppendRow(dst []byte, b *batch.Batch, row int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, '{')
	var err error
	for i := range e.fields {
		f := &e.fields[i]
		v := &b.Cols[f.column]
		if e.ignoreNulls && v.IsNull(row) {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		if dst, err = e.appendValue(append(dst, f.head...), v, row); err != nil {
			return dst[:start], fmt.Errorf("encoding column %q: %w", b.Schema.Fields[f.column].Name, err)
		}
	}
	return append(dst, '}'), nil
}

func (e *Encoder) appendValue(dst []byte, v *batch.Vec, i int) ([]byte, error) {
	if v.IsNull(i) {
		return append(dst, "null"...), nil
	}
	switch v.Enc {
	case batch.Const:
		i = 0
	case batch.Dict:
		return e.appendValue(dst, v.Dict, int(v.Codes[i]))
	}
	switch v.Type.Kind {
	case types.Boolean, types.Null:
		return strconv.AppendBool(dst, v.Bools.Get(i)), nil
	case types.TinyInt:
		return strconv.AppendInt(dst, int64(v.I8[i]), 10), nil
	case types.SmallInt:
		return strconv.AppendInt(dst, int64(v.I16[i]), 10), nil
	case types.Int, types.IntervalYearMonth:
		return strconv.AppendInt(dst, int64(v.I32[i]), 10), nil
	case types.BigInt, types.IntervalDaySecond:
		x := v.I64[i]
		if e.safe && (x > 1<<53 || x < -1<<53) {
			return append(strconv.AppendInt(append(dst, '"'), x, 10), '"'), nil
		}
		return strconv.AppendInt(dst, x, 10), nil
	case types.Float:
		f := v.F32[i]
		return quoteNonFinite(dst, float64(f), func(d []byte) []byte { return scalar.AppendFloat32(d, f) }), nil
	case types.Double:
		f := v.F64[i]
		return quoteNonFinite(dst, f, func(d []byte) []byte { return scalar.AppendFloat64(d, f) }), nil
	case types.Decimal:
		return e.appendDecimal(dst, v, i), nil
	case types.Char, types.Varchar:
		return AppendString(dst, v.Data[v.Offsets[i]:v.Offsets[i+1]]), nil
	case types.Binary, types.Varbinary:
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), v.Data[v.Offsets[i]:v.Offsets[i+1]])
		return append(dst, '"'), nil
	case types.Date:
		return append(scalar.AppendDate(append(dst, '"'), v.I32[i]), '"'), nil
	case types.Time:
		return append(scalar.AppendTimeOfDay(append(dst, '"'), v.I32[i]), '"'), nil
	case types.Timestamp, types.TimestampLTZ:
		dst = scalar.AppendTimestamp(append(dst, '"'), v.I64[i], e.standard, v.Type.Kind == types.TimestampLTZ, v.Type.Precision)
		return append(dst, '"'), nil
	case types.Array:
		return e.appendArray(dst, v, i)
	case types.Map:
		return e.appendMap(dst, v, i)
	case types.Row:
		return e.appendRow(dst, v, i)
	}
	return dst, fmt.Errorf("no JSON value stands for type %s", v.Type)
}

func quoteNonFinite(dst []byte, f float64, app func([]byte) []byte) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(app(append(dst, '"')), '"')
	}
	return app(dst)
}

func (e *Encoder) appendDecimal(dst []byte, v *batch.Vec, i int) []byte {
	var d types.Decimal128
	if v.Type.Physical() == types.PhysInt64 {
		d = types.DecimalFromInt64(v.I64[i])
	} else {
		d = v.D128[i]
	}
	switch {
	case e.safe:
		return append(types.AppendDecimal(append(dst, '"'), d, v.Type.Scale), '"')
	case e.plain:
		return types.AppendDecimal(dst, d, v.Type.Scale)
	}
	return scalar.AppendDecimalJava(dst, d, v.Type.Scale)
}

func (e *Encoder) appendArray(dst []byte, v *batch.Vec, i int) (_ []byte, err error) {
	dst = append(dst, '[')
	for k := v.Offsets[i]; k < v.Offsets[i+1]; k++ {
		if k > v.Offsets[i] {
			dst = append(dst, ',')
		}
		if dst, err = e.appendValue(dst, v.Children[0], int(k)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (e *Encoder) appendMap(dst []byte, v *batch.Vec, i int) (_ []byte, err error) {
	keys := v.Children[0]
	dst = append(dst, '{')
	for k := int(v.Offsets[i]); k < int(v.Offsets[i+1]); k++ {
		null := keys.IsNull(k)
		if null && e.nullMode == 0 {
			return dst, ErrNullMapKey
		}
		if null && e.nullMode == 1 {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		if null {
			dst = AppendString(dst, []byte(e.nullLiteral))
		} else {
			dst = AppendString(dst, keys.Bytes(k))
		}
		if dst, err = e.appendValue(append(dst, ':'), v.Children[1], k); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (e *Encoder) appendRow(dst []byte, v *batch.Vec, i int) (_ []byte, err error) {
	dst = append(dst, '{')
	for k, c := range v.Children {
		if e.ignoreNulls && c.IsNull(i) {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, []byte(v.Type.Fields[k].Name)), ':')
		if dst, err = e.appendValue(dst, c, i); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

const hexDigits = "0123456789ABCDEF"

// AppendString writes s, which is valid UTF-8, as a JSON string. Quotes,
// backslashes and control characters are escaped, nothing else.
func AppendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}
