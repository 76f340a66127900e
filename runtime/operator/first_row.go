package operator

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// FirstRow keeps the first row of each key by row time, and gives it when the
// watermark has passed it, so that it never changes: one subtask. Keys are
// remembered, with a time to live from when their row was given.
type FirstRow struct {
	op      *graph.FirstRow
	in, out *batch.Schema
	units   int64
	keys    *state.Keys
	types   []types.Type
	first   []int32 // by key slot: the row kept; given or none else
	rows    *keptRows
	gone    int
	ends    endHeap // times of kept rows
	order   *rowOrder
	fired   int64
	good    batch.Sel
	cols    []*batch.Vec
	slots   []int32
	result  batch.Batch
	// ages are of keys whose row has been given; lost is the number of slots whose
	// key is forgotten.
	ages ages
	lost int
	disk groupDisk // of keys whose row has been given
}

// What first says of keys without a row.
const (
	noRow int32 = -1 - iota
	rowGiven
)

// NewFirstRow makes a subtask over the columns of in, with no state.
func NewFirstRow(op *graph.FirstRow, in, out *batch.Schema) (*FirstRow, error) {
	if !in.Fields[op.Time].Type.IsTimestamp() {
		return nil, fmt.Errorf("row time is %s", in.Fields[op.Time].Type)
	}
	f := &FirstRow{op: op, in: in, out: out, units: in.Fields[op.Time].Type.UnitsPerSecond() / 1000, types: typesAt(in, op.Keys),
		order: newRowOrder([]graph.SortKey{{Column: op.Time}}), fired: batch.NoWatermark, ages: newAges(op.TTL)}
	f.keys, f.rows, f.disk = state.NewKeys(f.types), newKeptRows(in, f.order), newGroupDisk(f, f.types)
	return f, nil
}

func (f *FirstRow) find(cols []*batch.Vec, hashes []uint64, sel batch.Sel, slots []int32) {
	f.keys.Find(cols, hashes, sel, slots)
	f.resize()
}

func (f *FirstRow) resize() {
	for len(f.first) < f.keys.Len() {
		f.first = append(f.first, noRow)
	}
}

func (f *FirstRow) time(row int32) int64 {
	return types.FloorDiv(f.rows.batch.Cols[f.op.Time].Int64(int(row)), f.units)
}

// Fold implements Keyed.
func (f *FirstRow) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	f.good = wholeRows(in, out, f.good)
	f.order.start(in)
	f.cols = colsAt(in.Batch, f.op.Keys, f.cols)
	f.slots = slices.Grow(f.slots[:0], in.Batch.Len)[:in.Batch.Len]
	if err := f.disk.fetchGroups(f.cols, in.Hashes, f.good); err != nil {
		return err
	}
	f.find(f.cols, in.Hashes, f.good, f.slots)
	for _, row := range f.good {
		slot := f.slots[row]
		if f.first[slot] == rowGiven {
			continue
		}
		place := f.order.of(in, int(row))
		if old := f.first[slot]; old != noRow {
			if f.rows.compareTo(old, place.bytes) <= 0 {
				continue
			}
			f.gone++
		}
		kept := f.rows.add(in.Batch, row, in.Hashes[row], place)
		if f.time(kept) <= f.fired && f.fired != batch.NoWatermark {
			return &FiredError{f.time(kept) + 1, f.fired}
		}
		f.first[slot] = kept
		f.ends.push(sessionEnd{f.time(kept), slot})
	}
	return nil
}

// Advance implements Keyed.
func (f *FirstRow) Advance(_ *expr.Context, time int64, out *Results) error {
	sel := batch.Sel{}
	for len(f.ends) > 0 && (time == batch.MaxWatermark || watermark.Late(time, f.ends[0].end+1, 0)) {
		e := f.ends.pop()
		row := f.first[e.key]
		if row < 0 || f.time(row) != e.end {
			continue // an earlier row took its place
		}
		sel = append(sel, row)
		f.first[e.key] = rowGiven
		f.ages.touch(e.key)
	}
	f.fired = max(f.fired, time)
	for from := 0; from < len(sel); from += emitRows {
		part := sel[from:min(from+emitRows, len(sel))]
		b := &f.result
		b.Reset(f.out)
		b.Len = len(part)
		for i := range f.in.Fields {
			b.Cols[i].Take(&f.rows.batch.Cols[i], part)
		}
		if f.op.Number {
			v := &b.Cols[len(f.in.Fields)]
			v.Reset(f.out.Fields[len(f.in.Fields)].Type, b.Len)
			for i := range v.I64 {
				v.I64[i] = 1
			}
		}
		if err := out.Emit(b); err != nil {
			return err
		}
	}
	if f.gone += len(sel); f.gone > 1024 && f.gone > f.rows.batch.Len/2 {
		f.compact()
	}
	return nil
}

// kept are the rows that wait, with their key slots.
func (f *FirstRow) kept() (sel batch.Sel, slots []int32) {
	sel = batch.Sel{}
	for slot, row := range f.first {
		if row >= 0 {
			sel, slots = append(sel, row), append(slots, int32(slot))
		}
	}
	return sel, slots
}

// Age implements Aging.
func (f *FirstRow) Age(now int64) int {
	f.ages.now = now
	n := f.disk.expired + f.expire()
	f.disk.expired = 0
	if f.lost > 1024 && f.lost > f.keys.Len()/2 {
		f.tidy()
	}
	return n
}

// expire forgets keys that are out of time. Where one is on disk it is as old.
func (f *FirstRow) expire() int {
	n := 0
	for slot := f.ages.expired(); slot >= 0; slot = f.ages.expired() {
		f.dropGroup(slot)
		n++
	}
	return n
}

// tidy leaves the slots out whose key is forgotten.
func (f *FirstRow) tidy() {
	var live []int32
	to := slices.Repeat([]int32{-1}, f.keys.Len())
	for slot := range int32(len(to)) {
		if !f.keys.Deleted(slot) {
			to[slot] = int32(len(live))
			f.first[len(live)] = f.first[slot]
			live = append(live, slot)
		}
	}
	f.keys, f.first, f.lost, f.disk.hot = f.keys.Take(live), f.first[:len(live)], 0, nil
	f.ends.renumber(to)
	f.ages.renumber(to)
}

func (f *FirstRow) compact() {
	sel, slots := f.kept()
	f.rows, f.gone = f.rows.take(sel), 0
	for i, slot := range slots {
		f.first[slot] = int32(i)
	}
}

// Save implements Keyed: the watermark, the keys whose row has been given, then the
// rows that wait, and with a time to live the ages of those keys.
func (f *FirstRow) Save() []byte {
	given := batch.Sel{}
	for slot, row := range f.first {
		if row == rowGiven {
			given = append(given, int32(slot))
		}
	}
	waiting, _ := f.kept()
	dst := f.save(given, waiting)
	if f.ages.on() {
		dst = f.ages.save(dst, given)
	}
	return dst
}

// save begins a saved state with some of the keys whose row has been given and of the rows
// that wait.
func (f *FirstRow) save(given, waiting batch.Sel) []byte {
	return f.rows.save(appendKeys(binary.AppendVarint(nil, f.fired), f.keys, given), waiting)
}

// Load implements Keyed. Behind the ages may be parts of SaveTo.
func (f *FirstRow) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	fired := r.Varint()
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(f.types))
	for i := range cols {
		cols[i] = r.Vec(f.types[i])
		if cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	sel := batch.Sel{}
	for i, h := range hashes {
		if groups.Has(h) {
			sel = append(sel, int32(i))
		}
	}
	slots := make([]int32, len(hashes))
	f.find(cols, hashes, sel, slots)
	for _, i := range sel {
		f.first[slots[i]] = rowGiven
	}
	var added batch.Sel
	if _, err := f.rows.load(r, groups, func(_ int, row int32) { added = append(added, row) }); err != nil {
		return err
	}
	at := slices.Repeat([]int64{f.ages.now}, len(hashes))
	if r.Rest() > 0 {
		at = f.ages.read(r, len(hashes))
	}
	if r.Err() != nil {
		return state.ErrCorrupt
	}
	var ids []int32
	var times []int64
	for _, i := range sel {
		ids, times = append(ids, slots[i]), append(times, at[i])
	}
	f.ages.restore(ids, times)
	slots = make([]int32, f.rows.batch.Len)
	f.find(f.rows.columns(f.op.Keys, nil), f.rows.hashes, added, slots)
	for _, row := range added {
		f.first[slots[row]] = row
		f.ends.push(sessionEnd{f.time(row), slots[row]})
	}
	f.fired = max(f.fired, fired)
	return f.disk.loadParts(r, groups, readFollow(r))
}

// Kind implements Keyed.
func (*FirstRow) Kind() string { return "FirstRow" }

// Fingerprint implements Keyed.
func (f *FirstRow) Fingerprint() uint64 {
	var ts []types.Type
	for _, x := range f.in.Fields {
		ts = append(ts, x.Type)
	}
	return state.Fingerprint(append(ts, f.types...))
}

// Bytes implements Keyed.
func (f *FirstRow) Bytes() int64 {
	return f.keys.Bytes() + f.rows.bytes() + f.ages.bytes() + int64(4*cap(f.first)+16*cap(f.ends)) + f.disk.bytes()
}
