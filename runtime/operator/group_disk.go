package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
)

// groupDisk is the groups of a GroupAggregate that are on disk, in runs. What is in
// memory is what a group is; else what the newest run says that has its key. A group
// that rows come for is fetched first, so that its run has an old copy of it then.
type groupDisk struct {
	runs []groupRun // the oldest first
	// gone are keys that have no group any more, though a run may have one; nil: none.
	gone *state.Keys
	// keepsGone: there are, or will be, older runs.
	keepsGone bool
	// hot has the slots that rows have come for since groups were moved to disk.
	hot batch.Bitmap
	// expired are groups that were found to be out of time.
	expired int
	// need are keys that are looked for, found those of them that some run knows.
	need  *state.Keys
	found batch.Bitmap
	buf   []byte
	own   []int
}

// groupRun is a run with the time at which it was written.
type groupRun struct {
	*spill.Run
	now int64
}

const (
	// fetchKeys is how many groups are in a block: one is read for each that is
	// looked for.
	fetchKeys = 32
	// mergeRuns is from how many runs of about the same length on they become one.
	mergeRuns = 4
)

func (d *groupDisk) bytes() int64 {
	n := int64(cap(d.hot) + cap(d.found))
	for _, r := range d.runs {
		n += r.Memory()
	}
	if d.gone != nil {
		n += d.gone.Bytes()
	}
	return n
}

// forget notes that the group of a slot is no more.
func (d *groupDisk) forget(k *state.Keys, slot int32) {
	if len(d.runs) == 0 {
		return
	}
	cols := columnsRef(k)
	ts := make([]types.Type, len(cols))
	for i := range cols {
		ts[i] = cols[i].Type
	}
	d.noteGone(ts, cols, k.Hash(int(slot)), int(slot))
}

func (d *groupDisk) noteGone(ts []types.Type, cols []*batch.Vec, hash uint64, i int) {
	if d.gone == nil {
		d.gone = state.NewKeys(ts)
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

// fetch brings the groups of rows into memory; g.cols are their keys.
func (g *GroupAggregate) fetch(hashes []uint64, sel batch.Sel) error {
	return g.disk.fetch(g.table.keys, g.keyTypes, g.cols, hashes, sel, func(r *groupRun, block int, is wanted) error {
		slots, err := g.readBlock(r, block, is)
		if err != nil {
			return err
		}
		for _, slot := range slots {
			if slot >= 0 && g.ages.on() && g.ages.over(g.ages.at[slot]) {
				g.forget(slot)
				g.disk.expired++
			}
		}
		return nil
	})
}

// readBlock loads what is wanted of a block.
func (g *GroupAggregate) readBlock(r *groupRun, block int, is wanted) ([]int32, error) {
	d := &g.disk
	buf, err := r.Read(block, d.buf)
	if err != nil {
		return nil, err
	}
	d.buf = buf
	d.own = numbers(len(g.table.accs), d.own)
	return g.loadBlock(state.NewReader(buf), is, d.own, r.now)
}

// evict moves groups to disk: those that no rows have come for, if they are the half
// of all, else all.
func (g *GroupAggregate) evict() error {
	d := &g.disk
	if len(d.runs) == 0 && g.table.keys.Len() == g.gone {
		return nil
	}
	all := g.present()
	cold := slices.DeleteFunc(slices.Clone(all), func(slot int32) bool {
		return int(slot) < 8*len(d.hot) && d.hot.Get(int(slot))
	})
	if 2*len(cold) < len(all) || 2*g.Bytes()*int64(len(all)-len(cold)) > g.spiller.budget*int64(len(all)) {
		cold = all
	}
	gone := g.vanishedKeys()
	if len(cold)+len(gone) == 0 {
		return nil
	}
	if err := g.writeRun(cold, gone); err != nil {
		return err
	}
	if len(cold) == len(all) {
		g.table, g.rows, g.gone = g.spiller.fresh(), nil, 0
		now := g.ages.now
		g.ages = newAges(g.ages.ttl)
		g.ages.now = now
	} else {
		for _, slot := range cold {
			g.drop(slot)
		}
		g.tidy()
	}
	d.gone, d.hot = nil, nil
	return d.merge(&g.spiller, g.ages.now, g.mergeRange)
}

// writeRun writes groups, and keys that have none, as the newest run.
func (g *GroupAggregate) writeRun(slots, gone []int32) error {
	w, err := g.spiller.store.NewWriter()
	if err != nil {
		return err
	}
	run := w.Begin(len(slots) + len(gone))
	if err := g.writeBlocks(w, slots, gone); err != nil {
		w.Abort()
		return err
	}
	if err := w.Finish(); err != nil {
		return err
	}
	g.disk.runs = append(g.disk.runs, groupRun{run, g.ages.now})
	g.disk.keepsGone = true
	return nil
}

// writeBlocks writes groups and keys without one, both in order of their hashes.
func (g *GroupAggregate) writeBlocks(w *spill.Writer, slots, gone []int32) error {
	d := &g.disk
	var hashes []uint64
	for len(slots)+len(gone) > 0 {
		// The highest hash of the block.
		high := uint64(0)
		if n := min(fetchKeys, len(slots)); n > 0 {
			high = g.table.keys.Hash(int(slots[n-1]))
		} else {
			high = d.gone.Hash(int(gone[min(fetchKeys, len(gone))-1]))
		}
		mine := upTo(g.table.keys, slots, high)
		none := []int32{}
		if d.gone != nil {
			none = upTo(d.gone, gone, high)
		}
		if len(mine)+len(none) > 4*fetchKeys && len(none) > fetchKeys {
			// Among many keys that are gone there are few groups.
			high = d.gone.Hash(int(none[fetchKeys-1]))
			mine, none = upTo(g.table.keys, slots, high), upTo(d.gone, gone, high)
		}
		hashes = append(hashes[:0], hashesOf(g.table.keys, mine)...)
		if len(none) > 0 {
			hashes = append(hashes, hashesOf(d.gone, none)...)
			slices.Sort(hashes)
		}
		d.buf = g.savePart(d.buf[:0], mine, none)
		if err := w.Block(d.buf, hashes); err != nil {
			return err
		}
		slots, gone = slots[len(mine):], gone[len(none):]
	}
	return nil
}

// upTo are the first of slots, in order of hashes, whose hash is at most high.
func upTo(k *state.Keys, slots []int32, high uint64) []int32 {
	n, _ := slices.BinarySearchFunc(slots, high, func(slot int32, h uint64) int {
		if k.Hash(int(slot)) <= h {
			return -1
		}
		return 1
	})
	return slots[:n]
}

// alike is from which on the newest runs are to become one, where they are as long as
// the one before them: so there are few, and a group is written a few times; -1: none.
func (d *groupDisk) alike() int {
	from, sum := len(d.runs), int64(0)
	for i := len(d.runs) - 1; i >= 0 && (len(d.runs)-i <= mergeRuns-1 || d.runs[i].Bytes() <= sum); i-- {
		from, sum = i, sum+d.runs[i].Bytes()
	}
	if len(d.runs)-from < mergeRuns {
		return -1
	}
	return from
}

// merge makes the runs that are alike one: write writes what they say of a range of
// hashes, older says that there are runs before them. now is the time.
func (d *groupDisk) merge(s *spiller, now int64, write func(w *spill.Writer, runs []groupRun, x spill.Range, older bool) error) error {
	from := d.alike()
	if from < 0 {
		return nil
	}
	old := d.runs[from:]
	runs, keys := make([]*spill.Run, len(old)), 0
	for i, r := range old {
		runs[i], keys = r.Run, keys+r.Keys()
	}
	w, err := s.store.NewWriter()
	if err != nil {
		return err
	}
	run := w.Begin(keys)
	for _, x := range spill.Ranges(runs, s.rangeBytes()) {
		if err := write(w, old, x, from > 0); err != nil {
			w.Abort()
			return err
		}
	}
	if err := w.Finish(); err != nil {
		return err
	}
	for _, r := range runs {
		r.Release()
	}
	d.runs = d.runs[:from:from]
	if run.Blocks() == 0 {
		run.Release()
		return nil
	}
	d.runs = append(d.runs, groupRun{run, now})
	return nil
}

// mergeRange writes what runs, before which there are older ones, say of a range of
// hashes. What is in memory is left out: nobody asks for it on disk.
func (g *GroupAggregate) mergeRange(w *spill.Writer, runs []groupRun, x spill.Range, older bool) error {
	part := &GroupAggregate{op: g.op, aggs: g.aggs, keyTypes: g.keyTypes, table: g.spiller.fresh(), ages: newAges(g.ages.ttl)}
	part.ages.now, part.disk.keepsGone = g.ages.now, older
	is := func(cols []*batch.Vec, i int, h uint64) bool {
		return x.Has(h) && g.table.keys.Slot(cols, h, i) < 0
	}
	for k := range runs {
		from, to := runs[k].Between(x)
		for block := from; block < to; block++ {
			if _, err := part.readBlock(&runs[k], block, is); err != nil {
				return err
			}
		}
	}
	if !older {
		part.ages.sort()
		for slot := part.ages.expired(); slot >= 0; slot = part.ages.expired() {
			part.drop(slot)
			g.disk.expired++
		}
	}
	return part.writeBlocks(w, part.present(), part.vanishedKeys())
}
