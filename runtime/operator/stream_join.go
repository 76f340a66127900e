package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// StreamJoin joins streams whose rows are all new, without a bound in time: one
// subtask. It keeps every row of both sides. A pair comes as soon as both rows are
// there; an outer join pads a row that has no partner yet, and takes the padded row
// back (-D) when the first one comes.
type StreamJoin struct {
	plan *joinPlan
	side [2]streamSide
	keys *state.Keys
	// fresh are rows of the other side that the pairs at hand match first.
	fresh batch.Sel
	kinds []batch.Kind
}

// streamSide is the rows of one input.
type streamSide struct {
	rowStore
	slot       []int32 // by row; noSlot: it has no partner
	head, next []int32
	matched    []bool
}

func newStreamJoin(p *joinPlan) *StreamJoin {
	j := &StreamJoin{plan: p, keys: state.NewKeys(p.keyTypes)}
	for i := range j.side {
		j.side[i] = streamSide{rowStore: newRowStore(p.in[i])}
	}
	return j
}

func (j *StreamJoin) outer(side int) bool {
	k := j.plan.op.Kind
	return k == graph.FullJoin || side == 0 && k == graph.LeftJoin || side == 1 && k == graph.RightJoin
}

// Fold implements Keyed.
func (j *StreamJoin) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	first := j.add(in.Input, in.Batch, in.Sel, out.Dead)
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, ctx: ctx, res: out}
	m.side = [2]rowStore{j.side[0].rowStore, j.side[1].rowStore}
	mine, other := &j.side[in.Input], &j.side[1-in.Input]
	for i := first; i < mine.rows.Len; i++ {
		if mine.slot[i] < 0 {
			continue
		}
		for o := other.head[mine.slot[i]]; o >= 0; o = other.next[o] {
			l, r := int32(i), o
			if in.Input == 1 {
				l, r = o, int32(i)
			}
			m.li, m.ri = append(m.li, l), append(m.ri, r)
			if len(m.li) == emitRows {
				if err := j.flush(m, in.Input); err != nil {
					return err
				}
			}
		}
	}
	if err := j.flush(m, in.Input); err != nil || !j.outer(in.Input) {
		return err
	}
	j.fresh = j.fresh[:0]
	for i := first; i < mine.rows.Len; i++ {
		if !mine.matched[i] {
			j.fresh = append(j.fresh, int32(i))
		}
	}
	return j.pad(m, in.Input, batch.Insert)
}

// add keeps rows, and gives the number of the first.
func (j *StreamJoin) add(side int, b *batch.Batch, sel batch.Sel, dead func(*batch.Batch, *batch.ValueError)) int {
	p, s := j.plan, &j.side[side]
	t := &joinTable{joinPlan: p}
	p.cols = colsAt(b, p.op.InputKeys(side), p.cols)
	p.slots, p.hashes = resized(p.slots, b.Len), resized(p.hashes, b.Len)
	p.good, p.keep = p.good[:0], p.keep[:0]
	for _, row := range sel {
		switch t.keyState(row) {
		case truthError:
			dead(b, t.keyError(row))
			continue
		case truthUnknown:
			if !j.outer(side) {
				continue
			}
			p.slots[row] = noSlot
		default:
			p.hashes[row], p.buf = batch.HashKey(p.buf, p.cols, int(row))
			p.good = append(p.good, row)
		}
		p.keep = append(p.keep, row)
	}
	j.keys.Find(p.cols, p.hashes, p.good, p.slots)
	for i := range j.side {
		for len(j.side[i].head) < j.keys.Len() {
			j.side[i].head = append(j.side[i].head, -1)
		}
	}
	first := s.add(b, p.keep)
	for i, row := range p.keep {
		slot, at := p.slots[row], int32(first+i)
		s.slot, s.matched = append(s.slot, slot), append(s.matched, false)
		if slot < 0 {
			s.next = append(s.next, -1)
			continue
		}
		s.next = append(s.next, s.head[slot])
		s.head[slot] = at
	}
	return first
}

// flush gives the pairs that the condition lets through; before them it takes back
// what an outer join had padded. side is that of the new rows.
func (j *StreamJoin) flush(m *matching, side int) error {
	if len(m.li) == 0 {
		return nil
	}
	m.pairUp()
	m.pass, j.fresh = m.pass[:0], j.fresh[:0]
	if m.cond.prog != nil {
		m.cond.prog.Eval(m.ctx, &m.pairs, nil, m.cond.out)
	}
	for k := range m.li {
		x := truthTrue
		if m.cond.prog != nil {
			x = truthAt(&m.cond.out[0], k)
		}
		mine, theirs := m.li[k], m.ri[k]
		if side == 1 {
			mine, theirs = theirs, mine
		}
		switch x {
		case truthError:
			// The pair is dead, not without a match: the new row is not padded.
			e := *m.cond.out[0].Err(k)
			e.Row = int32(k)
			m.res.Dead(&m.pairs, &e)
		case truthTrue:
			m.pass = append(m.pass, int32(k))
		default:
			continue
		}
		j.side[side].matched[mine] = true
		if other := &j.side[1-side]; !other.matched[theirs] {
			other.matched[theirs] = true
			j.fresh = append(j.fresh, theirs)
		}
	}
	pass := len(m.pass)
	pairs := m.pairs
	if pass > 0 && pass < len(m.li) {
		pairs = batch.Batch{}
		pairs.Take(&m.pairs, m.pass)
	}
	m.li, m.ri = m.li[:0], m.ri[:0]
	if j.outer(1 - side) {
		if err := j.pad(m, 1-side, batch.Delete); err != nil {
			return err
		}
	}
	if pass == 0 {
		return nil
	}
	pairs.Schema, pairs.Kinds = m.out, nil
	return m.res.Emit(&pairs)
}

// pad gives the rows of j.fresh, of one side, with NULLs, or takes them back.
func (j *StreamJoin) pad(m *matching, side int, kind batch.Kind) error {
	width := len(j.plan.in[0].Fields)
	return m.emitChunks(j.fresh, func(sel batch.Sel, b *batch.Batch) {
		if side == 0 {
			m.pad(b, 0, width, 0, sel)
			m.pad(b, width, len(b.Cols), -1, sel)
		} else {
			m.pad(b, 0, width, -1, sel)
			m.pad(b, width, len(b.Cols), 1, sel)
		}
		if kind == batch.Insert {
			return
		}
		j.kinds = j.kinds[:0]
		for range sel {
			j.kinds = append(j.kinds, kind)
		}
		b.Kinds = j.kinds
	})
}

// Advance implements Keyed: time changes nothing.
func (*StreamJoin) Advance(*expr.Context, int64, *Results) error { return nil }

// Save implements Keyed.
func (j *StreamJoin) Save() []byte {
	var dst []byte
	for i := range j.side {
		dst = j.side[i].save(dst)
		dst = appendMatched(dst, j.side[i].matched)
	}
	return dst
}

// Load implements Keyed.
func (j *StreamJoin) Load(payload []byte, groups state.Range) error {
	return loadSides(payload, j.plan, groups, func(side int, b *batch.Batch, sel []int32, matched []bool) {
		first := j.add(side, b, sel, func(*batch.Batch, *batch.ValueError) {})
		copy(j.side[side].matched[first:], matched)
	})
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

// Kind implements Keyed.
func (*StreamJoin) Kind() string { return "StreamJoin" }

// Fingerprint implements Keyed.
func (j *StreamJoin) Fingerprint() uint64 { return j.plan.fingerprint() }

// Bytes implements Keyed.
func (j *StreamJoin) Bytes() int64 {
	n := j.keys.Bytes()
	for i := range j.side {
		s := &j.side[i]
		n += s.bytes() + 4*int64(cap(s.slot)+cap(s.head)+cap(s.next)) + int64(cap(s.matched))
	}
	return n
}
