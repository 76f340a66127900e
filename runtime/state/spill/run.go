package spill

import (
	"cmp"
	"hash/crc32"
	"io"
	"iter"
	"slices"
)

// Run is blocks in ascending order of their hashes. It never changes.
type Run struct {
	s      *Store
	f      *file
	blocks []block
	filter filter
	keys   int
	bytes  int64
}

type block struct {
	low, high uint64
	off       int64
	n, crc    uint32
}

// Blocks is their number, Keys that of all keys, Bytes their length.
func (r *Run) Blocks() int  { return len(r.blocks) }
func (r *Run) Keys() int    { return r.keys }
func (r *Run) Bytes() int64 { return r.bytes }

// Memory is what the run takes in memory.
func (r *Run) Memory() int64 { return int64(40*cap(r.blocks)+8*cap(r.filter)) + 96 }

// Retain adds a reference to the run's file, Release drops one.
func (r *Run) Retain()  { r.s.retain(r.f) }
func (r *Run) Release() { r.s.release(r.f) }

// Find is the block that a hash would be in, -1: it is not in the run.
func (r *Run) Find(hash uint64) int {
	if !r.filter.has(hash) {
		return -1
	}
	i, _ := slices.BinarySearchFunc(r.blocks, hash, func(b block, h uint64) int { return cmp.Compare(b.high, h) })
	if i == len(r.blocks) || r.blocks[i].low > hash {
		return -1
	}
	return i
}

// In gives the blocks that may have hashes of a range, in order.
func (r *Run) In(x Range) iter.Seq[int] {
	return func(yield func(int) bool) {
		i, _ := slices.BinarySearchFunc(r.blocks, x.Low, func(b block, h uint64) int { return cmp.Compare(b.high, h) })
		for ; i < len(r.blocks) && r.blocks[i].low <= x.High && yield(i); i++ {
		}
	}
}

// Read reads a block into buf, which grows as needed.
func (r *Run) Read(i int, buf []byte) ([]byte, error) {
	return r.ReadAll(i, i+1, buf, func([]byte) error { return nil })
}

// ReadAll reads blocks from one to, not including, another at once into buf, which grows
// as needed, and calls f with each.
func (r *Run) ReadAll(from, to int, buf []byte, f func(block []byte) error) ([]byte, error) {
	blocks := r.blocks[from:to]
	size := 0
	for i := range blocks {
		size += int(blocks[i].n)
	}
	buf = slices.Grow(buf[:0], size)[:size]
	// The blocks of a run lie one behind the other.
	if n, err := r.f.ReadAt(buf, blocks[0].off); n < size {
		if err == io.EOF {
			err = ErrCorrupt // cut off
		}
		return buf, &Error{"reading", r.f.name, err}
	}
	rest := buf
	for i := range blocks {
		b := rest[:blocks[i].n]
		if rest = rest[len(b):]; crc32.Checksum(b, castagnoli) != blocks[i].crc {
			return buf, &Error{"reading", r.f.name, ErrCorrupt}
		}
		if err := f(b); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// BlockBytes is the length of a block.
func (r *Run) BlockBytes(i int) int64 { return int64(r.blocks[i].n) }

// Low is the lowest hash of a block.
func (r *Run) Low(i int) uint64 { return r.blocks[i].low }

// Range is the hashes from Low to High, both included.
type Range struct{ Low, High uint64 }

// Has reports a hash of the range.
func (x Range) Has(hash uint64) bool { return hash >= x.Low && hash <= x.High }

// Ranges cuts the hashes of runs into ranges, ascending, of about size bytes of
// blocks each: together they are all hashes. It is how state that does not fit is
// gone through.
func Ranges(runs []*Run, size int64) []Range {
	var all []block
	for _, r := range runs {
		all = append(all, r.blocks...)
	}
	slices.SortFunc(all, func(a, b block) int { return cmp.Compare(a.low, b.low) })
	out := []Range{{Low: 0, High: 1<<64 - 1}}
	sum := int64(0)
	for i := range all {
		last := &out[len(out)-1]
		if low := all[i].low; sum >= size && low > last.Low {
			last.High = low - 1
			out = append(out, Range{Low: low, High: 1<<64 - 1})
			sum = 0
		}
		sum += int64(all[i].n)
	}
	return out
}
