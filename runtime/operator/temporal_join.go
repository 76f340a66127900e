package operator

import (
	"math"
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
//
// Where left rows may be taken back they stay, and all versions do, so that a row
// comes and goes with the same version, whenever that is. A version that comes late
// takes the place of the one that rows were given with.
type TemporalJoin struct {
	timedTable
	// versions are, by slot, right rows by their time, each time once.
	versions [][]int32
	// deleted are, by right row, those that say that there is no version from then on.
	deleted []bool
	// lives are, where left rows may be taken back, those that are there, by hash.
	lives map[uint64][]int32
	// given is the latest time of a left row of lives that was given.
	given int64
	due   batch.Sel
	all   []*batch.Vec
}

var (
	_ Spilling    = (*TemporalJoin)(nil)
	_ timedGroups = (*TemporalJoin)(nil)
)

func newTemporalJoin(p *joinPlan) *TemporalJoin {
	j := &TemporalJoin{given: math.MinInt64}
	if p.op.Retracts[0] {
		j.lives = map[uint64][]int32{}
	}
	j.timedTable = newTimedTable(p, j)
	return j
}

// Fold implements Keyed.
func (j *TemporalJoin) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	if err := j.fetch(in); err != nil {
		return err
	}
	switch {
	case j.lives == nil:
	case in.Input == 0:
		return j.foldChanges(ctx, in, out)
	default:
		return j.foldVersions(ctx, in, out)
	}
	j.add(in.Input, in.Batch, in.Sel, out.Dead)
	return nil
}

func (*TemporalJoin) what() string { return "a temporal join" }

// end is when a left row is given, and when a version counts.
func (*TemporalJoin) end(_ int, time int64) int64 { return time }

// gone implements timedJoin: left rows that cannot be taken back go when they are given.
func (j *TemporalJoin) gone(side int, time, wm int64) bool {
	return side == 0 && j.lives == nil && wm != batch.NoWatermark && time <= wm
}

// flags implements timedJoin: left rows that were given, versions that say that there is
// none.
func (j *TemporalJoin) flags(side int, row int32) byte {
	switch {
	case side == 0 && j.side[0].matched[row]:
		return rowMatched
	case side == 1 && j.deleted[row]:
		return rowDeletes
	}
	return 0
}

func (j *TemporalJoin) placed(side int, row int32, flags byte) {
	s := &j.side[side]
	switch {
	case side == 1:
		j.deleted = append(j.deleted, flags&rowDeletes != 0)
		j.version(row, s.slot[row])
	case j.lives != nil:
		j.live(row)
		if s.matched[row] {
			j.given = max(j.given, s.time[row])
		}
	}
}

func (j *TemporalJoin) dropped(slot int32) {
	if int(slot) < len(j.versions) {
		j.versions[slot] = nil
	}
}

func (j *TemporalJoin) remade(rows [2][]int32, slots []int32) {
	versions := make([][]int32, j.keys.Len())
	for slot, to := range slots {
		if to < 0 || slot >= len(j.versions) {
			continue
		}
		for _, row := range j.versions[slot] {
			versions[to] = append(versions[to], rows[1][row])
		}
	}
	var deleted []bool
	for row, to := range rows[1] {
		if to >= 0 {
			deleted = append(deleted, j.deleted[row])
		}
	}
	j.versions, j.deleted = versions, deleted
	for h, list := range j.lives {
		n := 0
		for _, row := range list {
			if to := rows[0][row]; to >= 0 {
				list[n] = to
				n++
			}
		}
		if j.lives[h] = list[:n]; n == 0 {
			delete(j.lives, h)
		}
	}
}

// hides implements timedJoin: all left rows of a key may have been taken back.
func (j *TemporalJoin) hides() bool { return j.lives != nil }

// groupSlots implements grouped.
func (j *TemporalJoin) groupSlots() []int32 {
	if j.lives == nil {
		j.retire(j.wm)
	}
	return j.timedTable.groupSlots()
}

func (j *TemporalJoin) part() (grouped, *groupDisk) {
	return j.partOf(&newTemporalJoin(j.plan).timedTable)
}

// wakeAt implements timedGroups: the time of the earliest left row that waits.
func (j *TemporalJoin) wakeAt(slot int32) int64 {
	at, s := int64(never), &j.side[0]
	for row := s.head[slot]; row >= 0; row = s.next[row] {
		if !s.gone[row] && !s.matched[row] {
			at = min(at, s.time[row])
		}
	}
	return at
}

// endAt implements timedGroups: the last version is wanted for good.
func (*TemporalJoin) endAt(int32) int64 { return never }

// version puts a right row among those of its key, in the place of one of its time.
func (j *TemporalJoin) version(row, slot int32) {
	for len(j.versions) <= int(slot) {
		j.versions = append(j.versions, nil)
	}
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

// versionOf is the version of a left row, -1: there is none.
func (j *TemporalJoin) versionOf(row int32) int32 {
	left := &j.side[0]
	if left.slot[row] < 0 || int(left.slot[row]) >= len(j.versions) {
		return -1
	}
	v := j.versions[left.slot[row]]
	i := j.upTo(v, left.time[row])
	if i == 0 || j.deleted[v[i-1]] {
		return -1
	}
	return v[i-1]
}

// Advance implements Keyed.
func (j *TemporalJoin) Advance(ctx *expr.Context, time int64, out *Results) error {
	return j.advance(time, func() error {
		if j.lives != nil {
			return j.giveChanges(ctx, time, out)
		}
		return j.giveLeft(ctx, time, out)
	})
}

// giveLeft gives the left rows to whose time the watermark has come.
func (j *TemporalJoin) giveLeft(ctx *expr.Context, time int64, out *Results) error {
	left, right := &j.side[0], &j.side[1]
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, ctx: ctx, res: out}
	m.side = [2]rowStore{left.rowStore, right.rowStore}
	j.due = j.due[:0]
	for len(left.ends) > 0 && left.ends[0].end <= time {
		row := left.ends.pop().key
		if left.gone[row] {
			continue
		}
		j.due = append(j.due, row)
		left.forget(row)
		v := j.versionOf(row)
		if v < 0 {
			continue
		}
		m.li, m.ri = append(m.li, row), append(m.ri, v)
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
}

// there are the rows of a side that are not gone, with what is noted of each: of left
// ones that they were given, of right ones that they are deletions.
func (j *TemporalJoin) there(side int) (*batch.Batch, []bool) {
	s := &j.side[side]
	b, flags := s.live()
	if side == 1 {
		flags = flags[:0]
		for row, gone := range s.gone {
			if !gone {
				flags = append(flags, j.deleted[row])
			}
		}
	}
	return b, flags
}

// restore adds saved rows of which flags are known, by their place in b.
func (j *TemporalJoin) restore(side int, b *batch.Batch, sel batch.Sel, flags []bool) {
	first := j.side[side].rows.Len
	j.add(side, b, sel, func(*batch.Batch, *batch.ValueError) {})
	if !j.plan.op.Retracts[side] {
		return
	}
	for i, row := range j.plan.keep {
		if side == 1 {
			j.deleted[first+i] = flags[row]
		} else {
			j.side[0].matched[first+i] = flags[row]
			if flags[row] {
				j.given = max(j.given, j.side[0].time[first+i])
			}
		}
	}
}

// Save implements Keyed: flags of the sides that may change, then their rows.
func (j *TemporalJoin) Save() []byte {
	var dst, rows []byte
	for i := range j.side {
		b, flags := j.there(i)
		rows = (&rowStore{schema: b.Schema, rows: *b}).save(rows)
		if j.plan.op.Retracts[i] {
			set := make([]byte, len(flags))
			for k, is := range flags {
				if is {
					set[k] = 1
				}
			}
			dst = state.AppendBytes(dst, set)
		}
	}
	return append(dst, rows...)
}

// Load implements Keyed.
func (j *TemporalJoin) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	if parts, err := j.loadParts(r, groups); parts {
		return err
	}
	var flags [2][]bool
	for i := range flags {
		if j.plan.op.Retracts[i] {
			for _, is := range []byte(r.String()) {
				flags[i] = append(flags[i], is == 1)
			}
		}
	}
	corrupt := false
	err := j.plan.loadRows(r, groups, func(side int, b *batch.Batch, sel batch.Sel) {
		if j.plan.op.Retracts[side] && len(flags[side]) != b.Len {
			corrupt = true
			return
		}
		j.restore(side, b, sel, flags[side])
	})
	if err != nil {
		return err
	}
	if corrupt || r.Rest() > 0 {
		return state.ErrCorrupt
	}
	if r.Err() != nil {
		return r.Err()
	}
	return j.spillOver()
}

// SaveTo implements Spilling.
func (j *TemporalJoin) SaveTo(p *state.Payload) error {
	if !j.spills() {
		p.Append(j.Save())
		return nil
	}
	return j.saveTo(p)
}

// Kind implements Keyed.
func (j *TemporalJoin) Kind() string {
	switch j.plan.op.Retracts {
	case [2]bool{}:
		return "TemporalJoin"
	case [2]bool{true, false}:
		return "TemporalJoin of changes"
	case [2]bool{false, true}:
		return "TemporalJoin with deletions"
	}
	return "TemporalJoin of changes with deletions"
}

// Fingerprint implements Keyed.
func (j *TemporalJoin) Fingerprint() uint64 { return j.plan.fingerprint() }

// Bytes implements Keyed.
func (j *TemporalJoin) Bytes() int64 {
	n := j.bytes() + 24*int64(cap(j.versions))
	n += 64 * int64(len(j.lives))
	return n + 4*int64(cap(j.side[1].slot)) + int64(cap(j.deleted)) // the rows in versions
}
