package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
)

// changeRows gathers rows of several kinds into batches of results.
type changeRows struct {
	schema *batch.Schema
	out    batch.Batch
	kinds  []batch.Kind
}

func (c *changeRows) start(s *batch.Schema) {
	c.schema = s
	resetRows(&c.out, s)
	c.kinds = c.kinds[:0]
}

func (c *changeRows) add(from *batch.Batch, row int, kind batch.Kind) {
	appendRow(&c.out, from, int32(row))
	c.kinds = append(c.kinds, kind)
}

// flush gives what has gathered, when it is enough or the last. Rows that are all
// new have no kinds.
func (c *changeRows) flush(out *Results, last bool) error {
	if c.out.Len == 0 || !last && c.out.Len < emitRows {
		return nil
	}
	for i := range c.out.Cols {
		c.out.Cols[i].PadOffsets()
	}
	if slices.ContainsFunc(c.kinds, func(k batch.Kind) bool { return k != batch.Insert }) {
		c.out.Kinds = c.kinds
	}
	if err := out.Emit(&c.out); err != nil {
		return err
	}
	c.start(c.schema)
	return nil
}

// sameRow reports rows of two batches that are equal from a column on.
func sameRow(a, b *batch.Batch, row, from int) bool {
	for k := from; k < len(a.Cols); k++ {
		was, is := &a.Cols[k], &b.Cols[k]
		if (was.DeepErr(row) != nil) != (is.DeepErr(row) != nil) || was.IsNull(row) != is.IsNull(row) {
			return false
		}
		if !was.IsNull(row) && !batch.ValueEqual(was, row, is, row) {
			return false
		}
	}
	return true
}
