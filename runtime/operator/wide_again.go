package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/watermark"
)

// Corrected is an operator whose windows go out whole each time: when they are over,
// and again while rows come late for them. What replaces a table partition has to be
// all of it, from all subtasks, in one manifest. So rows go out at barriers alone: at
// a barrier all subtasks have the same watermark, and whoever decides which windows go
// out again says the same to all of them.
type Corrected interface {
	Keyed
	// Barrier gives the rows of the windows that are over since the last barrier, and
	// of those of again, which had gone out before.
	Barrier(again []Span, out *Results) error
	// Pending are the windows that had gone out at the last barrier and have changed
	// since, also before a restart.
	Pending() []Pending
	// Waits reports windows that go out at the next barrier, whatever is decided.
	Waits() bool
}

// Pending is a window that is to go out again.
type Pending struct {
	Span
	// Final: no row can come for it any more.
	Final bool
}

// passed reports whether a watermark is at or past a window's end and its lateness.
func passed(time, end, lateness int64) bool {
	return time == batch.MaxWatermark || watermark.Late(time, end, lateness)
}

// Barrier implements Corrected. A window whose lateness has passed stays for one more
// barrier, since only then it is known whether another subtask has late rows of it.
func (w *WideMerge) Barrier(again []Span, out *Results) error {
	was, now := w.barrier, w.panes.fired
	w.barrier, w.panes.last = now, nil
	kept := w.panes.open[:0]
	for _, p := range w.panes.open {
		shown := passed(was, p.EndTime, 0)
		gives := !shown && passed(now, p.EndTime, 0) || shown && slices.Contains(again, p.Span)
		if gives {
			if err := w.emitAll(p, out); err != nil {
				return err
			}
			p.dirty = false
		}
		if passed(was, p.EndTime, w.op.Lateness) || gives && passed(now, p.EndTime, w.op.Lateness) {
			p.release()
		} else {
			kept = append(kept, p)
		}
	}
	clear(w.panes.open[len(kept):])
	w.panes.open = kept
	return nil
}

// Pending implements Corrected.
func (w *WideMerge) Pending() []Pending {
	var out []Pending
	for _, p := range w.panes.open {
		if p.dirty && passed(w.barrier, p.EndTime, 0) {
			out = append(out, Pending{p.Span, passed(w.panes.fired, p.EndTime, w.op.Lateness)})
		}
	}
	return out
}

// Waits implements Corrected.
func (w *WideMerge) Waits() bool {
	return slices.ContainsFunc(w.panes.open, func(p *pane) bool {
		return passed(w.panes.fired, p.EndTime, 0) && !passed(w.barrier, p.EndTime, 0)
	})
}

// appendDirty appends the windows that have changed since they went out.
func (w *WideMerge) appendDirty(dst []byte) []byte {
	dirty := slices.DeleteFunc(slices.Clone(w.panes.open), func(p *pane) bool { return !p.dirty })
	dst = binary.AppendUvarint(dst, uint64(len(dirty)))
	for _, p := range dirty {
		dst = p.Span.append(dst)
	}
	return dst
}

func readDirty(r *state.Reader) []Span {
	var out []Span
	for range r.Count() {
		out = append(out, readSpan(r))
	}
	return out
}

// mark notes the windows that had changed before a restart.
func (w *WideMerge) mark(dirty []Span) {
	w.barrier = w.panes.fired
	for _, p := range w.panes.open {
		p.dirty = p.dirty || slices.Contains(dirty, p.Span)
	}
}
