package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/watermark"
)

// WindowJoin joins the rows of equal windows: one subtask. Each open window has a
// table of its own, which is joined and dropped when the window ends.
type WindowJoin struct {
	plan    *joinPlan
	windows [2]*Windows
	open    []*joinPane // by end
	fired   int64
	sels    []joinPaneRows
}

type joinPane struct {
	Span
	*joinTable
}

type joinPaneRows struct {
	p   *joinPane
	sel batch.Sel
}

func newWindowJoin(p *joinPlan) (*WindowJoin, error) {
	w := &WindowJoin{plan: p, fired: batch.NoWatermark}
	for i := range w.windows {
		var err error
		if w.windows[i], err = WindowsOver(p.op.Windows[i], p.in[i], -1); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Fold implements Keyed. A row that is late for its window is left out: it counts
// for others, or the lane would have kept it.
func (w *WindowJoin) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	w.sels = w.sels[:0]
	ws := w.windows[in.Input]
	k := -1
	for _, row := range in.Sel {
		if _, ok := ws.EndTimeOf(in.Batch, int(row)); !ok {
			e := NullEventTime(w.plan.in[in.Input].Fields[ws.end].Name)
			e.Row = row
			out.Dead(in.Batch, e)
			continue
		}
		s := ws.given(in.Batch, int(row))
		if refuses(in.Batch, row, s.EndTime, 0) {
			continue
		}
		if k < 0 || w.sels[k].p.Span != s {
			p, err := w.pane(s)
			if err != nil {
				return err
			}
			if k = slices.IndexFunc(w.sels, func(x joinPaneRows) bool { return x.p == p }); k < 0 {
				k = len(w.sels)
				w.sels = append(w.sels, joinPaneRows{p: p})
			}
		}
		w.sels[k].sel = append(w.sels[k].sel, row)
	}
	for _, x := range w.sels {
		x.p.add(in.Input, in.Batch, x.sel, out.Dead)
	}
	return nil
}

// pane finds or makes the pane of a window.
func (w *WindowJoin) pane(s Span) (*joinPane, error) {
	at, ok := slices.BinarySearchFunc(w.open, s, func(x *joinPane, s Span) int { return compareSpans(x.Span, s) })
	if !ok {
		if watermark.Late(w.fired, s.EndTime, 0) {
			return nil, &FiredError{s.EndTime, w.fired}
		}
		w.open = slices.Insert(w.open, at, &joinPane{s, newJoinTable(w.plan)})
	}
	return w.open[at], nil
}

// Advance implements Keyed.
func (w *WindowJoin) Advance(ctx *expr.Context, time int64, out *Results) error {
	n := 0
	for ; n < len(w.open) && (time == batch.MaxWatermark || watermark.Late(time, w.open[n].EndTime, 0)); n++ {
		if err := w.open[n].close(ctx, out); err != nil {
			return err
		}
	}
	w.open = slices.Delete(w.open, 0, n)
	w.fired = max(w.fired, time)
	return nil
}

// Save implements Keyed.
func (w *WindowJoin) Save() []byte {
	dst := binary.AppendVarint(nil, w.fired)
	dst = binary.AppendUvarint(dst, uint64(len(w.open)))
	for _, p := range w.open {
		dst = p.Span.append(dst)
		dst = p.save(dst)
	}
	return dst
}

// Load implements Keyed.
func (w *WindowJoin) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	w.fired = max(w.fired, r.Varint())
	for range r.Count() {
		s := readSpan(r)
		if err := r.Err(); err != nil {
			return err
		}
		p, err := w.pane(s)
		if err != nil {
			return state.ErrCorrupt
		}
		if err := p.load(r, groups); err != nil {
			return err
		}
		if w.plan.disk.over(w.Bytes()) {
			if err := w.Spill(); err != nil {
				return err
			}
		}
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	w.open = slices.DeleteFunc(w.open, func(p *joinPane) bool { return p.empty() })
	return r.Err()
}

var _ Spilling = (*WindowJoin)(nil)

// SpillTo implements Spilling.
func (w *WindowJoin) SpillTo(s *spill.Store, budget int64) { w.plan.disk.SpillTo(s, budget) }

// Spill implements Spilling.
func (w *WindowJoin) Spill() error {
	tables := make([]*joinTable, len(w.open))
	for i, p := range w.open {
		tables[i] = p.joinTable
	}
	return w.plan.spillTables(tables)
}

// Spilled implements Spilling.
func (w *WindowJoin) Spilled() bool {
	return slices.ContainsFunc(w.open, func(p *joinPane) bool { return p.spilled() })
}

// SaveTo implements Spilling: a window is there once for each part of its table.
func (w *WindowJoin) SaveTo(to *state.Payload) error {
	out := w.plan.disk.parts(to, func(n int, _ bool) []byte {
		return binary.AppendUvarint(binary.AppendVarint(nil, w.fired), uint64(n))
	})
	for _, p := range w.open {
		p.saveParts(out, p.Span.append(nil))
	}
	out.finish()
	return nil
}

// Kind implements Keyed.
func (*WindowJoin) Kind() string { return "WindowJoin" }

// Fingerprint implements Keyed.
func (w *WindowJoin) Fingerprint() uint64 { return w.plan.fingerprint() }

// Bytes implements Keyed.
func (w *WindowJoin) Bytes() int64 {
	var n int64
	for _, p := range w.open {
		n += p.bytes()
	}
	return n
}

// PointInTime is a window that ends as soon as the row's time has passed: by it a
// row is late when its own partition had come to the row's time before it.
func PointInTime() graph.Window { return graph.Window{Kind: graph.Session, Size: 1} }
