package lane

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/watermark"
)

// lateFilter is of an output that takes the late rows of a window: the same
// decision, by the same watermark, as that of the output which hands over to the
// window, so that each row is in one of the two.
type lateFilter struct {
	windows *operator.Windows
	time    int
	latency int64
	// never: in batch mode nothing is late.
	never bool
	late  []bool // by source row: some row of it is late
}

func newLateFilter(f *graph.LateFilter, s *batch.Schema, never bool) (*lateFilter, error) {
	w, err := operator.WindowsOver(f.Window, s, f.Time)
	if err != nil {
		return nil, fmt.Errorf("windows of late rows: %w", err)
	}
	return &lateFilter{windows: w, time: f.Time, latency: f.Lateness, never: never}, nil
}

// passLate drops the rows that are not late, before anything else is asked of them.
func (o *output) passLate() {
	f := o.sink.late
	if f == nil {
		return
	}
	f.late = resizeTo(f.late, len(o.rows.fate))
	clear(f.late)
	for _, p := range o.parts {
		v := &p.Batch.Cols[f.time]
		each(p, func(i int32) {
			if f.never || v.IsNull(int(i)) {
				return
			}
			src := p.Source(i)
			end := f.windows.Latest(timeAt(v, int(i))).EndTime
			if watermark.Late(o.own(src), end, f.latency) {
				f.late[src] = true
			}
		})
	}
	inTime := rowReason{code: ledger.ReasonInTime}
	for _, p := range o.parts {
		each(p, func(i int32) {
			if src := p.Source(i); o.rows.fate[src] == live && !f.late[src] {
				o.rows.set(src, filtered, inTime)
			}
		})
	}
}

// own is how far a source row's own partition had come before it.
func (o *output) own(src int32) int64 {
	part := o.rows.in.batch.Runs[o.rows.runOf(src, 0)].Partition
	wm := o.rows.in.batch.Watermark
	if wm == nil {
		return batch.NoWatermark
	}
	// Invariant 7: the output's own watermark counts where the reader began at the
	// position of another one.
	return max(wm[src], o.tracker.Next(part).Watermark)
}

// timeAt is a row time in its column's units.
func timeAt(v *batch.Vec, i int) int64 {
	for v.Enc == batch.Dict {
		v, i = v.Dict, int(v.Codes[i])
	}
	return v.Int64(i)
}
