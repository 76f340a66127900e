package fn

import (
	"encoding/base64"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func bindJSONString(args []Arg) (Bound, error) {
	if err := count("JSON_STRING", args, 1, 1); err != nil {
		return Bound{}, err
	}
	t := args[0].Type
	if t.Kind == types.Null {
		t = tString
	}
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.BeginBytes(int(i))
			out.Data = AppendJSON(out.Data, args[0], int(i))
			out.EndBytes()
		}
	}
	return Bound{Params: []types.Type{t}, Return: tString.WithNullable(anyNullable(args)), Kernel: k}, nil
}

// AppendJSON appends row i of a Vec of any encoding as JSON text: numbers as
// their SQL text (NaN and infinities as strings, which JSON lacks), times as
// strings in ISO form (TIMESTAMP_LTZ in UTC with Z), bytes as Base64, NULL and
// errors as null.
func AppendJSON(dst []byte, v *batch.Vec, i int) []byte {
	if v.IsNull(i) {
		return append(dst, "null"...)
	}
	if v.Enc == batch.Dict {
		return AppendJSON(dst, v.Dict, int(v.Codes[i]))
	}
	i = v.Index(i)
	switch t := v.Type; t.Kind {
	case types.Boolean:
		if v.Bools.Get(i) {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case types.Char, types.Varchar:
		return AppendJSONString(dst, v.Bytes(i))
	case types.Binary, types.Varbinary:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v.Bytes(i)), '"')
	case types.Float, types.Double:
		if f := v.Float64(i); math.IsNaN(f) || math.IsInf(f, 0) {
			return append(batch.AppendText(append(dst, '"'), v, i, nil), '"')
		}
	case types.Timestamp, types.TimestampLTZ:
		dst = types.AppendTimestamp(append(dst, '"'), v.I64[i], t, 'T')
		if t.Kind == types.TimestampLTZ {
			dst = append(dst, 'Z')
		}
		return append(dst, '"')
	case types.Date, types.Time, types.IntervalDaySecond, types.IntervalYearMonth:
		return append(batch.AppendText(append(dst, '"'), v, i, nil), '"')
	case types.Array:
		dst = append(dst, '[')
		from, to := v.Range(i)
		for k := from; k < to; k++ {
			if k > from {
				dst = append(dst, ',')
			}
			dst = AppendJSON(dst, v.Children[0], k)
		}
		return append(dst, ']')
	case types.Map:
		dst = append(dst, '{')
		from, to := v.Range(i)
		for k := from; k < to; k++ {
			if k > from {
				dst = append(dst, ',')
			}
			dst = AppendJSONString(dst, batch.AppendText(nil, v.Children[0], k, nil))
			dst = AppendJSON(append(dst, ':'), v.Children[1], k)
		}
		return append(dst, '}')
	case types.Row:
		dst = append(dst, '{')
		for k, c := range v.Children {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = AppendJSONString(dst, []byte(t.Fields[k].Name))
			dst = AppendJSON(append(dst, ':'), c, i)
		}
		return append(dst, '}')
	}
	return batch.AppendText(dst, v, i, nil)
}

// shortEscape is the letter behind \ for a control character that JSON has one for,
// or 0.
func shortEscape(c byte) byte {
	switch c {
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}

// AppendJSONString appends a JSON string; only what must be escaped is.
func AppendJSONString(dst, s []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case shortEscape(c) != 0:
			dst = append(dst, '\\', shortEscape(c))
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(dst, '"')
}
