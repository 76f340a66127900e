package rawfmt

import (
	_ "embed" // the table of types
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

//go:embed types.md
var typesDoc string

const (
	keyCharset    = "raw.charset"
	keyEndianness = "raw.endianness"
	littleEndian  = "little-endian"
)

// Format is the format `raw`.
type Format struct{}

var _ format.Format = Format{}

// Spec implements format.Format.
func (Format) Spec() connector.FormatSpec {
	return connector.FormatSpec{
		Name:    "raw",
		Summary: "A record is the bytes of one column.",
		Doc:     typesDoc,
		Decode:  true, Encode: true,
		Options: append(format.PolicyOptions("raw"),
			connector.Option{Key: keyCharset, Default: "UTF-8", Check: checkCharset, Doc: "`UTF-8`, the only one there is."},
			connector.Option{Key: keyEndianness, Type: connector.OptEnum, Enum: []string{"big-endian", littleEndian}, Default: "big-endian",
				Doc: "The order of a number's bytes."},
		),
		Validate: func(v connector.Values) error {
			_, err := format.ParsePolicy("raw", format.FromValues(v, ""))
			return err
		},
	}
}

func checkCharset(s string) error {
	if s != "UTF-8" && s != "utf-8" {
		return fmt.Errorf("not_yet: %q; text is UTF-8", s)
	}
	return nil
}

// Policy implements format.Format.
func (Format) Policy(o format.Options) (format.Policy, error) { return format.ParsePolicy("raw", o) }

// Split implements format.Format: a record is a line.
func (Format) Split(format.Options) format.SplitFunc { return format.SplitLines }

// order is how a number's bytes are read and added.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func orderOf(o format.Options) order {
	if o.Value(keyEndianness, "") == littleEndian {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// checkFields refuses what is not one column of a type that has a form.
func checkFields(fields []types.Field) error {
	if len(fields) != 1 {
		names := ""
		for i, f := range fields {
			if i > 0 {
				names += ", "
			}
			names += f.Name
		}
		return fmt.Errorf("format raw holds one column, not %d (%s)", len(fields), names)
	}
	f := fields[0]
	if width(f.Type.Kind) == 0 && !f.Type.IsString() && f.Type.Physical() != types.PhysBytes {
		return &format.FieldTypeError{Format: "raw", Column: f.Name, Type: f.Type, Reason: "it has no form as plain bytes"}
	}
	return nil
}

// width is how many bytes a value of the kind has, 0: any number, or none at all.
func width(k types.Kind) int {
	switch k {
	case types.Boolean, types.TinyInt:
		return 1
	case types.SmallInt:
		return 2
	case types.Int, types.Float:
		return 4
	case types.BigInt, types.Double:
		return 8
	}
	return 0
}

// Decoder turns records into rows.
type Decoder struct {
	field  types.Field
	column int
	order  order
	policy format.Policy
}

// NewDecoder implements format.Format.
func (Format) NewDecoder(c format.DecoderConfig) (format.Decoder, error) {
	if err := checkFields(c.Fields); err != nil {
		return nil, err
	}
	policy, err := format.ParsePolicy("raw", c.Options)
	if err != nil {
		return nil, err
	}
	return &Decoder{field: c.Fields[0], column: c.Column(0), order: orderOf(c.Options), policy: policy}, nil
}

// Decode implements format.Decoder.
func (d *Decoder) Decode(value []byte, offset int64, a *format.Appender) int {
	if value == nil {
		a.Note(offset, batch.CodeEmpty, "", "")
		return 0
	}
	if d.column >= 0 {
		v := a.Column(d.column)
		if why := d.append(v, value); why != "" {
			d.fail(a, v, why)
		}
	}
	a.Commit(offset, 1)
	return 1
}

// append appends a value, or says why it is none.
func (d *Decoder) append(v *batch.Vec, b []byte) string {
	t := &d.field.Type
	if w := width(t.Kind); w > 0 && len(b) != w {
		return fmt.Sprintf("%d bytes are not %s, which has %d", len(b), t.WithNullable(true), w)
	}
	switch t.Kind {
	case types.Boolean:
		format.AppendBool(v, b[0] != 0)
	case types.TinyInt:
		format.AppendInt8(v, int8(b[0]))
	case types.SmallInt:
		format.AppendInt16(v, int16(d.order.Uint16(b)))
	case types.Int:
		format.AppendInt32(v, int32(d.order.Uint32(b)))
	case types.BigInt:
		format.AppendInt64(v, int64(d.order.Uint64(b)))
	case types.Float:
		format.AppendFloat32(v, math.Float32frombits(d.order.Uint32(b)))
	case types.Double:
		format.AppendFloat64(v, math.Float64frombits(d.order.Uint64(b)))
	default:
		return appendBytes(v, t, b)
	}
	return ""
}

func appendBytes(v *batch.Vec, t *types.Type, b []byte) string {
	n := len(b)
	if t.IsString() {
		if !utf8.Valid(b) {
			return "the bytes are not UTF-8"
		}
		n = utf8.RuneCount(b)
	}
	if n > t.Length || !format.Room(v, len(b)) {
		return fmt.Sprintf("%q is not %s", format.Excerpt(b), t.WithNullable(true))
	}
	format.AppendBytes(v, b)
	return ""
}

func (d *Decoder) fail(a *format.Appender, v *batch.Vec, why string) {
	a.Count(d.column, format.Mismatch)
	if d.policy.Nulls() && d.field.Type.Nullable {
		a.Count(d.column, format.Nulled)
		format.AppendNull(v)
		return
	}
	format.AppendErr(v, batch.CodeTypeMismatch, d.field.Name, why)
}

// Encoder writes a column's values as they are.
type Encoder struct {
	column   int
	order    order
	nullable bool
}

// NewEncoder implements format.Format.
func (Format) NewEncoder(c format.EncoderConfig) (format.Encoder, error) {
	if err := checkFields(c.Fields); err != nil {
		return nil, err
	}
	return &Encoder{column: c.Column(0), order: orderOf(c.Options), nullable: c.Fields[0].Type.Nullable}, nil
}

var errNull = errors.New("format raw has no form for NULL")

// MayRefuse implements format.Refuser: NULL.
func (e *Encoder) MayRefuse() bool { return e.nullable }

// AppendRow implements format.Encoder.
func (e *Encoder) AppendRow(dst []byte, b *batch.Batch, row int) ([]byte, error) {
	v := &b.Cols[e.column]
	if v.IsNull(row) {
		return dst, errNull
	}
	switch v.Enc {
	case batch.Const:
		row = 0
	case batch.Dict:
		row, v = int(v.Codes[row]), v.Dict
	}
	switch v.Type.Kind {
	case types.Boolean:
		if v.Bools.Get(row) {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case types.TinyInt:
		return append(dst, byte(v.I8[row])), nil
	case types.SmallInt:
		return e.order.AppendUint16(dst, uint16(v.I16[row])), nil
	case types.Int:
		return e.order.AppendUint32(dst, uint32(v.I32[row])), nil
	case types.BigInt:
		return e.order.AppendUint64(dst, uint64(v.I64[row])), nil
	case types.Float:
		return e.order.AppendUint32(dst, math.Float32bits(v.F32[row])), nil
	case types.Double:
		return e.order.AppendUint64(dst, math.Float64bits(v.F64[row])), nil
	}
	return append(dst, v.Bytes(row)...), nil
}
