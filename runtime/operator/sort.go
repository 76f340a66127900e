package operator

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// Sort orders bounded input, and keeps no more rows than its limit asks for. It
// has one subtask. Rows of equal keys come in the order of their encoding, so
// that the result does not depend on arrival. What memory has no room for lies
// sorted on disk, in runs that are merged at the end.
type Sort struct {
	op     *graph.Sort
	schema *batch.Schema
	types  []types.Type
	rows   batch.Batch
	keys   byteSlab
	disk   sortRuns
	done   bool
	out    batch.Batch
	buf    []byte
}

// NewSort makes the operator over the columns of in.
func NewSort(op *graph.Sort, in *batch.Schema) *Sort {
	s := &Sort{op: op, schema: in}
	for _, f := range in.Fields {
		s.types = append(s.types, f.Type)
	}
	s.reset()
	return s
}

func (s *Sort) reset() {
	s.rows, s.keys = batch.Batch{}, byteSlab{}
	resetRows(&s.rows, s.schema)
}

// most is how many rows can be in the result, -1: all.
func (s *Sort) most() int64 {
	if s.op.Limit < 0 || s.op.Limit > 1<<31 || s.op.Offset > 1<<31 {
		return -1
	}
	return s.op.Offset + s.op.Limit
}

// Fold implements Keyed. A row with an error anywhere cannot be kept.
func (s *Sort) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	for _, row := range in.Sel {
		if e := rowError(in.Batch, int(row)); e != nil {
			x := *e
			x.Row = row
			out.Dead(in.Batch, &x)
			continue
		}
		s.add(in.Batch, row)
	}
	if most := s.most(); most >= 0 && int64(s.rows.Len) > 2*most+emitRows {
		s.shrink()
	}
	return nil
}

func (s *Sort) add(b *batch.Batch, row int32) {
	appendRow(&s.rows, b, row)
	s.buf = s.appendKey(s.buf[:0], b, int(row))
	s.keys.add(s.buf)
}

func rowError(b *batch.Batch, row int) *batch.ValueError {
	for i := range b.Cols {
		if v := &b.Cols[i]; v.HasDeepErrs() {
			if e := v.DeepErr(row); e != nil {
				if e.Where == "" {
					x := *e
					x.Where = b.Schema.Fields[i].Name
					return &x
				}
				return e
			}
		}
	}
	return nil
}

// appendKey appends bytes that compare as the rows are ordered.
func (s *Sort) appendKey(k []byte, b *batch.Batch, row int) []byte {
	k = appendSortKeys(k, s.op.Keys, b, row)
	for i := range b.Cols {
		k = batch.AppendValue(k, &b.Cols[i], row)
	}
	return k
}

// order are the rows in memory that can be in the result, in order.
func (s *Sort) order() batch.Sel {
	sel := make(batch.Sel, s.rows.Len)
	for i := range sel {
		sel[i] = int32(i)
	}
	slices.SortFunc(sel, func(a, b int32) int { return bytes.Compare(s.keys.at(a), s.keys.at(b)) })
	if most := s.most(); most >= 0 {
		sel = sel[:min(most, int64(len(sel)))]
	}
	return sel
}

// shrink drops the rows that cannot be in the result.
func (s *Sort) shrink() {
	sel := s.order()
	slices.Sort(sel)
	kept, keys := batch.Batch{}, byteSlab{}
	kept.Take(&s.rows, sel)
	for _, row := range sel {
		keys.add(s.keys.at(row))
	}
	s.rows, s.keys = kept, keys
}

// Advance implements Keyed.
func (s *Sort) Advance(_ *expr.Context, time int64, out *Results) error {
	if time < batch.MaxWatermark || s.done {
		return nil
	}
	s.done = true
	var err error
	if s.Spilled() {
		err = s.emitMerged(out)
	} else {
		err = s.emit(out)
	}
	s.reset()
	s.disk.release()
	return err
}

// emit gives the rows, which are all in memory.
func (s *Sort) emit(out *Results) error {
	sel := s.order()
	sel = sel[min(s.op.Offset, int64(len(sel))):]
	for len(sel) > 0 {
		n := min(emitRows, len(sel))
		s.out.Take(&s.rows, sel[:n])
		if err := out.Emit(&s.out); err != nil {
			return err
		}
		sel = sel[n:]
	}
	return nil
}

// Save implements Keyed.
func (s *Sort) Save() []byte { return appendSorted(s.head(), &s.rows) }

// head begins a saved state: 1: the rows are given.
func (s *Sort) head() []byte {
	if s.done {
		return []byte{1}
	}
	return []byte{0}
}

// appendSorted appends rows, which have no errors.
func appendSorted(dst []byte, rows *batch.Batch) []byte {
	dst = binary.AppendUvarint(dst, uint64(rows.Len))
	for i := range rows.Cols {
		dst = state.AppendVec(dst, &rows.Cols[i])
	}
	return dst
}

// readSorted reads an appendSorted.
func (s *Sort) readSorted(r *state.Reader) (*batch.Batch, error) {
	n := r.Uvarint()
	if n > math.MaxInt32 {
		return nil, state.ErrCorrupt
	}
	b := &batch.Batch{Schema: s.schema, Cols: make([]batch.Vec, len(s.types)), Len: int(n)}
	for i, t := range s.types {
		v := r.Vec(t)
		if v.Len != b.Len {
			return nil, state.ErrCorrupt
		}
		b.Cols[i] = *v
	}
	return b, r.Err()
}

// Load implements Keyed. Behind the head are rows in any number of pieces.
func (s *Sort) Load(payload []byte, _ state.Range) error {
	r := state.NewReader(payload)
	s.done = s.done || r.Byte() == 1
	for r.Rest() > 0 {
		b, err := s.readSorted(r)
		if err != nil {
			return err
		}
		for row := range int32(b.Len) {
			s.add(b, row)
		}
		if s.disk.over(s.Bytes()) {
			if err := s.Spill(); err != nil {
				return err
			}
		}
	}
	return r.Err()
}

// Kind implements Keyed.
func (*Sort) Kind() string { return "Sort" }

// Fingerprint implements Keyed.
func (s *Sort) Fingerprint() uint64 { return state.Fingerprint(s.types) }

// Bytes implements Keyed.
func (s *Sort) Bytes() int64 { return state.BatchBytes(&s.rows) + s.keys.bytes() + s.disk.bytes() }
