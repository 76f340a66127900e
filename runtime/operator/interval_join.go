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
	timedTable
	sel batch.Sel
}

var (
	_ Spilling    = (*IntervalJoin)(nil)
	_ timedGroups = (*IntervalJoin)(nil)
)

func newIntervalJoin(p *joinPlan) *IntervalJoin {
	j := &IntervalJoin{}
	j.timedTable = newTimedTable(p, j)
	return j
}

func (*IntervalJoin) what() string { return "an interval join" }

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

func (j *IntervalJoin) gone(side int, time, wm int64) bool { return j.end(side, time) <= wm }

func (j *IntervalJoin) flags(side int, row int32) byte {
	if j.side[side].matched[row] {
		return rowMatched
	}
	return 0
}

func (*IntervalJoin) placed(int, int32, byte)    {}
func (*IntervalJoin) dropped(int32)              {}
func (*IntervalJoin) remade([2][]int32, []int32) {}

// hides implements timedJoin: a key without rows had none but such that are gone.
func (*IntervalJoin) hides() bool { return false }

func (j *IntervalJoin) part() (grouped, *groupDisk) {
	return j.partOf(&newIntervalJoin(j.plan).timedTable)
}

// wakeAt implements timedGroups: when a row is to be padded that had no partner so far.
func (j *IntervalJoin) wakeAt(slot int32) int64 {
	at := int64(never)
	for i := range j.side {
		s := &j.side[i]
		if !j.plan.outer(i) {
			continue
		}
		for row := s.head[slot]; row >= 0; row = s.next[row] {
			if !s.gone[row] && !s.matched[row] {
				at = min(at, j.end(i, s.time[row]))
			}
		}
	}
	return at
}

// endAt implements timedGroups: when the last row goes.
func (j *IntervalJoin) endAt(slot int32) int64 {
	at := int64(math.MinInt64)
	for i := range j.side {
		s := &j.side[i]
		for row := s.head[slot]; row >= 0; row = s.next[row] {
			if !s.gone[row] {
				at = max(at, j.end(i, s.time[row]))
			}
		}
	}
	return at
}

// Fold implements Keyed.
func (j *IntervalJoin) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	if err := j.fetch(in); err != nil {
		return err
	}
	first := j.add(in.Input, in.Batch, in.Sel, out.Dead)
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, ctx: ctx, res: out}
	m.side = [2]rowStore{j.side[0].rowStore, j.side[1].rowStore}
	return j.probe(m, in.Input, first)
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
	err := j.advance(time, func() error {
		for side := range j.side {
			if err := j.leaveBehind(side, time, out); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		j.disk.passed(time)
	}
	return err
}

// leaveBehind lets rows of a side go to whose end the watermark has come.
func (j *IntervalJoin) leaveBehind(side int, time int64, out *Results) error {
	s := &j.side[side]
	j.sel = j.sel[:0]
	for len(s.ends) > 0 && s.ends[0].end <= time {
		row := s.ends.pop().key
		if s.gone[row] {
			continue
		}
		s.forget(row)
		if j.plan.outer(side) && !s.matched[row] {
			j.sel = append(j.sel, row)
		}
	}
	return j.pad(side, out)
}

// pad gives the rows of j.sel, of one side, with NULLs.
func (j *IntervalJoin) pad(side int, out *Results) error {
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, res: out}
	m.side = [2]rowStore{j.side[0].rowStore, j.side[1].rowStore}
	return m.emitPadded(side, j.sel)
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

// SaveTo implements Spilling.
func (j *IntervalJoin) SaveTo(p *state.Payload) error {
	if !j.spills() {
		p.Append(j.Save())
		return nil
	}
	return j.saveTo(p)
}

// Load implements Keyed.
func (j *IntervalJoin) Load(payload []byte, groups state.Range) error {
	if parts, err := j.loadParts(state.NewReader(payload), groups); parts {
		return err
	}
	err := loadSides(payload, j.plan, groups, func(side int, b *batch.Batch, sel []int32, matched []bool) {
		first := j.add(side, b, sel, func(*batch.Batch, *batch.ValueError) {})
		copy(j.side[side].matched[first:], matched)
	})
	if err != nil {
		return err
	}
	return j.spillOver()
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
func (j *IntervalJoin) Bytes() int64 { return j.bytes() }

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
