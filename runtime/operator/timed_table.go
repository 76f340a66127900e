package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// timedTable is what interval and temporal joins have: rows of both sides, by key, kept
// until the watermark says that they may go.
//
// Beyond memory a key goes to disk with its rows of both sides. It is fetched when a row
// comes for it, and when the watermark comes to a time at which it has something to say.
// Rows on disk that have gone by since are passed over when they are met. Rows whose key
// equals nothing stay in memory.
type timedTable struct {
	plan *joinPlan
	side [2]timedRows
	keys *state.Keys
	// wm is the watermark, saved that of a state which is being loaded.
	wm, saved int64
	disk      groupDisk
	of        timedJoin
	// advances counts watermarks, as a clock: what was written before the last one, and had
	// gone by then, was dealt with. waking: the watermark is only done with some keys.
	advances ages
	waking   bool
}

// timedJoin is the join that a timedTable is of.
type timedJoin interface {
	grouped
	// what names it in errors.
	what() string
	// end is when the watermark decides about a row of a side.
	end(side int, time int64) int64
	// gone reports a row of a side that is of no use when the watermark has come to wm.
	gone(side int, time, wm int64) bool
	// flags are what is known of a row beside its columns; placed is told of a row that
	// was added with them.
	flags(side int, row int32) byte
	placed(side int, row int32, flags byte)
	// dropped is told of rows of a key that go at once.
	dropped(slot int32)
	// remade is told of new numbers of rows and keys, -1 of those left out.
	remade(rows [2][]int32, slots []int32)
	// hides: a key that has no rows any more may have some in an older copy that are not
	// gone.
	hides() bool
}

// Flags of a row.
const (
	rowMatched byte = 1 << iota
	rowDeletes
)

func newTimedTable(p *joinPlan, of timedJoin) timedTable {
	t := timedTable{plan: p, wm: batch.NoWatermark, saved: batch.NoWatermark, of: of, advances: newAges(0)}
	t.clear()
	t.disk = newGroupDisk(of, p.keyTypes)
	return t
}

// clear forgets all rows in memory.
func (t *timedTable) clear() {
	t.keys = state.NewKeys(t.plan.keyTypes)
	for i := range t.side {
		t.side[i] = timedRows{rowStore: newRowStore(t.plan.in[i])}
	}
}

func (t *timedTable) grow() {
	for i := range t.side {
		t.side[i].grow(t.keys.Len())
	}
}

// fetch brings the keys of rows into memory.
func (t *timedTable) fetch(in *KeyedRows) error {
	if !t.disk.spilled() {
		return nil
	}
	p := t.plan
	p.take(in.Input, in.Batch, in.Sel, func(*batch.Batch, *batch.ValueError) {})
	return t.disk.fetchGroups(p.cols, p.hashes, p.good)
}

// add keeps rows that come, and gives the number of the first.
func (t *timedTable) add(side int, b *batch.Batch, sel batch.Sel, dead func(*batch.Batch, *batch.ValueError)) int {
	p := t.plan
	p.take(side, b, sel, dead)
	t.keys.Find(p.cols, p.hashes, p.good, p.slots)
	t.grow()
	return t.put(side, b, p.keep, func(row int32) (int32, byte) {
		if b.KindOf(int(row)) == batch.Delete {
			return p.slots[row], rowDeletes
		}
		return p.slots[row], 0
	})
}

// put keeps rows, of which at gives the slot and the flags; it gives the number of the
// first.
func (t *timedTable) put(side int, b *batch.Batch, sel batch.Sel, at func(row int32) (slot int32, flags byte)) int {
	s, times := &t.side[side], &b.Cols[t.plan.op.TimeColumn(side)]
	first := s.add(b, sel)
	for i, row := range sel {
		id, time := int32(first+i), wallOf(times, int(row))
		slot, flags := at(row)
		s.note(id, slot, time, t.of.end(side, time))
		s.matched[id] = flags&rowMatched != 0
		t.of.placed(side, id, flags)
	}
	return first
}

// crowded reports that most rows are gone, or all of them.
func (t *timedTable) crowded() bool {
	gone, all := t.side[0].goneRows+t.side[1].goneRows, t.side[0].rows.Len+t.side[1].rows.Len
	return gone > 1024 && 2*gone > all || gone == all && all > 0
}

// compact leaves out rows that are gone, and keys without rows; these are known to the
// disk then, where what it has of them would count.
func (t *timedTable) compact(hide bool) {
	has := make(batch.Bitmap, batch.BitmapBytes(t.keys.Len()))
	for i := range t.side {
		for row, slot := range t.side[i].slot {
			if slot >= 0 && !t.side[i].gone[row] {
				has.Set(int(slot))
			}
		}
	}
	to, live := slices.Repeat([]int32{-1}, t.keys.Len()), []int32{}
	for slot := range int32(len(to)) {
		if has.Get(int(slot)) {
			to[slot] = int32(len(live))
			live = append(live, slot)
		} else if hide && (t.waking || t.of.hides()) {
			t.disk.forget(t.keys, slot)
		}
	}
	t.keys = t.keys.Take(live)
	t.disk.renumber(to)
	var rows [2][]int32
	for i := range t.side {
		rows[i] = t.side[i].keep(to, len(live))
	}
	t.of.remade(rows, to)
}

// advance has give say what the watermark asks for, of the keys in memory and, some after
// the others, of those on disk.
func (t *timedTable) advance(time int64, give func() error) error {
	for more := true; more; {
		var err error
		if more, err = t.disk.wake(time); err != nil {
			return err
		}
		t.waking = t.waking || more
		if err := give(); err != nil {
			return err
		}
		if t.crowded() {
			t.compact(true)
		}
		if !more {
			break
		}
		if err := t.disk.evictOver(); err != nil {
			return err
		}
	}
	t.wm, t.waking = max(t.wm, time), false
	t.advances.now++
	return nil
}

// partOf makes p one like t, without rows.
func (t *timedTable) partOf(p *timedTable) (grouped, *groupDisk) {
	p.wm, p.advances.now = t.wm, t.advances.now
	return p.of, &p.disk
}

// spills is false where there is one key.
func (t *timedTable) spills() bool { return len(t.plan.op.Keys) > 0 }

// SpillTo implements Spilling.
func (t *timedTable) SpillTo(s *spill.Store, budget int64) {
	if t.spills() {
		t.disk.SpillTo(s, budget)
	}
}

// Spilled implements Spilling.
func (t *timedTable) Spilled() bool { return t.disk.spilled() }

// Spill implements Spilling.
func (t *timedTable) Spill() error {
	if t.disk.store == nil {
		return nil
	}
	if err := t.checkKeys(); err != nil {
		return err
	}
	return t.disk.evict()
}

// checkKeys is an error where the rows of a key do not fit.
func (t *timedTable) checkKeys() error {
	of := make([]int64, t.keys.Len())
	for i := range t.side {
		s := &t.side[i]
		each := s.bytes() / int64(max(s.rows.Len, 1))
		for row, slot := range s.slot {
			if slot >= 0 && !s.gone[row] {
				of[slot] += each
			}
		}
	}
	most := int64(0)
	for _, n := range of {
		most = max(most, n)
	}
	return checkKey(t.of.what(), most, t.disk.budget)
}

func (t *timedTable) groupKeys() *state.Keys { return t.keys }
func (t *timedTable) groupAges() *ages       { return &t.advances }
func (*timedTable) expire() int              { return 0 }

// groupSlots implements grouped.
func (t *timedTable) groupSlots() []int32 {
	t.compact(true)
	return byHash(t.keys)
}

// dropGroup implements grouped.
func (t *timedTable) dropGroup(slot int32) {
	for i := range t.side {
		s := &t.side[i]
		for row := s.head[slot]; row >= 0; row = s.next[row] {
			if !s.gone[row] {
				s.forget(row)
			}
		}
	}
	t.of.dropped(slot)
	for i := range t.side {
		t.side[i].head[slot] = -1
	}
}

// leave implements grouped.
func (t *timedTable) leave(slots []int32) {
	for _, slot := range slots {
		t.dropGroup(slot)
	}
	t.compact(false)
}

// savePart implements grouped: keys, and of each side the rows, those of a key as they
// came, with their key's place and their flags; then keys that are hidden.
func (t *timedTable) savePart(dst []byte, slots, gone []int32) []byte {
	dst = appendKeys(dst, t.keys, slots)
	for i := range t.side {
		s := &t.side[i]
		rows, of := batch.Sel{}, []int{}
		for k, slot := range slots {
			from := len(rows)
			for row := s.head[slot]; row >= 0; row = s.next[row] {
				if !s.gone[row] {
					rows, of = append(rows, row), append(of, k)
				}
			}
			slices.Reverse(rows[from:])
		}
		dst = s.saveSel(dst, rows)
		for k, row := range rows {
			dst = append(binary.AppendUvarint(dst, uint64(of[k])), t.of.flags(i, row))
		}
	}
	return t.disk.saveGone(dst, gone)
}

// loadPart implements grouped.
func (t *timedTable) loadPart(r *state.Reader, is wanted, now int64) error {
	cols, hashes, err := readKeys(r, t.plan.keyTypes)
	if err != nil {
		return err
	}
	slots := slices.Repeat([]int32{-1}, len(hashes))
	for i, h := range hashes {
		if is(cols, i, h) {
			slots[i] = t.keys.FindOne(cols, h, i)
			t.grow()
			t.dropGroup(slots[i])
		}
	}
	wm, dealt := max(t.wm, t.saved), now < t.advances.now
	for side := range t.side {
		b, err := readRows(r, t.plan.in[side])
		if err != nil {
			return err
		}
		of, flags, sel := make([]int32, b.Len), make([]byte, b.Len), batch.Sel{}
		times := &b.Cols[t.plan.op.TimeColumn(side)]
		for row := range b.Len {
			key := r.Uvarint()
			if key >= uint64(len(slots)) {
				return state.ErrCorrupt
			}
			of[row], flags[row] = slots[key], r.Byte()
			if of[row] >= 0 && !(dealt && t.of.gone(side, wallOf(times, row), wm)) {
				sel = append(sel, int32(row))
			}
		}
		t.put(side, b, sel, func(row int32) (int32, byte) { return of[row], flags[row] })
	}
	return t.disk.loadGone(r, is)
}

// saveTo writes parts: in each the watermark, and some of the rows whose key
// equals nothing, all of which come first; then pieces up to the end.
func (t *timedTable) saveTo(p *state.Payload) error {
	var some [2]batch.Sel
	w := t.disk.parts(p, func(_ int, more bool) []byte {
		form := uint64(streamParts)
		if more {
			form = streamMore
		}
		dst := binary.AppendVarint(binary.AppendUvarint(nil, form), t.wm)
		for i := range t.side {
			if some[i] == nil {
				some[i] = batch.Sel{}
			}
			dst = t.side[i].saveSel(dst, some[i])
			for _, row := range some[i] {
				dst = append(dst, t.of.flags(i, row))
			}
			some[i] = nil
		}
		return dst
	})
	for i := range t.side {
		s := &t.side[i]
		var loose batch.Sel
		for row, slot := range s.slot {
			if slot < 0 && !s.gone[row] {
				loose = append(loose, int32(row))
			}
		}
		for n := w.chunk(s.rows.Len, s.bytes()); len(loose) > 0; loose = loose[min(n, len(loose)):] {
			some[i] = loose[:min(n, len(loose))]
			w.flush(true)
		}
	}
	t.disk.saveTo(w)
	return nil
}

// loadParts reads what SaveTo has written, if the state is one.
func (t *timedTable) loadParts(r *state.Reader, groups state.Range) (bool, error) {
	next := *r
	form := next.Uvarint()
	if form != streamParts && form != streamMore {
		return false, nil
	}
	t.saved = next.Varint()
	defer func() { t.saved = batch.NoWatermark }()
	for side := range t.side {
		b, err := readRows(&next, t.plan.in[side])
		if err != nil {
			return true, err
		}
		flags := make([]byte, b.Len)
		for row := range flags {
			flags[row] = next.Byte()
		}
		t.put(side, b, t.plan.own(side, b, groups), func(row int32) (int32, byte) { return noSlot, flags[row] })
	}
	return true, t.disk.loadParts(&next, groups, form == streamMore)
}

func (t *timedTable) bytes() int64 {
	return t.keys.Bytes() + t.side[0].bytes() + t.side[1].bytes() + t.disk.bytes()
}

// spillOver spills where state that was loaded does not fit.
func (t *timedTable) spillOver() error {
	if t.disk.over(t.bytes()) {
		return t.Spill()
	}
	return nil
}
