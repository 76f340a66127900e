package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
)

// changes are those that a batch of input makes to groups: -U with the row as it
// was and +U with the new one, together, or +I for a new group; nothing where the
// row stays the same.
type changes struct {
	touched []int32 // groups that were there before
	seen    batch.Bitmap
	was, is batch.Batch
	out     batch.Batch
	kinds   []batch.Kind
}

// before notes the rows of the groups that are about to change; old is the number
// of slots before the batch.
func (c *changes) before(g *GroupAggregate, old int) {
	c.touched = c.touched[:0]
	c.seen = c.seen.Resize(g.table.keys.Len(), false)
	for _, sel := range [...]batch.Sel{g.come, g.back} {
		for _, row := range sel {
			s := g.slots[row]
			if c.seen.Get(int(s)) {
				continue
			}
			c.seen.Set(int(s))
			g.ages.touch(s)
			if int(s) < old {
				c.touched = append(c.touched, s)
			}
		}
	}
	slices.Sort(c.touched)
	c.rows(g, c.touched, &c.was)
}

// rows are the rows of groups as they are now.
func (c *changes) rows(g *GroupAggregate, groups []int32, b *batch.Batch) {
	b.Reset(g.schema)
	b.Len = len(groups)
	if len(groups) > 0 {
		emitTable(b.Cols, g.table, g.aggs, groups)
	}
}

// emit gives the changes.
func (c *changes) emit(g *GroupAggregate, old int, out *Results) error {
	c.rows(g, c.touched, &c.is)
	c.start(g)
	for i, slot := range c.touched {
		switch {
		case g.vanished(slot):
			c.add(&c.was, i, batch.Delete)
			g.forget(slot)
		case g.ages.on() && len(g.aggs.calls) > 0 || !c.same(g, i):
			// With a time to live unchanged rows go on, too: they keep what is behind
			// them alive.
			c.add(&c.was, i, batch.UpdateBefore)
			c.add(&c.is, i, batch.UpdateAfter)
		}
		if err := c.flush(g, out, false); err != nil {
			return err
		}
	}
	g.groups = g.groups[:0]
	for slot := int32(old); int(slot) < g.table.keys.Len(); slot++ {
		if g.vanished(slot) {
			g.forget(slot)
		} else {
			g.groups = append(g.groups, slot)
		}
	}
	c.rows(g, g.groups, &c.is)
	g.done = g.done || g.global && len(g.groups) > 0 // the end says nothing more
	for i := range g.groups {
		c.add(&c.is, i, batch.Insert)
		if err := c.flush(g, out, false); err != nil {
			return err
		}
	}
	return c.flush(g, out, true)
}

// same reports a group whose row the batch has not changed.
func (c *changes) same(g *GroupAggregate, i int) bool {
	for k := len(g.op.Keys); k < len(c.is.Cols); k++ {
		was, is := &c.was.Cols[k], &c.is.Cols[k]
		if (was.DeepErr(i) != nil) != (is.DeepErr(i) != nil) || was.IsNull(i) != is.IsNull(i) {
			return false
		}
		if !was.IsNull(i) && !batch.ValueEqual(was, i, is, i) {
			return false
		}
	}
	return true
}

func (c *changes) start(g *GroupAggregate) {
	c.out.Reset(g.schema)
	for i := range c.out.Cols {
		c.out.Cols[i].Reset(g.schema.Fields[i].Type, 0)
	}
	c.kinds = c.kinds[:0]
}

func (c *changes) add(from *batch.Batch, row int, kind batch.Kind) {
	for i := range c.out.Cols {
		c.out.Cols[i].Append(&from.Cols[i], row)
	}
	c.out.Len++
	c.kinds = append(c.kinds, kind)
}

// flush gives what has gathered, when it is enough or the last. Rows that are all
// new have no kinds.
func (c *changes) flush(g *GroupAggregate, out *Results, last bool) error {
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
	c.start(g)
	return nil
}
