package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// Normalize keeps the last row of each key and gives the changes that it makes: one
// subtask. Input rows say what the row of their key is from now on, or that it is gone
// (-D, of which only the key counts). The first row of a key is +I, another one -U and
// +U, a deletion takes back the row that was kept. A deletion of a key without a row
// gives nothing, and so does a row that is equal to the one before, unless state has a
// time to live: then what is behind may have forgotten it.
//
// Rows of a key count in the order in which they come.
type Normalize struct {
	op     *graph.Normalize
	in     *batch.Schema
	types  []types.Type
	keys   *state.Keys
	row    []int32 // by key slot: the row kept, noRow: the key is forgotten
	rows   *keptRows
	gone   int // rows of the store that are kept no more
	lost   int // slots whose key is forgotten
	ages   ages
	good   batch.Sel
	cols   []*batch.Vec
	result topChanges
	disk   groupDisk
}

// NewNormalize makes a subtask over the columns of in, with no state.
func NewNormalize(op *graph.Normalize, in *batch.Schema) *Normalize {
	ts := typesAt(in, op.Keys)
	n := &Normalize{op: op, in: in, types: ts, keys: state.NewKeys(ts), rows: newKeptRows(in, nil), ages: newAges(op.TTL)}
	n.disk = newGroupDisk(n, ts)
	return n
}

// Fold implements Keyed.
func (n *Normalize) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	n.good = wholeRows(in, out, n.good)
	n.cols = colsAt(in.Batch, n.op.Keys, n.cols)
	n.result.begin(n.in)
	if err := n.disk.fetchGroups(n.cols, in.Hashes, n.good); err != nil {
		return err
	}
	for _, row := range n.good {
		if TakesBack(in.Batch, row) {
			n.remove(in, row)
		} else {
			n.put(in, row)
		}
		if n.result.out.Len >= emitRows {
			if err := n.result.flush(out); err != nil {
				return err
			}
		}
	}
	if err := n.result.flush(out); err != nil {
		return err
	}
	n.compact()
	return nil
}

// put makes a row the one of its key.
func (n *Normalize) put(in *KeyedRows, row int32) {
	slot := n.keys.FindOne(n.cols, in.Hashes[row], int(row))
	n.resize()
	n.ages.touch(slot)
	old := n.row[slot]
	if old != noRow {
		if !n.ages.on() && n.same(old, in.Batch, row) {
			return
		}
		n.result.add(&n.rows.batch, old, batch.UpdateBefore)
		n.result.add(in.Batch, row, batch.UpdateAfter)
		n.gone++
	} else {
		n.result.add(in.Batch, row, batch.Insert)
	}
	n.row[slot] = n.rows.add(in.Batch, row, in.Hashes[row], rowPlace{})
}

func (n *Normalize) resize() {
	for len(n.row) < n.keys.Len() {
		n.row = append(n.row, noRow)
	}
}

// remove takes the row of a key back.
func (n *Normalize) remove(in *KeyedRows, row int32) {
	slot := n.keys.Slot(n.cols, in.Hashes[row], int(row))
	if slot < 0 {
		return
	}
	n.result.add(&n.rows.batch, n.row[slot], batch.Delete)
	n.disk.forget(n.keys, slot)
	n.dropGroup(slot)
}

// forget lets a key and its row go; their columns stay until the next compaction.
func (n *Normalize) forget(slot int32) {
	n.keys.Delete(slot)
	n.row[slot] = noRow
	n.gone++
	n.lost++
}

// same reports a kept row that looks like one of a batch.
func (n *Normalize) same(kept int32, b *batch.Batch, row int32) bool {
	for i := range b.Cols {
		if !batch.ValueEqual(&n.rows.batch.Cols[i], int(kept), &b.Cols[i], int(row)) {
			return false
		}
	}
	return true
}

// Age implements Aging.
func (n *Normalize) Age(now int64) int {
	n.ages.now = now
	forgotten := n.disk.expired + n.expire()
	n.disk.expired = 0
	n.compact()
	return forgotten
}

// expire lets keys go that are out of time. What is on disk of one is older, and not to
// be known again where the time to live is longer after a restart.
func (n *Normalize) expire() int {
	forgotten := 0
	for slot := n.ages.expired(); slot >= 0; slot = n.ages.expired() {
		n.disk.forget(n.keys, slot)
		n.forget(slot)
		forgotten++
	}
	return forgotten
}

// compact leaves out rows and keys that are gone.
func (n *Normalize) compact() {
	if n.gone > 1024 && n.gone > n.rows.batch.Len/2 || n.lost > 1024 && n.lost > len(n.row)/2 {
		n.tidy()
	}
}

// tidy leaves them out: then the number of a row is that of its key.
func (n *Normalize) tidy() {
	live, rows := []int32{}, batch.Sel{}
	to := slices.Repeat([]int32{-1}, len(n.row))
	for slot, row := range n.row {
		if row != noRow {
			to[slot] = int32(len(live))
			live, rows = append(live, int32(slot)), append(rows, row)
		}
	}
	n.keys, n.rows = n.keys.Take(live), n.rows.take(rows)
	n.row = n.row[:len(live)]
	for i := range n.row {
		n.row[i] = int32(i)
	}
	n.ages.renumber(to)
	n.gone, n.lost, n.disk.hot = 0, 0, nil
}

// Advance implements Keyed: time changes nothing.
func (*Normalize) Advance(*expr.Context, int64, *Results) error { return nil }

// Save implements Keyed: the rows, then their ages.
func (n *Normalize) Save() []byte {
	n.tidy()
	kept := all(len(n.row))
	return n.ages.save(n.rows.save(nil, kept), kept)
}

// Load implements Keyed. Behind the rows may be parts of SaveTo.
func (n *Normalize) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	var saved, added []int32
	count, err := n.rows.load(r, groups, func(i int, row int32) { saved, added = append(saved, int32(i)), append(added, row) })
	if err != nil {
		return err
	}
	at := n.ages.read(r, count)
	if r.Err() != nil {
		return state.ErrCorrupt
	}
	cols := n.rows.columns(n.op.Keys, nil)
	slots, times := make([]int32, len(added)), make([]int64, len(added))
	for i, row := range added {
		slots[i] = n.keys.FindOne(cols, n.rows.hashes[row], int(row))
		if int(slots[i]) != len(n.row) {
			return state.ErrCorrupt // a key has one row
		}
		n.row = append(n.row, row)
		times[i] = at[saved[i]]
	}
	n.ages.restore(slots, times)
	return n.disk.loadParts(r, groups, readFollow(r))
}

// Kind implements Keyed.
func (*Normalize) Kind() string { return "Normalize" }

// Fingerprint implements Keyed.
func (n *Normalize) Fingerprint() uint64 {
	return state.Fingerprint(append(typesAt(n.in, columnsOf(n.in)), n.types...))
}

// Bytes implements Keyed.
func (n *Normalize) Bytes() int64 {
	return n.keys.Bytes() + n.rows.bytes() + n.ages.bytes() + int64(4*cap(n.row)) + n.disk.bytes()
}
