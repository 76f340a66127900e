package operator

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// endRuns are, on disk, the ends of sessions with the hashes of their keys, in runs by end.
// An end is taken out when the watermark passes it, which is once. It may be of an older
// copy of its key: then the key has nothing to give at it.
type endRuns struct {
	place *spillPlace
	runs  []*endRun
	// over reports ends that have been taken out.
	over func(end int64) bool
}

// endRun is a run with how far it has been taken out: rest is what is left of the block
// before next.
type endRun struct {
	*spill.Run
	next int
	rest []diskEnd
}

type diskEnd struct {
	end  int64
	hash uint64
}

// endsPerBlock is how many ends a block has, of 16 bytes each.
const endsPerBlock = 256

// order is the end as a hash of its run.
func (e diskEnd) order() uint64 { return uint64(e.end) ^ 1<<63 }

func (e *endRuns) bytes() int64 {
	var n int64
	for _, r := range e.runs {
		n += r.Memory() + int64(16*cap(r.rest)) + 64
	}
	return n
}

// first is the first end that is there.
func (e *endRuns) first() (at int64, ok bool) {
	for _, r := range e.runs {
		end := int64(0)
		switch {
		case len(r.rest) > 0:
			end = r.rest[0].end
		case r.next < r.Blocks():
			end = int64(r.Low(r.next) ^ 1<<63)
		default:
			continue
		}
		if !ok || end < at {
			at, ok = end, true
		}
	}
	return at, ok
}

// add writes ends, and makes one of runs of about the same length.
func (e *endRuns) add(ends []diskEnd) error {
	if err := e.write(nil, func(w *spill.Writer) error { return writeEnds(w, e.place, ends) }); err != nil {
		return err
	}
	from := alike(len(e.runs), func(i int) int64 { return e.runs[i].Bytes() })
	if from < 0 {
		return nil
	}
	old := e.runs[from:]
	runs := make([]*spill.Run, len(old))
	for i, r := range old {
		runs[i] = r.Run
	}
	return e.write(old, func(w *spill.Writer) error {
		for _, x := range spill.Ranges(runs, e.place.rangeBytes()) {
			ends = ends[:0]
			for _, r := range old {
				for i := range r.In(x) {
					block, err := e.read(r, i)
					if err != nil {
						return err
					}
					for _, end := range block {
						if x.Has(end.order()) && !e.over(end.end) {
							ends = append(ends, end)
						}
					}
				}
			}
			if err := writeEnds(w, e.place, ends); err != nil {
				return err
			}
		}
		return nil
	})
}

// write writes a run, in place of old ones, which are the last.
func (e *endRuns) write(old []*endRun, f func(w *spill.Writer) error) error {
	run := new(endRun)
	err := e.place.write(func(w *spill.Writer) error {
		run.Run = w.Begin(0)
		return f(w)
	})
	if err != nil {
		return err
	}
	for _, r := range old {
		r.Release()
	}
	e.runs = append(e.runs[:len(e.runs)-len(old)], run)
	e.settle()
	return nil
}

// settle lets go of runs that have nothing left.
func (e *endRuns) settle() {
	e.runs = slices.DeleteFunc(e.runs, func(r *endRun) bool {
		gone := len(r.rest) == 0 && r.next == r.Blocks()
		if gone {
			r.Release()
		}
		return gone
	})
}

// writeEnds appends blocks to the run of a writer.
func writeEnds(w *spill.Writer, place *spillPlace, ends []diskEnd) error {
	slices.SortFunc(ends, func(a, b diskEnd) int {
		if a.end != b.end {
			return cmp.Compare(a.end, b.end)
		}
		return cmp.Compare(a.hash, b.hash)
	})
	var orders []uint64
	for len(ends) > 0 {
		block := ends[:min(endsPerBlock, len(ends))]
		ends, orders, place.buf = ends[len(block):], orders[:0], place.buf[:0]
		for _, e := range block {
			orders = append(orders, e.order())
			place.buf = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(place.buf, uint64(e.end)), e.hash)
		}
		if err := w.Block(place.buf, orders); err != nil {
			return err
		}
	}
	return nil
}

func (e *endRuns) read(r *endRun, block int) ([]diskEnd, error) {
	buf, err := r.Read(block, e.place.buf)
	if err != nil {
		return nil, err
	}
	if e.place.buf = buf; len(buf)%16 != 0 {
		return nil, state.ErrCorrupt
	}
	out := make([]diskEnd, len(buf)/16)
	for i := range out {
		b := buf[16*i:]
		out[i] = diskEnd{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}
	}
	return out, nil
}

// take takes out the ends that are over, and gives the hashes of their keys in order, each
// once; many: they are more than most, and not all are given.
func (e *endRuns) take(over func(end int64) bool, most int) (hashes []uint64, many bool, err error) {
	for _, r := range e.runs {
		for {
			if len(r.rest) == 0 {
				if r.next == r.Blocks() || !over(int64(r.Low(r.next)^1<<63)) {
					break
				}
				if r.rest, err = e.read(r, r.next); err != nil {
					return nil, false, err
				}
				r.next++
			}
			if !over(r.rest[0].end) {
				break
			}
			if many = many || len(hashes) == most; !many {
				hashes = append(hashes, r.rest[0].hash)
			}
			r.rest = r.rest[1:]
		}
	}
	e.settle()
	slices.Sort(hashes)
	return slices.Compact(hashes), many, nil
}
