package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// StreamJoin joins streams without a bound in time: one subtask. It keeps the rows
// of both sides, for as long as they may live. A pair comes as soon as both rows are
// there, and goes when one of them is taken back; an outer join pads a row that has
// no partner, and takes the padded row back (-D) when the first one comes. SEMI,
// ANTI and MARK joins give left rows, and change them when what the right side says
// of them changes.
//
// Of a batch of input what comes and goes within it does nothing. What goes is dealt
// with first, so that a row by some key goes before another one by it comes.
type StreamJoin struct {
	plan *joinPlan
	side [2]streamSide
	keys *state.Keys
	// says is of SEMI, ANTI and MARK joins, groups of null-aware ones; nil else.
	says   *leftSays
	groups *rightGroups
	disk   groupDisk
	// fresh are rows of the other side that the pairs at hand match first, or last.
	fresh      batch.Sel
	kinds      []batch.Kind
	all        []*batch.Vec
	come, back batch.Sel
}

func newStreamJoin(p *joinPlan) *StreamJoin {
	j := &StreamJoin{plan: p}
	j.reset()
	return j
}

// reset makes the state empty.
func (j *StreamJoin) reset() {
	p := j.plan
	j.keys = state.NewKeys(p.keyTypes)
	for i := range j.side {
		now := j.side[i].ages.now
		j.side[i] = streamSide{rowStore: newRowStore(p.in[i]), ages: newAges(p.op.TTL[i]), loose: -1, byHash: p.op.Retracts[i]}
		j.side[i].ages.now = now
	}
	if p.op.Kind >= graph.SemiJoin {
		j.says = &leftSays{}
		if p.op.Condition == nil {
			j.side[1].counted, j.side[1].byHash = true, true
		}
	}
	if p.op.NullAware {
		j.groups = newRightGroups(p.keyTypes)
	}
}

func (j *StreamJoin) outer(side int) bool {
	k := j.plan.op.Kind
	return k == graph.FullJoin || side == 0 && k == graph.LeftJoin || side == 1 && k == graph.RightJoin
}

// keepsLoose reports a side whose rows matter even if their key equals nothing.
func (j *StreamJoin) keepsLoose(side int) bool {
	k := j.plan.op.Kind
	return j.outer(side) || side == 0 && (k == graph.AntiJoin || k == graph.MarkJoin) || j.plan.op.NullAware
}

// Fold implements Keyed.
func (j *StreamJoin) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	if len(j.disk.runs) > 0 {
		if err := j.fetch(in); err != nil {
			return err
		}
	}
	come, back := in.Sel, batch.Sel(nil)
	if in.Batch.Kinds != nil {
		come, back = j.net(in)
	}
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, ctx: ctx, res: out}
	if len(back) > 0 {
		rows := j.remove(in.Input, in.Batch, back)
		if err := j.matched(m, in, rows, -1); err != nil {
			return err
		}
		s := &j.side[in.Input]
		for _, r := range rows {
			if !s.counted || s.many[r.row] == 0 {
				s.slot[r.row] = goneSlot
			}
		}
	}
	if len(come) > 0 {
		if err := j.matched(m, in, j.add(in.Input, in.Batch, come, out.Dead), 1); err != nil {
			return err
		}
	}
	return j.compact()
}

// matched deals with rows of a side that have come (sign 1) or gone (-1).
func (j *StreamJoin) matched(m *matching, in *KeyedRows, rows []stored, sign int32) error {
	m.side = [2]rowStore{j.side[0].rowStore, j.side[1].rowStore}
	kind := func(r stored) batch.Kind {
		if in.Batch.Kinds == nil {
			return batch.Insert
		}
		return in.Batch.Kinds[r.from]
	}
	if j.says != nil {
		return j.say(m, in.Input, rows, sign, kind)
	}
	return j.pair(m, in.Input, rows, sign, kind)
}

// net leaves out rows of a batch that come and go within it, and gives those that
// come and those that go.
func (j *StreamJoin) net(in *KeyedRows) (come, back batch.Sel) {
	b := in.Batch
	j.all = colsAt(b, columnsOf(b.Schema), j.all)
	open := map[uint64][]int32{} // rows that nothing has met yet, by hash
	gone := map[int32]bool{}
	var hash uint64
	for _, row := range in.Sel {
		hash, j.plan.buf = batch.HashKey(j.plan.buf, j.all, int(row))
		met := false
		for i, o := range open[hash] {
			if TakesBack(b, o) != TakesBack(b, row) && equalRows(b, o, b, row) {
				open[hash] = append(open[hash][:i:i], open[hash][i+1:]...)
				gone[o], gone[row], met = true, true, true
				break
			}
		}
		if !met {
			open[hash] = append(open[hash], row)
		}
	}
	j.come, j.back = j.come[:0], j.back[:0]
	for _, row := range in.Sel {
		switch {
		case gone[row]:
		case TakesBack(b, row):
			j.back = append(j.back, row)
		default:
			j.come = append(j.come, row)
		}
	}
	return j.come, j.back
}

// equalRows compares whole rows; errors of values are equal to one another.
func equalRows(a *batch.Batch, i int32, b *batch.Batch, k int32) bool {
	for c := range a.Cols {
		x, y := &a.Cols[c], &b.Cols[c]
		if x.HasDeepErrs() || y.HasDeepErrs() {
			if (x.DeepErr(int(i)) != nil) != (y.DeepErr(int(k)) != nil) {
				return false
			}
		}
		if !batch.ValueEqual(x, int(i), y, int(k)) {
			return false
		}
	}
	return true
}

// keyed notes the slots and hashes of the rows of sel whose key can be equal to
// another one in p.slots, and gives in p.keep those that matter at all.
func (j *StreamJoin) keyed(side int, b *batch.Batch, sel batch.Sel, dead func(*batch.Batch, *batch.ValueError)) {
	p := j.plan
	t := &joinTable{joinPlan: p}
	p.cols = colsAt(b, p.op.InputKeys(side), p.cols)
	p.slots, p.hashes = resized(p.slots, b.Len), resized(p.hashes, b.Len)
	p.good, p.keep = p.good[:0], p.keep[:0]
	for _, row := range sel {
		switch t.keyState(row) {
		case truthError:
			if side == 1 || p.op.Kind != graph.MarkJoin {
				if dead != nil {
					dead(b, t.keyError(row))
				}
				continue
			}
			p.slots[row] = errorSlot
		case truthUnknown:
			if !j.keepsLoose(side) {
				continue
			}
			p.slots[row] = noSlot
		default:
			p.hashes[row], p.buf = batch.HashKey(p.buf, p.cols, int(row))
			p.good = append(p.good, row)
		}
		p.keep = append(p.keep, row)
	}
}

// stored is a row that is kept, and the row of the batch that it is about.
type stored struct{ row, from int32 }

// add keeps rows.
func (j *StreamJoin) add(side int, b *batch.Batch, sel batch.Sel, dead func(*batch.Batch, *batch.ValueError)) []stored {
	p, s := j.plan, &j.side[side]
	j.keyed(side, b, sel, dead)
	j.keys.Find(p.cols, p.hashes, p.good, p.slots)
	for i := range j.side {
		j.side[i].grow(j.keys.Len())
	}
	j.all = colsAt(b, columnsOf(b.Schema), j.all)
	out := make([]stored, 0, len(p.keep))
	if s.counted {
		for _, row := range p.keep {
			at := s.find(p.slots[row], j.hash(row), b, row)
			if at < 0 {
				at = j.keep(side, b, batch.Sel{row})
			}
			s.many[at]++
			s.ages.touch(at)
			out = append(out, stored{at, row})
		}
	} else {
		first := j.keep(side, b, p.keep)
		for i, row := range p.keep {
			s.ages.touch(first + int32(i))
			out = append(out, stored{first + int32(i), row})
		}
	}
	if j.groups != nil {
		j.groups.add(j, side, b, out)
	}
	return out
}

// keep appends rows with their chains; it gives the number of the first.
func (j *StreamJoin) keep(side int, b *batch.Batch, sel batch.Sel) int32 {
	s := &j.side[side]
	first := int32(s.rowStore.add(b, sel))
	for i, row := range sel {
		var hash uint64
		if s.byHash {
			hash = j.hash(row)
		}
		s.append(first+int32(i), j.plan.slots[row], hash)
	}
	if j.says != nil && side == 0 {
		j.says.grow(s.rows.Len)
	}
	return first
}

// hash is of a whole row of the batch that j.all is of.
func (j *StreamJoin) hash(row int32) (hash uint64) {
	hash, j.plan.buf = batch.HashKey(j.plan.buf, j.all, int(row))
	return hash
}

// remove lets rows go that are equal to those of sel. They stay readable until the
// next call. What is not there is not missed.
func (j *StreamJoin) remove(side int, b *batch.Batch, sel batch.Sel) []stored {
	p, s := j.plan, &j.side[side]
	j.keyed(side, b, sel, nil)
	for _, row := range p.good {
		p.slots[row] = j.keys.Slot(p.cols, p.hashes[row], int(row))
	}
	j.all = colsAt(b, columnsOf(b.Schema), j.all)
	good := map[int32]bool{}
	for _, row := range p.good {
		good[row] = true
	}
	var out []stored
	for _, row := range p.keep {
		if good[row] && p.slots[row] < 0 {
			continue // its key is not there
		}
		at := s.find(p.slots[row], j.hash(row), b, row)
		if at < 0 {
			continue
		}
		out = append(out, stored{at, row})
		if s.counted {
			if s.many[at]--; s.many[at] > 0 {
				continue
			}
		}
		s.unlink(at)
	}
	if j.groups != nil {
		j.groups.remove(j, side, out)
	}
	return out
}

// Age implements Aging.
func (j *StreamJoin) Age(now int64) int {
	n := j.disk.expired
	j.disk.expired = 0
	for i := range j.side {
		s := &j.side[i]
		s.ages.now = now
		for row := s.ages.expired(); row >= 0; row = s.ages.expired() {
			s.unlink(row)
			if j.says != nil && i == 1 && s.slot[row] >= 0 {
				j.says.look(s, s.slot[row])
			}
			if j.groups != nil {
				j.groups.forget(i, row, s)
			}
			s.slot[row] = goneSlot
			n++
		}
	}
	return n
}

// compact makes the rows dense again where most are gone.
func (j *StreamJoin) compact() error {
	gone, all := 0, 0
	for i := range j.side {
		gone, all = gone+j.side[i].gone, all+j.side[i].rows.Len
	}
	if gone <= 1024 || gone <= all/2 {
		return nil
	}
	if j.groups == nil {
		return j.rebuild(j.keysByHash())
	}
	payload := j.Save()
	j.reset()
	return j.Load(payload, state.Range{From: 0, To: state.Groups})
}

// Advance implements Keyed: time changes nothing.
func (*StreamJoin) Advance(*expr.Context, int64, *Results) error { return nil }

// Kind implements Keyed.
func (*StreamJoin) Kind() string { return "StreamJoin 2" }

// Fingerprint implements Keyed.
func (j *StreamJoin) Fingerprint() uint64 { return j.plan.fingerprint() }

// Bytes implements Keyed.
func (j *StreamJoin) Bytes() int64 {
	n := j.keys.Bytes() + j.groups.bytes() + j.disk.bytes()
	for i := range j.side {
		n += j.side[i].bytes()
	}
	if j.says != nil {
		n += 16 * int64(cap(j.says.is))
	}
	return n
}
