package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
)

// timedRows are rows kept of one input until the watermark says that they may go.
type timedRows struct {
	rowStore
	slot     []int32 // by row; noSlot: it has no partner
	time     []int64 // by row, in ms
	matched  []bool
	gone     []bool
	goneRows int
	ends     endHeap // by when the watermark decides about the row
	// head is, by slot, the last row of the key, next the one before it.
	head, next []int32
}

// grow makes chains for n slots.
func (s *timedRows) grow(n int) {
	for len(s.head) < n {
		s.head = append(s.head, -1)
	}
}

// note adds what is known of row at, which is in the store.
func (s *timedRows) note(at, slot int32, time, end int64) {
	s.chain(at, slot, time, false)
	s.ends.push(sessionEnd{end: end, key: at})
}

func (s *timedRows) chain(at, slot int32, time int64, matched bool) {
	s.slot, s.time = append(s.slot, slot), append(s.time, time)
	s.matched, s.gone = append(s.matched, matched), append(s.gone, false)
	if slot < 0 {
		s.next = append(s.next, -1)
		return
	}
	s.next = append(s.next, s.head[slot])
	s.head[slot] = at
}

// forget says that a row is of no use any more.
func (s *timedRows) forget(row int32) {
	s.gone[row] = true
	s.goneRows++
}

// keep leaves out the rows that are gone. Keys have new numbers, n of them; to gives the
// new numbers of rows, -1 for those left out.
func (s *timedRows) keep(slots []int32, n int) (to []int32) {
	out := timedRows{rowStore: rowStore{schema: s.schema}, ends: s.ends}
	out.grow(n)
	sel := batch.Sel{}
	to = slices.Repeat([]int32{-1}, len(s.slot))
	for row, slot := range s.slot {
		if s.gone[row] {
			continue
		}
		if slot >= 0 {
			slot = slots[slot]
		}
		to[row] = int32(len(sel))
		sel = append(sel, int32(row))
		out.chain(to[row], slot, s.time[row], s.matched[row])
	}
	out.rows.Take(&s.rows, sel)
	out.ends.renumber(to)
	*s = out
	return to
}

// live are the rows that are not gone, with whether they had a match.
func (s *timedRows) live() (*batch.Batch, []bool) {
	sel, matched := batch.Sel{}, []bool(nil)
	for i := range s.gone {
		if !s.gone[i] {
			sel, matched = append(sel, int32(i)), append(matched, s.matched[i])
		}
	}
	b := new(batch.Batch)
	b.Take(&s.rows, sel)
	return b, matched
}

func (s *timedRows) bytes() int64 {
	return s.rowStore.bytes() + 4*int64(cap(s.slot)+cap(s.head)+cap(s.next)) + 8*int64(cap(s.time)) + int64(cap(s.matched)+cap(s.gone)) + 16*int64(cap(s.ends))
}

// outer reports a side whose rows are given without a partner, too.
func (p *joinPlan) outer(side int) bool {
	return side == 0 && p.op.Kind.KeepsLeft() || side == 1 && p.op.Kind.KeepsRight()
}

// take reads keys and times of rows of one side. The rows to keep are in keep then,
// those with a key in good, with their hashes; slots are theirs to be found. Rows
// without a time and those whose key is an error go to dead.
func (p *joinPlan) take(side int, b *batch.Batch, sel batch.Sel, dead func(*batch.Batch, *batch.ValueError)) (times *batch.Vec) {
	t, at := &joinTable{joinPlan: p}, p.op.TimeColumn(side)
	times = &b.Cols[at]
	p.cols = colsAt(b, p.op.InputKeys(side), p.cols)
	p.slots, p.hashes = resized(p.slots, b.Len), resized(p.hashes, b.Len)
	p.good, p.keep = p.good[:0], p.keep[:0]
	for _, row := range sel {
		if times.IsNull(int(row)) {
			e := NullEventTime(p.in[side].Fields[at].Name)
			if x := times.Err(int(row)); x != nil {
				*e = *x
			}
			e.Row = row
			dead(b, e)
			continue
		}
		switch t.keyState(row) {
		case truthError:
			dead(b, t.keyError(row))
			continue
		case truthUnknown:
			if !p.outer(side) {
				continue
			}
			p.slots[row] = noSlot
		default:
			p.hashes[row], p.buf = batch.HashKey(p.buf, p.cols, int(row))
			p.good = append(p.good, row)
		}
		p.keep = append(p.keep, row)
	}
	return times
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func all(n int) batch.Sel {
	sel := make(batch.Sel, n)
	for i := range sel {
		sel[i] = int32(i)
	}
	return sel
}

// emitPairs gives the pairs collected that the condition lets through, and notes
// their rows in left and right.
func (m *matching) emitPairs(left, right []bool) error {
	if len(m.li) == 0 {
		return nil
	}
	defer func() { m.li, m.ri = m.li[:0], m.ri[:0] }()
	m.truths()
	m.pass = m.pass[:0]
	for k := range m.li {
		switch m.truthOf(k) {
		case truthError:
			// The pair is dead, not without a match: nothing is padded for it.
			e := *m.cond.out[0].Err(k)
			e.Row = int32(k)
			m.res.Dead(&m.pairs, &e)
		case truthTrue:
			m.pass = append(m.pass, int32(k))
		default:
			continue
		}
		left[m.li[k]], right[m.ri[k]] = true, true
	}
	return m.emitPassed()
}
