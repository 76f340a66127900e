package fullcache

import "github.com/millrace/millrace/runtime/batch"

// RowError is the first error of a row that is looked up, NULL in a NOT NULL column
// included; nil: it has none.
func RowError(b *batch.Batch, row int) *batch.ValueError {
	for c := range b.Cols {
		v, f := &b.Cols[c], &b.Schema.Fields[c]
		if v.HasDeepErrs() {
			if e := v.DeepErr(row); e != nil {
				return e
			}
		}
		if !f.Type.Nullable && v.IsNull(row) {
			return &batch.ValueError{Code: batch.CodeNullInNotNull, Where: f.Name, Message: "NULL in a NOT NULL column"}
		}
	}
	return nil
}
