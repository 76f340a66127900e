package operator

import (
	"encoding/binary"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
)

// sessionRows are the rows of sessions.
type sessionRows struct {
	in      *batch.Schema
	rows    batch.Batch
	gone    int       // of rows, those of no session any more
	members [][]int32 // rows by a session's number
}

func newSessionRows(in *batch.Schema) *sessionRows {
	h := &sessionRows{in: in}
	resetRows(&h.rows, in)
	return h
}

func (h *sessionRows) fresh() sessionHeld { return newSessionRows(h.in) }

func (h *sessionRows) resize(numbers int32) {
	for len(h.members) < int(numbers) {
		h.members = append(h.members, nil)
	}
}

// add appends a row to a session.
func (h *sessionRows) add(number int32, from *batch.Batch, row int32) {
	h.members[number] = append(h.members[number], int32(h.rows.Len))
	appendRow(&h.rows, from, row)
}

func (h *sessionRows) unite(to, from int32) error {
	h.members[to] = append(h.members[to], h.members[from]...)
	h.members[from] = nil
	return nil
}

func (h *sessionRows) clear(number int32) {
	h.gone += len(h.members[number])
	h.members[number] = nil
}

// compact forgets rows of no session when they are most of them.
func (h *sessionRows) compact() {
	if h.gone >= 1024 && h.gone >= h.rows.Len/2 {
		h.take(slotsOf(0, len(h.members), nil))
	}
}

func (h *sessionRows) take(numbers []int32) {
	members := make([][]int32, len(numbers))
	sel := batch.Sel{}
	for i, n := range numbers {
		members[i] = h.members[n]
		for k, row := range members[i] {
			members[i][k] = int32(len(sel))
			sel = append(sel, row)
		}
	}
	var kept batch.Batch
	kept.Take(&h.rows, sel)
	h.rows, h.gone, h.members = kept, 0, members
}

// save appends the rows, each behind the place of its session.
func (h *sessionRows) save(dst []byte, numbers []int32) []byte {
	sel := batch.Sel{}
	var of []int64
	for k, n := range numbers {
		for _, row := range h.members[n] {
			sel, of = append(sel, row), append(of, int64(k))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(sel)))
	for _, k := range of {
		dst = binary.AppendUvarint(dst, uint64(k))
	}
	for i := range h.rows.Cols {
		var v batch.Vec
		v.Take(&h.rows.Cols[i], sel)
		dst = state.AppendVec(dst, &v)
	}
	return dst
}

func (h *sessionRows) load(r *state.Reader, numbers []int32) error {
	of := make([]uint64, r.Count())
	for i := range of {
		if of[i] = r.Uvarint(); of[i] >= uint64(len(numbers)) {
			return state.ErrCorrupt
		}
	}
	saved := batch.Batch{Schema: h.in, Cols: make([]batch.Vec, len(h.in.Fields)), Len: len(of)}
	for i, f := range h.in.Fields {
		v := r.Vec(f.Type)
		if v.Len != len(of) {
			return state.ErrCorrupt
		}
		saved.Cols[i] = *v
	}
	if r.Err() != nil {
		return r.Err()
	}
	for i, k := range of {
		if n := numbers[k]; n >= 0 {
			h.add(n, &saved, int32(i))
		}
	}
	return nil
}

func (h *sessionRows) bytes() int64 {
	return state.BatchBytes(&h.rows) + int64(4*h.rows.Len+24*len(h.members))
}
