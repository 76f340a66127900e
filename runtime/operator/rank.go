package operator

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// Rank keeps the first rows of each key, by an order: those of each window, once
// it is over, or those of bounded input, at its end. One subtask. Rows that are
// equal by the columns go by where they come from.
type Rank struct {
	op      *graph.Rank
	in, out *batch.Schema
	windows *Windows // nil: one window that ends with the input
	types   []types.Type
	keys    []types.Type
	order   *rowOrder
	open    []*rankPane // by end
	fired   int64
	good    batch.Sel
	cols    []*batch.Vec
	slots   []int32
	result  batch.Batch
	disk    spillPlace
}

type rankPane struct {
	Span
	keys  *state.Keys
	rows  *keptRows
	slots []int32 // by row
	tidy  int     // rows after the last clearing
	runs  []*spill.Run
}

// NewRank makes a subtask over the columns of in, with no state.
func NewRank(op *graph.Rank, in, out *batch.Schema) (*Rank, error) {
	r := &Rank{op: op, in: in, out: out, keys: typesAt(in, op.Keys), order: newRowOrder(op.Order), fired: batch.NoWatermark}
	for _, f := range in.Fields {
		r.types = append(r.types, f.Type)
	}
	r.order.latest = op.Latest
	n := len(in.Fields)
	if op.Number {
		n++
	}
	if len(out.Fields) != n {
		return nil, fmt.Errorf("ranked table of %d columns over %d", len(out.Fields), len(in.Fields))
	}
	if op.Window.Kind == graph.Given {
		var err error
		if r.windows, err = WindowsOver(op.Window, in, -1); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// of finds or makes the pane of a window.
func (r *Rank) of(s Span) (*rankPane, error) {
	at, ok := slices.BinarySearchFunc(r.open, s, func(x *rankPane, s Span) int { return compareSpans(x.Span, s) })
	if !ok {
		if r.windows != nil && watermark.Late(r.fired, s.EndTime, 0) {
			return nil, &FiredError{s.EndTime, r.fired}
		}
		r.open = slices.Insert(r.open, at, r.newPane(s))
	}
	return r.open[at], nil
}

func (r *Rank) newPane(s Span) *rankPane {
	return &rankPane{Span: s, keys: state.NewKeys(r.keys), rows: newKeptRows(r.in, r.order)}
}

// Fold implements Keyed.
func (r *Rank) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	r.good = wholeRows(in, out, r.good)
	r.order.start(in)
	r.cols = colsAt(in.Batch, r.op.Keys, r.cols)
	r.slots = slices.Grow(r.slots[:0], in.Batch.Len)[:in.Batch.Len]
	var touched *rankPane
	for _, row := range r.good {
		s := Span{EndTime: batch.MaxWatermark}
		if r.windows != nil {
			s = r.windows.given(in.Batch, int(row))
			if refuses(in.Batch, row, s.EndTime, 0) {
				continue
			}
		}
		p := touched
		if p == nil || p.Span != s {
			var err error
			if p, err = r.of(s); err != nil {
				return err
			}
			touched = p
		}
		p.keys.Find(r.cols, in.Hashes, batch.Sel{row}, r.slots)
		p.rows.add(in.Batch, row, in.Hashes[row], r.order.of(in, int(row)))
		p.slots = append(p.slots, r.slots[row])
		if len(p.slots) > 2*p.tidy+emitRows {
			r.clear(p)
		}
	}
	return nil
}

// first are the rows of a pane that are among the first of their key, by key and
// order.
func (r *Rank) first(p *rankPane) (sel batch.Sel, numbers []int64) {
	all := make(batch.Sel, len(p.slots))
	for i := range all {
		all[i] = int32(i)
	}
	slices.SortFunc(all, func(a, b int32) int {
		if c := cmp.Compare(p.slots[a], p.slots[b]); c != 0 {
			return c
		}
		return p.rows.compare(a, b)
	})
	sel = all[:0]
	last, n := int32(-1), int64(0)
	for _, row := range all {
		if p.slots[row] != last {
			last, n = p.slots[row], 0
		}
		if n++; n <= r.op.N {
			sel, numbers = append(sel, row), append(numbers, n)
		}
	}
	return sel, numbers
}

// clear drops the rows of a pane that can no longer be among the first.
func (r *Rank) clear(p *rankPane) {
	sel, _ := r.first(p)
	slots := make([]int32, len(sel))
	for i, row := range sel {
		slots[i] = p.slots[row]
	}
	p.rows, p.slots, p.tidy = p.rows.take(sel), slots, len(sel)
}

// Advance implements Keyed.
func (r *Rank) Advance(_ *expr.Context, time int64, out *Results) error {
	for len(r.open) > 0 && (time == batch.MaxWatermark || watermark.Late(time, r.open[0].EndTime, 0)) {
		p := r.open[0]
		r.open = slices.Delete(r.open, 0, 1)
		if err := r.each(p, func(p *rankPane) error { return r.emitFirst(p, out) }); err != nil {
			return err
		}
	}
	r.fired = max(r.fired, time)
	return nil
}

func (r *Rank) emitFirst(p *rankPane, out *Results) error {
	sel, numbers := r.first(p)
	for from := 0; from < len(sel); from += emitRows {
		to := min(from+emitRows, len(sel))
		if err := r.emit(p, sel[from:to], numbers[from:to], out); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rank) emit(p *rankPane, sel batch.Sel, numbers []int64, out *Results) error {
	b := &r.result
	b.Reset(r.out)
	b.Len = len(sel)
	for i := range r.in.Fields {
		b.Cols[i].Take(&p.rows.batch.Cols[i], sel)
	}
	if r.op.Number {
		v := &b.Cols[len(r.in.Fields)]
		v.Reset(r.out.Fields[len(r.in.Fields)].Type, b.Len)
		copy(v.I64, numbers)
	}
	return out.Emit(b)
}

// Save implements Keyed: the watermark, then each window with its first rows.
func (r *Rank) Save() []byte {
	dst := binary.AppendVarint(nil, r.fired)
	dst = binary.AppendUvarint(dst, uint64(len(r.open)))
	for _, p := range r.open {
		dst = p.Span.append(dst)
		sel, _ := r.first(p)
		dst = p.rows.save(dst, sel)
	}
	return dst
}

// Load implements Keyed. A window may be there in several parts.
func (r *Rank) Load(payload []byte, groups state.Range) error {
	rd := state.NewReader(payload)
	fired := rd.Varint()
	for range rd.Count() {
		s := readSpan(rd)
		if err := rd.Err(); err != nil {
			return err
		}
		own := r.fired
		r.fired = batch.NoWatermark
		p, err := r.of(s)
		if r.fired = own; err != nil {
			return err
		}
		if _, err := p.rows.load(rd, groups, func(int, int32) {}); err != nil {
			return err
		}
		r.findKeys(p)
		if r.disk.over(r.Bytes()) {
			if err := r.Spill(); err != nil {
				return err
			}
		}
	}
	if rd.Err() != nil || rd.Rest() > 0 {
		return state.ErrCorrupt
	}
	r.fired = max(r.fired, fired)
	r.open = slices.DeleteFunc(r.open, func(p *rankPane) bool { return len(p.slots)+len(p.runs) == 0 })
	return nil
}

// Kind implements Keyed.
func (*Rank) Kind() string { return "Rank" }

// Fingerprint implements Keyed.
func (r *Rank) Fingerprint() uint64 {
	return state.Fingerprint(append(slices.Clone(r.types), r.keys...), fmt.Sprintf("%v %d", r.op.Order, r.op.N))
}

// Bytes implements Keyed.
func (r *Rank) Bytes() int64 {
	var n int64
	for _, p := range r.open {
		n += p.bytes()
		for _, run := range p.runs {
			n += run.Memory()
		}
	}
	return n
}
