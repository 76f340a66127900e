package operator

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// rowStore keeps rows as columns, errors of values included.
type rowStore struct {
	schema *batch.Schema
	rows   batch.Batch
}

func newRowStore(s *batch.Schema) rowStore {
	r := rowStore{schema: s}
	r.rows.Reset(s)
	for i := range r.rows.Cols {
		r.rows.Cols[i].Reset(s.Fields[i].Type, 0)
	}
	return r
}

// add appends the rows of sel and gives the number of the first.
func (s *rowStore) add(b *batch.Batch, sel batch.Sel) int {
	first := s.rows.Len
	if len(sel) == 0 {
		return first // a nil Sel would be all rows
	}
	for i := range s.rows.Cols {
		s.rows.Cols[i].AppendRows(&b.Cols[i], sel)
		s.rows.Cols[i].PadOffsets()
	}
	s.rows.Len += len(sel)
	return first
}

// snapshot is the rows as they are now, for another goroutine to read while rows are added.
func (s *rowStore) snapshot() rowStore {
	return rowStore{schema: s.schema, rows: s.rows.Snapshot()}
}

func (s *rowStore) bytes() int64 { return state.BatchBytes(&s.rows) }

// save appends the number of rows, then each column with its errors.
func (s *rowStore) save(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(s.rows.Len))
	for i := range s.rows.Cols {
		dst = state.AppendVec(dst, &s.rows.Cols[i])
		dst = appendErrs(dst, &s.rows.Cols[i])
	}
	return dst
}

// saveSel is save of the rows of sel.
func (s *rowStore) saveSel(dst []byte, sel batch.Sel) []byte {
	kept := rowStore{schema: s.schema}
	kept.rows.Take(&s.rows, sel)
	return kept.save(dst)
}

// readRows reads a save as a batch.
func readRows(r *state.Reader, schema *batch.Schema) (*batch.Batch, error) {
	n := r.Uvarint()
	if n > math.MaxInt32 {
		return nil, state.ErrCorrupt
	}
	b := &batch.Batch{Schema: schema, Cols: make([]batch.Vec, len(schema.Fields)), Len: int(n)}
	for i, f := range schema.Fields {
		v := r.Vec(f.Type)
		if v.Len != b.Len || !readErrs(r, v) {
			return nil, state.ErrCorrupt
		}
		b.Cols[i] = *v
	}
	return b, r.Err()
}

func appendErrs(dst []byte, v *batch.Vec) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v.Errs)))
	for i := range v.Errs {
		e := &v.Errs[i]
		dst = binary.AppendUvarint(dst, uint64(e.Row))
		dst = state.AppendBytes(dst, e.Code)
		dst = state.AppendBytes(dst, e.Where)
		dst = state.AppendBytes(dst, e.Message)
	}
	for _, c := range v.Children {
		dst = appendErrs(dst, c)
	}
	return dst
}

func readErrs(r *state.Reader, v *batch.Vec) bool {
	for range r.Count() {
		row := r.Uvarint()
		code, where, message := r.String(), r.String(), r.String()
		if r.Err() != nil || row >= uint64(v.Len) {
			return false
		}
		v.SetErr(int(row), batch.Code(code), where, message)
	}
	for _, c := range v.Children {
		if !readErrs(r, c) {
			return false
		}
	}
	return r.Err() == nil
}

// appendNulls adds n NULL rows to a Flat Vec.
func appendNulls(v *batch.Vec, n int) {
	for range n {
		v.AppendNull()
	}
	v.PadOffsets()
}

// truth is a BOOLEAN of three values, or an error.
type truth uint8

const (
	truthFalse truth = iota
	truthUnknown
	truthError
	truthTrue
)

func truthAt(v *batch.Vec, i int) truth {
	if v.IsNull(i) {
		if v.HasErrs() && v.Err(i) != nil {
			return truthError
		}
		return truthUnknown
	}
	for v.Enc == batch.Dict {
		v, i = v.Dict, int(v.Codes[i])
	}
	if v.Bool(i) {
		return truthTrue
	}
	return truthFalse
}

// isNaN reports a floating-point value that equals nothing.
func isNaN(v *batch.Vec, i int) bool {
	switch v.Type.Physical() {
	case types.PhysFloat32, types.PhysFloat64:
	default:
		return false
	}
	for v.Enc == batch.Dict {
		v, i = v.Dict, int(v.Codes[i])
	}
	x := v.Float64(i)
	return x != x
}

// condition is a compiled condition of pairs; nil prog: always TRUE.
type condition struct {
	prog *expr.Program
	out  []batch.Vec
}

func newCondition(e expr.Expr, in *batch.Schema) (condition, error) {
	if e == nil {
		return condition{}, nil
	}
	p, err := expr.Compile([]expr.Expr{e}, in, expr.Options{})
	return condition{prog: p, out: make([]batch.Vec, 1)}, err
}
