package filesystem

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// escaped are the characters that Hive's FileUtils escapes in partition names,
// besides 0x01..0x1F and 0x7F. Space and everything beyond ASCII stay.
const escaped = "\"#%'*/:=?\\{[]^"

// escapeName writes a partition column's name or value as a path component.
func escapeName(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 || c == 0x7f || strings.IndexByte(escaped, c) >= 0 {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// unescapeName is the inverse; a '%' without two hexadecimal digits stands for
// itself, as in Hive.
func unescapeName(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(c))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// partitionType reports whether a column of the type can partition a table.
func partitionType(t types.Type) bool {
	switch t.Kind {
	case types.Char, types.Varchar, types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Boolean, types.Date:
		return true
	}
	return false
}

// appendPartition appends "k=v/..." of a row: the table partition as Hive names
// it. NULL and the empty string are the default name.
func appendPartition(dst []byte, names []string, cols []*batch.Vec, row int, defaultName string) []byte {
	var buf [32]byte
	for i, v := range cols {
		if i > 0 {
			dst = append(dst, '/')
		}
		dst = append(dst, names[i]...)
		dst = append(dst, '=')
		if v.IsNull(row) {
			dst = append(dst, defaultName...)
			continue
		}
		r := row
		for v.Enc == batch.Dict {
			r, v = int(v.Codes[r]), v.Dict
		}
		text := appendText(buf[:0], v, v.Index(r))
		if len(text) == 0 {
			dst = append(dst, defaultName...)
			continue
		}
		dst = escapeBytes(dst, text)
	}
	return dst
}

func escapeBytes(dst, s []byte) []byte {
	for _, c := range s {
		if c < 0x20 || c == 0x7f || strings.IndexByte(escaped, c) >= 0 {
			return escapeName(dst, string(s))
		}
	}
	return append(dst, s...)
}

// appendText writes a partition column's value at a physical index.
func appendText(dst []byte, v *batch.Vec, i int) []byte {
	switch v.Type.Kind {
	case types.Boolean:
		return strconv.AppendBool(dst, v.Bools.Get(i))
	case types.TinyInt:
		return strconv.AppendInt(dst, int64(v.I8[i]), 10)
	case types.SmallInt:
		return strconv.AppendInt(dst, int64(v.I16[i]), 10)
	case types.Int:
		return strconv.AppendInt(dst, int64(v.I32[i]), 10)
	case types.BigInt:
		return strconv.AppendInt(dst, v.I64[i], 10)
	case types.Date:
		return time.Unix(int64(v.I32[i])*86400, 0).UTC().AppendFormat(dst, time.DateOnly)
	}
	return v.Data[v.Offsets[i]:v.Offsets[i+1]]
}

// partitionValue is one "k=v" of a path, unescaped. A NULL value is the
// default name in the path.
type partitionValue struct {
	name, value string
	null        bool
}

// parsePartition splits "k=v/..." into its values.
func parsePartition(path, defaultName string) ([]partitionValue, error) {
	if path == "" {
		return nil, nil
	}
	var vals []partitionValue
	for part := range strings.SplitSeq(path, "/") {
		k, v, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%q in table partition %q is not of the form name=value", part, path)
		}
		vals = append(vals, partitionValue{name: unescapeName(k), value: unescapeName(v), null: v == defaultName})
	}
	return vals, nil
}

// parseValue checks that a partition's text is a value of the column's type.
func parseValue(v *batch.Vec, text string) error {
	var err error
	var n int64
	switch v.Type.Kind {
	case types.Boolean:
		var b bool
		b, err = strconv.ParseBool(text)
		format.AppendBool(v, b)
	case types.TinyInt:
		n, err = strconv.ParseInt(text, 10, 8)
		format.AppendInt8(v, int8(n))
	case types.SmallInt:
		n, err = strconv.ParseInt(text, 10, 16)
		format.AppendInt16(v, int16(n))
	case types.Int:
		n, err = strconv.ParseInt(text, 10, 32)
		format.AppendInt32(v, int32(n))
	case types.BigInt:
		n, err = strconv.ParseInt(text, 10, 64)
		format.AppendInt64(v, n)
	case types.Date:
		var t time.Time
		t, err = time.Parse(time.DateOnly, text)
		format.AppendInt32(v, int32(t.Unix()/86400))
	default:
		format.AppendString(v, text)
	}
	if err != nil {
		return fmt.Errorf("%q is not %s", text, v.Type.WithNullable(true))
	}
	return nil
}

// constant makes v a column of n equal rows with the value of a partition.
func constant(v *batch.Vec, t types.Type, n int, p partitionValue) error {
	v.Reset(t, 0)
	if p.null {
		format.AppendNull(v)
		format.Seal(v)
	} else if err := parseValue(v, p.value); err != nil {
		return fmt.Errorf("partition column %s: %w", p.name, err)
	}
	v.Enc, v.Len = batch.Const, n
	return nil
}
