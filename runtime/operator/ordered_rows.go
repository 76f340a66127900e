package operator

import "slices"

// blockRows is the most rows of a block of orderedRows.
const blockRows = 256

// orderedRows are numbers of rows in order, in blocks, so that one among many costs
// no more than a block to move.
type orderedRows struct {
	blocks [][]int32
	n      int
}

// find is the place of the first row for which before is false, as block and index;
// the block may be behind the last one. before says of rows in order TRUE up to some
// row, then FALSE.
func (o *orderedRows) find(before func(row int32) bool) (block, at int) {
	lo, hi := 0, len(o.blocks)
	for lo < hi {
		mid := (lo + hi) / 2
		if b := o.blocks[mid]; before(b[len(b)-1]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(o.blocks) {
		return lo, 0
	}
	b := o.blocks[lo]
	from, to := 0, len(b)
	for from < to {
		mid := (from + to) / 2
		if before(b[mid]) {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return lo, from
}

// insert puts a row in front of the first one for which before is false.
func (o *orderedRows) insert(row int32, before func(row int32) bool) {
	o.n++
	block, at := o.find(before)
	if block == len(o.blocks) {
		if block == 0 {
			o.blocks = append(o.blocks, []int32{row})
			return
		}
		block--
		at = len(o.blocks[block])
	}
	b := slices.Insert(o.blocks[block], at, row)
	o.blocks[block] = b
	if len(b) > blockRows {
		half := len(b) / 2
		o.blocks = slices.Insert(o.blocks, block+1, slices.Clone(b[half:]))
		o.blocks[block] = b[:half:half]
	}
}

// remove takes the row at a place out.
func (o *orderedRows) remove(block, at int) {
	o.n--
	b := slices.Delete(o.blocks[block], at, at+1)
	if o.blocks[block] = b; len(b) == 0 {
		o.blocks = slices.Delete(o.blocks, block, block+1)
	}
}

// first appends the first n rows.
func (o *orderedRows) first(n int64, out []int32) []int32 {
	for _, b := range o.blocks {
		if int64(len(b)) >= n {
			return append(out, b[:n]...)
		}
		out = append(out, b...)
		n -= int64(len(b))
	}
	return out
}

// head appends the rows before a place, from those from it on.
func (o *orderedRows) head(block, at int, out []int32) []int32 {
	for _, b := range o.blocks[:block] {
		out = append(out, b...)
	}
	if block < len(o.blocks) {
		out = append(out, o.blocks[block][:at]...)
	}
	return out
}

func (o *orderedRows) from(block, at int, out []int32) []int32 {
	for ; block < len(o.blocks); block, at = block+1, 0 {
		out = append(out, o.blocks[block][at:]...)
	}
	return out
}

// last is the row behind all others; there is one.
func (o *orderedRows) last() int32 {
	b := o.blocks[len(o.blocks)-1]
	return b[len(b)-1]
}
