package csvfmt

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// UnquotableError says that a value cannot be written because it holds the
// delimiter or a line end, and there is neither quote nor escape character.
type UnquotableError struct {
	Column, Value string
	// Element: an array's element holds the text between elements.
	Element bool
}

func (e *UnquotableError) Error() string {
	if e.Element {
		return fmt.Sprintf("column %q: an element of %s holds the text between elements", e.Column, e.Value)
	}
	return fmt.Sprintf("column %q: %q holds a delimiter or line end, or is an empty line, and quotes are disabled without an escape character", e.Column, e.Value)
}

// Encoder writes rows as lines.
type Encoder struct {
	settings
	names   []string
	columns []int
	arrays  bool
}

var (
	_ format.Encoder = (*Encoder)(nil)
	_ format.Refuser = (*Encoder)(nil)
)

// NewEncoder compiles an encoder; errors as in NewDecoder.
func NewEncoder(c format.EncoderConfig) (*Encoder, error) {
	s, err := parseSettings(c.Options)
	if err != nil {
		return nil, err
	}
	if s.hive {
		return nil, &connector.OptionError{Key: keyHiveEscapes, OnValue: true, Message: "not_yet: writing text with Hive's escapes; it is read"}
	}
	e := &Encoder{settings: s}
	for i, f := range c.Fields {
		if err := checkType(f); err != nil {
			return nil, err
		}
		e.names = append(e.names, f.Name)
		e.arrays = e.arrays || f.Type.Kind == types.Array
		e.columns = append(e.columns, c.Column(i))
	}
	return e, nil
}

// AppendRow implements format.Encoder. Errors are *UnquotableError.
func (e *Encoder) AppendRow(dst []byte, b *batch.Batch, row int) ([]byte, error) {
	start := len(dst)
	for i, col := range e.columns {
		if i > 0 {
			dst = append(dst, e.delimiter)
		}
		v := &b.Cols[col]
		at := len(dst)
		if v.IsNull(row) {
			dst = append(dst, e.null...)
		} else {
			dst = e.appendValue(dst, v, row)
			if v.Type.Kind == types.Array && e.ambiguous(v, row) {
				return dst[:start], &UnquotableError{e.names[i], format.Excerpt(dst[at:]), true}
			}
		}
		if !e.special(dst[at:], i == 0) {
			continue
		}
		text := string(dst[at:])
		var ok bool
		if dst, ok = e.appendQuoted(dst[:at], text); !ok {
			return dst[:start], &UnquotableError{e.names[i], format.Excerpt([]byte(text)), false}
		}
	}
	return dst, nil
}

// MayRefuse implements format.Refuser: a field that cannot be quoted, and an array's
// element that holds the text between elements.
func (e *Encoder) MayRefuse() bool { return e.quote == 0 || e.arrays }

// ambiguous reports an array with an element that holds the text between
// elements.
func (e *Encoder) ambiguous(v *batch.Vec, row int) bool {
	switch v.Enc {
	case batch.Const:
		row = 0
	case batch.Dict:
		return e.ambiguous(v.Dict, int(v.Codes[row]))
	}
	c := v.Children[0]
	if !c.Type.IsString() {
		return false
	}
	for k := int(v.Offsets[row]); k < int(v.Offsets[row+1]); k++ {
		if !c.IsNull(k) && bytes.Contains(c.Bytes(k), []byte(e.element)) {
			return true
		}
	}
	return false
}

// special reports whether a field cannot stand as it is. The only field of a
// line may not be empty, for a blank line is no row.
func (e *Encoder) special(text []byte, first bool) bool {
	if len(text) == 0 {
		return len(e.columns) == 1
	}
	for _, c := range text {
		if c == e.delimiter || c == '\n' || c == '\r' || c == e.quote && e.quote != 0 || c == e.escape && e.escape != 0 {
			return true
		}
	}
	return first && text[0] == '#'
}

func (e *Encoder) appendQuoted(dst []byte, text string) ([]byte, bool) {
	if e.quote == 0 {
		return e.appendEscaped(dst, text)
	}
	dst = append(dst, e.quote)
	for i := range len(text) {
		if c := text[i]; c == e.quote || c == e.escape && e.escape != 0 {
			if e.escape != 0 {
				dst = append(dst, e.escape)
			} else {
				dst = append(dst, e.quote)
			}
		}
		dst = append(dst, text[i])
	}
	return append(dst, e.quote), true
}

func (e *Encoder) appendEscaped(dst []byte, text string) ([]byte, bool) {
	if e.escape == 0 || text == "" {
		return append(dst, text...), text != "" && strings.IndexByte(text, e.delimiter) < 0 && !strings.ContainsAny(text, "\r\n")
	}
	for i := range len(text) {
		switch c := text[i]; c {
		case '\n':
			dst = append(dst, e.escape, 'n')
		case '\r':
			dst = append(dst, e.escape, 'r')
		case e.escape, e.delimiter, '#':
			dst = append(dst, e.escape, c)
		default:
			dst = append(dst, c)
		}
	}
	return dst, true
}

func (e *Encoder) appendValue(dst []byte, v *batch.Vec, i int) []byte {
	switch v.Enc {
	case batch.Const:
		i = 0
	case batch.Dict:
		return e.appendValue(dst, v.Dict, int(v.Codes[i]))
	}
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
	case types.Char, types.Varchar:
		return append(dst, v.Bytes(i)...)
	case types.Binary, types.Varbinary:
		return base64.StdEncoding.AppendEncode(dst, v.Bytes(i))
	case types.Date:
		return scalar.AppendDate(dst, v.I32[i])
	case types.Time:
		return scalar.AppendTimeOfDay(dst, v.I32[i])
	case types.Timestamp, types.TimestampLTZ:
		return scalar.AppendTimestamp(dst, v.I64[i], scalar.SQL, v.Type.Kind == types.TimestampLTZ, v.Type.Precision)
	case types.Array:
		for k := int(v.Offsets[i]); k < int(v.Offsets[i+1]); k++ {
			if k > int(v.Offsets[i]) {
				dst = append(dst, e.element...)
			}
			if v.Children[0].IsNull(k) {
				dst = append(dst, e.null...)
			} else {
				dst = e.appendValue(dst, v.Children[0], k)
			}
		}
	}
	return dst
}
