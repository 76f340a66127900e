package state

import (
	"bytes"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Keys is a set of keys with dense slots 0..Len()-1 in the order of their first
// row. A key that is deleted leaves its slot behind, until Take leaves it out.
type Keys struct {
	cols   []batch.Vec
	hashes []uint64
	index  []int32 // open addressing: slot+1, 0 is free
	mask   uint64
	gone   batch.Bitmap // deleted slots; shorter than the slots where none is
}

// NewKeys returns an empty set of keys of the given column types; none: there is
// one key.
func NewKeys(columns []types.Type) *Keys {
	k := &Keys{cols: make([]batch.Vec, len(columns)), index: make([]int32, 16), mask: 15}
	for i, t := range columns {
		k.cols[i].Reset(t, 0)
	}
	return k
}

// Reset makes the set empty again, keeping its memory.
func (k *Keys) Reset() {
	for i := range k.cols {
		k.cols[i].Reset(k.cols[i].Type, 0)
	}
	k.hashes = k.hashes[:0]
	k.gone = k.gone[:0]
	clear(k.index)
}

// Slot is the slot of a row's key, -1 if it is not there. Many goroutines may ask
// at a time while none changes the set.
func (k *Keys) Slot(cols []*batch.Vec, hash uint64, row int) int32 {
	for at := hash & k.mask; ; at = (at + 1) & k.mask {
		s := k.index[at]
		if s == 0 {
			return -1
		}
		if k.hashes[s-1] == hash && k.equal(int(s-1), cols, row) {
			return s - 1
		}
	}
}

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.hashes) }

// Columns are the keys' columns by slot. They are to be read only, and change
// with the next Find.
func (k *Keys) Columns() []batch.Vec { return k.cols }

// Hash is the hash of a slot's key.
func (k *Keys) Hash(slot int) uint64 { return k.hashes[slot] }

// Hashes are the hashes by slot.
func (k *Keys) Hashes() []uint64 { return k.hashes }

// Find sets slots[row] for the rows of sel to the slots of their keys, making new
// ones for new keys. cols are the key columns, of any encoding and without
// errors, hashes the key hashes by row.
func (k *Keys) Find(cols []*batch.Vec, hashes []uint64, sel batch.Sel, slots []int32) {
	for _, row := range sel {
		slots[row] = k.find(cols, hashes[row], int(row))
	}
}

// FindOne is Find of one row.
func (k *Keys) FindOne(cols []*batch.Vec, hash uint64, row int) int32 { return k.find(cols, hash, row) }

func (k *Keys) find(cols []*batch.Vec, hash uint64, row int) int32 {
	for at := hash & k.mask; ; at = (at + 1) & k.mask {
		s := k.index[at]
		if s == 0 {
			return k.insert(cols, hash, row, at)
		}
		if k.hashes[s-1] == hash && k.equal(int(s-1), cols, row) {
			return s - 1
		}
	}
}

func (k *Keys) insert(cols []*batch.Vec, hash uint64, row int, at uint64) int32 {
	slot := len(k.hashes)
	for i := range k.cols {
		k.cols[i].Append(cols[i], row)
	}
	k.hashes = append(k.hashes, hash)
	k.index[at] = int32(slot) + 1
	if uint64(len(k.hashes))*4 > uint64(len(k.index))*3 {
		k.grow()
	}
	return int32(slot)
}

func (k *Keys) grow() {
	k.index = make([]int32, 2*len(k.index))
	k.mask = uint64(len(k.index) - 1)
	for slot, h := range k.hashes {
		if k.Deleted(int32(slot)) {
			continue
		}
		at := h & k.mask
		for k.index[at] != 0 {
			at = (at + 1) & k.mask
		}
		k.index[at] = int32(slot) + 1
	}
}

func (k *Keys) equal(slot int, cols []*batch.Vec, row int) bool {
	for i := range k.cols {
		if !sameValue(&k.cols[i], slot, cols[i], row) {
			return false
		}
	}
	return true
}

// sameValue compares a row of a Flat Vec with one of any encoding and the same
// type; NULL equals NULL, as in GROUP BY.
func sameValue(a *batch.Vec, i int, b *batch.Vec, j int) bool {
	null := b.IsNull(j)
	if a.IsNull(i) != null {
		return false
	}
	if null {
		return true
	}
	for b.Enc == batch.Dict {
		b, j = b.Dict, int(b.Codes[j])
	}
	switch a.Type.Physical() {
	case types.PhysBool:
		return a.Bools.Get(i) == b.Bool(j)
	case types.PhysInt8, types.PhysInt16, types.PhysInt32, types.PhysInt64:
		return a.Int64(i) == b.Int64(j)
	case types.PhysFloat32, types.PhysFloat64:
		x, y := a.Float64(i), b.Float64(j)
		return x == y || math.IsNaN(x) && math.IsNaN(y)
	case types.PhysDecimal128:
		return a.D128[i] == b.D128[b.Index(j)]
	case types.PhysBytes:
		return bytes.Equal(a.Bytes(i), b.Bytes(j))
	}
	return batch.ValueEqual(a, i, b, j)
}

// Bytes is the memory held.
func (k *Keys) Bytes() int64 {
	n := int64(8*cap(k.hashes) + 4*cap(k.index) + cap(k.gone))
	for i := range k.cols {
		n += VecBytes(&k.cols[i])
	}
	return n
}

// VecBytes is the memory that a Vec holds.
func VecBytes(v *batch.Vec) int64 {
	n := cap(v.Valid) + cap(v.Bools) + cap(v.I8) + 2*cap(v.I16) + 4*cap(v.I32) + 8*cap(v.I64) + 4*cap(v.F32) +
		8*cap(v.F64) + 16*cap(v.D128) + 4*cap(v.Offsets) + cap(v.Data) + 4*cap(v.Codes)
	sum := int64(n)
	for _, c := range v.Children {
		sum += VecBytes(c)
	}
	if v.Dict != nil {
		sum += VecBytes(v.Dict)
	}
	return sum
}

// BatchBytes is the memory that a batch's columns hold.
func BatchBytes(b *batch.Batch) int64 {
	n := int64(4*cap(b.OffsetDelta) + 4*cap(b.RowIndex))
	for i := range b.Cols {
		n += VecBytes(&b.Cols[i])
	}
	return n
}

// Delete forgets a slot's key: Find makes a new slot for it. The slot itself stays,
// with its columns, until Take leaves it out.
func (k *Keys) Delete(slot int32) {
	at := k.hashes[slot] & k.mask
	for k.index[at] != slot+1 {
		if k.index[at] == 0 {
			return
		}
		at = (at + 1) & k.mask
	}
	// What lies behind the gap moves up, unless its own place is behind the gap.
	for next := (at + 1) & k.mask; k.index[next] != 0; next = (next + 1) & k.mask {
		home := k.hashes[k.index[next]-1] & k.mask
		if (next-home)&k.mask >= (next-at)&k.mask {
			k.index[at] = k.index[next]
			at = next
		}
	}
	k.index[at] = 0
	for len(k.gone) < batch.BitmapBytes(int(slot)+1) {
		k.gone = append(k.gone, 0)
	}
	k.gone.Set(int(slot))
}

// Take is a set of the keys of live alone, whose slots are their places in it.
func (k *Keys) Take(live []int32) *Keys {
	n := 16
	for 3*n < 4*(len(live)+1) {
		n *= 2
	}
	out := &Keys{cols: make([]batch.Vec, len(k.cols)), index: make([]int32, n), mask: uint64(n - 1)}
	sel := batch.Sel(live)
	if sel == nil {
		sel = batch.Sel{}
	}
	for i := range k.cols {
		out.cols[i].Take(&k.cols[i], sel)
	}
	out.hashes = make([]uint64, len(live))
	for i, slot := range live {
		out.hashes[i] = k.hashes[slot]
		at := out.hashes[i] & out.mask
		for out.index[at] != 0 {
			at = (at + 1) & out.mask
		}
		out.index[at] = int32(i) + 1
	}
	return out
}

// Deleted reports a slot whose key was deleted.
func (k *Keys) Deleted(slot int32) bool {
	return int(slot) < 8*len(k.gone) && k.gone.Get(int(slot))
}
