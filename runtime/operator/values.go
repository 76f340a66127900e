package operator

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// Values emits literal rows once, when it is told that no input follows.
type Values struct {
	rows   []*expr.Program
	schema *batch.Schema
	done   bool
	one    batch.Batch
	out    batch.Batch
}

// NewValues compiles the rows.
func NewValues(op *graph.Values, out *batch.Schema) (*Values, error) {
	v := &Values{schema: out}
	v.one.Schema, v.one.Len = &batch.Schema{}, 1
	for _, row := range op.Rows {
		if len(row) != len(out.Fields) {
			return nil, fmt.Errorf("a row of %d values for %d columns", len(row), len(out.Fields))
		}
		p, err := expr.Compile(row, v.one.Schema, expr.Options{})
		if err != nil {
			return nil, fmt.Errorf("compiling VALUES: %w", err)
		}
		v.rows = append(v.rows, p)
	}
	return v, nil
}

// Fold implements Keyed; there is no input.
func (*Values) Fold(*expr.Context, *KeyedRows, *Results) error { return nil }

// Advance implements Keyed.
func (v *Values) Advance(ctx *expr.Context, time int64, out *Results) error {
	if time < batch.MaxWatermark || v.done {
		return nil
	}
	v.done = true
	for from := 0; from < len(v.rows); from += emitRows {
		rows := v.rows[from:min(from+emitRows, len(v.rows))]
		v.out.Reset(v.schema)
		v.out.Len = len(rows)
		for i := range v.out.Cols {
			v.out.Cols[i].Reset(v.schema.Fields[i].Type, len(rows))
		}
		for r, p := range rows {
			vals := make([]batch.Vec, len(v.schema.Fields))
			p.Eval(ctx, &v.one, nil, vals)
			for i := range vals {
				v.out.Cols[i].Put(r, &vals[i], 0)
			}
			ctx.Forget(p)
		}
		for i := range v.out.Cols {
			v.out.Cols[i].PadOffsets()
		}
		if err := out.Emit(&v.out); err != nil {
			return err
		}
	}
	return nil
}

// Save implements Keyed.
func (v *Values) Save() []byte {
	if v.done {
		return []byte{1}
	}
	return []byte{0}
}

// Load implements Keyed.
func (v *Values) Load(payload []byte, _ state.Range) error {
	if len(payload) != 1 {
		return state.ErrCorrupt
	}
	v.done = payload[0] == 1
	return nil
}

// Kind implements Keyed.
func (*Values) Kind() string { return "Values" }

// Fingerprint implements Keyed.
func (*Values) Fingerprint() uint64 { return 1 }

// Bytes implements Keyed.
func (*Values) Bytes() int64 { return 0 }
