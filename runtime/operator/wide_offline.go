package operator

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
)

// What a wide table with offline branches keeps beside its windows. A window is held
// when it is over until its generations are there, or are waited for no longer; so its
// rows go out at barriers, when they are told to, in the order of their ends.
type offlineState struct {
	// own are the key groups of the subtask.
	own state.Range
	// out is the end of the last window that went out; all before it are out, too.
	out int64
	// values and slots are memory for one batch of results.
	slots [][]int32
}

// atBarriers reports a table whose windows go out at barriers.
func (w *WideMerge) atBarriers() bool { return w.op.Correct > 0 || len(w.op.Offline) > 0 }

// openOffline finds the columns of the offline branches.
func (w *WideMerge) openOffline() error {
	w.order, w.offline.out = w.op.Order(), batch.NoWatermark
	w.offline.own = state.RangeOf(0, 1)
	w.offline.slots = make([][]int32, len(w.op.Offline))
	for i := range w.op.Offline {
		o, err := NewOffline(w.op, i, w.schema)
		if err != nil {
			return err
		}
		for k, t := range o.keyTypes {
			if own := w.schema.Fields[k].Type; !sameLayout(own, t) {
				return fmt.Errorf("branch %s: key %d is %s, not %s", w.op.Offline[i].Label, k+1, t, own)
			}
		}
		for n, k := range o.outputs {
			w.columns[k] = wideColumn{branch: -1 - i, acc: o.aggs.outputs[n], where: w.op.Columns[k].Name}
		}
	}
	return nil
}

// Own says of which key groups the subtask is.
func (w *WideMerge) Own(groups state.Range) { w.offline.own = groups }

// grace is how long, in ms, a window takes rows before it goes out first.
func (w *WideMerge) grace() int64 {
	if w.op.Correct > 0 {
		return 0
	}
	return w.op.Lateness
}

// isHeld reports a window that is over and has not gone out.
func (w *WideMerge) isHeld(p *pane) bool {
	return p.EndTime > w.offline.out && passed(w.panes.fired, p.EndTime, w.grace())
}

// release gives the windows of r, and lets go of those for which nothing can come.
func (w *WideMerge) release(r *Release, out *Results) error {
	was := w.barrier
	w.barrier, w.panes.last = w.panes.fired, nil
	for _, s := range r.Windows {
		g := r.Generations[s]
		at := slices.IndexFunc(w.panes.open, func(p *pane) bool { return p.Span == s })
		w.offline.out = max(w.offline.out, s.EndTime)
		if at < 0 {
			// No row of the window came to this subtask; those of the generations may.
			p := &pane{Span: s, aggTable: w.panes.make()}
			err := w.emitWith(p, g, out)
			if p.release(); err != nil {
				return err
			}
			continue
		}
		p := w.panes.open[at]
		if err := w.emitWith(p, g, out); err != nil {
			return err
		}
		p.dirty, p.gap = false, w.op.Correct > 0 && slices.Contains(g, nil)
		if w.op.Correct == 0 || passed(w.barrier, s.EndTime, w.op.Lateness) && !p.gap {
			p.release()
			w.panes.open = slices.Delete(w.panes.open, at, at+1)
		}
	}
	w.panes.open = slices.DeleteFunc(w.panes.open, func(p *pane) bool {
		over := p.EndTime <= w.offline.out && !p.dirty && !p.gap && passed(was, p.EndTime, w.op.Lateness) && !slices.Contains(r.Waiting, p.Span)
		if over {
			p.release()
		}
		return over
	})
	return nil
}

// emitWith gives a window with the rows of generations, by offline branch; nil: there
// is none.
func (w *WideMerge) emitWith(p *pane, g []*Generation, out *Results) error {
	for i := range w.op.Offline {
		if w.op.Offline[i].CreatesRows && g[i] != nil {
			if err := w.create(p, g[i]); err != nil {
				return err
			}
		}
	}
	w.generations = g
	err := w.emitAll(p, out)
	w.generations = nil
	return err
}

// createKeys is how many keys are made before it is seen whether they fit into memory.
const createKeys = 1024

// create makes rows of a window for the keys of a generation that are the subtask's. Each
// takes its place in all columns of the table, so those that do not fit go to disk.
func (w *WideMerge) create(p *pane, g *Generation) error {
	sel := batch.Sel{}
	for slot, h := range g.keys.Hashes() {
		if w.offline.own.Has(h) {
			sel = append(sel, int32(slot))
		}
	}
	w.slots = resized(w.slots, g.keys.Len())
	for ; len(sel) > 0; sel = sel[min(createKeys, len(sel)):] {
		p.keys.Find(refs(g.keys.Columns()), g.keys.Hashes(), sel[:min(createKeys, len(sel))], w.slots)
		p.resize()
		if s := &w.panes.spiller; s.over(p.held()) {
			if err := s.move([]*aggTable{p.aggTable}); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowsOf lists the slots of a table that are rows. A key that no row reached was made for a
// generation: if its window goes out again with another one, it is there no more.
func (w *WideMerge) rowsOf(t *aggTable, from, to int) []int32 {
	w.groups = slotsOf(from, to, w.groups)
	if len(w.op.Offline) == 0 {
		return w.groups
	}
	cols := refs(t.keys.Columns())
	w.groups = slices.DeleteFunc(w.groups, func(slot int32) bool {
		for _, r := range t.reached {
			if r.Get(int(slot)) {
				return false
			}
		}
		for i, g := range w.generations {
			if w.op.Offline[i].CreatesRows && g != nil && g.keys.Slot(cols, t.keys.Hash(int(slot)), int(slot)) >= 0 {
				return false
			}
		}
		return true
	})
	return w.groups
}

func refs(cols []batch.Vec) []*batch.Vec {
	out := make([]*batch.Vec, len(cols))
	for i := range cols {
		out[i] = &cols[i]
	}
	return out
}

// find looks the rows of w.groups up in the generation of an offline branch: its slots,
// -1 where it has none.
func (w *WideMerge) find(t *aggTable, i int) []int32 {
	slots := resized(w.offline.slots[i], len(w.groups))
	w.offline.slots[i] = slots
	cols := refs(t.keys.Columns())
	for row, slot := range w.groups {
		slots[row] = -1
		if g := w.generations[i]; g != nil {
			slots[row] = g.keys.Slot(cols, t.keys.Hash(int(slot)), int(slot))
		}
	}
	return slots
}

// offlineColumns fills the columns of offline branches.
func (w *WideMerge) offlineColumns(b *batch.Batch, t *aggTable) {
	for i := range w.op.Offline {
		slots := w.find(t, i)
		for k := range w.columns {
			if w.columns[k].branch != -1-i {
				continue
			}
			v := &b.Cols[w.keys+2+k]
			v.Reset(w.schema.Fields[w.keys+2+k].Type, len(slots))
			for row, slot := range slots {
				if slot < 0 {
					v.NullRow(row)
				} else {
					v.Put(row, &w.generations[i].cols[w.columns[k].acc], int(slot))
				}
			}
			v.PadOffsets()
		}
	}
}

// Holds is the watermark that what has gone out is complete up to, where a window is
// held; ok is false if none is.
func (w *WideMerge) Holds() (time int64, ok bool) {
	for _, p := range w.panes.open {
		if len(w.op.Offline) > 0 && w.isHeld(p) {
			return p.EndTime - 2 + w.grace(), true
		}
	}
	return 0, false
}

// appendOffline and readOffline are the saved state beside windows.
func (w *WideMerge) appendOffline(dst []byte) []byte {
	dst = binary.AppendVarint(dst, w.offline.out)
	return appendSpans(dst, w.panes.open, func(p *pane) bool { return p.gap })
}
