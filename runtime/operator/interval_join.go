package operator

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/state"
)

// IntervalJoin joins rows whose times lie within bounds of each other: one
// subtask. A row is kept until the watermark has passed the last time at which a
// partner could come; an outer join pads it then. Rows that come are all after the
// watermark, the late ones being out already, so that the result does not depend
// on their order.
type IntervalJoin struct {
	plan *joinPlan
	side [2]intervalSide
	keys *state.Keys
	sel  batch.Sel
}

// intervalSide is the rows kept of one input.
type intervalSide struct {
	timedRows
	// head is, by slot, the last row of the key, next the one before it.
	head, next []int32
}

func newIntervalJoin(p *joinPlan) *IntervalJoin {
	j := &IntervalJoin{plan: p}
	j.reset()
	return j
}

func (j *IntervalJoin) reset() {
	j.keys = state.NewKeys(j.plan.keyTypes)
	for i := range j.side {
		j.side[i] = intervalSide{timedRows: timedRows{rowStore: newRowStore(j.plan.in[i])}}
	}
}

// end is when a row of a side goes: at the last time of a possible partner.
func (j *IntervalJoin) end(side int, time int64) int64 {
	reach := j.plan.op.Interval.Upper
	if side == 1 {
		reach = -j.plan.op.Interval.Lower
	}
	if reach > 0 && time > math.MaxInt64-1-reach {
		return math.MaxInt64 - 1
	}
	return time + reach
}

// Fold implements Keyed.
func (j *IntervalJoin) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	first := j.add(in.Input, in.Batch, in.Sel, out.Dead)
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, ctx: ctx, res: out}
	m.side = [2]rowStore{j.side[0].rowStore, j.side[1].rowStore}
	return j.probe(m, in.Input, first)
}

// add keeps rows, and gives the number of the first.
func (j *IntervalJoin) add(side int, b *batch.Batch, sel batch.Sel, dead func(*batch.Batch, *batch.ValueError)) int {
	p, s := j.plan, &j.side[side]
	times := p.take(side, b, sel, dead)
	j.keys.Find(p.cols, p.hashes, p.good, p.slots)
	for i := range j.side {
		for len(j.side[i].head) < j.keys.Len() {
			j.side[i].head = append(j.side[i].head, -1)
		}
	}
	first := s.add(b, p.keep)
	for i, row := range p.keep {
		slot, at, time := p.slots[row], int32(first+i), wallOf(times, int(row))
		s.note(at, slot, time, j.end(side, time))
		if slot < 0 {
			s.next = append(s.next, -1)
			continue
		}
		s.next = append(s.next, s.head[slot])
		s.head[slot] = at
	}
	return first
}

// probe pairs the rows of a side from first on with the other side's.
func (j *IntervalJoin) probe(m *matching, side, first int) error {
	mine, other := &j.side[side], &j.side[1-side]
	lower, upper := j.plan.op.Interval.Lower, j.plan.op.Interval.Upper
	for i := first; i < mine.rows.Len; i++ {
		if mine.slot[i] < 0 {
			continue
		}
		for o := other.head[mine.slot[i]]; o >= 0; o = other.next[o] {
			apart := other.time[o] - mine.time[i]
			if side == 1 {
				apart = -apart
			}
			if other.gone[o] || apart < lower || apart > upper {
				continue
			}
			l, r := int32(i), o
			if side == 1 {
				l, r = o, int32(i)
			}
			m.li, m.ri = append(m.li, l), append(m.ri, r)
			if len(m.li) == emitRows {
				if err := j.flush(m); err != nil {
					return err
				}
			}
		}
	}
	return j.flush(m)
}

// flush gives the pairs that the condition lets through.
func (j *IntervalJoin) flush(m *matching) error {
	return m.emitPairs(j.side[0].matched, j.side[1].matched)
}

// Advance implements Keyed.
func (j *IntervalJoin) Advance(_ *expr.Context, time int64, out *Results) error {
	for side := range j.side {
		s := &j.side[side]
		j.sel = j.sel[:0]
		for len(s.ends) > 0 && s.ends[0].end <= time {
			row := s.ends.pop().key
			s.forget(row)
			if j.plan.outer(side) && !s.matched[row] {
				j.sel = append(j.sel, row)
			}
		}
		if err := j.pad(side, out); err != nil {
			return err
		}
	}
	if gone, all := j.side[0].goneRows+j.side[1].goneRows, j.side[0].rows.Len+j.side[1].rows.Len; gone > 1024 && 2*gone > all || gone == all {
		j.compact()
	}
	return nil
}

// pad gives the rows of j.sel, of one side, with NULLs.
func (j *IntervalJoin) pad(side int, out *Results) error {
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, res: out}
	m.side = [2]rowStore{j.side[0].rowStore, j.side[1].rowStore}
	return m.emitPadded(side, j.sel)
}

// compact forgets the rows that are gone, and keys without rows.
func (j *IntervalJoin) compact() {
	old := j.side
	j.reset()
	for i := range old {
		b, matched := old[i].live()
		first := j.add(i, b, all(b.Len), func(*batch.Batch, *batch.ValueError) {})
		copy(j.side[i].matched[first:], matched)
	}
}

// Save implements Keyed.
func (j *IntervalJoin) Save() []byte {
	var dst []byte
	for i := range j.side {
		b, matched := j.side[i].live()
		dst = (&rowStore{schema: b.Schema, rows: *b}).save(dst)
		dst = appendMatched(dst, matched)
	}
	return dst
}

// Load implements Keyed.
func (j *IntervalJoin) Load(payload []byte, groups state.Range) error {
	return loadSides(payload, j.plan, groups, func(side int, b *batch.Batch, sel []int32, matched []bool) {
		first := j.add(side, b, sel, func(*batch.Batch, *batch.ValueError) {})
		copy(j.side[side].matched[first:], matched)
	})
}

// Kind implements Keyed.
func (*IntervalJoin) Kind() string { return "IntervalJoin" }

// Fingerprint implements Keyed.
func (j *IntervalJoin) Fingerprint() uint64 {
	t := j.plan.op.Interval
	bounds := binary.AppendVarint(binary.AppendVarint(nil, t.Lower), t.Upper)
	return j.plan.fingerprint() ^ state.Fingerprint(nil, string(bounds))
}

// Bytes implements Keyed.
func (j *IntervalJoin) Bytes() int64 {
	n := j.keys.Bytes()
	for i := range j.side {
		s := &j.side[i]
		n += s.timedRows.bytes() + 4*int64(cap(s.head)+cap(s.next))
	}
	return n
}

// appendMatched writes for each row of a side whether it had a match.
func appendMatched(dst []byte, matched []bool) []byte {
	for _, m := range matched {
		x := byte(0)
		if m {
			x = 1
		}
		dst = append(dst, x)
	}
	return dst
}

// loadSides reads what both sides of a join had saved, one after the other, and adds
// the rows of the key groups.
func loadSides(payload []byte, p *joinPlan, groups state.Range, add func(side int, b *batch.Batch, sel []int32, matched []bool)) error {
	r := state.NewReader(payload)
	for side := range 2 {
		b, sel, matched, err := loadMatched(r, p, side, groups)
		if err != nil {
			return err
		}
		add(side, b, sel, matched)
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	return r.Err()
}

// loadMatched reads a side's rows and, for each, whether it had a match, of the
// given key groups.
func loadMatched(r *state.Reader, p *joinPlan, side int, groups state.Range) (b *batch.Batch, sel batch.Sel, matched []bool, err error) {
	if b, err = readRows(r, p.in[side]); err != nil {
		return nil, nil, nil, err
	}
	keys := colsAt(b, p.op.ExchangeKeys(side), nil)
	for row := range b.Len {
		m, hash := r.Byte() == 1, uint64(0)
		if len(keys) > 0 {
			hash, p.buf = batch.HashKey(p.buf, keys, row)
		}
		if groups.Has(hash) {
			sel, matched = append(sel, int32(row)), append(matched, m)
		}
	}
	return b, sel, matched, r.Err()
}
