package operator

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
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
	gone    int
	ends    endHeap // times of rows that wait
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
}

// overKey is the rows of a key: those given, in order, and those that wait.
type overKey struct{ given, waiting []int32 }

// NewOver makes a subtask over the columns of in, with no state.
func NewOver(op *graph.Over, in, out *batch.Schema) (*Over, error) {
	if len(out.Fields) != len(in.Fields)+len(op.Calls) {
		return nil, fmt.Errorf("over of %d columns for %d and %d calls", len(out.Fields), len(in.Fields), len(op.Calls))
	}
	o := &Over{op: op, in: in, out: out, types: typesAt(in, op.Keys), order: newRowOrder(op.Order), fired: batch.NoWatermark, ages: newAges(op.TTL),
		running: make([]fn.Accumulator, len(op.Calls)), scratch: make([]fn.Accumulator, len(op.Calls))}
	if op.Time >= 0 {
		o.units = in.Fields[op.Time].Type.UnitsPerSecond() / 1000
	}
	for i := range op.Calls {
		c := &op.Calls[i]
		switch {
		case c.Func != graph.OverAggregate:
		case runs(c.Frame):
			o.running[i] = c.Bound.New()
		default:
			o.scratch[i] = c.Bound.New()
			o.scratch[i].Resize(1)
		}
	}
	o.keys, o.rows = state.NewKeys(o.types), newKeptRows(in)
	return o, nil
}

// runs reports frames from the first row to the current one, whose results follow
// from one another.
func runs(f graph.Frame) bool {
	return f.Start.Kind == graph.UnboundedPreceding && f.End.Kind == graph.CurrentRow
}

func (o *Over) find(cols []*batch.Vec, hashes []uint64, sel batch.Sel, slots []int32) {
	o.keys.Find(cols, hashes, sel, slots)
	for len(o.byKey) < o.keys.Len() {
		o.byKey = append(o.byKey, overKey{})
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
	o.slots = slices.Grow(o.slots[:0], in.Batch.Len)[:in.Batch.Len]
	o.find(o.cols, in.Hashes, o.good, o.slots)
	for _, row := range o.good {
		o.ages.touch(o.slots[row])
		key, peers := o.order.key(in, int(row))
		kept := o.rows.add(in.Batch, row, in.Hashes[row], key, int32(peers))
		if err := o.wait(o.slots[row], kept); err != nil {
			return err
		}
	}
	return nil
}

func (o *Over) wait(slot, row int32) error {
	if o.op.Time >= 0 {
		t := o.time(row)
		if watermark.Late(o.fired, t+1, 0) {
			return &FiredError{t + 1, o.fired}
		}
		o.ends.push(sessionEnd{t, slot})
	}
	o.byKey[slot].waiting = append(o.byKey[slot].waiting, row)
	return nil
}

// Advance implements Keyed.
func (o *Over) Advance(_ *expr.Context, time int64, out *Results) error {
	w := o.ready(time)
	o.fired = max(o.fired, time)
	if len(w.parts) == 0 {
		return nil
	}
	w.batch.Take(&o.rows.batch, w.sel)
	for _, row := range w.sel {
		w.order = append(w.order, o.rows.order[row])
		w.peers = append(w.peers, o.rows.peers[row])
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
	order [][]byte
	peers []int32
	ready batch.Sel // in batch
	// vecs hold order as a column, groups are for accumulators.
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
	var slots []int32
	if o.op.Time < 0 {
		if time < batch.MaxWatermark || o.done {
			return w
		}
		o.done = true
		slots = slotsOf(0, len(o.byKey), nil)
	}
	for len(o.ends) > 0 && (time == batch.MaxWatermark || watermark.Late(time, o.ends[0].end+1, 0)) {
		slots = append(slots, o.ends.pop().key)
	}
	slices.Sort(slots)
	for _, slot := range slices.Compact(slots) {
		k := &o.byKey[slot]
		rest := k.waiting[:0]
		var now []int32
		for _, row := range k.waiting {
			if o.op.Time < 0 || time == batch.MaxWatermark || o.time(row) <= time {
				now = append(now, row)
			} else {
				rest = append(rest, row)
			}
		}
		k.waiting = rest
		if len(now) == 0 {
			continue
		}
		slices.SortFunc(now, o.rows.compare)
		p := overPart{slot: slot, from: len(w.sel), now: len(w.sel) + len(k.given)}
		w.sel = append(append(w.sel, k.given...), now...)
		p.to = len(w.sel)
		for i := p.now; i < p.to; i++ {
			w.ready = append(w.ready, int32(i))
		}
		k.given = append(k.given, now...)
		w.parts = append(w.parts, p)
	}
	return w
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

func (o *Over) compact() {
	sel := batch.Sel{}
	move := func(rows []int32) {
		for i, row := range rows {
			rows[i] = int32(len(sel))
			sel = append(sel, row)
		}
	}
	for i := range o.byKey {
		move(o.byKey[i].given)
		move(o.byKey[i].waiting)
	}
	o.rows, o.gone = o.rows.take(sel), 0
}

// Save implements Keyed: the texts of the calls, the watermark, then keys with what
// runs, then the rows, of which the first so many have been given, and with a time to
// live the ages of the keys.
func (o *Over) Save() []byte {
	o.tidy()
	dst := appendTexts(nil, o.texts())
	dst = binary.AppendVarint(dst, o.fired)
	if o.done {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	dst = state.AppendHashes(dst, o.keys.Hashes())
	cols := o.keys.Columns()
	for i := range cols {
		dst = state.AppendVec(dst, &cols[i])
	}
	var buf []byte
	for _, a := range o.running {
		if a == nil {
			continue
		}
		a.Resize(o.keys.Len())
		for slot := range o.keys.Len() {
			buf = a.AppendState(buf[:0], slot)
			dst = state.AppendBytes(dst, buf)
		}
	}
	given, waiting := batch.Sel{}, batch.Sel{}
	for i := range o.byKey {
		given, waiting = append(given, o.byKey[i].given...), append(waiting, o.byKey[i].waiting...)
	}
	dst = o.rows.save(o.rows.save(dst, given), waiting)
	if o.ages.on() {
		dst = o.ages.save(dst, slotsOf(0, o.keys.Len(), nil))
	}
	return dst
}

// texts are the names of what runs.
func (o *Over) texts() (out []string) {
	for i, a := range o.running {
		if a != nil {
			out = append(out, o.op.Calls[i].Text)
		}
	}
	return out
}

// Load implements Keyed.
func (o *Over) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	own := o.texts()
	if saved := readTexts(r, own); len(saved) != len(own) || slices.Contains(saved, -1) {
		return state.ErrCorrupt
	}
	fired := r.Varint()
	o.done = r.Byte() == 1
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(o.types))
	for i := range cols {
		if cols[i] = r.Vec(o.types[i]); cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	sel := batch.Sel{}
	for i, h := range hashes {
		if groups.Has(h) {
			sel = append(sel, int32(i))
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	slots := slices.Repeat([]int32{-1}, len(hashes))
	o.find(cols, hashes, sel, slots)
	saved := slices.Clone(slots)
	for _, a := range o.running {
		if a == nil {
			continue
		}
		a.Resize(o.keys.Len())
		for _, slot := range slots {
			b := r.Bytes()
			if slot < 0 || r.Err() != nil {
				continue
			}
			if err := a.MergeState(int(slot), b); err != nil {
				return err
			}
		}
	}
	for _, given := range []bool{true, false} {
		var added batch.Sel
		if err := o.rows.load(r, o.in, groups, func(_ int, row int32) { added = append(added, row) }); err != nil {
			return err
		}
		slots = slices.Grow(slots[:0], o.rows.batch.Len)[:o.rows.batch.Len]
		o.find(o.rows.columns(o.op.Keys, nil), o.rows.hashes, added, slots)
		for _, row := range added {
			if given {
				o.byKey[slots[row]].given = append(o.byKey[slots[row]].given, row)
			} else if err := o.wait(slots[row], row); err != nil {
				return err
			}
		}
	}
	at := slices.Repeat([]int64{o.ages.now}, len(hashes))
	if r.Rest() > 0 {
		at = o.ages.read(r, len(hashes))
	}
	if r.Err() != nil || r.Rest() > 0 {
		return state.ErrCorrupt
	}
	var ids []int32
	var times []int64
	for _, i := range sel {
		ids, times = append(ids, saved[i]), append(times, at[i])
	}
	o.ages.restore(ids, times)
	o.fired = max(o.fired, fired)
	return nil
}

// Kind implements Keyed.
func (*Over) Kind() string { return "Over" }

// Fingerprint implements Keyed.
func (o *Over) Fingerprint() uint64 {
	var ts []types.Type
	for _, f := range o.in.Fields {
		ts = append(ts, f.Type)
	}
	text := fmt.Sprint(o.op.Order)
	for i := range o.op.Calls {
		c := &o.op.Calls[i]
		text += fmt.Sprint(c.Text, c.Func, c.Frame, c.Offset)
	}
	return state.Fingerprint(append(ts, o.types...), text)
}

// Bytes implements Keyed.
func (o *Over) Bytes() int64 {
	n := o.keys.Bytes() + o.rows.bytes() + o.ages.bytes() + int64(56*cap(o.byKey)+16*cap(o.ends)+4*o.rows.batch.Len)
	for _, a := range o.running {
		if a != nil {
			n += a.Bytes()
		}
	}
	return n
}
