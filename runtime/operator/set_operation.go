package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// SetOperation is INTERSECT or EXCEPT of two inputs that end: it counts the rows
// of each side.
type SetOperation struct {
	op     *graph.SetOperation
	schema *batch.Schema
	types  []types.Type
	keys   *state.Keys
	counts [2][]int64
	done   bool
	cols   []*batch.Vec
	slots  []int32
	good   batch.Sel
	result batch.Batch
}

// NewSetOperation makes a subtask.
func NewSetOperation(op *graph.SetOperation, schema *batch.Schema) *SetOperation {
	s := &SetOperation{op: op, schema: schema, types: typesAt(schema, columnsOf(schema))}
	s.keys = state.NewKeys(s.types)
	return s
}

// Fold implements Keyed. A row with an error anywhere is equal to no other.
func (s *SetOperation) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	s.good = s.good[:0]
	for _, row := range in.Sel {
		if e := rowError(in.Batch, int(row)); e != nil {
			x := *e
			x.Row = row
			out.Dead(in.Batch, &x)
			continue
		}
		s.good = append(s.good, row)
	}
	s.count(in.Input, in.Batch, in.Hashes, s.good, nil)
	return nil
}

// count adds rows, copies of each where given.
func (s *SetOperation) count(side int, b *batch.Batch, hashes []uint64, sel batch.Sel, copies []int64) {
	s.cols = colsAt(b, columnsOf(s.schema), s.cols)
	s.slots = slices.Grow(s.slots[:0], b.Len)[:b.Len]
	s.keys.Find(s.cols, hashes, sel, s.slots)
	for i := range s.counts {
		for len(s.counts[i]) < s.keys.Len() {
			s.counts[i] = append(s.counts[i], 0)
		}
	}
	for _, row := range sel {
		if copies == nil {
			s.counts[side][s.slots[row]]++
		} else {
			s.counts[side][s.slots[row]] += copies[row]
		}
	}
}

// copies is how often the result has a row.
func (s *SetOperation) copies(slot int) int64 {
	return copiesOf(s.op, s.counts[0][slot], s.counts[1][slot])
}

// copiesOf is how often the result has a row that the sides have l and r times.
func copiesOf(op *graph.SetOperation, l, r int64) int64 {
	n := max(l-r, 0)
	switch {
	case op.Kind == graph.Intersect:
		n = min(l, r)
	case !op.All && r > 0:
		n = 0
	}
	if !op.All {
		n = min(n, 1)
	}
	return n
}

// Advance implements Keyed.
func (s *SetOperation) Advance(_ *expr.Context, time int64, out *Results) error {
	if time < batch.MaxWatermark || s.done {
		return nil
	}
	s.done = true
	var sel batch.Sel
	for slot := range s.keys.Len() {
		for range s.copies(slot) {
			if sel = append(sel, int32(slot)); len(sel) == emitRows {
				if err := s.emit(sel, out); err != nil {
					return err
				}
				sel = sel[:0]
			}
		}
	}
	if err := s.emit(sel, out); err != nil {
		return err
	}
	s.keys, s.counts = state.NewKeys(s.types), [2][]int64{}
	return nil
}

func (s *SetOperation) emit(sel batch.Sel, out *Results) error {
	if len(sel) == 0 {
		return nil
	}
	s.result.Reset(s.schema)
	s.result.Len = len(sel)
	for i := range s.result.Cols {
		s.result.Cols[i].Take(&s.keys.Columns()[i], sel)
	}
	return out.Emit(&s.result)
}

// Save implements Keyed.
func (s *SetOperation) Save() []byte {
	dst := []byte{0}
	if s.done {
		dst[0] = 1
	}
	dst = state.AppendHashes(dst, s.keys.Hashes())
	for i := range s.keys.Columns() {
		dst = state.AppendVec(dst, &s.keys.Columns()[i])
	}
	for _, side := range s.counts {
		for _, n := range side {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
	}
	return dst
}

// Load implements Keyed.
func (s *SetOperation) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	s.done = r.Byte() == 1 || s.done
	hashes := r.Hashes()
	b := &batch.Batch{Schema: s.schema, Cols: make([]batch.Vec, len(s.types)), Len: len(hashes)}
	for i, t := range s.types {
		v := r.Vec(t)
		if v.Len != len(hashes) {
			return state.ErrCorrupt
		}
		b.Cols[i] = *v
	}
	sel := batch.Sel{}
	for i, h := range hashes {
		if groups.Has(h) {
			sel = append(sel, int32(i))
		}
	}
	for side := range 2 {
		copies := make([]int64, len(hashes))
		for i := range copies {
			copies[i] = int64(r.Uvarint())
		}
		if r.Err() != nil {
			return r.Err()
		}
		s.count(side, b, hashes, sel, copies)
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	return nil
}

// Kind implements Keyed.
func (s *SetOperation) Kind() string { return "SetOperation" }

// Fingerprint implements Keyed.
func (s *SetOperation) Fingerprint() uint64 { return state.Fingerprint(s.types) }

// Bytes implements Keyed.
func (s *SetOperation) Bytes() int64 {
	return s.keys.Bytes() + 8*int64(cap(s.counts[0])+cap(s.counts[1]))
}
