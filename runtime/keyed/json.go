package keyed

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
)

// appendRow appends a row as a JSON object, for people and for the dead letter:
// numbers as numbers (DECIMAL too), times and dates as ISO text, BYTES in base64,
// errors as null.
func appendRow(dst []byte, b *batch.Batch, row int) []byte {
	dst = append(dst, '{')
	for i := range b.Cols {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(fn.AppendJSONString(dst, []byte(b.Schema.Fields[i].Name)), ':')
		dst = fn.AppendJSON(dst, &b.Cols[i], row)
	}
	return append(dst, '}')
}
