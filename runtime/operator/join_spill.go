package operator

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// KeySizeError says that the rows of one key of a join do not fit into memory, where
// they have to be there at once.
type KeySizeError struct {
	// Bytes is what they take so far, Limit what they may.
	Bytes, Limit int64
}

func (e *KeySizeError) Error() string {
	return fmt.Sprintf("a scalar sub-query has rows of one key that take more than %d bytes of memory (%d): raise 'slot.state-memory'", e.Limit, e.Bytes)
}

// A table on disk has its rows in runs, those of each side and those whose key equals
// nothing apart. At the end a range of key hashes of right rows after the other goes
// into memory, and the left rows of the range pass it a block at a time. Right rows of
// one key that are too many go by in chunks, each of which the left rows pass.

// spillTables moves tables to disk, the largest first.
func (p *joinPlan) spillTables(tables []*joinTable) error {
	if p.disk.store == nil {
		return nil
	}
	move := p.disk.largest(len(tables), func(i int) int64 {
		if tables[i].rowCount() == 0 {
			return 0
		}
		return tables[i].bytes()
	})
	if len(move) == 0 {
		return nil
	}
	w, err := p.disk.store.NewWriter()
	if err != nil {
		return err
	}
	parts := make([]joinTable, len(move))
	for k, i := range move {
		if err := tables[i].write(w, &parts[k]); err != nil {
			w.Abort()
			return err
		}
	}
	if err := w.Finish(); err != nil {
		return err
	}
	for k, i := range move {
		t := tables[i]
		for side := range t.runs {
			t.runs[side] = append(t.runs[side], parts[k].runs[side]...)
		}
		t.loose = append(t.loose, parts[k].loose...)
		t.clear()
	}
	return nil
}

// rowCount is the number of rows in memory.
func (t *joinTable) rowCount() int { return t.side[0].rows.Len + t.side[1].rows.Len }

// empty reports a table without rows.
func (t *joinTable) empty() bool { return t.rowCount() == 0 && !t.spilled() }

// spilled reports rows on disk.
func (t *joinTable) spilled() bool { return len(t.runs[0])+len(t.runs[1])+len(t.loose) > 0 }

// clear forgets the rows in memory. What is known of groups stays.
func (t *joinTable) clear() {
	empty := newJoinTable(t.joinPlan)
	t.side, t.keys = empty.side, empty.keys
	t.leftSlot, t.head, t.next, t.leftGroup = nil, nil, nil, nil
}

// hashedRow is a row with the hash of its key.
type hashedRow struct {
	hash uint64
	row  int32
}

// byKey are the rows of a side in order of their keys' hashes, those of one hash as
// they came, and the rows whose key equals nothing.
func (t *joinTable) byKey(side int) (rows []hashedRow, loose batch.Sel) {
	slots := t.leftSlot
	if side == 1 {
		slots = slices.Repeat([]int32{noSlot}, t.side[1].rows.Len)
		for slot, r := range t.head {
			for ; r >= 0; r = t.next[r] {
				slots[r] = int32(slot)
			}
		}
	}
	for row, slot := range slots {
		if slot < 0 {
			loose = append(loose, int32(row))
		} else {
			rows = append(rows, hashedRow{t.keys.Hash(int(slot)), int32(row)})
		}
	}
	slices.SortFunc(rows, func(a, b hashedRow) int {
		if c := cmp.Compare(a.hash, b.hash); c != 0 {
			return c
		}
		return cmp.Compare(a.row, b.row)
	})
	return rows, loose
}

// write writes the rows, and notes the runs in to.
func (t *joinTable) write(w *spill.Writer, to *joinTable) error {
	var free [2]batch.Sel
	for side := range t.side {
		rows, loose := t.byKey(side)
		free[side] = loose
		if len(rows) == 0 {
			continue
		}
		to.runs[side] = append(to.runs[side], w.Begin(0))
		n := t.perBlock(side)
		for len(rows) > 0 {
			chunk := rows[:min(n, len(rows))]
			if err := t.writeBlock(w, side, chunk); err != nil {
				return err
			}
			rows = rows[len(chunk):]
		}
	}
	if len(free[0])+len(free[1]) == 0 {
		return nil
	}
	to.loose = append(to.loose, w.Begin(0))
	for side, loose := range free {
		n := t.perBlock(side)
		for len(loose) > 0 {
			chunk := make([]hashedRow, min(n, len(loose)))
			for i := range chunk {
				chunk[i].row = loose[i]
			}
			if err := t.writeBlock(w, side, chunk); err != nil {
				return err
			}
			loose = loose[len(chunk):]
		}
	}
	return nil
}

// perBlock is how many rows of a side are about a block.
func (t *joinTable) perBlock(side int) int {
	return int(max(blockBytes*int64(t.side[side].rows.Len)/max(t.side[side].bytes(), 1), 1))
}

// writeBlock writes rows of one side in the form of a table.
func (t *joinTable) writeBlock(w *spill.Writer, side int, rows []hashedRow) error {
	hashes, sel := make([]uint64, len(rows)), make(batch.Sel, len(rows))
	for i, x := range rows {
		hashes[i], sel[i] = x.hash, x.row
	}
	buf := t.disk.buf[:0]
	for i := range t.side {
		if i == side {
			buf = t.side[i].saveSel(buf, sel)
		} else {
			none := newRowStore(t.in[i])
			buf = none.save(buf)
		}
	}
	t.disk.buf = buf
	return w.Block(buf, hashes)
}

// part is an empty table that knows what t knows of groups.
func (t *joinTable) part() *joinTable {
	p := newJoinTable(t.joinPlan)
	p.groups, p.groupRows, p.groupNull, p.probing = t.groups, t.groupRows, t.groupNull, true
	return p
}

// read adds the rows of a block whose key is of a range; nil: all of them.
func (t *joinTable) read(r *spill.Run, block int, x *spill.Range) error {
	buf, err := r.Read(block, t.disk.buf)
	if err != nil {
		return err
	}
	t.disk.buf = buf
	in := state.NewReader(buf)
	for side := range t.side {
		b, err := readRows(in, t.in[side])
		if err != nil {
			return err
		}
		sel := all(b.Len)
		if x != nil {
			sel = sel[:0]
			t.cols = colsAt(b, t.op.InputKeys(side), t.cols)
			var hash uint64
			for row := range b.Len {
				if hash, t.buf = batch.HashKey(t.buf, t.cols, row); x.Has(hash) {
					sel = append(sel, int32(row))
				}
			}
		}
		t.add(side, b, sel, func(*batch.Batch, *batch.ValueError) {})
	}
	return nil
}

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
	for _, runs := range [...][]*spill.Run{t.runs[0], t.runs[1], t.loose} {
		for _, r := range runs {
			r.Release()
		}
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
		from, to := r.Between(x)
		for i := from; i < to; i++ {
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
		limit = max(t.disk.budget, 8*leastChunk)
	}
	for i, b := range blocks {
		n := t.side[1].bytes() + t.keys.Bytes() + 4*int64(cap(t.head)+cap(t.next))
		switch {
		case n <= limit:
		case single:
			return 0, &KeySizeError{n, limit}
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

// saveParts appends the table as several ones, each after head.
func (t *joinTable) saveParts(p *state.Payload, head []byte) {
	if t.rowCount() > 0 {
		p.Append(t.save(slices.Clone(head)))
	}
	for _, runs := range [...][]*spill.Run{t.runs[0], t.runs[1], t.loose} {
		appendRuns(p, head, runs)
	}
}

// parts is in how many tables a table is saved.
func (t *joinTable) parts() int {
	n := 0
	if t.rowCount() > 0 {
		n++
	}
	for _, runs := range [...][]*spill.Run{t.runs[0], t.runs[1], t.loose} {
		for _, r := range runs {
			n += r.Blocks()
		}
	}
	return n
}
