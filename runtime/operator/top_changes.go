package operator

import "github.com/millrace/millrace/runtime/batch"

// topChanges gathers rows that change what was given before.
type topChanges struct {
	out   batch.Batch
	kinds []batch.Kind
}

// emit gives the changes of the touched keys.
func (t *TopN) emit(out *Results) error {
	c := &t.result
	c.begin(t.out)
	for i, s := range t.touched {
		t.is = t.lists[s].first(t.op.N, t.is[:0])
		if t.op.N == 1 || t.op.Number {
			t.byNumber(t.was[i], t.is)
		} else {
			t.byRow(t.was[i], t.is)
		}
		if c.out.Len >= emitRows {
			if err := c.flush(out); err != nil {
				return err
			}
		}
	}
	return c.flush(out)
}

// byNumber compares what stands at each number.
func (t *TopN) byNumber(was, is []int32) {
	for i := range max(len(was), len(is)) {
		n := int64(i + 1)
		switch {
		case i >= len(was):
			t.give(is[i], n, batch.Insert)
		case i >= len(is):
			t.give(was[i], n, batch.Delete)
		case was[i] != is[i] && (t.ages.on() || !t.sameRow(was[i], is[i])):
			t.give(was[i], n, batch.UpdateBefore)
			t.give(is[i], n, batch.UpdateAfter)
		}
	}
}

// byRow compares which rows are there: what goes, then what comes.
func (t *TopN) byRow(was, is []int32) {
	each := func(a, b []int32, kind batch.Kind) {
		k := 0
		for _, row := range a {
			c := -1
			for ; k < len(b); k++ {
				if c = t.rows.compare(b[k], row); c >= 0 {
					break
				}
			}
			if k < len(b) && c == 0 {
				k++
				continue
			}
			t.give(row, 0, kind)
		}
	}
	each(was, is, batch.Delete)
	each(is, was, batch.Insert)
}

// sameRow reports two rows that look the same, wherever they come from.
func (t *TopN) sameRow(a, b int32) bool {
	for i := range t.rows.batch.Cols {
		if v := &t.rows.batch.Cols[i]; !batch.ValueEqual(v, int(a), v, int(b)) {
			return false
		}
	}
	return true
}

func (t *TopN) give(row int32, number int64, kind batch.Kind) {
	c := &t.result
	for i := range t.in.Fields {
		c.out.Cols[i].Append(&t.rows.batch.Cols[i], int(row))
	}
	if t.op.Number {
		v := &c.out.Cols[len(t.in.Fields)]
		v.Grow(1)
		v.I64[v.Len-1] = number
	}
	c.out.Len++
	c.kinds = append(c.kinds, kind)
}

// add appends a row as it is.
func (c *topChanges) add(b *batch.Batch, row int32, kind batch.Kind) {
	appendRow(&c.out, b, row)
	c.kinds = append(c.kinds, kind)
}

func (c *topChanges) begin(schema *batch.Schema) {
	resetRows(&c.out, schema)
	c.kinds = c.kinds[:0]
}

// flush gives the rows, and begins anew.
func (c *topChanges) flush(out *Results) error {
	if c.out.Len == 0 {
		return nil
	}
	for i := range c.out.Cols {
		c.out.Cols[i].PadOffsets()
	}
	c.out.Kinds = c.kinds
	err := out.Emit(&c.out)
	c.begin(c.out.Schema)
	return err
}
