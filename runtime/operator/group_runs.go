package operator

import (
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// mergeRuns is from how many runs of about the same length on they become one.
const mergeRuns = 4

// newest writes so many keys with f, and takes them as the newest run. now is the time.
func (d *groupDisk) newest(keys int, now int64, f func(w *spill.Writer) error) error {
	var run *spill.Run
	err := d.write(func(w *spill.Writer) error {
		run = w.Begin(keys)
		return f(w)
	})
	if err != nil {
		return err
	}
	d.runs = append(d.runs, groupRun{run, now, never})
	d.keepsGone = true
	return nil
}

// perBlock is how many groups a block has.
func (d *groupDisk) perBlock() int {
	n := max(int64(d.of.groupKeys().Len()), 1)
	return int(min(max(fetchBytes*n/max(d.of.Bytes()-d.bytes(), 1), 1), fetchKeys))
}

// writeBlocks writes groups and keys without one, both in order of their hashes.
func (d *groupDisk) writeBlocks(w *spill.Writer, slots, gone []int32, per int) error {
	keys := d.of.groupKeys()
	var hashes []uint64
	for len(slots)+len(gone) > 0 {
		// The highest hash of the block.
		high := uint64(0)
		if n := min(per, len(slots)); n > 0 {
			high = keys.Hash(int(slots[n-1]))
		} else {
			high = d.gone.Hash(int(gone[min(fetchKeys, len(gone))-1]))
		}
		mine := upTo(keys, slots, high)
		none := []int32{}
		if d.gone != nil {
			none = upTo(d.gone, gone, high)
		}
		if len(mine)+len(none) > 4*fetchKeys && len(none) > fetchKeys {
			// Among many keys that are gone there are few groups.
			high = d.gone.Hash(int(none[fetchKeys-1]))
			mine, none = upTo(keys, slots, high), upTo(d.gone, gone, high)
		}
		hashes = append(hashes[:0], hashesOf(keys, mine)...)
		if len(none) > 0 {
			hashes = append(hashes, hashesOf(d.gone, none)...)
			slices.Sort(hashes)
		}
		d.buf = d.of.savePart(d.buf[:0], mine, none)
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

// alike is from which on the newest of n runs are to become one, where they are as long as
// the one before them: so there are few, and a group is written a few times; -1: none.
func alike(n int, bytes func(i int) int64) int {
	from, sum := n, int64(0)
	for i := n - 1; i >= 0 && (n-i <= mergeRuns-1 || bytes(i) <= sum); i-- {
		from, sum = i, sum+bytes(i)
	}
	if n-from < mergeRuns {
		return -1
	}
	return from
}

// merge makes the runs that are alike one: write writes what they say of a range of
// hashes, older says that there are runs before them. now is the time.
func (d *groupDisk) merge(now int64, write func(w *spill.Writer, runs []groupRun, x spill.Range, older bool) error) error {
	from := alike(len(d.runs), func(i int) int64 { return d.runs[i].Bytes() })
	if from < 0 {
		return nil
	}
	old := d.runs[from:]
	runs, keys, until := make([]*spill.Run, len(old)), 0, int64(math.MinInt64)
	for i, r := range old {
		runs[i], keys, until = r.Run, keys+r.Keys(), max(until, r.until)
	}
	var run *spill.Run
	err := d.write(func(w *spill.Writer) error {
		run = w.Begin(keys)
		for _, x := range spill.Ranges(runs, d.rangeBytes()) {
			if err := write(w, old, x, from > 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
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
	d.runs = append(d.runs, groupRun{run, now, until})
	return nil
}

// mergeRange writes what runs, before which there are older ones, say of a range of
// hashes. What is in memory is left out: nobody asks for it on disk.
func (d *groupDisk) mergeRange(w *spill.Writer, runs []groupRun, x spill.Range, older bool) error {
	part, disk := d.of.part()
	disk.keepsGone = older
	keys := d.of.groupKeys()
	is := func(cols []*batch.Vec, i int, h uint64) bool {
		return x.Has(h) && keys.Slot(cols, h, i) < 0
	}
	for k := range runs {
		for block := range runs[k].In(x) {
			if err := d.load(part, &runs[k], block, is); err != nil {
				return err
			}
		}
	}
	if !older {
		d.expired += part.expire()
	}
	return disk.writeBlocks(w, part.groupSlots(), disk.vanished(), disk.perBlock())
}
