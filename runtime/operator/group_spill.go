package operator

import (
	"encoding/binary"
	"math"

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
	// groupMore: there is another payload of the same state behind this one.
	groupMore
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
		g.disk.SpillTo(s, budget)
	}
}

// Spill implements Spilling.
func (g *GroupAggregate) Spill() error {
	switch {
	case g.done || g.gathers:
		return nil
	case g.merges():
		return g.spiller.spill([]*aggTable{g.table})
	}
	return g.disk.evict()
}

// spillOver spills while state is loaded.
func (g *GroupAggregate) spillOver() error {
	if g.spiller.over(g.Bytes()) {
		return g.Spill()
	}
	return nil
}

// Spilled implements Spilling.
func (g *GroupAggregate) Spilled() bool { return len(g.table.runs) > 0 || g.disk.spilled() }

// saveHead begins a saved state.
func (g *GroupAggregate) saveHead(flags byte) []byte {
	if g.done {
		flags |= groupDone
	}
	return append(appendTexts(nil, g.aggs.texts()), flags)
}

// SaveTo implements Spilling.
func (g *GroupAggregate) SaveTo(p *state.Payload) error {
	form := byte(groupReplaced)
	if g.merges() {
		form = groupMerged
	}
	w := g.disk.parts(p, func(_ int, more bool) []byte {
		if more {
			return g.saveHead(form | groupMore)
		}
		return g.saveHead(form)
	})
	if !g.merges() {
		g.disk.saveTo(w)
		return nil
	}
	g.table.saveParts(w, nil)
	w.finish()
	return nil
}

// loadParts reads what SaveTo has written behind the head. State of the other form stays
// in memory until all of it is there.
func (g *GroupAggregate) loadParts(r *state.Reader, groups state.Range, to []int, flags byte) error {
	replaced, more := flags&groupReplaced != 0, flags&groupMore != 0
	g.gathers = replaced == g.merges()
	load := g.loadMerged
	if replaced {
		load = g.loadReplaced
	}
	if err := load(r, groups, to, more); err != nil || more {
		return err
	}
	g.gathers = false
	return g.spillOver()
}

// loadReplaced reads parts of which later ones replace groups of earlier ones.
func (g *GroupAggregate) loadReplaced(r *state.Reader, groups state.Range, to []int, more bool) error {
	g.to = to
	store := g.disk.store
	if g.gathers {
		g.disk.store = nil
	}
	err := g.disk.loadParts(r, groups, more)
	g.disk.store, g.to = store, nil
	return err
}

// loadMerged reads tables whose groups are merged.
func (g *GroupAggregate) loadMerged(r *state.Reader, groups state.Range, to []int, more bool) error {
	own := func(_ []*batch.Vec, _ int, h uint64) bool { return groups.Has(h) }
	for r.Rest() > 0 {
		slots, err := g.table.loadWhere(r, g.keyTypes, own, to, nil)
		if err != nil {
			return err
		}
		for _, slot := range slots {
			if slot >= 0 {
				g.ages.hold(slot, g.ages.now)
			}
		}
		if err := g.spillOver(); err != nil {
			return err
		}
	}
	if !more {
		g.ages.sort()
	}
	return r.Err()
}

func (g *GroupAggregate) groupKeys() *state.Keys { return g.table.keys }
func (g *GroupAggregate) groupAges() *ages       { return &g.ages }
func (g *GroupAggregate) groupSlots() []int32    { return byHash(g.table.keys) }

func (g *GroupAggregate) part() (grouped, *groupDisk) {
	p := &GroupAggregate{op: g.op, aggs: g.aggs, keyTypes: g.keyTypes, table: g.spiller.fresh(), ages: newAges(g.ages.ttl)}
	p.ages.now, p.disk = g.ages.now, newGroupDisk(p, g.keyTypes)
	return p, &p.disk
}

// leave implements grouped.
func (g *GroupAggregate) leave(slots []int32) {
	if len(slots) < g.table.keys.Len()-g.gone {
		for _, slot := range slots {
			g.dropGroup(slot)
		}
		g.tidy()
		return
	}
	g.table, g.rows, g.gone = g.spiller.fresh(), nil, 0
	now := g.ages.now
	g.ages = newAges(g.ages.ttl)
	g.ages.now = now
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

// savePart implements grouped: the groups of slots as a table, keys without one, then,
// where they are kept, ages and numbers of rows.
func (g *GroupAggregate) savePart(dst []byte, slots, gone []int32) []byte {
	dst = g.disk.saveGone(g.table.saveSlots(dst, slots), gone)
	dst = g.ages.save(dst, slots)
	if g.op.Retracts {
		for _, slot := range slots {
			dst = binary.AppendUvarint(dst, uint64(max(g.rows[slot], 0)))
		}
	}
	return dst
}

// loadPart implements grouped. g.to has the accumulators by their place in the part,
// nil: as they are.
func (g *GroupAggregate) loadPart(r *state.Reader, is wanted, now int64) error {
	to := g.to
	if to == nil {
		g.own = numbers(len(g.table.accs), g.own)
		to = g.own
	}
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
		return err
	}
	if err := g.disk.loadGone(r, is); err != nil {
		return err
	}
	at := readAges(r, len(slots), now)
	for g.op.Retracts && len(g.rows) < g.table.keys.Len() {
		g.rows = append(g.rows, 0)
	}
	for i, slot := range slots {
		if g.op.Retracts {
			n := r.Uvarint()
			if n > math.MaxInt64 {
				return state.ErrCorrupt
			}
			if slot >= 0 {
				g.rows[slot] = int64(n)
			}
		}
		if slot >= 0 {
			g.ages.hold(slot, at[i])
		}
	}
	return r.Err()
}
