package keyed

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// appendRow appends a row as a JSON object, for people and for the dead letter:
// numbers as numbers (DECIMAL too), times and dates as text, BYTES in base64,
// errors as null.
func appendRow(dst []byte, b *batch.Batch, row int) []byte {
	dst = append(dst, '{')
	for i := range b.Cols {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, b.Schema.Fields[i].Name), ':')
		dst = appendJSON(dst, &b.Cols[i], row)
	}
	return append(dst, '}')
}

func appendText(dst []byte, s string) []byte {
	q, err := json.Marshal(s) // of a string it cannot fail
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, q...)
}

func appendJSON(dst []byte, v *batch.Vec, i int) []byte {
	if v.IsNull(i) {
		return append(dst, "null"...)
	}
	for v.Enc == batch.Dict {
		v, i = v.Dict, int(v.Codes[i])
	}
	i = v.Index(i)
	switch t := v.Type; t.Kind {
	case types.Boolean:
		return strconv.AppendBool(dst, v.Bools.Get(i))
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Decimal:
		return batch.AppendText(dst, v, i, nil)
	case types.Float, types.Double:
		if f := v.Float64(i); math.IsNaN(f) || math.IsInf(f, 0) {
			return append(append(append(dst, '"'), batch.AppendText(nil, v, i, nil)...), '"')
		}
		bits := 64
		if t.Kind == types.Float {
			bits = 32
		}
		return strconv.AppendFloat(dst, v.Float64(i), 'g', -1, bits)
	case types.Binary, types.Varbinary:
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), v.Bytes(i))
		return append(dst, '"')
	case types.Array:
		dst = append(dst, '[')
		from, to := v.Range(i)
		for k := from; k < to; k++ {
			if k > from {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, v.Children[0], k)
		}
		return append(dst, ']')
	case types.Map:
		dst = append(dst, '{')
		from, to := v.Range(i)
		for k := from; k < to; k++ {
			if k > from {
				dst = append(dst, ',')
			}
			dst = append(appendText(dst, v.Children[0].Text(k)), ':')
			dst = appendJSON(dst, v.Children[1], k)
		}
		return append(dst, '}')
	case types.Row:
		dst = append(dst, '{')
		for f := range t.Fields {
			if f > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(dst, t.Fields[f].Name), ':')
			dst = appendJSON(dst, v.Children[f], i)
		}
		return append(dst, '}')
	}
	return appendText(dst, v.Text(i))
}
