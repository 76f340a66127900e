package operator

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// Flags of a saved GroupAggregate.
const (
	groupDone = 1 << iota
	// groupMerged: tables follow up to the end, whose groups are merged.
	groupMerged
	// groupReplaced: parts follow up to the end, of which later ones replace groups of
	// earlier ones.
	groupReplaced
)

// Where rows go out only at the end, groups are spilled in parts that are merged then:
// spiller. With Updates a row needs its group as it is: groupDisk.
var _ Spilling = (*GroupAggregate)(nil)

// merges reports groups that are needed only at the end.
func (g *GroupAggregate) merges() bool {
	return !g.op.Updates && !g.op.Retracts && !g.ages.on()
}

// SpillTo implements Spilling.
func (g *GroupAggregate) SpillTo(s *spill.Store, budget int64) {
	// The one group of an aggregate without keys stays.
	if len(g.op.Keys) > 0 {
		g.spiller.SpillTo(s, budget)
	}
}

// Spill implements Spilling.
func (g *GroupAggregate) Spill() error {
	switch {
	case g.spiller.store == nil || g.done:
		return nil
	case g.merges():
		return g.spiller.spill([]*aggTable{g.table})
	}
	return g.evict()
}

// spillOver spills while state is loaded.
func (g *GroupAggregate) spillOver() error {
	if g.spiller.over(g.Bytes()) {
		return g.Spill()
	}
	return nil
}

// Spilled implements Spilling.
func (g *GroupAggregate) Spilled() bool { return len(g.table.runs)+len(g.disk.runs) > 0 }

// saveHead begins a saved state.
func (g *GroupAggregate) saveHead(flags byte) []byte {
	if g.done {
		flags |= groupDone
	}
	return append(appendTexts(nil, g.aggs.texts()), flags)
}

// SaveTo implements Spilling.
func (g *GroupAggregate) SaveTo(p *state.Payload) error {
	if len(g.disk.runs) == 0 {
		p.Append(g.saveHead(groupMerged))
		g.table.saveParts(p, nil)
		return nil
	}
	p.Append(g.saveHead(groupReplaced))
	for _, r := range g.disk.runs {
		// How long ago the run was written.
		appendRuns(p, binary.AppendUvarint(nil, uint64(max(g.ages.now-r.now, 0))), []*spill.Run{r.Run})
	}
	live, gone := g.present(), g.vanishedKeys()
	p.Append(g.savePart(binary.AppendUvarint(nil, 0), live, gone))
	return nil
}

// loadParts reads what SaveTo has written behind the head.
func (g *GroupAggregate) loadParts(r *state.Reader, groups state.Range, to []int, flags byte) error {
	own := func(_ []*batch.Vec, _ int, h uint64) bool { return groups.Has(h) }
	replaced := flags&groupReplaced != 0
	for r.Rest() > 0 {
		if err := g.loadOne(r, own, to, replaced); err != nil {
			return err
		}
		// State of the other form stays in memory until all of it is there.
		if replaced != g.merges() {
			if err := g.spillOver(); err != nil {
				return err
			}
		}
	}
	g.ages.sort()
	if r.Err() != nil {
		return r.Err()
	}
	return g.spillOver()
}

// loadOne reads one table or part of loadParts.
func (g *GroupAggregate) loadOne(r *state.Reader, own wanted, to []int, replaced bool) error {
	if replaced {
		since := r.Uvarint()
		if since > math.MaxInt64/4 {
			return state.ErrCorrupt
		}
		_, err := g.loadBlock(r, own, to, g.ages.now-int64(since))
		return err
	}
	slots, err := g.table.loadWhere(r, g.keyTypes, own, to, nil)
	for _, slot := range slots {
		if slot >= 0 {
			g.ages.put(slot, g.ages.now)
		}
	}
	return err
}

// present are the slots that have groups, by hash.
func (g *GroupAggregate) present() []int32 { return byHash(g.table.keys) }

// vanishedKeys are the keys that have no group, but may have one on disk: slots of
// g.disk.gone, by hash.
func (g *GroupAggregate) vanishedKeys() []int32 {
	d := &g.disk
	if d.gone == nil {
		return nil
	}
	cols := columnsRef(d.gone)
	return slices.DeleteFunc(byHash(d.gone), func(slot int32) bool {
		return g.table.keys.Slot(cols, d.gone.Hash(int(slot)), int(slot)) >= 0
	})
}

// columnsRef are the columns of keys as arguments of Find and Slot.
func columnsRef(k *state.Keys) []*batch.Vec {
	cols := k.Columns()
	out := make([]*batch.Vec, len(cols))
	for i := range cols {
		out[i] = &cols[i]
	}
	return out
}

// savePart appends groups of slots as a table, keys that have none (slots of
// g.disk.gone), then, where they are kept, ages and numbers of rows.
func (g *GroupAggregate) savePart(dst []byte, slots, gone []int32) []byte {
	dst = g.table.saveSlots(dst, slots)
	if len(gone) == 0 {
		dst = binary.AppendUvarint(dst, 0)
	} else {
		dst = appendKeys(dst, g.disk.gone, gone)
	}
	dst = g.ages.save(dst, slots)
	if g.op.Retracts {
		for _, slot := range slots {
			dst = binary.AppendUvarint(dst, uint64(max(g.rows[slot], 0)))
		}
	}
	return dst
}

// loadBlock reads a savePart of an instant. Groups that are wanted replace those there
// are; it gives the slots by place, -1: not wanted. Their ages are out of order.
func (g *GroupAggregate) loadBlock(r *state.Reader, is wanted, to []int, now int64) ([]int32, error) {
	slots, err := g.table.loadWhere(r, g.keyTypes, func(cols []*batch.Vec, i int, h uint64) bool {
		if !is(cols, i, h) {
			return false
		}
		if slot := g.table.keys.Slot(cols, h, i); slot >= 0 {
			for _, a := range g.table.accs {
				a.Clear(int(slot))
			}
		}
		return true
	}, to, nil)
	if err != nil {
		return nil, err
	}
	if err := g.loadGone(r, is); err != nil {
		return nil, err
	}
	at := readAges(r, len(slots), now)
	for g.op.Retracts && len(g.rows) < g.table.keys.Len() {
		g.rows = append(g.rows, 0)
	}
	for i, slot := range slots {
		if g.op.Retracts {
			n := r.Uvarint()
			if n > math.MaxInt64 {
				return nil, state.ErrCorrupt
			}
			if slot >= 0 {
				g.rows[slot] = int64(n)
			}
		}
		if slot >= 0 {
			g.ages.put(slot, at[i])
		}
	}
	return slots, r.Err()
}

// loadGone reads the keys that have no group any more.
func (g *GroupAggregate) loadGone(r *state.Reader, is wanted) error {
	hashes := r.Hashes()
	if len(hashes) == 0 {
		return r.Err()
	}
	cols := make([]*batch.Vec, len(g.keyTypes))
	for i := range cols {
		if cols[i] = r.Vec(g.keyTypes[i]); cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	for i, h := range hashes {
		if !is(cols, i, h) {
			continue
		}
		if slot := g.table.keys.Slot(cols, h, i); slot >= 0 {
			g.drop(slot)
		}
		if g.disk.keepsGone {
			g.disk.noteGone(g.keyTypes, cols, h, i)
		}
	}
	return r.Err()
}
