package operator

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// OverChanges is aggregates with OVER in a stream, in the order of any column: one
// subtask. A row comes with its results at once; when another one comes in front of
// it, or goes, those that follow get other ones (-U and +U).
//
// All rows of a key are kept. What an aggregate says of all of them is at hand, so that
// rows that come behind all others cost no more than themselves.
type OverChanges struct {
	orderedKeys
	op  *graph.Over
	out *batch.Schema
	// values: frames go by the value of the order, equal ones together, in some call;
	// in all calls.
	values, allValues bool
	running           []fn.Accumulator // by call, over all rows of a key where full
	full              []bool           // by key slot
	scratch           []fn.Accumulator // of one group
	ages              ages             // of keys, since their last row
	changes           []overChange
	fold              overFold
	was, is           overRows
	result            changeRows
}

// overChange is a row of a batch that comes or goes.
type overChange struct {
	slot, row int32
	back      bool
	place     rowPlace
}

// overRows are rows of a key from some place on, with what the calls say of them.
type overRows struct {
	rows    []int32
	results []batch.Vec // by call
}

// NewOverChanges makes a subtask over the columns of in, with no state.
func NewOverChanges(op *graph.Over, in, out *batch.Schema) (*OverChanges, error) {
	if len(out.Fields) != len(in.Fields)+len(op.Calls) {
		return nil, fmt.Errorf("over of %d columns for %d and %d calls", len(out.Fields), len(in.Fields), len(op.Calls))
	}
	o := &OverChanges{orderedKeys: newOrderedKeys(in, op.Keys, op.Order), op: op, out: out, allValues: true, ages: newAges(op.TTL)}
	o.disk = newGroupDisk(o, o.types)
	o.newRunning()
	for i := range op.Calls {
		c := &op.Calls[i]
		if c.Func != graph.OverAggregate || !runs(c.Frame) {
			return nil, fmt.Errorf("over of changes: %s goes by more than the rows up to the current one", c.Text)
		}
		o.scratch = append(o.scratch, c.Bound.New())
		o.scratch[i].Resize(1)
		o.values, o.allValues = o.values || !c.Frame.Rows, o.allValues && !c.Frame.Rows
	}
	o.was.results, o.is.results = make([]batch.Vec, len(op.Calls)), make([]batch.Vec, len(op.Calls))
	return o, nil
}

// Fold implements Keyed.
func (o *OverChanges) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	if err := o.take(in, out); err != nil {
		return err
	}
	o.resizeFull()
	for _, a := range o.running {
		a.Resize(o.keys.Len())
	}
	o.changes = o.changes[:0]
	for _, sel := range [...]batch.Sel{o.come, o.back} {
		for _, row := range sel {
			if o.slots[row] >= 0 {
				c := overChange{slot: o.slots[row], row: row, back: TakesBack(in.Batch, row)}
				c.place = o.order.of(in, int(row)).clone()
				o.changes = append(o.changes, c)
			}
		}
	}
	slices.SortStableFunc(o.changes, func(a, b overChange) int {
		return cmp.Or(cmp.Compare(a.slot, b.slot), bytes.Compare(a.place.bytes, b.place.bytes))
	})
	o.result.start(o.out)
	for from := 0; from < len(o.changes); {
		to := from + 1
		for to < len(o.changes) && o.changes[to].slot == o.changes[from].slot {
			to++
		}
		if err := o.change(in, o.changes[from:to], out); err != nil {
			return err
		}
		from = to
	}
	if err := o.result.flush(out, true); err != nil {
		return err
	}
	o.compact()
	return nil
}

func (o *OverChanges) resizeFull() {
	for len(o.full) < o.keys.Len() {
		o.full = append(o.full, true) // it has no rows
	}
}

// change takes in the rows of one key, in order, and gives what is different then.
func (o *OverChanges) change(in *KeyedRows, cs []overChange, out *Results) error {
	slot, low := cs[0].slot, cs[0].place.bytes
	if o.values {
		low = low[:cs[0].place.peers]
	}
	o.ages.touch(slot)
	list := &o.lists[slot]
	block, at := o.at(slot, low)
	o.was.rows = list.from(block, at, o.was.rows[:0])
	// Behind all others, or equal to the last ones where all calls count these together:
	// what is at hand is what was said of them.
	last := o.full[slot] && !slices.ContainsFunc(cs, func(c overChange) bool { return c.back }) &&
		(len(o.was.rows) == 0 || o.allValues && o.equal(o.was.rows[0], o.was.rows[len(o.was.rows)-1]) && bytes.HasPrefix(o.rows.place(o.was.rows[0]), low))
	old := int32(len(o.slot))
	switch {
	case len(o.was.rows) == 0:
	case last:
		o.fold.again(o, slot, &o.was)
	default:
		for _, a := range o.scratch {
			a.Clear(0)
		}
		o.fold.results(o, o.scratch, 0, list.head(block, at, o.fold.head[:0]), 0, &o.was)
	}
	for _, c := range cs {
		if !c.back {
			o.keep(in.Batch, c.row, in.Hashes[c.row], c.place, slot)
		}
	}
	for _, c := range cs {
		if c.back {
			o.takeBack(slot, c.place.bytes)
		}
	}
	block, at = o.at(slot, low)
	o.is.rows = list.from(block, at, o.is.rows[:0])
	if last {
		o.fold.results(o, o.running, slot, nil, old, &o.is)
	} else {
		for _, a := range o.running {
			a.Clear(int(slot))
		}
		o.fold.results(o, o.running, slot, list.head(block, at, o.fold.head[:0]), 0, &o.is)
		o.full[slot] = true
	}
	return o.emit(out)
}

func (o *OverChanges) equal(a, b int32) bool {
	return bytes.Equal(o.rows.shared(a), o.rows.shared(b))
}

// emit gives the rows that go, then those that come and those with other results: by
// the key of the rows a table must not see them the other way around.
func (o *OverChanges) emit(out *Results) error {
	for i, row := range o.was.rows {
		if o.slot[row] < 0 {
			o.give(&o.was, i, batch.Delete)
			if err := o.result.flush(out, false); err != nil {
				return err
			}
		}
	}
	k := 0
	for i, row := range o.is.rows {
		for k < len(o.was.rows) && o.slot[o.was.rows[k]] < 0 {
			k++
		}
		switch {
		case k == len(o.was.rows) || o.was.rows[k] != row:
			o.give(&o.is, i, batch.Insert)
		default:
			if !o.same(k, i) {
				o.give(&o.was, k, batch.UpdateBefore)
				o.give(&o.is, i, batch.UpdateAfter)
			}
			k++
		}
		if err := o.result.flush(out, false); err != nil {
			return err
		}
	}
	return nil
}

// same reports equal results of a row, before and now.
func (o *OverChanges) same(was, is int) bool {
	for c := range o.was.results {
		a, b := &o.was.results[c], &o.is.results[c]
		if (a.DeepErr(was) != nil) != (b.DeepErr(is) != nil) || a.IsNull(was) != b.IsNull(is) ||
			!a.IsNull(was) && !batch.ValueEqual(a, was, b, is) {
			return false
		}
	}
	return true
}

func (o *OverChanges) give(from *overRows, i int, kind batch.Kind) {
	r := &o.result
	for c := range o.in.Fields {
		r.out.Cols[c].Append(&o.rows.batch.Cols[c], int(from.rows[i]))
	}
	for c := range from.results {
		r.out.Cols[len(o.in.Fields)+c].Append(&from.results[c], i)
	}
	r.out.Len++
	r.kinds = append(r.kinds, kind)
}

// Age implements Aging: a key is forgotten with all its rows.
func (o *OverChanges) Age(now int64) int {
	o.ages.now = now
	n := o.disk.expired + o.expire()
	o.disk.expired = 0
	o.compact()
	return n
}

// expire implements grouped.
func (o *OverChanges) expire() int {
	n := 0
	for slot := o.ages.expired(); slot >= 0; slot = o.ages.expired() {
		o.dropGroup(slot)
		n++
	}
	return n
}

func (o *OverChanges) compact() {
	if o.crowded() {
		o.tidy()
	}
}

func (o *OverChanges) tidy() {
	if !o.orderedKeys.tidy() {
		return
	}
	o.ages.renumber(o.remake.keys)
	for i, a := range o.running {
		a.Resize(len(o.remake.keys))
		fresh := o.op.Calls[i].Bound.New()
		fresh.Resize(o.keys.Len())
		fresh.Merge(a, o.remake.keys)
		o.running[i] = fresh
	}
	for slot, to := range o.remake.keys {
		if to >= 0 {
			o.full[to] = o.full[slot]
		}
	}
	o.full = o.full[:o.keys.Len()]
}

// Advance implements Keyed: time changes nothing.
func (*OverChanges) Advance(*expr.Context, int64, *Results) error { return nil }

// Save implements Keyed: the rows, then the ages of their keys, in the order of the rows.
func (o *OverChanges) Save() []byte {
	o.tidy()
	dst, _ := o.save(nil)
	return o.ages.save(dst, o.slot)
}

// Load implements Keyed. What runs is folded when a row comes. Behind the ages may be parts
// of SaveTo.
func (o *OverChanges) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	n, saved, added, err := o.load(r, groups)
	if err != nil {
		return err
	}
	at := o.ages.read(r, n)
	if r.Err() != nil {
		return state.ErrCorrupt
	}
	o.resizeFull()
	var ids []int32
	var times []int64
	seen := make([]bool, o.keys.Len())
	for i, row := range added {
		slot := o.slot[row]
		o.full[slot] = false
		if !seen[slot] {
			seen[slot] = true
			ids, times = append(ids, slot), append(times, at[saved[i]])
		}
	}
	o.ages.restore(ids, times)
	return o.disk.loadParts(r, groups, readFollow(r))
}

// Kind implements Keyed.
func (*OverChanges) Kind() string { return "Over of changes" }

// Fingerprint implements Keyed. Rows are kept as they came, so that calls may change.
func (o *OverChanges) Fingerprint() uint64 {
	return state.Fingerprint(append(typesAt(o.in, columnsOf(o.in)), o.types...), fmt.Sprint(o.op.Order))
}

// Bytes implements Keyed.
func (o *OverChanges) Bytes() int64 {
	n := o.bytes() + o.ages.bytes()
	for _, a := range o.running {
		n += a.Bytes()
	}
	return n
}
