package operator

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state/spill"
)

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
	parts := make([]joinTable, len(move))
	err := p.disk.write(func(w *spill.Writer) error {
		for k, i := range move {
			if err := tables[i].write(w, &parts[k]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
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

// allRuns are the runs with rows of either side.
func (t *joinTable) allRuns() []*spill.Run { return slices.Concat(t.runs[0], t.runs[1], t.loose) }

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
	in, err := t.disk.read(r, block)
	if err != nil {
		return err
	}
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

// saveParts adds the table as several ones, each behind head.
func (t *joinTable) saveParts(p *parted, head []byte) {
	for side := range t.side {
		rows := slotsOf(0, t.side[side].rows.Len, nil)
		for n := p.chunk(len(rows), t.side[side].bytes()); len(rows) > 0; rows = rows[min(n, len(rows)):] {
			sel := [2]batch.Sel{{}, {}}
			sel[side] = rows[:min(n, len(rows))]
			p.bytes(t.side[1].saveSel(t.side[0].saveSel(slices.Clone(head), sel[0]), sel[1]))
		}
	}
	for _, r := range t.allRuns() {
		p.run(r, head)
	}
}
