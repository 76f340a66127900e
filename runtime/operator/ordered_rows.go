package operator

import "slices"

// blockRows is the most rows of a block of orderedRows.
const blockRows = 256

// orderedRows are numbers of rows in order, in blocks, so that one among many costs
// no more than a block to move. Most keys have one row, which needs no memory beside.
type orderedRows struct {
	// many are the blocks, none of which is empty; nil: there are n <= 1 rows, in one.
	many *[][]int32
	n    int32
	one  [1]int32
}

// away stands for n where the rows are on disk.
const away = -1

// blocks is the number of blocks.
func (o *orderedRows) blocks() int {
	if o.many != nil {
		return len(*o.many)
	}
	return int(o.n)
}

func (o *orderedRows) block(i int) []int32 {
	if o.many != nil {
		return (*o.many)[i]
	}
	return o.one[:]
}

// find is the place of the first row for which before is false, as block and index;
// the block may be behind the last one. before says of rows in order TRUE up to some
// row, then FALSE.
func (o *orderedRows) find(before func(row int32) bool) (block, at int) {
	lo, hi := 0, o.blocks()
	for lo < hi {
		mid := (lo + hi) / 2
		if b := o.block(mid); before(b[len(b)-1]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == o.blocks() {
		return lo, 0
	}
	b := o.block(lo)
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
	if o.n == 0 {
		o.many, o.n, o.one[0] = nil, 1, row
		return
	}
	block, at := o.find(before)
	if o.many == nil {
		o.many = &[][]int32{append(make([]int32, 0, 4), o.one[0])}
	}
	o.n++
	blocks := *o.many
	if block == len(blocks) {
		block--
		at = len(blocks[block])
	}
	b := slices.Insert(blocks[block], at, row)
	blocks[block] = b
	if len(b) > blockRows {
		half := len(b) / 2
		*o.many = slices.Insert(blocks, block+1, slices.Clone(b[half:]))
		(*o.many)[block] = b[:half:half]
	}
}

// remove takes the row at a place out.
func (o *orderedRows) remove(block, at int) {
	if o.n--; o.many == nil {
		return
	}
	b := slices.Delete((*o.many)[block], at, at+1)
	if (*o.many)[block] = b; len(b) == 0 {
		*o.many = slices.Delete(*o.many, block, block+1)
	}
}

// first appends the first n rows.
func (o *orderedRows) first(n int64, out []int32) []int32 {
	for i := range o.blocks() {
		b := o.block(i)
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
	for i := range block {
		out = append(out, o.block(i)...)
	}
	if block < o.blocks() {
		out = append(out, o.block(block)[:at]...)
	}
	return out
}

func (o *orderedRows) from(block, at int, out []int32) []int32 {
	for ; block < o.blocks(); block, at = block+1, 0 {
		out = append(out, o.block(block)[at:]...)
	}
	return out
}

// last is the place of the row behind all others; there is one.
func (o *orderedRows) last() (block, at int) {
	block = o.blocks() - 1
	return block, len(o.block(block)) - 1
}

// renumber gives the rows other numbers: to is by the one before.
func (o *orderedRows) renumber(to []int32) {
	for i := range o.blocks() {
		b := o.block(i)
		for k := range b {
			b[k] = to[b[k]]
		}
	}
}
