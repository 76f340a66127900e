package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

var _ Spilling = (*Normalize)(nil)

// SpillTo implements Spilling.
func (n *Normalize) SpillTo(s *spill.Store, budget int64) { n.disk.SpillTo(s, budget) }

// Spill implements Spilling.
func (n *Normalize) Spill() error { return n.disk.evict() }

// Spilled implements Spilling.
func (n *Normalize) Spilled() bool { return n.disk.spilled() }

// SaveTo implements Spilling: in each part no rows, then pieces up to the end.
func (n *Normalize) SaveTo(p *state.Payload) error {
	n.disk.saveTo(n.disk.parts(p, func(_ int, more bool) []byte {
		return appendFollow(n.ages.save(n.rows.save(nil, batch.Sel{}), nil), more)
	}))
	return nil
}

func (n *Normalize) groupKeys() *state.Keys { return n.keys }
func (n *Normalize) groupAges() *ages       { return &n.ages }
func (n *Normalize) groupSlots() []int32    { return byHash(n.keys) }

func (n *Normalize) part() (grouped, *groupDisk) {
	p := NewNormalize(n.op, n.in)
	p.ages.now = n.ages.now
	return p, &p.disk
}

// savePart implements grouped: the rows, keys that have none, and the ages.
func (n *Normalize) savePart(dst []byte, slots, gone []int32) []byte {
	return n.ages.save(n.disk.saveGone(n.rows.save(dst, n.rowsOf(slots)), gone), slots)
}

// partsLater implements rowGroups.
func (n *Normalize) partsLater() func(slots []int32) func(dst []byte) []byte {
	kept := n.rows.snapshot()
	return func(slots []int32) func(dst []byte) []byte {
		return kept.later(n.rowsOf(slots), n.ages.save(n.disk.saveGone(nil, nil), slots))
	}
}

func (n *Normalize) rowsOf(slots []int32) batch.Sel {
	rows := make(batch.Sel, len(slots))
	for i, slot := range slots {
		rows[i] = n.row[slot]
	}
	return rows
}

// loadPart implements grouped.
func (n *Normalize) loadPart(r *state.Reader, is wanted, now int64) error {
	saved, err := n.rows.read(r)
	if err != nil {
		return err
	}
	cols, slots := saved.columns(n.op.Keys, nil), make([]int32, len(saved.hashes))
	for i, h := range saved.hashes {
		if slots[i] = -1; !is(cols, i, h) {
			continue
		}
		slot := n.keys.FindOne(cols, h, i)
		n.resize()
		if n.row[slot] != noRow {
			n.gone++
		}
		n.row[slot], slots[i] = n.rows.addSaved(saved, i), slot
	}
	if err := n.disk.loadGone(r, is); err != nil {
		return err
	}
	at := readAges(r, len(slots), now)
	for i, slot := range slots {
		if slot >= 0 {
			n.ages.hold(slot, at[i])
		}
	}
	return r.Err()
}

// dropGroup implements grouped.
func (n *Normalize) dropGroup(slot int32) {
	n.ages.drop(slot)
	n.forget(slot)
}

// leave implements grouped.
func (n *Normalize) leave(slots []int32) {
	for _, slot := range slots {
		n.dropGroup(slot)
	}
	n.tidy()
}
