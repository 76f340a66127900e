package operator

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// TopN gives the changes of the first N rows of each key, by an order, in a stream:
// one subtask. Of rows that are all new it keeps those N, of rows that change all of
// them, for one may move up when another goes.
//
// The changes of a batch come as one, as Flink's: of one row a key -U and +U; of
// several their -D and +I; with numbers, by number, -U and +U of what stands there
// now.
type TopN struct {
	orderedKeys
	op   *graph.Rank
	out  *batch.Schema
	ages ages // of rows

	touched []int32
	seen    batch.Bitmap
	was     [][]int32 // first rows of the touched keys before the batch
	is      []int32
	result  topChanges
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
	t := &TopN{orderedKeys: newOrderedKeys(in, op.Keys, op.Order), op: op, out: out, ages: newAges(op.TTL)}
	t.order.latest, t.disk = op.Latest, newGroupDisk(t, t.types)
	return t, nil
}

// Fold implements Keyed.
func (t *TopN) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	if err := t.take(in, out); err != nil {
		return err
	}
	t.snapshot()
	for _, row := range t.come {
		t.add(in.Batch, row, in.Hashes[row], t.order.of(in, int(row)), t.slots[row])
	}
	for _, row := range t.back {
		if t.slots[row] < 0 {
			continue
		}
		if gone := t.takeBack(t.slots[row], t.order.of(in, int(row)).bytes); gone >= 0 {
			t.ages.drop(gone)
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
func (t *TopN) add(b *batch.Batch, row int32, hash uint64, p rowPlace, slot int32) {
	list := &t.lists[slot]
	full := !t.op.Retracts && int64(list.n) >= t.op.N
	if full {
		block, at := list.last()
		if t.rows.compareTo(list.block(block)[at], p.bytes) <= 0 {
			return
		}
		t.ages.drop(t.drop(slot, block, at))
	}
	t.ages.touch(t.keep(b, row, hash, p, slot))
}

// Age implements Aging.
func (t *TopN) Age(now int64) int {
	t.ages.now = now
	n := t.disk.expired + t.expire()
	t.disk.expired = 0
	t.compact()
	return n
}

// expire lets rows go that are out of time.
func (t *TopN) expire() int {
	n := 0
	for row := t.ages.expired(); row >= 0; row = t.ages.expired() {
		slot := t.slot[row]
		list := &t.lists[slot]
		t.full = t.rows.appendPlace(t.full[:0], row)
		block, at := t.at(slot, t.full)
		for list.block(block)[at] != row { // among equal ones
			if at++; at == len(list.block(block)) {
				block, at = block+1, 0
			}
		}
		t.drop(slot, block, at)
		n++
	}
	return n
}

// compact leaves out rows that are gone, and keys without rows.
func (t *TopN) compact() {
	if t.crowded() {
		t.tidy()
	}
}

func (t *TopN) tidy() {
	if t.orderedKeys.tidy() {
		t.ages.renumber(t.remake.rows)
	}
}

// Advance implements Keyed: time changes nothing.
func (*TopN) Advance(*expr.Context, int64, *Results) error { return nil }

// Save implements Keyed: the rows, then their ages.
func (t *TopN) Save() []byte {
	t.tidy()
	dst, all := t.save(nil)
	return t.ages.save(dst, all)
}

// Load implements Keyed. Behind the rows may be parts of SaveTo.
func (t *TopN) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	n, saved, added, err := t.load(r, groups)
	if err != nil {
		return err
	}
	at := t.ages.read(r, n)
	if r.Err() != nil {
		return state.ErrCorrupt
	}
	times := make([]int64, len(added))
	for i := range added {
		times[i] = at[saved[i]]
	}
	t.ages.restore(added, times)
	return t.disk.loadParts(r, groups, readFollow(r))
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
	return t.bytes() + t.ages.bytes()
}
