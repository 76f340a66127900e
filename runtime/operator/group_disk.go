package operator

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
)

// grouped is an operator whose groups, what it keeps of a key each, a groupDisk moves.
type grouped interface {
	Bytes() int64
	// groupKeys are the keys of the groups in memory. What is there of a key is what its
	// group is, also if that is nothing.
	groupKeys() *state.Keys
	groupAges() *ages
	// groupSlots are the groups that can be moved, by hash.
	groupSlots() []int32
	// savePart appends groups, and keys that have none (saveGone). loadPart reads what
	// is wanted of a savePart of an instant, in place of what is in memory; is is asked
	// once for each key.
	savePart(dst []byte, slots, gone []int32) []byte
	loadPart(r *state.Reader, is wanted, now int64) error
	// dropGroup leaves a slot without a group; leave does so where they are on disk now.
	dropGroup(slot int32)
	leave(slots []int32)
	// expire drops what is out of time, and gives its number.
	expire() int
	// part is one like it without groups, whose disk is that which it gives, too.
	part() (grouped, *groupDisk)
}

// rowGroups is a grouped whose groups are rows that never change once they are kept.
type rowGroups interface {
	grouped
	// partsLater gives, for groups as they are now, what appends a savePart of some of
	// them later, from any goroutine: so that what is saved is not in memory twice.
	partsLater() func(slots []int32) func(dst []byte) []byte
}

// groupDisk is the groups of an operator that are on disk, in runs. What is in memory is
// what a group is; else what the newest run says that has its key. A group that rows
// come for is fetched first, so that its run has an old copy of it then.
type groupDisk struct {
	spillPlace
	of    grouped
	types []types.Type // of keys
	runs  []groupRun   // the oldest first
	// gone are keys that have no group any more, though a run may have one; nil: none.
	gone *state.Keys
	// keepsGone: there are, or will be, older runs.
	keepsGone bool
	// hot has the slots that rows have come for since groups were moved to disk.
	hot batch.Bitmap
	// expired are groups that were found to be out of time.
	expired int
	// moved is told the slots that are in the newest run now, before they leave; nil: no one is.
	moved func(slots []int32) error
	// wakes are when groups on disk have to be in memory again.
	wakes []wakes
	// need are keys that are looked for, found those of them that some run knows.
	need  *state.Keys
	found batch.Bitmap
}

func newGroupDisk(of grouped, keys []types.Type) groupDisk { return groupDisk{of: of, types: keys} }

// groupRun is a run with the time at which it was written, and the watermark up to which
// something of it is wanted.
type groupRun struct {
	*spill.Run
	now, until int64
}

const (
	// fetchKeys is the most groups of a block, fetchBytes about how long one with fewer
	// is: one is read for each group that is looked for.
	fetchKeys  = 32
	fetchBytes = 4 << 10
)

func (d *groupDisk) spilled() bool { return len(d.runs) > 0 }

func (d *groupDisk) bytes() int64 {
	n := int64(cap(d.hot) + cap(d.found))
	for _, r := range d.runs {
		n += r.Memory()
	}
	for _, w := range d.wakes {
		n += w.Memory()
	}
	if d.gone != nil {
		n += d.gone.Bytes()
	}
	return n
}

// forget notes that the group of a slot is no more.
func (d *groupDisk) forget(k *state.Keys, slot int32) {
	if d.keepsGone {
		d.noteGone(columnsRef(k), k.Hash(int(slot)), int(slot))
	}
}

// renumber takes over new numbers of the groups, -1 of those that are not there any more.
func (d *groupDisk) renumber(to []int32) {
	var hot batch.Bitmap
	for slot, k := range to {
		if k < 0 || slot >= 8*len(d.hot) || !d.hot.Get(slot) {
			continue
		}
		for len(hot) < batch.BitmapBytes(int(k)+1) {
			hot = append(hot, 0)
		}
		hot.Set(int(k))
	}
	d.hot = hot
}

func (d *groupDisk) noteGone(cols []*batch.Vec, hash uint64, i int) {
	if d.gone == nil {
		d.gone = state.NewKeys(d.types)
	}
	d.gone.FindOne(cols, hash, i)
}

// fetch brings the keys of rows, of which in has those in memory, from the runs: read
// loads what is wanted of a block.
func (d *groupDisk) fetch(in *state.Keys, keyTypes []types.Type, cols []*batch.Vec, hashes []uint64, sel batch.Sel, read func(r *groupRun, block int, is wanted) error) error {
	if d.need == nil {
		d.need = state.NewKeys(keyTypes)
	}
	d.need.Reset()
	for len(d.hot) < batch.BitmapBytes(in.Len()) {
		d.hot = append(d.hot, 0)
	}
	for _, row := range sel {
		h := hashes[row]
		if slot := in.Slot(cols, h, int(row)); slot >= 0 {
			d.hot.Set(int(slot))
		} else if d.gone == nil || d.gone.Slot(cols, h, int(row)) < 0 {
			d.need.FindOne(cols, h, int(row))
		}
	}
	if d.need.Len() == 0 {
		return nil
	}
	d.found = d.found.Resize(d.need.Len(), false)
	order := byHash(d.need)
	for i := len(d.runs) - 1; i >= 0 && len(order) > 0; i-- {
		if err := d.fetchFrom(&d.runs[i], order, read); err != nil {
			return err
		}
		order = slices.DeleteFunc(order, func(k int32) bool { return d.found.Get(int(k)) })
	}
	return nil
}

// fetchFrom looks for keys, in order of their hashes, in a run.
func (d *groupDisk) fetchFrom(r *groupRun, order []int32, read func(r *groupRun, block int, is wanted) error) error {
	is := func(cols []*batch.Vec, i int, h uint64) bool {
		k := d.need.Slot(cols, h, i)
		if k < 0 || d.found.Get(int(k)) {
			return false
		}
		d.found.Set(int(k))
		return true
	}
	last := -1
	for _, k := range order {
		block := r.Find(d.need.Hash(int(k)))
		if block < 0 || block == last {
			continue
		}
		last = block
		if err := read(r, block, is); err != nil {
			return err
		}
	}
	return nil
}

// fetchGroups brings the groups of rows, whose keys are cols, into memory.
func (d *groupDisk) fetchGroups(cols []*batch.Vec, hashes []uint64, sel batch.Sel) error {
	if len(d.runs) == 0 {
		return nil
	}
	err := d.fetch(d.of.groupKeys(), d.types, cols, hashes, sel, func(r *groupRun, block int, is wanted) error {
		return d.load(d.of, r, block, is)
	})
	if err != nil {
		return err
	}
	d.expired += d.of.expire()
	return nil
}

// load loads what is wanted of a block into an operator.
func (d *groupDisk) load(into grouped, r *groupRun, block int, is wanted) error {
	in, err := d.read(r.Run, block)
	if err != nil {
		return err
	}
	return into.loadPart(in, is, r.now)
}

// cold are those of all slots, which take so many bytes, that no rows have come for since
// groups were moved to disk, if they are the half and the others fit in half of the
// budget; else all.
func (d *groupDisk) cold(all []int32, bytes int64) []int32 {
	cold := slices.DeleteFunc(slices.Clone(all), func(slot int32) bool {
		return int(slot) < 8*len(d.hot) && d.hot.Get(int(slot))
	})
	if 2*len(cold) < len(all) || 2*bytes*int64(len(all)-len(cold)) > d.budget*int64(len(all)) {
		return all
	}
	return cold
}

// evict moves groups to disk.
func (d *groupDisk) evict() error {
	if d.store == nil {
		return nil
	}
	all := d.of.groupSlots()
	cold := d.cold(all, d.of.Bytes())
	gone := d.vanished()
	if len(cold)+len(gone) == 0 {
		return nil
	}
	err := d.newest(len(cold)+len(gone), d.of.groupAges().now, func(w *spill.Writer) error {
		return d.writeBlocks(w, cold, gone, d.perBlock())
	})
	if err != nil {
		return err
	}
	if d.moved != nil {
		if err := d.moved(cold); err != nil {
			return err
		}
	}
	if err := d.noteTimes(cold); err != nil {
		return err
	}
	d.of.leave(cold)
	d.gone, d.hot = nil, nil
	return d.merge(d.of.groupAges().now, d.mergeRange)
}

// vanished are the keys that have no group, but may have one on disk: slots of gone, by
// hash.
func (d *groupDisk) vanished() []int32 {
	if d.gone == nil {
		return nil
	}
	keys, cols := d.of.groupKeys(), columnsRef(d.gone)
	return slices.DeleteFunc(byHash(d.gone), func(slot int32) bool {
		return keys.Slot(cols, d.gone.Hash(int(slot)), int(slot)) >= 0
	})
}

// saveGone appends keys that have no group: slots of gone.
func (d *groupDisk) saveGone(dst []byte, gone []int32) []byte {
	if len(gone) == 0 {
		return binary.AppendUvarint(dst, 0)
	}
	return appendKeys(dst, d.gone, gone)
}

// loadGone reads the keys that have no group any more.
func (d *groupDisk) loadGone(r *state.Reader, is wanted) error {
	hashes := r.Hashes()
	if len(hashes) == 0 {
		return r.Err()
	}
	cols := make([]*batch.Vec, len(d.types))
	for i := range cols {
		if cols[i] = r.Vec(d.types[i]); cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	for i, h := range hashes {
		if !is(cols, i, h) {
			continue
		}
		if slot := d.of.groupKeys().Slot(cols, h, i); slot >= 0 {
			d.of.dropGroup(slot)
		}
		if d.keepsGone {
			d.noteGone(cols, h, i)
		}
	}
	return r.Err()
}

// saveTo appends the runs, each block behind how long ago it was written, and then what
// is in memory in the same way.
func (d *groupDisk) saveTo(w *parted) {
	now := d.of.groupAges().now
	for _, r := range d.runs {
		w.run(r.Run, binary.AppendUvarint(nil, uint64(max(now-r.now, 0))))
	}
	d.saveGroups(w)
	gone := d.vanished()
	for n := w.chunk(len(gone), d.bytes()); len(gone) > 0; gone = gone[min(n, len(gone)):] {
		w.bytes(d.of.savePart([]byte{0}, []int32{}, gone[:min(n, len(gone))]))
	}
	w.finish()
}

// saveGroups appends what is in memory.
func (d *groupDisk) saveGroups(w *parted) {
	slots := d.of.groupSlots()
	n, bytes := w.chunk(len(slots), d.of.Bytes()), d.of.Bytes()/int64(max(len(slots), 1))
	var later func(slots []int32) func(dst []byte) []byte
	if rows, ok := d.of.(rowGroups); ok {
		later = rows.partsLater()
	}
	for ; len(slots) > 0; slots = slots[min(n, len(slots)):] {
		some := slots[:min(n, len(slots))]
		if later == nil {
			w.bytes(d.of.savePart([]byte{0}, some, nil))
			continue
		}
		part := later(some)
		w.later(bytes*int64(len(some)), func(dst []byte) []byte { return part(append(dst, 0)) })
	}
}

// partsFollow stands, in place of how long ago a piece was written, before the first one
// of a part behind which there is another part. No time is as long.
const partsFollow = 1 << 62

// appendFollow says at the end of the head of a part whether there is another one.
func appendFollow(head []byte, more bool) []byte {
	if more {
		return binary.AppendUvarint(head, partsFollow)
	}
	return head
}

// readFollow reads what appendFollow has written.
func readFollow(r *state.Reader) bool {
	if next := *r; next.Uvarint() == partsFollow {
		*r = next
		return true
	}
	return false
}

// loadParts reads the pieces of a saveTo up to the end. Later ones replace groups of
// earlier ones.
func (d *groupDisk) loadParts(r *state.Reader, groups state.Range, more bool) error {
	own := func(_ []*batch.Vec, _ int, h uint64) bool { return groups.Has(h) }
	for r.Rest() > 0 {
		since := r.Uvarint()
		if since > math.MaxInt64/4 {
			return state.ErrCorrupt
		}
		if err := d.of.loadPart(r, own, d.of.groupAges().now-int64(since)); err != nil {
			return err
		}
		if err := d.evictOver(); err != nil {
			return err
		}
	}
	if more || r.Err() != nil {
		return r.Err()
	}
	d.of.groupAges().sort()
	return d.evictOver()
}

// evictOver moves groups to disk where they take more than the budget.
func (d *groupDisk) evictOver() error {
	if d.over(d.of.Bytes()) {
		return d.evict()
	}
	return nil
}
