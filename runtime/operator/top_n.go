package operator

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// TopN gives the changes of the first N rows of each key, by an order, in a stream:
// one subtask. Of rows that are all new it keeps those N, of rows that change all of
// them, for one may move up when another goes.
//
// The changes of a batch come as one, as Flink's: of one row a key -U and +U; of
// several their -D and +I; with numbers, by number, -U and +U of what stands there
// now.
type TopN struct {
	op      *graph.Rank
	in, out *batch.Schema
	types   []types.Type
	keys    *state.Keys
	order   *rowOrder
	lists   []*orderedRows // by key slot
	rows    *keptRows
	slot    []int32 // by row; -1: gone
	gone    int
	ages    ages

	good, come, back batch.Sel
	cols             []*batch.Vec
	slots            []int32
	touched          []int32
	seen             batch.Bitmap
	was              [][]int32 // first rows of the touched keys before the batch
	is               []int32
	result           topChanges
}

// NewTopN makes a subtask over the columns of in, with no state.
func NewTopN(op *graph.Rank, in, out *batch.Schema) (*TopN, error) {
	n := len(in.Fields)
	if op.Number {
		n++
	}
	if len(out.Fields) != n {
		return nil, fmt.Errorf("ranked table of %d columns over %d", len(out.Fields), len(in.Fields))
	}
	t := &TopN{op: op, in: in, out: out, types: typesAt(in, op.Keys), order: newRowOrder(op.Order), rows: newKeptRows(in), ages: newAges(op.TTL)}
	t.order.latest = op.Latest
	t.keys = state.NewKeys(t.types)
	return t, nil
}

// Fold implements Keyed.
func (t *TopN) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	t.good = wholeRows(in, out, t.good)
	t.come, t.back = splitKinds(in.Batch, t.good, t.come[:0], t.back[:0])
	t.order.start(in)
	t.cols = colsAt(in.Batch, t.op.Keys, t.cols)
	t.slots = slices.Grow(t.slots[:0], in.Batch.Len)[:in.Batch.Len]
	t.keys.Find(t.cols, in.Hashes, t.come, t.slots)
	for _, row := range t.back {
		t.slots[row] = t.keys.Slot(t.cols, in.Hashes[row], int(row))
	}
	for len(t.lists) < t.keys.Len() {
		t.lists = append(t.lists, &orderedRows{})
	}
	t.snapshot()
	for _, row := range t.come {
		key, peers := t.order.key(in, int(row))
		t.add(in.Batch, row, in.Hashes[row], key, int32(peers), t.slots[row])
	}
	for _, row := range t.back {
		if t.slots[row] >= 0 {
			key, _ := t.order.key(in, int(row))
			t.takeBack(t.slots[row], key)
		}
	}
	if err := t.emit(out); err != nil {
		return err
	}
	t.compact()
	return nil
}

// snapshot notes the first rows of the keys that the batch is about.
func (t *TopN) snapshot() {
	t.touched = t.touched[:0]
	t.seen = t.seen.Resize(t.keys.Len(), false)
	for _, sel := range [...]batch.Sel{t.come, t.back} {
		for _, row := range sel {
			if s := t.slots[row]; s >= 0 && !t.seen.Get(int(s)) {
				t.seen.Set(int(s))
				t.touched = append(t.touched, s)
			}
		}
	}
	slices.Sort(t.touched)
	for len(t.was) < len(t.touched) {
		t.was = append(t.was, nil)
	}
	for i, s := range t.touched {
		t.was[i] = t.lists[s].first(t.op.N, t.was[i][:0])
	}
}

// add keeps a row, unless it can never be among the first.
func (t *TopN) add(b *batch.Batch, row int32, hash uint64, key []byte, peers, slot int32) {
	list := t.lists[slot]
	full := !t.op.Retracts && int64(list.n) >= t.op.N
	if full && bytes.Compare(t.rows.order[list.last()], key) <= 0 {
		return
	}
	kept := t.rows.add(b, row, hash, key, peers)
	t.slot = append(t.slot, slot)
	list.insert(kept, func(r int32) bool { return bytes.Compare(t.rows.order[r], key) <= 0 })
	t.ages.touch(kept)
	if full {
		block := len(list.blocks) - 1
		t.drop(slot, block, len(list.blocks[block])-1)
	}
}

// takeBack lets go of one row that is equal; if there is none it is not missed.
func (t *TopN) takeBack(slot int32, key []byte) {
	list := t.lists[slot]
	block, at := list.find(func(r int32) bool { return bytes.Compare(t.rows.order[r], key) < 0 })
	if block < len(list.blocks) && bytes.Equal(t.rows.order[list.blocks[block][at]], key) {
		t.drop(slot, block, at)
	}
}

// drop lets the row at a place go; its columns stay until the next compaction.
func (t *TopN) drop(slot int32, block, at int) {
	list := t.lists[slot]
	row := list.blocks[block][at]
	list.remove(block, at)
	t.slot[row] = -1
	t.ages.drop(row)
	t.gone++
}

// Age implements Aging.
func (t *TopN) Age(now int64) int {
	t.ages.now = now
	n := 0
	for row := t.ages.expired(); row >= 0; row = t.ages.expired() {
		slot := t.slot[row]
		list := t.lists[slot]
		block, at := list.find(func(r int32) bool { return bytes.Compare(t.rows.order[r], t.rows.order[row]) < 0 })
		for list.blocks[block][at] != row { // among equal ones
			if at++; at == len(list.blocks[block]) {
				block, at = block+1, 0
			}
		}
		t.drop(slot, block, at)
		n++
	}
	t.compact()
	return n
}

// compact leaves out rows that are gone, and keys without rows.
func (t *TopN) compact() {
	if t.gone > 1024 && t.gone > t.rows.batch.Len/2 {
		t.tidy()
	}
}

func (t *TopN) tidy() {
	if t.gone == 0 {
		return
	}
	live := batch.Sel{}
	to := slices.Repeat([]int32{-1}, len(t.slot))
	for row, slot := range t.slot {
		if slot >= 0 {
			to[row] = int32(len(live))
			live = append(live, int32(row))
		}
	}
	var keys []int32
	var lists []*orderedRows
	key := make([]int32, len(t.lists))
	for s, l := range t.lists {
		if l.n == 0 {
			continue
		}
		key[s] = int32(len(keys))
		keys, lists = append(keys, int32(s)), append(lists, l)
		for _, b := range l.blocks {
			for i := range b {
				b[i] = to[b[i]]
			}
		}
	}
	slot := make([]int32, len(live))
	for i, row := range live {
		slot[i] = key[t.slot[row]]
	}
	t.keys, t.lists, t.rows, t.slot, t.gone = t.keys.Take(keys), lists, t.rows.take(live), slot, 0
	t.ages.renumber(to)
}

// Advance implements Keyed: time changes nothing.
func (*TopN) Advance(*expr.Context, int64, *Results) error { return nil }

// Save implements Keyed: the rows, then their ages.
func (t *TopN) Save() []byte {
	t.tidy()
	all := batch.Sel(slotsOf(0, len(t.slot), nil))
	if all == nil {
		all = batch.Sel{}
	}
	return t.ages.save(t.rows.save(nil, all), all)
}

// Load implements Keyed.
func (t *TopN) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	var saved, added []int32
	n := 0
	count := state.NewReader(payload)
	n = len(count.Hashes())
	if err := t.rows.load(r, t.in, groups, func(i int, row int32) { saved, added = append(saved, int32(i)), append(added, row) }); err != nil {
		return err
	}
	at := t.ages.read(r, n)
	if r.Err() != nil || r.Rest() > 0 {
		return state.ErrCorrupt
	}
	slots := make([]int32, t.rows.batch.Len)
	t.keys.Find(t.rows.columns(t.op.Keys, nil), t.rows.hashes, added, slots)
	for len(t.lists) < t.keys.Len() {
		t.lists = append(t.lists, &orderedRows{})
	}
	times := make([]int64, len(added))
	for i, row := range added {
		t.slot = append(t.slot, slots[row])
		key := t.rows.order[row]
		t.lists[slots[row]].insert(row, func(o int32) bool { return bytes.Compare(t.rows.order[o], key) <= 0 })
		times[i] = at[saved[i]]
	}
	t.ages.restore(added, times)
	return nil
}

// Kind implements Keyed.
func (t *TopN) Kind() string {
	if t.op.Retracts {
		return "TopN over changes"
	}
	return "TopN"
}

// Fingerprint implements Keyed.
func (t *TopN) Fingerprint() uint64 {
	return state.Fingerprint(append(typesAt(t.in, columnsOf(t.in)), t.types...), fmt.Sprintf("%v %d %v", t.op.Order, t.op.N, t.op.Latest))
}

// Bytes implements Keyed.
func (t *TopN) Bytes() int64 {
	return t.keys.Bytes() + t.rows.bytes() + t.ages.bytes() + int64(8*cap(t.slot)+64*len(t.lists))
}
