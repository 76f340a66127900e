package operator

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// What is in memory of a key of a StreamJoin, all rows of it on both sides, is what the
// key has; else what the newest run says that has it. Keys that rows come for are
// fetched first. A key in memory without rows hides what older runs have of it. Rows
// whose key equals nothing stay in memory.
var _ Spilling = (*StreamJoin)(nil)

// streamParts begins saved state that has parts of it, one after the other, of which
// later ones replace keys of earlier ones. No number of rows is as high.
const streamParts = 1 << 40

// streamMore is streamParts where there is another payload of the same state behind it.
const streamMore = streamParts + 1

// keyRowBytes is about the length of a block of a few keys: one is read for each key
// that is looked for.
const keyRowBytes = 4 << 10

// SpillTo implements Spilling.
func (j *StreamJoin) SpillTo(s *spill.Store, budget int64) {
	if j.spills() {
		j.disk.SpillTo(s, budget)
	}
}

// spills is false where there is one key, and where more than rows is known of groups.
func (j *StreamJoin) spills() bool { return len(j.plan.op.Keys) > 0 && j.groups == nil }

// Spilled implements Spilling.
func (j *StreamJoin) Spilled() bool { return len(j.disk.runs) > 0 }

// Spill implements Spilling: keys that no rows have come for since the last time go
// first, if they are the half of all.
func (j *StreamJoin) Spill() error {
	d := &j.disk
	if d.store == nil || j.keys.Len() == 0 {
		return nil
	}
	all := j.keysByHash()
	if err := j.checkKeys(all); err != nil {
		return err
	}
	cold := d.cold(all, j.Bytes())
	if len(cold) == 0 {
		return nil
	}
	now := j.side[0].ages.now
	if err := d.newest(len(cold), now, func(w *spill.Writer) error { return j.writeBlocks(w, cold) }); err != nil {
		return err
	}
	goes := make(batch.Bitmap, batch.BitmapBytes(j.keys.Len()))
	for _, slot := range cold {
		goes.Set(int(slot))
	}
	if err := j.rebuild(slices.DeleteFunc(all, func(slot int32) bool { return goes.Get(int(slot)) })); err != nil {
		return err
	}
	return d.merge(now, j.mergeRange)
}

// checkKeys is an error where the rows of a key do not fit.
func (j *StreamJoin) checkKeys(slots []int32) error {
	var of [2]int64 // bytes of each side
	for i := range j.side {
		of[i] = j.side[i].bytes()
	}
	most := int64(0)
	for _, slot := range slots {
		sum := int64(0)
		for i := range j.side {
			s := &j.side[i]
			sum += int64(s.count(slot, s.rows.Len)) * of[i] / int64(max(s.rows.Len, 1))
		}
		most = max(most, sum)
	}
	return checkKey("a join of streams", most, j.disk.budget)
}

// keysByHash are the slots in order of their hashes; those without rows are among them
// only where they hide something.
func (j *StreamJoin) keysByHash() []int32 {
	all := byHash(j.keys)
	if len(j.disk.runs) == 0 {
		all = slices.DeleteFunc(all, func(slot int32) bool { return !j.hasRows(slot) })
	}
	return all
}

func (j *StreamJoin) hasRows(slot int32) bool {
	return j.side[0].head[slot] >= 0 || j.side[1].head[slot] >= 0
}

// rebuild forgets the keys that are not among slots, and rows that are gone.
func (j *StreamJoin) rebuild(slots []int32) error {
	kept := j.savePart(nil, slots, true)
	now := j.side[0].ages.now
	j.reset()
	j.disk.hot = nil
	if err := j.loadPart(state.NewReader(kept), func([]*batch.Vec, int, uint64) bool { return true }, nil, now); err != nil {
		return err
	}
	j.sortAges()
	return nil
}

// sortAges is called where many rows have come with their times.
func (j *StreamJoin) sortAges() {
	for i := range j.side {
		j.side[i].ages.sort()
	}
}

// writeBlocks writes keys, in order of their hashes.
func (j *StreamJoin) writeBlocks(w *spill.Writer, slots []int32) error {
	d := &j.disk
	rows, bytes := j.stored()
	most := int(max(keyRowBytes*int64(rows)/max(bytes, 1), 1))
	for len(slots) > 0 {
		chunk := hashChunk(j.keys, slots, j.enough(slots[:min(len(slots), fetchKeys)], most))
		d.buf = j.savePart(d.buf[:0], chunk, false)
		if err := w.Block(d.buf, hashesOf(j.keys, chunk)); err != nil {
			return err
		}
		slots = slots[len(chunk):]
	}
	return nil
}

// stored is the number of rows in memory, and their bytes.
func (j *StreamJoin) stored() (rows int, bytes int64) {
	for i := range j.side {
		rows, bytes = rows+j.side[i].rows.Len, bytes+j.side[i].rowStore.bytes()
	}
	return rows, bytes
}

// enough is how many of slots have about so many rows.
func (j *StreamJoin) enough(slots []int32, most int) int {
	n := 0
	for sum := 0; n < len(slots) && (n == 0 || sum < most); n++ {
		for i := range j.side {
			sum += j.side[i].count(slots[n], most)
		}
	}
	return n
}

// count is the number of rows of a slot, up to most.
func (s *streamSide) count(slot int32, most int) int {
	n := 0
	for row := s.head[slot]; row >= 0 && n < most; row = s.next[row] {
		n++
	}
	return n
}

// of appends the rows of a chain, the oldest first.
func (s *streamSide) of(slot int32, rows batch.Sel) batch.Sel {
	from := len(rows)
	for row := *s.first(slot); row >= 0; row = s.next[row] {
		rows = append(rows, row)
	}
	slices.Reverse(rows[from:])
	return rows
}

// fetch brings the keys of rows into memory.
func (j *StreamJoin) fetch(in *KeyedRows) error {
	j.keyed(in.Input, in.Batch, in.Sel, nil)
	p := j.plan
	return j.disk.fetch(j.keys, p.keyTypes, p.cols, p.hashes, p.good, j.readBlock)
}

// readBlock loads what is wanted of a block.
func (j *StreamJoin) readBlock(r *groupRun, block int, is wanted) error {
	in, err := j.disk.read(r.Run, block)
	if err != nil {
		return err
	}
	return j.loadPart(in, is, nil, r.now)
}

// mergeRange writes what runs, before which there are older ones, say of a range of
// hashes. What is in memory is left out: nobody asks for it on disk.
func (j *StreamJoin) mergeRange(w *spill.Writer, runs []groupRun, x spill.Range, older bool) error {
	part := newStreamJoin(j.plan)
	for i := range part.side {
		part.side[i].ages.now = j.side[i].ages.now
	}
	is := func(cols []*batch.Vec, i int, h uint64) bool { return x.Has(h) && j.keys.Slot(cols, h, i) < 0 }
	for k := range runs {
		for block := range runs[k].In(x) {
			if err := part.readBlock(&runs[k], block, is); err != nil {
				return err
			}
		}
	}
	slots := byHash(part.keys)
	if !older {
		slots = part.keysByHash()
		j.disk.expired += part.disk.expired
	}
	return part.writeBlocks(w, slots)
}

// SaveTo implements Spilling. State that does not spill is one part.
func (j *StreamJoin) SaveTo(p *state.Payload) error {
	if !j.spills() {
		p.Append(j.Save())
		return nil
	}
	w := j.disk.parts(p, func(_ int, more bool) []byte {
		if more {
			return binary.AppendUvarint(nil, streamMore)
		}
		return binary.AppendUvarint(nil, streamParts)
	})
	now := j.side[0].ages.now
	for _, r := range j.disk.runs {
		// How long ago the run was written.
		w.run(r.Run, binary.AppendUvarint(nil, uint64(max(now-r.now, 0))))
	}
	rows, bytes := j.stored()
	most, each := w.chunk(rows, bytes), bytes/int64(max(rows, 1))
	kept := [2]rowStore{j.side[0].snapshot(), j.side[1].snapshot()}
	later := func(x *joinPart) {
		n := int64(len(x.rows[0]) + len(x.rows[1]))
		w.later(n*each+int64(len(x.keys)), func(dst []byte) []byte { return x.save(append(dst, 0), &kept) })
	}
	for slots := j.keysByHash(); len(slots) > 0; {
		n := j.enough(slots[:min(len(slots), most)], most)
		later(j.part(slots[:n], false))
		slots = slots[n:]
	}
	later(j.part([]int32{}, true))
	w.finish()
	return nil
}

// loadParts reads what SaveTo has written.
func (j *StreamJoin) loadParts(r *state.Reader, groups state.Range) error {
	p := j.plan
	more := r.Uvarint() == streamMore
	own := func(_ []*batch.Vec, _ int, h uint64) bool {
		if len(p.op.Keys) == 0 {
			h = 0
		}
		return groups.Has(h)
	}
	free := func(side int, b *batch.Batch, row int) bool {
		var hash uint64
		hash, p.buf = batch.HashKey(p.buf, colsAt(b, p.op.ExchangeKeys(side), nil), row)
		return groups.Has(hash)
	}
	for r.Rest() > 0 {
		since := r.Uvarint()
		if since > math.MaxInt64/4 {
			return state.ErrCorrupt
		}
		if err := j.loadPart(r, own, free, j.side[0].ages.now-int64(since)); err != nil {
			return err
		}
		if j.disk.over(j.Bytes()) {
			if err := j.Spill(); err != nil {
				return err
			}
		}
	}
	if !more {
		j.sortAges()
	}
	return r.Err()
}
