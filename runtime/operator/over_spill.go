package operator

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// By row time a key goes to disk with what runs, the rows kept and the rows that wait; it
// is fetched when a row comes for it, and when the watermark comes to one that waits.
// Where all rows wait for the end of the input, each run has some of them, in order of
// hashes, and a range of hashes after the other is in memory then.
var _ Spilling = (*Over)(nil)

// Flags of a saved Over.
const (
	overDone = 1 << iota
	// overWaiting: rows that wait follow, up to the end.
	overWaiting
	// overGroups: parts follow up to the end, of which later ones replace keys of earlier
	// ones.
	overGroups
	// overMore: there is another payload of the same state behind this one.
	overMore
)

// SpillTo implements Spilling. The rows of one key have to be in memory.
func (o *Over) SpillTo(s *spill.Store, budget int64) {
	switch {
	case len(o.op.Keys) == 0:
	case o.op.Time < 0:
		o.end.SpillTo(s, budget)
	default:
		o.disk.SpillTo(s, budget)
	}
}

// Spilled implements Spilling.
func (o *Over) Spilled() bool { return len(o.runs) > 0 || o.disk.spilled() }

// Spill implements Spilling.
func (o *Over) Spill() error {
	if o.op.Time < 0 {
		return o.spillRows()
	}
	if o.disk.store == nil {
		return nil
	}
	most := 0
	for i := range o.byKey {
		most = max(most, len(o.byKey[i].given)+o.byKey[i].waiting)
	}
	if err := checkKey("OVER", int64(most)*o.rows.bytes()/int64(max(o.rows.batch.Len, 1)), o.disk.budget); err != nil {
		return err
	}
	return o.disk.evict()
}

// spillRows writes the rows, all of which wait for the end. What another form of the same
// state has left of rows given stays in memory, and with it the rows.
func (o *Over) spillRows() error {
	if o.end.store == nil || o.carried || o.rows.batch.Len == 0 || o.done {
		return nil
	}
	rows := batch.Sel(slotsOf(0, o.rows.batch.Len, nil))
	slices.SortFunc(rows, func(a, b int32) int { return cmp.Compare(o.rows.hashes[a], o.rows.hashes[b]) })
	n := int(max(min(blockBytes, o.end.rangeBytes())*int64(len(rows))/max(o.rows.bytes(), 1), 1))
	var hashes []uint64
	runs, err := o.end.writeRuns(1, func(w *spill.Writer, _ int) error {
		for len(rows) > 0 {
			chunk := rows[:min(n, len(rows))]
			hashes = hashes[:0]
			for _, row := range chunk {
				hashes = append(hashes, o.rows.hashes[row])
			}
			o.end.buf = o.rows.save(o.end.buf[:0], chunk)
			if err := w.Block(o.end.buf, hashes); err != nil {
				return err
			}
			rows = rows[len(chunk):]
		}
		return nil
	})
	if err != nil {
		return err
	}
	o.runs = append(o.runs, runs...)
	o.reset()
	return nil
}

// reset forgets all keys and rows in memory.
func (o *Over) reset() {
	o.keys, o.byKey, o.rows, o.waiting = state.NewKeys(o.types), nil, newKeptRows(o.in, o.order), nil
	o.slot, o.next, o.prev, o.gone, o.dead, o.lost = nil, nil, nil, 0, 0, 0
	o.newRunning()
	now := o.ages.now
	o.ages = newAges(o.op.TTL)
	o.ages.now, o.disk.hot = now, nil
}

// takeBack brings the rows on disk back into memory.
func (o *Over) takeBack() error {
	for _, run := range o.runs {
		for block := range run.Blocks() {
			in, err := o.end.read(run, block)
			if err != nil {
				return err
			}
			if err := o.loadRows(in, func(uint64) bool { return true }, false); err != nil {
				return err
			}
		}
		run.Release()
	}
	o.runs = nil
	return nil
}

// closeRuns gives the rows that are on disk.
func (o *Over) closeRuns(out *Results) error {
	if err := o.spillRows(); err != nil {
		return err
	}
	limit := keyLimit(o.end.budget)
	for _, x := range spill.Ranges(o.runs, o.end.rangeBytes()) {
		part, err := NewOver(o.op, o.in, o.out)
		if err != nil {
			return err
		}
		for _, run := range o.runs {
			for block := range run.In(x) {
				in, err := o.end.read(run, block)
				if err != nil {
					return err
				}
				if err := part.loadRows(in, x.Has, false); err != nil {
					return err
				}
				if n := part.rows.bytes(); n > limit {
					return &KeySizeError{"OVER", n, limit}
				}
			}
		}
		if err := part.give(batch.MaxWatermark, out); err != nil {
			return err
		}
	}
	for _, run := range o.runs {
		run.Release()
	}
	o.runs, o.done = nil, true
	return nil
}

// loadRows takes in saved rows that are wanted: given, or waiting.
func (o *Over) loadRows(r *state.Reader, is func(hash uint64) bool, given bool) error {
	saved, err := o.rows.read(r)
	if err != nil {
		return err
	}
	cols, sel := saved.columns(o.op.Keys, nil), batch.Sel{}
	for i, h := range saved.hashes {
		if is(h) {
			sel = append(sel, int32(i))
		}
	}
	if err := o.disk.fetchGroups(cols, saved.hashes, sel); err != nil {
		return err
	}
	for _, i := range sel {
		slot := o.keys.FindOne(cols, saved.hashes[i], int(i))
		o.resize()
		o.carried = o.carried || given && o.op.Time < 0
		o.ages.touch(slot) // where none was saved
		o.put(saved, int(i), slot, given)
	}
	return nil
}

// put adds a row of a key behind its others.
func (o *Over) put(saved *keptRows, i int, slot int32, given bool) {
	row := o.rows.addSaved(saved, i)
	if !given {
		o.wait(row, slot)
		return
	}
	o.note(slot)
	o.byKey[slot].given = append(o.byKey[slot].given, row)
}

// SaveTo implements Spilling.
func (o *Over) SaveTo(p *state.Payload) error {
	switch {
	case len(o.op.Keys) == 0 || o.carried || o.done:
		p.Append(o.Save())
		return nil
	case o.op.Time >= 0:
		o.disk.saveTo(o.disk.parts(p, func(_ int, more bool) []byte {
			if more {
				return o.saveHead(overGroups | overMore)
			}
			return o.saveHead(overGroups)
		}))
		return nil
	}
	w := o.end.parts(p, func(int, bool) []byte { return o.saveHead(overWaiting) })
	rows := slotsOf(0, o.rows.batch.Len, nil)
	for n := w.chunk(len(rows), o.rows.bytes()); len(rows) > 0; rows = rows[min(n, len(rows)):] {
		w.bytes(o.rows.save(nil, rows[:min(n, len(rows))]))
	}
	for _, run := range o.runs {
		w.run(run, nil)
	}
	w.finish()
	return nil
}

// saveHead begins a saved state.
func (o *Over) saveHead(flags byte) []byte {
	if o.done {
		flags |= overDone
	}
	return append(binary.AppendVarint(appendTexts(nil, o.texts()), o.fired), flags)
}

// loadParts reads what SaveTo has written behind the head.
func (o *Over) loadParts(r *state.Reader, groups state.Range, flags byte) error {
	if flags&overGroups != 0 {
		o.carried = o.op.Time < 0
		return o.disk.loadParts(r, groups, flags&overMore != 0)
	}
	for r.Rest() > 0 {
		if err := o.loadRows(r, groups.Has, false); err != nil {
			return err
		}
		if err := o.spillOver(); err != nil {
			return err
		}
	}
	return r.Err()
}

// spillOver spills while state is loaded.
func (o *Over) spillOver() error {
	if o.end.over(o.Bytes()) || o.disk.over(o.Bytes()) {
		return o.Spill()
	}
	return nil
}

func (o *Over) groupKeys() *state.Keys { return o.keys }
func (o *Over) groupAges() *ages       { return &o.ages }

// groupSlots implements grouped.
func (o *Over) groupSlots() []int32 {
	o.tidy()
	return byHash(o.keys)
}

func (o *Over) part() (grouped, *groupDisk) {
	p := &Over{op: o.op, in: o.in, out: o.out, types: o.types, units: o.units, order: o.order, fired: o.fired}
	p.ages.now = o.ages.now
	p.reset()
	p.disk = newGroupDisk(p, o.types)
	return p, &p.disk
}

// wakeAt implements timedGroups: the earliest row that waits.
func (o *Over) wakeAt(slot int32) int64 {
	at := int64(never)
	for row := o.byKey[slot].wait; row != noRow; row = o.next[row] {
		at = min(at, o.time(row))
	}
	return at
}

// endAt implements timedGroups: what runs is wanted for good.
func (*Over) endAt(int32) int64 { return never }

// savePart implements grouped: keys, what runs, how many rows of each were given and
// wait, these rows, keys that are not known any more, and the ages.
func (o *Over) savePart(dst []byte, slots, gone []int32) []byte {
	dst = appendKeys(dst, o.keys, slots)
	var buf []byte
	for _, a := range o.running {
		if a == nil {
			continue
		}
		a.Resize(o.keys.Len())
		for _, slot := range slots {
			buf = a.AppendState(buf[:0], int(slot))
			dst = state.AppendBytes(dst, buf)
		}
	}
	rows := batch.Sel{}
	for _, slot := range slots {
		k := &o.byKey[slot]
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(len(k.given))), uint64(k.waiting))
		rows = append(rows, k.given...)
		from := len(rows)
		for row := k.wait; row != noRow; row = o.next[row] {
			rows = append(rows, row)
		}
		slices.Reverse(rows[from:]) // as they came
	}
	dst = o.rows.save(dst, rows)
	return o.ages.save(o.disk.saveGone(dst, gone), slots)
}

// loadPart implements grouped.
func (o *Over) loadPart(r *state.Reader, is wanted, now int64) error {
	cols, hashes, err := readKeys(r, o.types)
	if err != nil {
		return err
	}
	slots := slices.Repeat([]int32{-1}, len(hashes))
	for i, h := range hashes {
		if !is(cols, i, h) {
			continue
		}
		if slot := o.keys.Slot(cols, h, i); slot >= 0 {
			o.dropGroup(slot)
		}
		slots[i] = o.keys.FindOne(cols, h, i)
	}
	o.resize()
	for _, a := range o.running {
		if a == nil {
			continue
		}
		a.Resize(o.keys.Len())
		for _, slot := range slots {
			b := r.Bytes()
			if slot < 0 || r.Err() != nil {
				continue
			}
			if err := a.MergeState(int(slot), b); err != nil {
				return err
			}
		}
	}
	counts := make([][2]uint64, len(hashes))
	for i := range counts {
		counts[i] = [2]uint64{r.Uvarint(), r.Uvarint()}
	}
	saved, err := o.rows.read(r)
	if err != nil {
		return err
	}
	at := 0
	for i, slot := range slots {
		for waits, n := range counts[i] {
			if n > uint64(len(saved.hashes)-at) {
				return state.ErrCorrupt
			}
			for ; n > 0; n-- {
				if slot >= 0 {
					o.put(saved, at, slot, waits == 0)
				}
				at++
			}
		}
	}
	if at != len(saved.hashes) {
		return state.ErrCorrupt
	}
	if err := o.disk.loadGone(r, is); err != nil {
		return err
	}
	ages := readAges(r, len(slots), now)
	for i, slot := range slots {
		if slot >= 0 {
			o.ages.hold(slot, ages[i])
		}
	}
	return r.Err()
}

// dropGroup implements grouped.
func (o *Over) dropGroup(slot int32) {
	k := &o.byKey[slot]
	for row := k.wait; row != noRow; row = o.next[row] {
		o.slot[row] = noRow
	}
	o.gone += len(k.given) + k.waiting
	o.dead += k.waiting
	*k = overKey{wait: noRow}
	for _, a := range o.running {
		if a != nil {
			a.Resize(o.keys.Len())
			a.Clear(int(slot))
		}
	}
	o.keys.Delete(slot)
	o.ages.drop(slot)
	o.lost++
}

// leave implements grouped.
func (o *Over) leave(slots []int32) {
	if len(slots) == o.keys.Len() {
		o.reset()
		return
	}
	for _, slot := range slots {
		o.dropGroup(slot)
	}
	o.tidy()
	o.compact()
}

// newRunning makes accumulators without groups.
func (o *Over) newRunning() {
	o.running, o.scratch = make([]fn.Accumulator, len(o.op.Calls)), make([]fn.Accumulator, len(o.op.Calls))
	for i := range o.op.Calls {
		c := &o.op.Calls[i]
		switch {
		case c.Func != graph.OverAggregate:
		case runs(c.Frame):
			o.running[i] = c.Bound.New()
		default:
			o.scratch[i] = c.Bound.New()
			o.scratch[i].Resize(1)
		}
	}
}

// emptyState is that of an accumulator that nothing was folded into.
func emptyState(call *graph.OverCall) []byte {
	a := call.Bound.New()
	a.Resize(1)
	return a.AppendState(nil, 0)
}
