package operator

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// Over is functions over the ordered rows of a key: one subtask. Rows that are equal
// by the order's columns go by where they come from.
//
// A key has rows that wait for the watermark, and rows that have been given and are
// kept because frames of later rows reach back to them. What reaches back to the
// first row is folded into an accumulator instead.
type Over struct {
	op      *graph.Over
	in, out *batch.Schema
	types   []types.Type
	units   int64 // of Time, per ms
	keys    *state.Keys
	byKey   []overKey
	rows    *keptRows
	slot    []int32 // by row: of its key; noRow: it was dropped
	// next and prev chain the rows of a key that wait.
	next, prev []int32
	gone       int
	// waiting are the rows that wait, the earliest first: a watermark looks at those
	// that come now, and at no other.
	waiting endHeap
	dead    int // entries of waiting whose row was dropped
	order   *rowOrder
	fired   int64
	done    bool
	// running has, by call, the accumulator of frames that begin with the first row,
	// by key slot; scratch that of other frames.
	running, scratch []fn.Accumulator
	good             batch.Sel
	cols             []*batch.Vec
	slots            []int32
	result           batch.Batch
	// ages are of keys, since their last row; lost is the number of slots whose key is
	// forgotten.
	ages ages
	lost int
	// disk has keys by row time; end is for rows that wait for the end of the input, which
	// are in runs; carried: others were given before.
	disk    groupDisk
	end     spillPlace
	runs    []*spill.Run
	carried bool
}

// overKey is the rows of a key: those given, in order, the last one that came of those that
// wait, and their number.
type overKey struct {
	given   []int32
	wait    int32
	waiting int
}

// NewOver makes a subtask over the columns of in, with no state.
func NewOver(op *graph.Over, in, out *batch.Schema) (*Over, error) {
	if len(out.Fields) != len(in.Fields)+len(op.Calls) {
		return nil, fmt.Errorf("over of %d columns for %d and %d calls", len(out.Fields), len(in.Fields), len(op.Calls))
	}
	o := &Over{op: op, in: in, out: out, types: typesAt(in, op.Keys), order: newRowOrder(op.Order), fired: batch.NoWatermark}
	if op.Time >= 0 {
		o.units = in.Fields[op.Time].Type.UnitsPerSecond() / 1000
	}
	o.reset()
	o.disk = newGroupDisk(o, o.types)
	return o, nil
}

// runs reports frames from the first row to the current one, whose results follow
// from one another.
func runs(f graph.Frame) bool {
	return f.Start.Kind == graph.UnboundedPreceding && f.End.Kind == graph.CurrentRow
}

func (o *Over) find(cols []*batch.Vec, hashes []uint64, sel batch.Sel, slots []int32) {
	o.keys.Find(cols, hashes, sel, slots)
	o.resize()
}

func (o *Over) resize() {
	for len(o.byKey) < o.keys.Len() {
		o.byKey = append(o.byKey, overKey{wait: noRow})
	}
}

// time is the row time of a kept row, in ms.
func (o *Over) time(row int32) int64 {
	if o.op.Time < 0 {
		return batch.MaxWatermark
	}
	return types.FloorDiv(o.rows.batch.Cols[o.op.Time].Int64(int(row)), o.units)
}

// Fold implements Keyed.
func (o *Over) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	o.good = wholeRows(in, out, o.good)
	o.order.start(in)
	o.cols = colsAt(in.Batch, o.op.Keys, o.cols)
	if err := o.disk.fetchGroups(o.cols, in.Hashes, o.good); err != nil {
		return err
	}
	o.slots = slices.Grow(o.slots[:0], in.Batch.Len)[:in.Batch.Len]
	o.find(o.cols, in.Hashes, o.good, o.slots)
	for _, row := range o.good {
		o.ages.touch(o.slots[row])
		kept := o.rows.add(in.Batch, row, in.Hashes[row], o.order.of(in, int(row)))
		if t := o.time(kept); o.op.Time >= 0 && watermark.Late(o.fired, t+1, 0) {
			return &FiredError{t + 1, o.fired}
		}
		o.wait(kept, o.slots[row])
	}
	return nil
}

// note notes the key of a row that was added behind the others.
func (o *Over) note(slot int32) {
	o.slot, o.next, o.prev = append(o.slot, slot), append(o.next, noRow), append(o.prev, noRow)
}

// wait notes a row, added behind the others, that waits.
func (o *Over) wait(row, slot int32) {
	o.note(slot)
	o.waiting.push(sessionEnd{o.time(row), row})
	o.chain(row)
}

// chain puts a row among those of its key that wait, unchain takes it out.
func (o *Over) chain(row int32) {
	k := &o.byKey[o.slot[row]]
	if o.next[row], o.prev[row] = k.wait, noRow; k.wait != noRow {
		o.prev[k.wait] = row
	}
	k.wait = row
	k.waiting++
}

func (o *Over) unchain(row int32) {
	k := &o.byKey[o.slot[row]]
	next, prev := o.next[row], o.prev[row]
	if next != noRow {
		o.prev[next] = prev
	}
	if prev != noRow {
		o.next[prev] = next
	} else {
		k.wait = next
	}
	k.waiting--
}

// Advance implements Keyed.
func (o *Over) Advance(_ *expr.Context, time int64, out *Results) error {
	if time == batch.MaxWatermark && len(o.runs) > 0 {
		o.fired = time
		return o.closeRuns(out)
	}
	for more := true; more; {
		var err error
		if more, err = o.disk.wake(time); err != nil {
			return err
		}
		if err = o.give(time, out); err != nil {
			return err
		}
		if !more {
			break
		}
		if err = o.disk.evictOver(); err != nil {
			return err
		}
	}
	o.fired = max(o.fired, time)
	return nil
}

// give gives the rows in memory to which the watermark has come.
func (o *Over) give(time int64, out *Results) error {
	w := o.ready(time)
	if len(w.parts) == 0 {
		return nil
	}
	w.batch.Take(&o.rows.batch, w.sel)
	for _, row := range w.sel {
		w.shared = append(w.shared, o.rows.shared(row))
	}
	for _, a := range o.running {
		if a != nil {
			a.Resize(o.keys.Len())
		}
	}
	results := make([]batch.Vec, len(o.op.Calls))
	for i := range results {
		results[i].Reset(o.out.Fields[len(o.in.Fields)+i].Type, 0)
		o.call(i, w, &results[i])
		results[i].PadOffsets()
	}
	if err := o.emit(w, results, out); err != nil {
		return err
	}
	o.retain(w, time)
	return nil
}

// overWork is the rows that functions look at: for each key those given before, then
// those that come now, in order.
type overWork struct {
	sel   batch.Sel // in the kept rows
	parts []overPart
	batch batch.Batch
	// shared is, by row of batch, what rows have in common that are equal by the order.
	shared [][]byte
	ready  batch.Sel // in batch
	// vec has the rows' places as a column, groups are for accumulators.
	vec          batch.Vec
	groups, zero []int32
}

// overPart is one key: rows from up to to, of which those from now on come now.
type overPart struct {
	slot          int32
	from, now, to int
}

// ready collects the keys of which rows come now.
func (o *Over) ready(time int64) *overWork {
	w := &overWork{sel: batch.Sel{}, ready: batch.Sel{}}
	now := o.come(time)
	slices.SortFunc(now, func(a, b int32) int {
		if o.slot[a] != o.slot[b] {
			return cmp.Compare(o.slot[a], o.slot[b])
		}
		return o.rows.compare(a, b)
	})
	for from := 0; from < len(now); {
		slot := o.slot[now[from]]
		to := from + 1
		for to < len(now) && o.slot[now[to]] == slot {
			to++
		}
		k := &o.byKey[slot]
		p := overPart{slot: slot, from: len(w.sel), now: len(w.sel) + len(k.given)}
		w.sel = append(append(w.sel, k.given...), now[from:to]...)
		p.to = len(w.sel)
		for i := p.now; i < p.to; i++ {
			w.ready = append(w.ready, int32(i))
		}
		k.given = append(k.given, now[from:to]...)
		for _, row := range now[from:to] {
			o.unchain(row)
		}
		o.ages.touch(slot)
		w.parts = append(w.parts, p)
		from = to
	}
	return w
}

// come takes the rows out of waiting that come now, in no order. Without a row time
// that is all of them, once.
func (o *Over) come(time int64) (now []int32) {
	switch {
	case time == batch.MaxWatermark && !o.done:
		o.done = o.op.Time < 0
		for _, e := range o.waiting {
			now = append(now, e.key)
		}
		o.waiting = nil
	case o.op.Time >= 0:
		for len(o.waiting) > 0 && watermark.Late(time, o.waiting[0].end+1, 0) {
			now = append(now, o.waiting.pop().key)
		}
	}
	if o.dead > 0 {
		n := len(now)
		now = slices.DeleteFunc(now, func(row int32) bool { return o.slot[row] == noRow })
		o.dead -= n - len(now)
	}
	return now
}

func (o *Over) emit(w *overWork, results []batch.Vec, out *Results) error {
	for from := 0; from < len(w.ready); from += emitRows {
		sel := w.ready[from:min(from+emitRows, len(w.ready))]
		b, n := &o.result, len(o.in.Fields)
		b.Reset(o.out)
		b.Len = len(sel)
		for i := range n {
			b.Cols[i].Take(&w.batch.Cols[i], sel)
		}
		part := slotsOf(from, from+len(sel), nil)
		for i := range results {
			b.Cols[n+i].Take(&results[i], part)
		}
		if err := out.Emit(b); err != nil {
			return err
		}
	}
	return nil
}

// retain keeps of the rows that have been given those that frames of later rows reach.
func (o *Over) retain(w *overWork, time int64) {
	back, span := 0, int64(-1)
	for i := range o.op.Calls {
		c := &o.op.Calls[i]
		switch {
		case c.Func == graph.OverLag:
			back = max(back, int(c.Offset))
		case c.Func != graph.OverAggregate || c.Frame.Start.Kind != graph.Preceding:
		case c.Frame.Rows:
			back = max(back, int(c.Frame.Start.Offset))
		default:
			span = max(span, c.Frame.Start.Offset)
		}
	}
	for _, p := range w.parts {
		k := &o.byKey[p.slot]
		from := max(len(k.given)-back, 0)
		if time == batch.MaxWatermark {
			from = len(k.given)
		} else if span >= 0 {
			for from > 0 && o.rows.batch.Cols[o.op.Time].Int64(int(k.given[from-1])) > time*o.units-span {
				from--
			}
		}
		o.gone += from
		k.given = slices.Clone(k.given[from:])
	}
	if o.gone > 1024 && o.gone > o.rows.batch.Len/2 {
		o.compact()
	}
}

// compact leaves the rows out that have been given and are not kept.
func (o *Over) compact() {
	given, waiting := o.kept()
	sel := append(given, waiting...)
	to := slices.Repeat([]int32{noRow}, o.rows.batch.Len)
	slot := make([]int32, len(sel))
	for i, row := range sel {
		to[row], slot[i] = int32(i), o.slot[row]
	}
	for i := range o.byKey {
		k := &o.byKey[i]
		for at, row := range k.given {
			k.given[at] = to[row]
		}
		k.wait, k.waiting = noRow, 0
	}
	if o.dead > 0 {
		o.waiting.renumber(to) // which has no room for those that went
	} else {
		for i, e := range o.waiting {
			o.waiting[i].key = to[e.key]
		}
	}
	o.rows, o.slot, o.gone, o.dead = o.rows.take(sel), slot, 0, 0
	o.next, o.prev = slices.Repeat([]int32{noRow}, len(sel)), slices.Repeat([]int32{noRow}, len(sel))
	for row := len(given); row < len(sel); row++ {
		o.chain(int32(row))
	}
}

// kept are the rows of the keys in turn: those given, and those that wait, in the order
// they came in.
func (o *Over) kept() (given, waiting batch.Sel) {
	given, waiting = batch.Sel{}, slices.Grow(batch.Sel{}, len(o.waiting))
	for i := range o.byKey {
		given = append(given, o.byKey[i].given...)
	}
	for _, e := range o.waiting {
		if o.slot[e.key] != noRow {
			waiting = append(waiting, e.key)
		}
	}
	slices.SortFunc(waiting, func(a, b int32) int { return cmp.Or(cmp.Compare(o.slot[a], o.slot[b]), cmp.Compare(a, b)) })
	return given, waiting
}
