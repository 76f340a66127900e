package operator

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// SetChanges is INTERSECT or EXCEPT in a stream: one subtask. It counts the rows of
// each side, whose rows may be taken back, and gives the copies that come (+I) and go
// (-D) by a batch as a whole.
type SetChanges struct {
	op     *graph.SetOperation
	schema *batch.Schema
	types  []types.Type
	keys   *state.Keys
	counts [2][]int64 // by key slot
	ages   ages
	gone   int // slots whose row is forgotten
	disk   groupDisk

	good, come, back batch.Sel
	cols             []*batch.Vec
	slots            []int32
	touched          []int32
	was              []int64 // copies of the touched rows before the batch
	seen             batch.Bitmap
	result           changeRows
	view             batch.Batch
}

// NewSetChanges makes a subtask, with no state.
func NewSetChanges(op *graph.SetOperation, schema *batch.Schema) *SetChanges {
	s := &SetChanges{op: op, schema: schema, types: typesAt(schema, columnsOf(schema)), ages: newAges(op.TTL)}
	s.keys, s.disk = state.NewKeys(s.types), newGroupDisk(s, s.types)
	return s
}

// Fold implements Keyed. A row with an error anywhere is equal to no other.
func (s *SetChanges) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	s.good = wholeRows(in, out, s.good)
	s.come, s.back = splitKinds(in.Batch, s.good, s.come[:0], s.back[:0])
	s.cols = colsAt(in.Batch, columnsOf(s.schema), s.cols)
	if err := s.disk.fetchGroups(s.cols, in.Hashes, s.good); err != nil {
		return err
	}
	s.slots = slices.Grow(s.slots[:0], in.Batch.Len)[:in.Batch.Len]
	s.keys.Find(s.cols, in.Hashes, s.come, s.slots)
	s.resize()
	for _, row := range s.back {
		s.slots[row] = s.keys.Slot(s.cols, in.Hashes[row], int(row))
	}
	s.before()
	counts := s.counts[in.Input]
	for _, row := range s.come {
		counts[s.slots[row]]++
	}
	for _, row := range s.back {
		// A row that is not known any more is not missed.
		if slot := s.slots[row]; slot >= 0 && counts[slot] > 0 {
			counts[slot]--
		}
	}
	if err := s.emit(out); err != nil {
		return err
	}
	s.compact()
	return nil
}

func (s *SetChanges) resize() {
	for i := range s.counts {
		s.counts[i] = append(s.counts[i], make([]int64, s.keys.Len()-len(s.counts[i]))...)
	}
}

func (s *SetChanges) copies(slot int32) int64 {
	return copiesOf(s.op, s.counts[0][slot], s.counts[1][slot])
}

// before notes the copies that there are of the rows that the batch is about.
func (s *SetChanges) before() {
	s.touched, s.was = s.touched[:0], s.was[:0]
	s.seen = s.seen.Resize(s.keys.Len(), false)
	for _, sel := range [...]batch.Sel{s.come, s.back} {
		for _, row := range sel {
			if slot := s.slots[row]; slot >= 0 && !s.seen.Get(int(slot)) {
				s.seen.Set(int(slot))
				s.touched, s.was = append(s.touched, slot), append(s.was, s.copies(slot))
				s.ages.touch(slot)
			}
		}
	}
}

// emit gives the copies that have come and gone.
func (s *SetChanges) emit(out *Results) error {
	s.result.start(s.schema)
	s.view = batch.Batch{Schema: s.schema, Cols: s.keys.Columns(), Len: s.keys.Len()}
	for i, slot := range s.touched {
		n, kind := s.copies(slot)-s.was[i], batch.Insert
		if n < 0 {
			n, kind = -n, batch.Delete
		}
		for ; n > 0; n-- {
			s.result.add(&s.view, int(slot), kind)
			if err := s.result.flush(out, false); err != nil {
				return err
			}
		}
	}
	if err := s.result.flush(out, true); err != nil {
		return err
	}
	for _, slot := range s.touched {
		if s.counts[0][slot] == 0 && s.counts[1][slot] == 0 {
			s.forget(slot)
		}
	}
	return nil
}

// forget leaves a row without copies, or out of time, behind.
func (s *SetChanges) forget(slot int32) {
	s.disk.forget(s.keys, slot)
	s.dropGroup(slot)
}

// dropGroup implements grouped.
func (s *SetChanges) dropGroup(slot int32) {
	s.keys.Delete(slot)
	s.counts[0][slot], s.counts[1][slot] = 0, 0
	s.ages.drop(slot)
	s.gone++
}

// Age implements Aging.
func (s *SetChanges) Age(now int64) int {
	s.ages.now = now
	n := s.disk.expired + s.expire()
	s.disk.expired = 0
	s.compact()
	return n
}

// expire implements grouped.
func (s *SetChanges) expire() int {
	n := 0
	for slot := s.ages.expired(); slot >= 0; slot = s.ages.expired() {
		s.forget(slot)
		n++
	}
	return n
}

func (s *SetChanges) compact() {
	if s.gone > 1024 && s.gone > s.keys.Len()/2 {
		s.tidy()
	}
}

// tidy leaves the slots out whose row is forgotten.
func (s *SetChanges) tidy() {
	if s.gone == 0 {
		return
	}
	var live []int32
	to := slices.Repeat([]int32{-1}, s.keys.Len())
	for slot := range int32(len(to)) {
		if s.keys.Deleted(slot) {
			continue
		}
		to[slot] = int32(len(live))
		for i := range s.counts {
			s.counts[i][len(live)] = s.counts[i][slot]
		}
		live = append(live, slot)
	}
	s.keys, s.gone = s.keys.Take(live), 0
	s.disk.renumber(to)
	for i := range s.counts {
		s.counts[i] = slices.Clone(s.counts[i][:len(live)])
	}
	s.ages.renumber(to)
}

// Advance implements Keyed: time changes nothing.
func (*SetChanges) Advance(*expr.Context, int64, *Results) error { return nil }

// Save implements Keyed: the rows, how often each side has them, then their ages.
func (s *SetChanges) Save() []byte {
	s.tidy()
	dst := state.AppendHashes(nil, s.keys.Hashes())
	for i := range s.keys.Columns() {
		dst = state.AppendVec(dst, &s.keys.Columns()[i])
	}
	for _, side := range s.counts {
		for _, n := range side {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
	}
	return s.ages.save(dst, slotsOf(0, s.keys.Len(), nil))
}

// Load implements Keyed. Behind the ages may be parts of SaveTo.
func (s *SetChanges) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(s.types))
	for i, t := range s.types {
		if cols[i] = r.Vec(t); cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	sel := batch.Sel{}
	for i, h := range hashes {
		if groups.Has(h) {
			sel = append(sel, int32(i))
		}
	}
	slots := slices.Repeat([]int32{-1}, len(hashes))
	s.keys.Find(cols, hashes, sel, slots)
	s.resize()
	for side := range s.counts {
		for _, slot := range slots {
			n := r.Uvarint()
			if n > math.MaxInt64 {
				return state.ErrCorrupt
			}
			if slot >= 0 {
				s.counts[side][slot] += int64(n)
			}
		}
	}
	at := s.ages.read(r, len(hashes))
	if r.Err() != nil {
		return state.ErrCorrupt
	}
	ids, times := make([]int32, len(sel)), make([]int64, len(sel))
	for i, row := range sel {
		ids[i], times[i] = slots[row], at[row]
	}
	s.ages.restore(ids, times)
	return s.disk.loadParts(r, groups, readFollow(r))
}

// Kind implements Keyed.
func (*SetChanges) Kind() string { return "SetOperation over changes" }

// Fingerprint implements Keyed.
func (s *SetChanges) Fingerprint() uint64 { return state.Fingerprint(s.types) }

// Bytes implements Keyed.
func (s *SetChanges) Bytes() int64 {
	return s.keys.Bytes() + 8*int64(cap(s.counts[0])+cap(s.counts[1])) + s.ages.bytes() + s.disk.bytes()
}
