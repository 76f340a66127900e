package operator

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
)

// Save implements Keyed: the texts of the calls, the watermark, then each pane: its
// window, its table, whether it is over, and which of its rows are out.
func (w *WindowChanges) Save() []byte {
	dst := appendTexts(nil, w.aggs.texts())
	dst = binary.AppendVarint(dst, w.panes.fired)
	dst = binary.AppendUvarint(dst, uint64(len(w.panes.open)))
	for _, p := range w.panes.open {
		dst = p.Span.append(dst)
		dst = w.shownOf(p).save(p.aggTable.save(dst))
	}
	return dst
}

// save appends the marks, the changed slots, for each call the values that went out for
// them, then how many rows each slot has, where they can be taken back. When they go out next is no part of it: a restart gives what has
// changed soon.
func (s *shownRows) save(dst []byte) []byte {
	over := byte(0)
	if s.over {
		over = 1
	}
	dst = state.AppendBytes(append(dst, over), s.marks)
	dst = binary.AppendUvarint(dst, uint64(len(s.changed)))
	for _, slot := range s.changed {
		dst = binary.AppendUvarint(dst, uint64(slot))
	}
	for i := range s.was.rows.Cols {
		v := &s.was.rows.Cols[i]
		dst = state.AppendBytes(dst, appendErrs(state.AppendVec(nil, v), v))
	}
	for _, n := range s.rows {
		dst = binary.AppendUvarint(dst, uint64(max(n, 0)))
	}
	return dst
}

// Load implements Keyed.
func (w *WindowChanges) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	to := readTexts(r, w.aggs.texts())
	w.panes.fired = max(w.panes.fired, r.Varint())
	for range r.Count() {
		s := readSpan(r)
		if err := r.Err(); err != nil {
			return err
		}
		p, err := w.panes.of(s)
		if err != nil {
			return state.ErrCorrupt
		}
		slots, err := p.loadSlots(r, w.panes.keyTypes, groups, to, nil)
		if err != nil {
			return err
		}
		if err := w.loadShown(r, p, slots, to); err != nil {
			return err
		}
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	w.panes.restored()
	w.reschedule()
	return r.Err()
}

// loadShown reads what is out of a pane's slots. A call that was not there then has
// no rows, and went out with the value of none.
func (w *WindowChanges) loadShown(r *state.Reader, p *pane, slots []int32, to []int) error {
	s := w.shownOf(p)
	s.over = r.Byte() == 1
	marks := r.Bytes()
	changed := make([]int32, r.Count())
	for i := range changed {
		changed[i] = int32(r.Uvarint())
	}
	if r.Err() != nil || len(marks) != len(slots) {
		return state.ErrCorrupt
	}
	// The rows that stay.
	sel := batch.Sel{}
	own := []int32{}
	for i, slot := range changed {
		if slot < 0 || int(slot) >= len(slots) {
			return state.ErrCorrupt
		}
		if slots[slot] >= 0 {
			sel, own = append(sel, int32(i)), append(own, slots[slot])
		}
	}
	first := s.was.rows.Len
	w.keep(p, own)
	for _, call := range to {
		part := state.NewReader(r.Bytes())
		if call < 0 {
			continue
		}
		v := part.Vec(w.values.Fields[call].Type)
		if v.Len != len(changed) || !readErrs(part, v) {
			return state.ErrCorrupt
		}
		s.was.replace(call, first, v, sel)
	}
	for i, slot := range slots {
		n := uint64(0)
		if w.op.Retracts {
			if n = r.Uvarint(); n > math.MaxInt64 {
				return state.ErrCorrupt
			}
		}
		if slot < 0 {
			continue
		}
		if w.op.Retracts {
			s.rows[slot] = int64(n)
		}
		s.marks[slot] = marks[i]
		if marks[i] == isDirty {
			s.fresh = append(s.fresh, slot)
		}
	}
	if on, _ := w.firing(p); on && len(s.changed)+len(s.fresh) > 0 {
		s.due = 1 // at once
	}
	return r.Err()
}

// replace puts other values into a column, from a row on.
func (s *rowStore) replace(col, from int, v *batch.Vec, sel batch.Sel) {
	kept := batch.Vec{}
	kept.Reset(s.schema.Fields[col].Type, 0)
	kept.AppendRows(&s.rows.Cols[col], append(batch.Sel{}, slotsOf(0, from, nil)...))
	kept.AppendRows(v, sel)
	kept.PadOffsets()
	s.rows.Cols[col] = kept
}

// Kind implements Keyed.
func (w *WindowChanges) Kind() string {
	if w.op.Retracts {
		return "WindowChanges over changes"
	}
	return "WindowChanges"
}

// Fingerprint implements Keyed.
func (w *WindowChanges) Fingerprint() uint64 { return w.panes.fingerprint() }
