package operator

import (
	"encoding/binary"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// Limit passes at most N rows after skipping Offset, in the order in which they
// come. It has one subtask.
type Limit struct {
	op   *graph.Limit
	seen int64
	out  batch.Batch
	sel  batch.Sel
}

// NewLimit makes the operator.
func NewLimit(op *graph.Limit) *Limit { return &Limit{op: op} }

// Fold implements Keyed.
func (l *Limit) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	n := int64(len(in.Sel))
	from := min(max(l.op.Offset-l.seen, 0), n)
	end := l.op.Offset + l.op.N
	if end < l.op.Offset { // more than there are numbers
		end = batch.MaxWatermark
	}
	to := min(max(end-l.seen, from), n)
	l.seen += n
	if from == to {
		return nil
	}
	l.out.Take(in.Batch, in.Sel[from:to])
	l.out.Runs, l.out.OffsetDelta, l.out.RowIndex, l.out.Notes = nil, nil, nil, nil
	return out.Emit(&l.out)
}

// Advance implements Keyed.
func (*Limit) Advance(*expr.Context, int64, *Results) error { return nil }

// Save implements Keyed.
func (l *Limit) Save() []byte { return binary.AppendVarint(nil, l.seen) }

// Load implements Keyed.
func (l *Limit) Load(payload []byte, _ state.Range) error {
	r := state.NewReader(payload)
	l.seen += r.Varint()
	if r.Err() != nil || r.Rest() > 0 {
		return state.ErrCorrupt
	}
	return nil
}

// Kind implements Keyed.
func (*Limit) Kind() string { return "Limit" }

// Fingerprint implements Keyed.
func (*Limit) Fingerprint() uint64 { return 1 }

// Bytes implements Keyed.
func (*Limit) Bytes() int64 { return 0 }
