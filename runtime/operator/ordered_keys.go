package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// orderedKeys are the rows of each key in order, in a stream whose rows may be taken
// back.
type orderedKeys struct {
	in     *batch.Schema
	keyed  []int // the key's columns
	types  []types.Type
	keys   *state.Keys
	order  *rowOrder
	lists  []orderedRows // by key slot
	rows   *keptRows
	slot   []int32 // by row; -1: gone
	full   []byte  // the whole place of a row
	gone   int
	slots  []int32 // by row of the batch, -1: a key that is not known
	cols   []*batch.Vec
	good   batch.Sel
	come   batch.Sel
	back   batch.Sel
	remake struct{ rows, keys []int32 } // new numbers, by tidy
	disk   groupDisk
	seen   *state.Keys // of a part that is read
}

func newOrderedKeys(in *batch.Schema, keys []int, order []graph.SortKey) orderedKeys {
	k := orderedKeys{in: in, keyed: keys, types: typesAt(in, keys), order: newRowOrder(order)}
	k.rows = newKeptRows(in, k.order)
	k.keys = state.NewKeys(k.types)
	return k
}

// take reads a batch: the rows that come and those that are taken back, with the slots
// of their keys.
func (k *orderedKeys) take(in *KeyedRows, out *Results) error {
	k.good = wholeRows(in, out, k.good)
	k.come, k.back = splitKinds(in.Batch, k.good, k.come[:0], k.back[:0])
	k.order.start(in)
	k.cols = colsAt(in.Batch, k.keyed, k.cols)
	if err := k.disk.fetchGroups(k.cols, in.Hashes, k.good); err != nil {
		return err
	}
	k.slots = slices.Grow(k.slots[:0], in.Batch.Len)[:in.Batch.Len]
	k.keys.Find(k.cols, in.Hashes, k.come, k.slots)
	for _, row := range k.back {
		k.slots[row] = k.keys.Slot(k.cols, in.Hashes[row], int(row))
	}
	k.resize()
	return nil
}

func (k *orderedKeys) resize() {
	for len(k.lists) < k.keys.Len() {
		k.lists = append(k.lists, orderedRows{})
	}
}

// keep puts a row among those of its key, behind those that are equal.
func (k *orderedKeys) keep(b *batch.Batch, row int32, hash uint64, p rowPlace, slot int32) int32 {
	kept := k.rows.add(b, row, hash, p)
	k.slot = append(k.slot, slot)
	k.insert(kept, slot, p.bytes)
	return kept
}

// insert puts a kept row, whose whole place it is, among those of its key.
func (k *orderedKeys) insert(row, slot int32, place []byte) {
	k.lists[slot].insert(row, func(r int32) bool { return k.rows.compareTo(r, place) <= 0 })
}

// insertSaved is insert of a row that was added as saved.
func (k *orderedKeys) insertSaved(row, slot int32) {
	k.full = k.rows.appendPlace(k.full[:0], row)
	k.insert(row, slot, k.full)
}

// at is the place of the first row of a key that does not come before a whole place.
func (k *orderedKeys) at(slot int32, place []byte) (block, at int) {
	return k.lists[slot].find(func(r int32) bool { return k.rows.compareTo(r, place) < 0 })
}

// takeBack lets go of one row that is equal and gives it; if there is none, it is not
// missed: -1.
func (k *orderedKeys) takeBack(slot int32, place []byte) int32 {
	block, at := k.at(slot, place)
	if list := &k.lists[slot]; block < list.blocks() && k.rows.compareTo(list.block(block)[at], place) == 0 {
		return k.drop(slot, block, at)
	}
	return -1
}

// drop lets the row at a place go; its columns stay until the next tidy.
func (k *orderedKeys) drop(slot int32, block, at int) int32 {
	list := &k.lists[slot]
	row := list.block(block)[at]
	list.remove(block, at)
	k.slot[row] = -1
	k.gone++
	return row
}

// crowded reports that most rows are gone.
func (k *orderedKeys) crowded() bool { return k.gone > 1024 && k.gone > k.rows.batch.Len/2 }

// tidy leaves out rows that are gone, and keys without rows. The new numbers of rows
// and of keys, -1 for those left out, are in remake then.
func (k *orderedKeys) tidy() bool {
	if k.gone == 0 {
		return false
	}
	live := batch.Sel{}
	rows := slices.Repeat([]int32{-1}, len(k.slot))
	for row, slot := range k.slot {
		if slot >= 0 {
			rows[row] = int32(len(live))
			live = append(live, int32(row))
		}
	}
	var kept []int32
	var lists []orderedRows
	keys := slices.Repeat([]int32{-1}, len(k.lists))
	var hot batch.Bitmap
	for s := range k.lists {
		l := &k.lists[s]
		if l.n == away {
			continue
		}
		if l.n == 0 {
			k.disk.forget(k.keys, int32(s))
			continue
		}
		if s < 8*len(k.disk.hot) && k.disk.hot.Get(s) {
			for len(hot) < batch.BitmapBytes(len(kept)+1) {
				hot = append(hot, 0)
			}
			hot.Set(len(kept))
		}
		keys[s] = int32(len(kept))
		l.renumber(rows)
		kept, lists = append(kept, int32(s)), append(lists, *l)
	}
	slot := make([]int32, len(live))
	for i, row := range live {
		slot[i] = keys[k.slot[row]]
	}
	k.keys, k.lists, k.rows, k.slot, k.gone = k.keys.Take(kept), lists, k.rows.take(live), slot, 0
	k.remake.rows, k.remake.keys, k.disk.hot = rows, keys, hot
	return true
}

// save appends the rows; there are none that are gone.
func (k *orderedKeys) save(dst []byte) ([]byte, batch.Sel) {
	all := batch.Sel(slotsOf(0, len(k.slot), nil))
	if all == nil {
		all = batch.Sel{}
	}
	return k.rows.save(dst, all), all
}

// load takes in the rows of the given key groups. saved are their places among the n
// that were saved, added their numbers now.
func (k *orderedKeys) load(r *state.Reader, groups state.Range) (n int, saved, added []int32, err error) {
	n, err = k.rows.load(r, groups, func(i int, row int32) { saved, added = append(saved, int32(i)), append(added, row) })
	if err != nil || len(added) == 0 {
		return n, nil, nil, err
	}
	slots := make([]int32, k.rows.batch.Len)
	k.keys.Find(k.rows.columns(k.keyed, nil), k.rows.hashes, added, slots)
	k.resize()
	for _, row := range added {
		k.slot = append(k.slot, slots[row])
		k.insertSaved(row, slots[row])
	}
	return n, saved, added, nil
}

func (k *orderedKeys) bytes() int64 {
	// At most so many keys have several rows.
	many := min(max(len(k.slot)-k.gone-len(k.lists), 0), len(k.lists))
	return k.keys.Bytes() + k.rows.bytes() + int64(8*cap(k.slot)+16*cap(k.lists)+64*many) + k.disk.bytes()
}
