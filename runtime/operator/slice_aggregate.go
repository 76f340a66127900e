package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// SliceAggregate is GROUP BY keys, window_start, window_end of windows that
// overlap (HOP, CUMULATE): one subtask. A row goes into one slice of time, once;
// a window that fires merges its slices.
//
// A row may be late for the first windows of its slice and not for the others.
// Such rows have a slice of their own, which the first windows leave out.
type SliceAggregate struct {
	op       *graph.WindowAggregate
	schema   *batch.Schema
	windows  *Windows
	aggs     *aggSet
	keyTypes []types.Type
	open     []*slice // by start, then first
	last     *slice
	fired    int64
	sels     []sliceRows
	cols     []*batch.Vec
	slots    []int32
	groups   []int32
	spiller  spiller
	out      batch.Batch
}

// slice is part of the time that belongs to the same windows.
type slice struct {
	start int64 // wall clock, ms
	// first is the end of the first window that takes the rows, next of the
	// first that has not fired, final of the last.
	first, next, final int64
	*aggTable
}

type sliceRows struct {
	s   *slice
	sel batch.Sel
}

// NewSliceAggregate makes a subtask over the columns of in, with no state.
func NewSliceAggregate(op *graph.WindowAggregate, in, out *batch.Schema) (*SliceAggregate, error) {
	ws, aggs, err := windowParts(op, in, out)
	if err != nil {
		return nil, err
	}
	a := &SliceAggregate{op: op, schema: out, windows: ws, aggs: aggs, keyTypes: typesAt(in, op.Keys), fired: batch.NoWatermark}
	a.spiller.fresh = a.table
	return a, nil
}

func (a *SliceAggregate) table() *aggTable {
	return newAggTable(a.keyTypes, a.aggs.accumulators(nil), 0, nil)
}

// of finds or makes a slice.
func (a *SliceAggregate) of(start, first int64) (*slice, error) {
	if a.last != nil && a.last.start == start && a.last.first == first {
		return a.last, nil
	}
	at, ok := slices.BinarySearchFunc(a.open, start, func(s *slice, start int64) int {
		switch {
		case s.start < start || s.start == start && s.first < first:
			return -1
		case s.start == start && s.first == first:
			return 0
		}
		return 1
	})
	if !ok {
		if end := a.windows.instant(first); watermark.Late(a.fired, end, a.op.Lateness) {
			return nil, &FiredError{end, a.fired}
		}
		_, final := a.windows.ends(start)
		a.open = slices.Insert(a.open, at, &slice{start: start, first: first, next: first, final: final, aggTable: a.table()})
	}
	a.last = a.open[at]
	return a.last, nil
}

// split divides rows by slice.
func (a *SliceAggregate) split(b *batch.Batch, sel batch.Sel) error {
	a.sels = a.sels[:0]
	time := &b.Cols[a.op.Time]
	k := -1
	for _, row := range sel {
		start := a.windows.sliceOf(timeOf(time, row))
		first, final := a.windows.ends(start)
		for b.Watermark != nil && first <= final && refuses(b, row, a.windows.instant(first), a.op.Lateness) {
			first += a.windows.step
		}
		if first > final {
			continue // late for all: the lane keeps such rows
		}
		s, err := a.of(start, first)
		if err != nil {
			return err
		}
		if k < 0 || a.sels[k].s != s {
			if k = slices.IndexFunc(a.sels, func(x sliceRows) bool { return x.s == s }); k < 0 {
				k = len(a.sels)
				if k < cap(a.sels) {
					a.sels = a.sels[:k+1]
					a.sels[k].s, a.sels[k].sel = s, a.sels[k].sel[:0]
				} else {
					a.sels = append(a.sels, sliceRows{s: s, sel: batch.Sel{}})
				}
			}
		}
		a.sels[k].sel = append(a.sels[k].sel, row)
	}
	return nil
}

// Fold implements Keyed.
func (a *SliceAggregate) Fold(ctx *expr.Context, in *KeyedRows, out *Results) error {
	sel := a.aggs.eval(ctx, in, out)
	if err := a.split(in.Batch, sel); err != nil {
		return err
	}
	a.cols = colsAt(in.Batch, a.op.Keys, a.cols)
	a.slots = slices.Grow(a.slots[:0], in.Batch.Len)[:in.Batch.Len]
	for _, x := range a.sels {
		x.s.keys.Find(a.cols, in.Hashes, x.sel, a.slots)
		x.s.resize()
		a.aggs.update(x.s.accs, a.slots, x.sel)
	}
	return nil
}

// Advance implements Keyed.
func (a *SliceAggregate) Advance(_ *expr.Context, time int64, out *Results) error {
	for {
		var next *slice
		for _, s := range a.open {
			if next == nil || s.next < next.next {
				next = s
			}
		}
		if next == nil {
			break
		}
		span := a.windows.span(next.start, next.next)
		if time != batch.MaxWatermark && !watermark.Late(time, span.EndTime, a.op.Lateness) {
			break
		}
		if err := a.fire(span, out); err != nil {
			return err
		}
		a.last = nil
		a.open = slices.DeleteFunc(a.open, func(s *slice) bool {
			if s.next == span.End {
				s.next += a.windows.step
			}
			if s.next > s.final {
				s.release()
				return true
			}
			return false
		})
	}
	a.fired = max(a.fired, time)
	return nil
}

// fire merges the slices of a window and emits it.
func (a *SliceAggregate) fire(w Span, out *Results) error {
	var members []*slice
	for _, s := range a.open {
		if s.start >= w.Start && s.start < w.End && s.first <= w.End {
			members = append(members, s)
		}
	}
	if slices.ContainsFunc(members, func(s *slice) bool { return len(s.runs) > 0 }) {
		tables := make([]*aggTable, len(members))
		for i, s := range members {
			tables[i] = s.aggTable
		}
		return a.spiller.each(tables, func(t *aggTable) error { return a.emit(w, t, out) })
	}
	t := members[0].aggTable
	if len(members) > 1 {
		t = a.table()
		for _, s := range members {
			a.merge(t, s.aggTable)
		}
	}
	return a.emit(w, t, out)
}

// emit gives the rows of a table of a window.
func (a *SliceAggregate) emit(w Span, t *aggTable, out *Results) error {
	for from := 0; from < t.keys.Len(); from += emitRows {
		to := min(from+emitRows, t.keys.Len())
		a.groups = slotsOf(from, to, a.groups)
		b := &a.out
		b.Reset(a.schema)
		b.Len = to - from
		emitTable(b.Cols, t, a.aggs, a.groups)
		n := len(a.op.Keys) + len(a.op.Aggregates)
		putBounds(b.Cols[n:], a.schema.Fields[n:], b.Len, w)
		if err := out.Emit(b); err != nil {
			return err
		}
	}
	return nil
}

// merge folds a table into another one.
func (a *SliceAggregate) merge(into, from *aggTable) {
	n := from.keys.Len()
	keys := from.keys.Columns()
	a.cols = a.cols[:0]
	for i := range keys {
		a.cols = append(a.cols, &keys[i])
	}
	a.groups = slotsOf(0, n, a.groups)
	a.slots = slices.Grow(a.slots[:0], n)[:n]
	into.keys.Find(a.cols, from.keys.Hashes(), a.groups, a.slots)
	into.resize()
	for i := range into.accs {
		into.accs[i].Merge(from.accs[i], a.slots)
	}
}

// Save implements Keyed: the texts of the calls, the watermark, then each slice
// with the ends of its first windows and its table.
func (a *SliceAggregate) Save() []byte {
	dst := appendTexts(nil, a.aggs.texts())
	dst = binary.AppendVarint(dst, a.fired)
	dst = binary.AppendUvarint(dst, uint64(len(a.open)))
	for _, s := range a.open {
		dst = s.appendHead(dst)
		dst = s.aggTable.save(dst)
	}
	return dst
}

// appendHead appends what stands before the slice's table, or each part of it.
func (s *slice) appendHead(dst []byte) []byte {
	return binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(dst, s.start), s.first), s.next)
}

// SpillTo implements Spilling.
func (a *SliceAggregate) SpillTo(s *spill.Store, budget int64) { a.spiller.SpillTo(s, budget) }

// Spill implements Spilling.
func (a *SliceAggregate) Spill() error {
	tables := make([]*aggTable, len(a.open))
	for i, s := range a.open {
		tables[i] = s.aggTable
	}
	return a.spiller.spill(tables)
}

// Spilled implements Spilling.
func (a *SliceAggregate) Spilled() bool {
	return slices.ContainsFunc(a.open, func(s *slice) bool { return len(s.runs) > 0 })
}

// SaveTo implements Spilling: a slice is there once for each piece of its table.
func (a *SliceAggregate) SaveTo(p *state.Payload) error {
	dst := binary.AppendVarint(appendTexts(nil, a.aggs.texts()), a.fired)
	w := a.spiller.parts(p, func(n int, _ bool) []byte { return binary.AppendUvarint(slices.Clip(dst), uint64(n)) })
	for _, s := range a.open {
		s.saveParts(w, s.appendHead(nil))
	}
	w.finish()
	return nil
}

// Load implements Keyed.
func (a *SliceAggregate) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	to := readTexts(r, a.aggs.texts())
	fired := r.Varint()
	for range r.Count() {
		start, first, next := r.Varint(), r.Varint(), r.Varint()
		if err := r.Err(); err != nil {
			return err
		}
		// The windows before next have fired: they are not looked at again.
		own := a.fired
		a.fired = batch.NoWatermark
		s, err := a.of(start, first)
		if a.fired = own; err != nil {
			return err
		}
		s.next = max(s.next, next)
		if err := s.load(r, a.keyTypes, groups, to, nil); err != nil {
			return err
		}
		if a.spiller.over(a.Bytes()) {
			if err := a.Spill(); err != nil {
				return err
			}
		}
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	a.fired = max(a.fired, fired)
	a.open = slices.DeleteFunc(a.open, func(s *slice) bool { return s.empty() })
	a.last = nil
	return r.Err()
}

// Kind implements Keyed.
func (*SliceAggregate) Kind() string { return "SliceAggregate" }

// Fingerprint implements Keyed.
func (a *SliceAggregate) Fingerprint() uint64 { return windowFingerprint(a.keyTypes, a.op.Window) }

// Bytes implements Keyed.
func (a *SliceAggregate) Bytes() int64 {
	var n int64
	for _, s := range a.open {
		n += s.bytes()
	}
	return n
}
