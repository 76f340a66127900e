package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/watermark"
)

// Corrected is an operator whose windows go out whole each time: when they are over,
// and again while rows come late for them; or, with offline branches, when whoever
// decides lets them. What replaces a table partition has to be
// all of it, from all subtasks, in one manifest. So rows go out at barriers alone: at
// a barrier all subtasks have the same watermark, and whoever decides which windows go
// out again says the same to all of them.
type Corrected interface {
	Keyed
	// Barrier gives the rows of the windows that are over since the last barrier, and
	// of those of r, which had gone out before; of an operator with offline branches
	// those of r alone.
	Barrier(r *Release, out *Results) error
	// Pending are the windows that are to go out, also since before a restart.
	Pending() []Pending
	// Waits reports windows that nobody has heard of yet: a barrier has to come.
	Waits() bool
	// Holds is the watermark up to which everything has gone out, where a window is
	// held that is over; ok is false if none is.
	Holds() (time int64, ok bool)
}

// Release says which windows go out at a barrier. It is read by many tasks.
type Release struct {
	Windows []Span
	// Waiting are windows that go out later, of whatever subtask.
	Waiting []Span
	// Generations are, by window, those of its offline branches; nil: there is none.
	Generations map[Span][]*Generation
}

// Pending is a window that is to go out.
type Pending struct {
	Span
	// Held: it is over, waits for its generations and has not gone out.
	Held bool
	// Late: rows came for it since it went out. Gap: it went out without a generation.
	Late, Gap bool
	// Final: no row can come for it any more.
	Final bool
}

// passed reports whether a watermark is at or past a window's end and its lateness.
func passed(time, end, lateness int64) bool {
	return time == batch.MaxWatermark || watermark.Late(time, end, lateness)
}

// Barrier implements Corrected. A window whose lateness has passed stays for one more
// barrier, since only then it is known whether another subtask has late rows of it.
func (w *WideMerge) Barrier(r *Release, out *Results) error {
	if len(w.op.Offline) > 0 {
		return w.release(r, out)
	}
	was, now := w.barrier, w.panes.fired
	w.barrier, w.panes.last = now, nil
	kept := w.panes.open[:0]
	for _, p := range w.panes.open {
		shown := passed(was, p.EndTime, 0)
		gives := !shown && passed(now, p.EndTime, 0) || shown && slices.Contains(r.Windows, p.Span)
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
		x := Pending{Span: p.Span, Final: passed(w.panes.fired, p.EndTime, w.op.Lateness)}
		if len(w.op.Offline) == 0 {
			x.Late = p.dirty && passed(w.barrier, p.EndTime, 0)
		} else {
			x.Held, x.Gap = w.isHeld(p), p.gap
			x.Late = p.dirty && p.EndTime <= w.offline.out
		}
		if x.Held || x.Late || x.Gap {
			out = append(out, x)
		}
	}
	return out
}

// Waits implements Corrected.
func (w *WideMerge) Waits() bool {
	return slices.ContainsFunc(w.panes.open, func(p *pane) bool {
		return passed(w.panes.fired, p.EndTime, w.grace()) && !passed(w.barrier, p.EndTime, w.grace())
	})
}

// appendDirty appends the windows that have changed since they went out.
func (w *WideMerge) appendDirty(dst []byte) []byte {
	return appendSpans(dst, w.panes.open, func(p *pane) bool { return p.dirty })
}

func appendSpans(dst []byte, open []*pane, is func(*pane) bool) []byte {
	some := slices.DeleteFunc(slices.Clone(open), func(p *pane) bool { return !is(p) })
	dst = binary.AppendUvarint(dst, uint64(len(some)))
	for _, p := range some {
		dst = p.Span.append(dst)
	}
	return dst
}

func readSpans(r *state.Reader) []Span {
	var out []Span
	for range r.Count() {
		out = append(out, readSpan(r))
	}
	return out
}

// mark notes the windows that had changed before a restart.
func (w *WideMerge) mark(dirty, gaps []Span) {
	w.barrier = w.panes.fired
	for _, p := range w.panes.open {
		p.dirty = p.dirty || slices.Contains(dirty, p.Span)
		p.gap = p.gap || slices.Contains(gaps, p.Span)
	}
}
