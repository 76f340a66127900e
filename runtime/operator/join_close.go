package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
)

// closeParts gives the rows of a table that is on disk.
func (t *joinTable) closeParts(ctx *expr.Context, out *Results) error {
	if t.rowCount() > 0 {
		if err := t.spillAll(); err != nil {
			return err
		}
	}
	for _, x := range spill.Ranges(t.runs[1], t.disk.rangeBytes()) {
		if err := t.closeRange(ctx, out, x); err != nil {
			return err
		}
	}
	for _, r := range t.loose {
		for block := range r.Blocks() {
			part := t.part()
			if err := part.read(r, block, nil); err != nil {
				return err
			}
			if err := part.close(ctx, out); err != nil {
				return err
			}
		}
	}
	t.release()
	return nil
}

// spillAll moves the rows in memory to disk, however few they are.
func (t *joinTable) spillAll() error {
	budget := t.disk.budget
	t.disk.budget = 0
	err := t.spillTables([]*joinTable{t})
	t.disk.budget = budget
	return err
}

// release lets go of what is on disk.
func (t *joinTable) release() {
	for _, r := range t.allRuns() {
		r.Release()
	}
	t.runs, t.loose = [2][]*spill.Run{}, nil
}

// placed is a block of a run.
type placed struct {
	*spill.Run
	block int
}

// blocksOf are the blocks of runs that have hashes of a range, the oldest run first.
func blocksOf(runs []*spill.Run, x spill.Range) []placed {
	var out []placed
	for _, r := range runs {
		for i := range r.In(x) {
			out = append(out, placed{r, i})
		}
	}
	return out
}

// leastChunk is what a chunk of right rows takes at least, whatever the budget.
const leastChunk = 32 << 10

// closeRange joins the rows of a range of hashes.
func (t *joinTable) closeRange(ctx *expr.Context, out *Results, x spill.Range) error {
	c := &rangeClose{t: t, x: x, left: blocksOf(t.runs[0], x)}
	right := blocksOf(t.runs[1], x)
	limit := max(t.disk.budget/4, leastChunk)
	for first := true; first || len(right) > 0; first = false {
		part := t.part()
		n, err := part.readChunk(right, x, limit)
		if err != nil {
			return err
		}
		right = right[n:]
		m := &matching{joinTable: part, ctx: ctx, res: out}
		m.start()
		if err := c.pass(m, first, len(right) == 0); err != nil {
			return err
		}
		if err := m.giveRight(); err != nil {
			return err
		}
	}
	return nil
}

// readChunk reads rows of right blocks until they take limit in memory; it gives the
// number of the blocks. The one match of a row of a scalar sub-query is not known until
// all of them are there.
func (t *joinTable) readChunk(blocks []placed, x spill.Range, limit int64) (int, error) {
	single := t.op.Kind == graph.SingleJoin
	if single {
		limit = keyLimit(t.disk.budget)
	}
	for i, b := range blocks {
		n := t.side[1].bytes() + t.keys.Bytes() + 4*int64(cap(t.head)+cap(t.next))
		switch {
		case n <= limit:
		case single:
			return 0, &KeySizeError{"a scalar sub-query", n, limit}
		default:
			return i, nil
		}
		if err := t.read(b.Run, b.block, &x); err != nil {
			return 0, err
		}
	}
	return len(blocks), nil
}

// rangeClose is the left rows of a range, and what is known of them from one chunk of
// right rows to the next.
type rangeClose struct {
	t      *joinTable
	x      spill.Range
	left   []placed
	known  []truth
	failed map[int]batch.ValueError
}

// pass has the left rows pass a chunk of right rows.
func (c *rangeClose) pass(m *matching, first, last bool) error {
	at := 0
	for _, l := range c.left {
		m.side[0], m.leftSlot, m.leftGroup = newRowStore(m.in[0]), m.leftSlot[:0], m.leftGroup[:0]
		if err := m.read(l.Run, l.block, &c.x); err != nil {
			return err
		}
		m.startLeft()
		if !first {
			c.recall(m, at)
		}
		if err := m.pairOff(); err != nil {
			return err
		}
		if last {
			if err := m.giveLeft(); err != nil {
				return err
			}
		} else {
			c.remember(m, at, first)
		}
		at += len(m.left)
	}
	return nil
}

// remember notes what is known of left rows, which are at a place in c.known.
func (c *rangeClose) remember(m *matching, at int, first bool) {
	if first {
		c.known = append(c.known, m.left...)
	} else {
		copy(c.known[at:], m.left)
	}
	for row, e := range m.failed {
		if c.failed == nil {
			c.failed = map[int]batch.ValueError{}
		}
		c.failed[at+int(row)] = e
	}
}

// recall is the way back.
func (c *rangeClose) recall(m *matching, at int) {
	copy(m.left, c.known[at:])
	for row, x := range m.left {
		if e, ok := c.failed[at+row]; ok && x == truthError {
			if m.failed == nil {
				m.failed = map[int32]batch.ValueError{}
			}
			m.failed[int32(row)] = e
		}
	}
}
