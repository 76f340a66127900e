package operator

import (
	"slices"
	"sort"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// TemporalJoin gives each left row the version of its key that was valid at its time:
// one subtask. A left row waits until the watermark has come to its time, when all
// versions up to it are there, so that the result does not depend on the order in
// which the two sides came. Of the versions up to the watermark the last of each key
// stays.
type TemporalJoin struct {
	plan *joinPlan
	side [2]timedRows
	keys *state.Keys
	// versions are, by slot, right rows by their time, each time once.
	versions [][]int32
	due      batch.Sel
}

func newTemporalJoin(p *joinPlan) *TemporalJoin {
	j := &TemporalJoin{plan: p}
	j.reset()
	return j
}

func (j *TemporalJoin) reset() {
	j.keys, j.versions = state.NewKeys(j.plan.keyTypes), nil
	for i := range j.side {
		j.side[i] = timedRows{rowStore: newRowStore(j.plan.in[i])}
	}
}

// Fold implements Keyed.
func (j *TemporalJoin) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	j.add(in.Input, in.Batch, in.Sel, out.Dead)
	return nil
}

func (j *TemporalJoin) add(side int, b *batch.Batch, sel batch.Sel, dead func(*batch.Batch, *batch.ValueError)) {
	p, s := j.plan, &j.side[side]
	times := p.take(side, b, sel, dead)
	j.keys.Find(p.cols, p.hashes, p.good, p.slots)
	for len(j.versions) < j.keys.Len() {
		j.versions = append(j.versions, nil)
	}
	first := s.add(b, p.keep)
	for i, row := range p.keep {
		at, time := int32(first+i), wallOf(times, int(row))
		s.note(at, p.slots[row], time, time)
		if side == 1 {
			j.version(at, p.slots[row])
		}
	}
}

// version puts a right row among those of its key, in the place of one of its time.
func (j *TemporalJoin) version(row, slot int32) {
	s, v := &j.side[1], j.versions[slot]
	i := j.upTo(v, s.time[row])
	if i > 0 && s.time[v[i-1]] == s.time[row] {
		s.forget(v[i-1])
		v[i-1] = row
		return
	}
	j.versions[slot] = slices.Insert(v, i, row)
}

// upTo is how many versions are not after a time.
func (j *TemporalJoin) upTo(v []int32, time int64) int {
	times := j.side[1].time
	if n := len(v); n == 0 || times[v[n-1]] <= time {
		return n
	}
	return sort.Search(len(v), func(i int) bool { return times[v[i]] > time })
}

// Advance implements Keyed.
func (j *TemporalJoin) Advance(ctx *expr.Context, time int64, out *Results) error {
	left, right := &j.side[0], &j.side[1]
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, ctx: ctx, res: out}
	m.side = [2]rowStore{left.rowStore, right.rowStore}
	j.due = j.due[:0]
	for len(left.ends) > 0 && left.ends[0].end <= time {
		row := left.ends.pop().key
		j.due = append(j.due, row)
		left.forget(row)
		if left.slot[row] < 0 {
			continue
		}
		v := j.versions[left.slot[row]]
		i := j.upTo(v, left.time[row])
		if i == 0 {
			continue
		}
		m.li, m.ri = append(m.li, row), append(m.ri, v[i-1])
		if len(m.li) == emitRows {
			if err := m.emitPairs(left.matched, right.matched); err != nil {
				return err
			}
		}
	}
	if err := m.emitPairs(left.matched, right.matched); err != nil {
		return err
	}
	if j.plan.op.Kind == graph.LeftJoin {
		j.due = slices.DeleteFunc(j.due, func(row int32) bool { return left.matched[row] })
		if err := m.emitPadded(0, j.due); err != nil {
			return err
		}
	}
	j.retire(time)
	return nil
}

// retire forgets versions that no row to come can ask for: those before the last one
// of their key that the watermark has come to.
func (j *TemporalJoin) retire(time int64) {
	s := &j.side[1]
	for len(s.ends) > 0 && s.ends[0].end <= time {
		row := s.ends.pop().key
		if s.gone[row] {
			continue
		}
		slot := s.slot[row]
		v := j.versions[slot]
		for n := j.upTo(v, time); n > 1; n-- {
			s.forget(v[0])
			v = v[1:]
		}
		j.versions[slot] = v
	}
	if gone, all := j.side[0].goneRows+s.goneRows, j.side[0].rows.Len+s.rows.Len; gone > 1024 && 2*gone > all || gone == all {
		j.compact()
	}
}

// compact forgets the rows that are gone, and keys without rows.
func (j *TemporalJoin) compact() {
	old := j.side
	j.reset()
	for i := range old {
		b, _ := old[i].live()
		j.add(i, b, all(b.Len), func(*batch.Batch, *batch.ValueError) {})
	}
}

// Save implements Keyed.
func (j *TemporalJoin) Save() []byte {
	var dst []byte
	for i := range j.side {
		b, _ := j.side[i].live()
		dst = (&rowStore{schema: b.Schema, rows: *b}).save(dst)
	}
	return dst
}

// Load implements Keyed.
func (j *TemporalJoin) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	err := j.plan.loadRows(r, groups, func(side int, b *batch.Batch, sel batch.Sel) {
		j.add(side, b, sel, func(*batch.Batch, *batch.ValueError) {})
	})
	if err != nil {
		return err
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	return r.Err()
}

// Kind implements Keyed.
func (*TemporalJoin) Kind() string { return "TemporalJoin" }

// Fingerprint implements Keyed.
func (j *TemporalJoin) Fingerprint() uint64 { return j.plan.fingerprint() }

// Bytes implements Keyed.
func (j *TemporalJoin) Bytes() int64 {
	n := j.keys.Bytes() + 24*int64(cap(j.versions)) + j.side[0].bytes() + j.side[1].bytes()
	return n + 4*int64(cap(j.side[1].slot)) // the rows in versions
}
