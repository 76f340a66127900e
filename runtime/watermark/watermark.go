package watermark

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/types"
)

// Assigner writes into each batch what its partitions' watermarks were before
// each row.
type Assigner struct {
	prog    *expr.Program
	out     []batch.Vec
	units   int64
	current []int64
	buf     []int64
}

// NewAssigner compiles a WATERMARK expression over a source's columns; nil:
// the table declares none, and batches get no watermarks. partitions is how
// many the lane has.
func NewAssigner(e expr.Expr, schema *batch.Schema, partitions int) (*Assigner, error) {
	a := &Assigner{current: make([]int64, partitions)}
	for i := range a.current {
		a.current[i] = batch.NoWatermark
	}
	if e == nil {
		return a, nil
	}
	if !e.Type().IsTimestamp() {
		return nil, fmt.Errorf("watermark %s is %s", e, e.Type())
	}
	prog, err := expr.Compile([]expr.Expr{e}, schema, expr.Options{})
	if err != nil {
		return nil, fmt.Errorf("compiling watermark %s: %w", e, err)
	}
	a.prog, a.units, a.out = prog, e.Type().UnitsPerSecond(), make([]batch.Vec, 1)
	return a, nil
}

// Declared reports whether there is a WATERMARK expression.
func (a *Assigner) Declared() bool { return a.prog != nil }

// Current is a partition's watermark, batch.NoWatermark when none.
func (a *Assigner) Current(partition int32) int64 { return a.current[partition] }

// Set restores a partition's watermark.
func (a *Assigner) Set(partition int32, watermark int64) { a.current[partition] = watermark }

// Advance fills b.Watermark and moves the partitions' watermarks behind the
// batch. A row whose expression is NULL or an error moves nothing.
func (a *Assigner) Advance(ctx *expr.Context, b *batch.Batch) {
	if a.prog == nil {
		b.Watermark = nil
		return
	}
	a.prog.Eval(ctx, b, nil, a.out)
	if cap(a.buf) < b.Len {
		a.buf = make([]int64, b.Len)
	}
	b.Watermark = a.buf[:b.Len]
	v := &a.out[0]
	for r := range b.Runs {
		run := &b.Runs[r]
		wm := a.current[run.Partition]
		for i := int(run.FirstRow); i < int(run.FirstRow+run.Rows); i++ {
			b.Watermark[i] = wm
			if !v.IsNull(i) {
				wm = max(wm, Millis(v.Int64(i), a.units))
			}
		}
		a.current[run.Partition] = wm
	}
}

// Millis converts a timestamp of the given units per second to milliseconds,
// rounding down.
func Millis(ts, units int64) int64 { return types.FloorDiv(ts, units/1000) }

// Late reports whether a row is late for a window: its partition's watermark
// before it is at or past the window's last millisecond plus the lateness.
func Late(watermark, windowEnd, lateness int64) bool {
	return watermark != batch.NoWatermark && watermark >= windowEnd-1+lateness
}
