package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// The keys whose row has been given go to disk. Rows that wait for the watermark stay:
// it says that they are few.
var _ Spilling = (*FirstRow)(nil)

// SpillTo implements Spilling.
func (f *FirstRow) SpillTo(s *spill.Store, budget int64) { f.disk.SpillTo(s, budget) }

// Spill implements Spilling.
func (f *FirstRow) Spill() error { return f.disk.evict() }

// Spilled implements Spilling.
func (f *FirstRow) Spilled() bool { return f.disk.spilled() }

// SaveTo implements Spilling: in each part what Save gives with no keys, and some of the
// rows that wait, all of which come first; then pieces up to the end.
func (f *FirstRow) SaveTo(p *state.Payload) error {
	waiting, _ := f.kept()
	n := 0
	w := f.disk.parts(p, func(_ int, more bool) []byte {
		some := waiting[:min(n, len(waiting))]
		waiting = waiting[len(some):]
		return appendFollow(f.ages.save(f.save(batch.Sel{}, some), nil), more)
	})
	for n = w.chunk(len(waiting), f.rows.bytes()); len(waiting) > n; {
		w.flush(true)
	}
	f.disk.saveTo(w)
	return nil
}

func (f *FirstRow) groupKeys() *state.Keys { return f.keys }
func (f *FirstRow) groupAges() *ages       { return &f.ages }

// groupSlots implements grouped.
func (f *FirstRow) groupSlots() []int32 {
	return slices.DeleteFunc(byHash(f.keys), func(slot int32) bool { return f.first[slot] != rowGiven })
}

func (f *FirstRow) part() (grouped, *groupDisk) {
	p := &FirstRow{op: f.op, in: f.in, types: f.types, keys: state.NewKeys(f.types), rows: newKeptRows(f.in, f.order), ages: newAges(f.ages.ttl)}
	p.ages.now, p.disk = f.ages.now, newGroupDisk(p, f.types)
	return p, &p.disk
}

// savePart implements grouped: keys whose row has been given, others that are not known
// any more, and the ages.
func (f *FirstRow) savePart(dst []byte, slots, gone []int32) []byte {
	return f.ages.save(f.disk.saveGone(appendKeys(dst, f.keys, slots), gone), slots)
}

// loadPart implements grouped. A key with a row that waits has been forgotten since.
func (f *FirstRow) loadPart(r *state.Reader, is wanted, now int64) error {
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(f.types))
	for i, t := range f.types {
		if cols[i] = r.Vec(t); cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	if err := f.disk.loadGone(r, is); err != nil {
		return err
	}
	at := readAges(r, len(hashes), now)
	if err := r.Err(); err != nil {
		return err
	}
	for i, h := range hashes {
		if slot := f.keys.Slot(cols, h, i); slot >= 0 && f.first[slot] >= 0 || !is(cols, i, h) {
			continue
		}
		slot := f.keys.FindOne(cols, h, i)
		f.resize()
		f.first[slot] = rowGiven
		f.ages.hold(slot, at[i])
	}
	return nil
}

// dropGroup implements grouped.
func (f *FirstRow) dropGroup(slot int32) {
	f.ages.drop(slot)
	f.keys.Delete(slot)
	f.first[slot] = noRow
	f.lost++
}

// leave implements grouped.
func (f *FirstRow) leave(slots []int32) {
	for _, slot := range slots {
		f.dropGroup(slot)
	}
	f.tidy()
}
