package operator

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// timedGroups are groups about which the watermark decides, too.
type timedGroups interface {
	grouped
	// wakeAt is the watermark at which a group has to be in memory; never: at none.
	wakeAt(slot int32) int64
	// endAt is the watermark from which on nothing of a group is wanted; never: there is
	// none.
	endAt(slot int32) int64
}

const never = math.MaxInt64

const (
	// wakeBytes is for how much of the budget a group is woken, up to wakeKeys of them at
	// once; wakeBlock is how many keys a block of those that are to be woken has.
	wakeBytes = 2 << 10
	wakeKeys  = 4096
	wakeBlock = 128
)

// wakes is a run of the keys of groups that are on disk until the watermark comes to a
// time, in the order of these times. A group that was fetched before its time is woken
// for nothing.
type wakes struct {
	*spill.Run
	// block and at are the place of the first key that was not woken yet, next its time.
	block, at int
	next      int64
}

// instantOf makes times numbers of the same order, as a run has them; timeOfInstant is the way
// back.
func instantOf(time int64) uint64        { return uint64(time) ^ 1<<63 }
func timeOfInstant(instant uint64) int64 { return int64(instant ^ 1<<63) }

// noteTimes notes when groups that go to disk have to be back, and until when the newest
// run, which has them, is wanted.
func (d *groupDisk) noteTimes(slots []int32) error {
	of, ok := d.of.(timedGroups)
	if !ok {
		return nil
	}
	var all []sessionEnd
	until := int64(math.MinInt64)
	for _, slot := range slots {
		until = max(until, of.endAt(slot))
		if at := of.wakeAt(slot); at != never {
			all = append(all, sessionEnd{at, slot})
		}
	}
	d.runs[len(d.runs)-1].until = until
	if len(all) == 0 {
		return nil
	}
	run, err := d.writeWakes(func(write func(*state.Keys, []sessionEnd) error) error { return write(d.of.groupKeys(), all) })
	if err != nil {
		return err
	}
	d.wakes = append(d.wakes, run)
	return d.mergeWakes()
}

// writeWakes writes a run of the keys that f gives, the earliest first.
func (d *groupDisk) writeWakes(f func(write func(*state.Keys, []sessionEnd) error) error) (wakes, error) {
	var run *spill.Run
	err := d.write(func(w *spill.Writer) error {
		run = w.Begin(0)
		return f(func(keys *state.Keys, all []sessionEnd) error {
			slices.SortFunc(all, func(a, b sessionEnd) int { return cmp.Compare(a.end, b.end) })
			var slots []int32
			var instants []uint64
			for len(all) > 0 {
				chunk := all[:min(wakeBlock, len(all))]
				slots, instants = slots[:0], instants[:0]
				for _, x := range chunk {
					slots, instants = append(slots, x.key), append(instants, instantOf(x.end))
				}
				d.buf = appendKeys(d.buf[:0], keys, slots)
				for _, x := range chunk {
					d.buf = binary.AppendVarint(d.buf, x.end)
				}
				if err := w.Block(d.buf, instants); err != nil {
					return err
				}
				all = all[len(chunk):]
			}
			return nil
		})
	})
	if err != nil || run.Blocks() == 0 {
		return wakes{}, err
	}
	return wakes{Run: run, next: timeOfInstant(run.Low(0))}, nil
}

// readWakes reads the keys of a block with their times.
func (d *groupDisk) readWakes(r *spill.Run, block int) (cols []*batch.Vec, hashes []uint64, times []int64, err error) {
	in, err := d.read(r, block)
	if err != nil {
		return nil, nil, nil, err
	}
	if cols, hashes, err = readKeys(in, d.types); err != nil {
		return nil, nil, nil, err
	}
	times = make([]int64, len(hashes))
	for i := range times {
		times[i] = in.Varint()
	}
	return cols, hashes, times, in.Err()
}

// mergeWakes makes runs that are alike one.
func (d *groupDisk) mergeWakes() error {
	from := alike(len(d.wakes), func(i int) int64 { return d.wakes[i].Bytes() })
	if from < 0 {
		return nil
	}
	old := slices.Clone(d.wakes[from:])
	runs := make([]*spill.Run, len(old))
	for i := range old {
		runs[i] = old[i].Run
	}
	run, err := d.writeWakes(func(write func(*state.Keys, []sessionEnd) error) error {
		for _, x := range spill.Ranges(runs, d.rangeBytes()) {
			keys, all := state.NewKeys(d.types), []sessionEnd{}
			for i := range old {
				for block := range runs[i].In(x) {
					if block < old[i].block {
						continue
					}
					cols, hashes, times, err := d.readWakes(runs[i], block)
					if err != nil {
						return err
					}
					for k, h := range hashes {
						if block == old[i].block && k < old[i].at || !x.Has(instantOf(times[k])) {
							continue
						}
						// The earliest time of a key is enough: it gets a later one then.
						if slot := keys.FindOne(cols, h, k); int(slot) == len(all) {
							all = append(all, sessionEnd{times[k], slot})
						} else {
							all[slot].end = min(all[slot].end, times[k])
						}
					}
				}
			}
			if err := write(keys, all); err != nil {
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
	if d.wakes = d.wakes[:from]; run.Run != nil {
		d.wakes = append(d.wakes, run)
	}
	return nil
}

// wake brings groups into memory to whose time the watermark has come, a part of those that
// the budget has room for; more: there may be others.
func (d *groupDisk) wake(time int64) (more bool, err error) {
	if len(d.wakes) == 0 {
		return false, nil
	}
	keys, most := state.NewKeys(d.types), int(min(max(d.budget/wakeBytes, wakeBlock), wakeKeys))
	for i := range d.wakes {
		w := &d.wakes[i]
		for w.block < w.Blocks() && w.next <= time && keys.Len() < most {
			cols, hashes, times, err := d.readWakes(w.Run, w.block)
			if err != nil {
				return false, err
			}
			for ; w.at < len(times) && times[w.at] <= time; w.at++ {
				keys.FindOne(cols, hashes[w.at], w.at)
			}
			switch {
			case w.at < len(times):
				w.next = times[w.at]
			default:
				if w.block, w.at = w.block+1, 0; w.block < w.Blocks() {
					w.next = timeOfInstant(w.Low(w.block))
				}
			}
		}
		more = more || w.block < w.Blocks() && w.next <= time
	}
	d.wakes = slices.DeleteFunc(d.wakes, func(w wakes) bool {
		if w.block < w.Blocks() {
			return false
		}
		w.Release()
		return true
	})
	if keys.Len() == 0 {
		return more, nil
	}
	return more, d.fetchGroups(columnsRef(keys), keys.Hashes(), batch.Sel(slotsOf(0, keys.Len(), nil)))
}

// passed lets go of runs of which nothing is wanted any more since the watermark has come
// to a time. An older run has no more of their groups than they have.
func (d *groupDisk) passed(time int64) {
	d.runs = slices.DeleteFunc(d.runs, func(r groupRun) bool {
		if r.until > time {
			return false
		}
		r.Release()
		return true
	})
}
