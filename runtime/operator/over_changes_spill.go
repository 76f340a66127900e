package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// The rows of keys go to disk; what runs is folded anew when a row comes for one.
var _ Spilling = (*OverChanges)(nil)

// SpillTo implements Spilling. The rows of one key have to be in memory.
func (o *OverChanges) SpillTo(s *spill.Store, budget int64) {
	if len(o.op.Keys) > 0 {
		o.disk.SpillTo(s, budget)
	}
}

// Spill implements Spilling.
func (o *OverChanges) Spill() error {
	if o.disk.store == nil {
		return nil
	}
	if err := o.checkLists("OVER"); err != nil {
		return err
	}
	return o.disk.evict()
}

// Spilled implements Spilling.
func (o *OverChanges) Spilled() bool { return o.disk.spilled() }

// SaveTo implements Spilling: in each part no rows, then pieces up to the end.
func (o *OverChanges) SaveTo(p *state.Payload) error {
	o.disk.saveTo(o.disk.parts(p, func(_ int, more bool) []byte {
		return appendFollow(o.ages.save(o.rows.save(nil, batch.Sel{}), nil), more)
	}))
	return nil
}

func (o *OverChanges) groupKeys() *state.Keys { return o.keys }
func (o *OverChanges) groupAges() *ages       { return &o.ages }

// groupSlots implements grouped. Keys without rows are known to the disk then.
func (o *OverChanges) groupSlots() []int32 {
	o.tidy()
	return slices.DeleteFunc(byHash(o.keys), func(slot int32) bool { return o.lists[slot].n == 0 })
}

func (o *OverChanges) part() (grouped, *groupDisk) {
	p := &OverChanges{orderedKeys: newOrderedKeys(o.in, o.keyed, o.order.keys), op: o.op, ages: newAges(o.ages.ttl)}
	p.newRunning()
	p.ages.now, p.disk = o.ages.now, newGroupDisk(p, o.types)
	return p, &p.disk
}

// newRunning makes accumulators without groups.
func (o *OverChanges) newRunning() {
	o.running = make([]fn.Accumulator, len(o.op.Calls))
	for i := range o.running {
		o.running[i] = o.op.Calls[i].Bound.New()
	}
}

// savePart implements grouped: the rows, those of a key together, keys without rows, and
// of each row the age of its key.
func (o *OverChanges) savePart(dst []byte, slots, gone []int32) []byte {
	rows := o.rowsOf(slots)
	dst = o.disk.saveGone(o.rows.save(dst, rows), gone)
	of := make([]int32, len(rows))
	for i, row := range rows {
		of[i] = o.slot[row]
	}
	return o.ages.save(dst, of)
}

// loadPart implements grouped.
func (o *OverChanges) loadPart(r *state.Reader, is wanted, now int64) error {
	var saved, added []int32
	n, err := o.loadLists(r, is, o.dropGroup, func(i int, row int32) { saved, added = append(saved, int32(i)), append(added, row) })
	if err != nil {
		return err
	}
	at := readAges(r, n, now)
	last := int32(-1)
	for k, row := range added {
		if slot := o.slot[row]; slot != last {
			o.full[slot], last = false, slot
			o.ages.hold(slot, at[saved[k]])
		}
	}
	return r.Err()
}

// dropGroup implements grouped.
func (o *OverChanges) dropGroup(slot int32) {
	for list := &o.lists[slot]; list.n > 0; {
		block, at := list.last()
		o.drop(slot, block, at)
	}
	for _, a := range o.running {
		a.Resize(o.keys.Len())
		a.Clear(int(slot))
	}
	o.resizeFull()
	o.full[slot] = true // it has no rows
	o.ages.drop(slot)
}

// leave implements grouped.
func (o *OverChanges) leave(slots []int32) {
	if len(slots) < o.keys.Len() {
		for _, slot := range slots {
			o.dropGroup(slot)
			o.lists[slot].n = away
		}
		o.tidy()
		return
	}
	o.forgetAll()
	o.newRunning()
	o.full = nil
	now := o.ages.now
	o.ages = newAges(o.ages.ttl)
	o.ages.now = now
}
