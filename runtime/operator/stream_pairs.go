package operator

import (
	"github.com/millrace/millrace/runtime/batch"
)

// pair gives the pairs of rows that come, or takes back those of rows that go, and
// pads what has no partner.
func (j *StreamJoin) pair(m *matching, side int, rows []stored, sign int32, kind func(stored) batch.Kind) error {
	mine, other := &j.side[side], &j.side[1-side]
	var kinds []batch.Kind
	for _, r := range rows {
		if mine.slot[r.row] < 0 {
			continue
		}
		k := kind(r)
		for o := other.head[mine.slot[r.row]]; o >= 0; o = other.next[o] {
			l, ri := r.row, o
			if side == 1 {
				l, ri = o, r.row
			}
			m.li, m.ri, kinds = append(m.li, l), append(m.ri, ri), append(kinds, k)
			if len(m.li) == emitRows {
				if err := j.flush(m, side, sign, kinds); err != nil {
					return err
				}
				kinds = kinds[:0]
			}
		}
	}
	if err := j.flush(m, side, sign, kinds); err != nil || !j.outer(side) {
		return err
	}
	j.fresh, kinds = j.fresh[:0], kinds[:0]
	for _, r := range rows {
		if mine.matches[r.row] == 0 {
			j.fresh, kinds = append(j.fresh, r.row), append(kinds, kind(r))
		}
	}
	return j.pad(m, side, kinds)
}

// truths evaluates the condition for the pairs collected.
func (m *matching) truths() {
	m.pairUp()
	if m.cond.prog != nil {
		m.cond.prog.Eval(m.ctx, &m.pairs, nil, m.cond.out)
	}
}

// truthOf is what the condition says of pair k.
func (m *matching) truthOf(k int) truth {
	if m.cond.prog == nil {
		return truthTrue
	}
	return truthAt(&m.cond.out[0], k)
}

// flush gives the pairs that the condition lets through, or takes them back. Before
// new ones it takes back what an outer join had padded, behind old ones it pads what
// has lost its last partner. side is that of the rows that come or go.
func (j *StreamJoin) flush(m *matching, side int, sign int32, kinds []batch.Kind) error {
	if len(m.li) == 0 {
		return nil
	}
	m.truths()
	m.pass, j.fresh = m.pass[:0], j.fresh[:0]
	other := &j.side[1-side]
	for k := range m.li {
		mine, theirs := m.li[k], m.ri[k]
		if side == 1 {
			mine, theirs = theirs, mine
		}
		switch m.truthOf(k) {
		case truthError:
			// The pair is dead, not without a match: the new row is not padded.
			if sign > 0 {
				e := *m.cond.out[0].Err(k)
				e.Row = int32(k)
				m.res.Dead(&m.pairs, &e)
			}
		case truthTrue:
			m.pass = append(m.pass, int32(k))
		default:
			continue
		}
		if sign > 0 {
			j.side[side].matches[mine]++
			if other.matches[theirs]++; other.matches[theirs] == 1 {
				j.fresh = append(j.fresh, theirs)
			}
		} else if other.matches[theirs]--; other.matches[theirs] == 0 {
			j.fresh = append(j.fresh, theirs)
		}
		if j.outer(1 - side) {
			other.ages.touch(theirs) // the number of its partners is written
		}
	}
	m.li, m.ri = m.li[:0], m.ri[:0]
	if sign < 0 {
		if err := m.emitKinds(kinds); err != nil {
			return err
		}
	}
	if j.outer(1 - side) {
		kind := batch.Delete
		if sign < 0 {
			kind = batch.Insert
		}
		j.kinds = j.kinds[:0]
		for range j.fresh {
			j.kinds = append(j.kinds, kind)
		}
		if err := j.pad(m, 1-side, j.kinds); err != nil {
			return err
		}
	}
	if sign > 0 {
		return m.emitKinds(kinds)
	}
	return nil
}

// emitKinds gives the pairs of m.pass, each with the kind of its place.
func (m *matching) emitKinds(kinds []batch.Kind) error {
	if len(m.pass) == 0 {
		return nil
	}
	pairs := m.pairs
	if len(m.pass) < pairs.Len {
		pairs = batch.Batch{}
		pairs.Take(&m.pairs, m.pass)
	}
	pairs.Schema, pairs.Kinds = m.out, nil
	for i, k := range m.pass {
		if kinds[k] != batch.Insert && pairs.Kinds == nil {
			pairs.Kinds = make([]batch.Kind, len(m.pass))
		}
		if pairs.Kinds != nil {
			pairs.Kinds[i] = kinds[k]
		}
	}
	return m.res.Emit(&pairs)
}

// pad gives the rows of j.fresh, of one side, with NULLs, each with its kind.
func (j *StreamJoin) pad(m *matching, side int, kinds []batch.Kind) error {
	width := len(j.plan.in[0].Fields)
	from := 0
	return m.emitChunks(j.fresh, func(sel batch.Sel, b *batch.Batch) {
		if side == 0 {
			m.pad(b, 0, width, 0, sel)
			m.pad(b, width, len(b.Cols), -1, sel)
		} else {
			m.pad(b, 0, width, -1, sel)
			m.pad(b, width, len(b.Cols), 1, sel)
		}
		for _, k := range kinds[from : from+len(sel)] {
			if k != batch.Insert {
				b.Kinds = kinds[from : from+len(sel)]
				break
			}
		}
		from += len(sel)
	})
}
