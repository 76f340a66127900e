package operator

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// Sort orders bounded input, and keeps no more rows than its limit asks for. It
// has one subtask. Rows of equal keys come in the order of their encoding, so
// that the result does not depend on arrival.
type Sort struct {
	op     *graph.Sort
	schema *batch.Schema
	types  []types.Type
	rows   batch.Batch
	keys   [][]byte
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
	s.rows.Reset(s.schema)
	for i := range s.rows.Cols {
		s.rows.Cols[i].Reset(s.types[i], 0)
	}
	s.keys = nil
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
		for i := range s.rows.Cols {
			s.rows.Cols[i].Append(&in.Batch.Cols[i], int(row))
		}
		s.keys = append(s.keys, s.key(in.Batch, int(row)))
		s.rows.Len++
	}
	if most := s.most(); most >= 0 && int64(s.rows.Len) > 2*most+emitRows {
		s.shrink(int(most))
	}
	return nil
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

// key makes bytes that compare as the rows are ordered.
func (s *Sort) key(b *batch.Batch, row int) []byte {
	k := appendSortKeys(nil, s.op.Keys, b, row)
	for i := range b.Cols {
		k = batch.AppendValue(k, &b.Cols[i], row)
	}
	return k
}

func (s *Sort) order() batch.Sel {
	sel := make(batch.Sel, s.rows.Len)
	for i := range sel {
		sel[i] = int32(i)
	}
	sort.Slice(sel, func(i, j int) bool { return bytes.Compare(s.keys[sel[i]], s.keys[sel[j]]) < 0 })
	return sel
}

// shrink drops the rows that cannot be in the result.
func (s *Sort) shrink(most int) {
	sel := s.order()[:most]
	slices.Sort(sel)
	kept := batch.Batch{}
	kept.Take(&s.rows, sel)
	keys := make([][]byte, len(sel))
	for i, row := range sel {
		keys[i] = s.keys[row]
	}
	s.rows, s.keys = kept, keys
}

// Advance implements Keyed.
func (s *Sort) Advance(_ *expr.Context, time int64, out *Results) error {
	if time < batch.MaxWatermark || s.done {
		return nil
	}
	s.done = true
	sel := s.order()
	sel = sel[min(s.op.Offset, int64(len(sel))):]
	if s.op.Limit >= 0 {
		sel = sel[:min(s.op.Limit, int64(len(sel)))]
	}
	for len(sel) > 0 {
		n := min(emitRows, len(sel))
		s.out.Take(&s.rows, sel[:n])
		if err := out.Emit(&s.out); err != nil {
			return err
		}
		sel = sel[n:]
	}
	s.reset()
	return nil
}

// Save implements Keyed.
func (s *Sort) Save() []byte {
	var dst []byte
	if s.done {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(s.rows.Len))
	for i := range s.rows.Cols {
		dst = state.AppendVec(dst, &s.rows.Cols[i])
	}
	return dst
}

// Load implements Keyed.
func (s *Sort) Load(payload []byte, _ state.Range) error {
	r := state.NewReader(payload)
	s.done = s.done || r.Byte() == 1
	n := int(r.Uvarint())
	saved := batch.Batch{Schema: s.schema, Cols: make([]batch.Vec, len(s.types)), Len: n}
	for i, t := range s.types {
		v := r.Vec(t)
		if v.Len != n {
			return state.ErrCorrupt
		}
		saved.Cols[i] = *v
	}
	if r.Err() != nil || r.Rest() > 0 {
		return state.ErrCorrupt
	}
	for row := range n {
		for i := range s.rows.Cols {
			s.rows.Cols[i].Append(&saved.Cols[i], row)
		}
		s.keys = append(s.keys, s.key(&saved, row))
		s.rows.Len++
	}
	return nil
}

// Kind implements Keyed.
func (*Sort) Kind() string { return "Sort" }

// Fingerprint implements Keyed.
func (s *Sort) Fingerprint() uint64 { return state.Fingerprint(s.types) }

// Bytes implements Keyed.
func (s *Sort) Bytes() int64 {
	n := state.BatchBytes(&s.rows)
	if len(s.keys) > 0 {
		n += int64(len(s.keys)) * int64(24+cap(s.keys[0]))
	}
	return n
}
