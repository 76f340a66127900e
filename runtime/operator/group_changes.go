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
	changeRows
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
	c.start(g.schema)
	for i, slot := range c.touched {
		switch {
		case g.vanished(slot):
			c.add(&c.was, i, batch.Delete)
			g.forget(slot)
		case g.ages.on() && len(g.aggs.calls) > 0 || !sameRow(&c.was, &c.is, i, len(g.op.Keys)):
			// With a time to live unchanged rows go on, too: they keep what is behind
			// them alive.
			c.add(&c.was, i, batch.UpdateBefore)
			c.add(&c.is, i, batch.UpdateAfter)
		}
		if err := c.flush(out, false); err != nil {
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
		if err := c.flush(out, false); err != nil {
			return err
		}
	}
	return c.flush(out, true)
}
