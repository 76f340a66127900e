package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

var _ Spilling = (*TopN)(nil)

// SpillTo implements Spilling.
func (t *TopN) SpillTo(s *spill.Store, budget int64) { t.disk.SpillTo(s, budget) }

// Spill implements Spilling.
func (t *TopN) Spill() error {
	if t.disk.store == nil {
		return nil
	}
	t.tidy()
	if err := t.checkLists("Top-N"); err != nil {
		return err
	}
	return t.disk.evict()
}

// Spilled implements Spilling.
func (t *TopN) Spilled() bool { return t.disk.spilled() }

// SaveTo implements Spilling: in each part no rows, then pieces up to the end.
func (t *TopN) SaveTo(p *state.Payload) error {
	t.disk.saveTo(t.disk.parts(p, func(_ int, more bool) []byte {
		return appendFollow(t.ages.save(t.rows.save(nil, batch.Sel{}), nil), more)
	}))
	return nil
}

func (t *TopN) groupKeys() *state.Keys { return t.keys }
func (t *TopN) groupAges() *ages       { return &t.ages }

// groupSlots implements grouped. Where something is on disk, it knows the keys without
// rows then.
func (t *TopN) groupSlots() []int32 {
	if t.disk.keepsGone {
		t.tidy()
	}
	return slices.DeleteFunc(byHash(t.keys), func(slot int32) bool { return t.lists[slot].n == 0 })
}

func (t *TopN) part() (grouped, *groupDisk) {
	p := &TopN{orderedKeys: newOrderedKeys(t.in, t.keyed, t.order.keys), op: t.op, out: t.out, ages: newAges(t.ages.ttl)}
	p.order.latest = t.order.latest
	p.ages.now, p.disk = t.ages.now, newGroupDisk(p, t.types)
	return p, &p.disk
}

// savePart implements grouped: the rows, those of a key together, keys without rows,
// and the ages of the rows.
func (t *TopN) savePart(dst []byte, slots, gone []int32) []byte {
	rows := t.rowsOf(slots)
	return t.ages.save(t.disk.saveGone(t.rows.save(dst, rows), gone), rows)
}

// partsLater implements rowGroups.
func (t *TopN) partsLater() func(slots []int32) func(dst []byte) []byte {
	kept := t.rows.snapshot()
	return func(slots []int32) func(dst []byte) []byte {
		rows := t.rowsOf(slots)
		return kept.later(rows, t.ages.save(t.disk.saveGone(nil, nil), rows))
	}
}

// loadPart implements grouped.
func (t *TopN) loadPart(r *state.Reader, is wanted, now int64) error {
	var saved, added []int32
	n, err := t.loadLists(r, is, t.dropGroup, func(i int, row int32) { saved, added = append(saved, int32(i)), append(added, row) })
	if err != nil {
		return err
	}
	at := readAges(r, n, now)
	for k, row := range added {
		t.ages.hold(row, at[saved[k]])
	}
	return r.Err()
}

// dropGroup implements grouped.
func (t *TopN) dropGroup(slot int32) {
	for list := &t.lists[slot]; list.n > 0; {
		block, at := list.last()
		t.ages.drop(t.drop(slot, block, at))
	}
}

// leave implements grouped.
func (t *TopN) leave(slots []int32) {
	if len(slots) < t.keys.Len() {
		for _, slot := range slots {
			t.dropGroup(slot)
			t.lists[slot].n = away
		}
		t.tidy()
		return
	}
	t.forgetAll()
	now := t.ages.now
	t.ages = newAges(t.ages.ttl)
	t.ages.now = now
}

// checkLists is an error where the rows of a key do not fit.
func (k *orderedKeys) checkLists(what string) error {
	most := 0
	for _, l := range k.lists {
		most = max(most, int(l.n))
	}
	return checkKey(what, int64(most)*k.rows.bytes()/int64(max(k.rows.batch.Len, 1)), k.disk.budget)
}

// rowsOf are the rows of keys, in their order.
func (k *orderedKeys) rowsOf(slots []int32) batch.Sel {
	rows := batch.Sel{}
	for _, slot := range slots {
		rows = k.lists[slot].from(0, 0, rows)
	}
	return rows
}

// loadLists reads saved rows, those of a key together, and keys that have none. The rows
// of keys that are wanted come in place of those there are, which clear lets go; added
// gets the place among the n that were saved of each, and its number now.
func (k *orderedKeys) loadLists(r *state.Reader, is wanted, clear func(slot int32), added func(saved int, row int32)) (n int, err error) {
	saved, err := k.rows.read(r)
	if err != nil {
		return 0, err
	}
	if k.seen == nil {
		k.seen = state.NewKeys(k.types)
	}
	k.seen.Reset()
	cols, slots := saved.columns(k.keyed, nil), []int32{} // by key of the part; -1: not wanted
	for i, h := range saved.hashes {
		key := k.seen.FindOne(cols, h, i)
		if int(key) == len(slots) {
			slot := int32(-1)
			if is(cols, i, h) {
				slot = k.keys.FindOne(cols, h, i)
				k.resize()
				clear(slot)
			}
			slots = append(slots, slot)
		}
		if slot := slots[key]; slot >= 0 {
			row := k.rows.addSaved(saved, i)
			k.slot = append(k.slot, slot)
			k.insertSaved(row, slot)
			added(i, row)
		}
	}
	return len(saved.hashes), k.disk.loadGone(r, is)
}

// forgetAll leaves no rows.
func (k *orderedKeys) forgetAll() {
	k.keys, k.lists, k.rows, k.slot, k.gone = state.NewKeys(k.types), nil, newKeptRows(k.in, k.order), nil, 0
}
