package operator

import "github.com/millrace/millrace/runtime/batch"

// Clocked is an operator whose windows end by the clock of its task, not by
// watermarks, until the input ends: rows are given to it with the time of the clock
// in their time column, in its order.
type Clocked interface {
	Keyed
	// Due is the instant, in ms, at which Advance to the millisecond before it has
	// something to do; ok is false while there are no rows.
	Due() (at int64, ok bool)
	// Fired is the last time that Advance was given, also before a restart;
	// batch.NoWatermark when none.
	Fired() int64
}

// Due implements Clocked.
func (w *WindowAggregate) Due() (at int64, ok bool) {
	if len(w.panes.open) == 0 {
		return 0, false
	}
	return w.panes.open[0].EndTime, true
}

// Fired implements Clocked.
func (w *WindowAggregate) Fired() int64 { return w.panes.fired }

// Due implements Clocked.
func (a *SliceAggregate) Due() (at int64, ok bool) {
	for _, s := range a.open {
		if end := a.windows.instant(s.next); !ok || end < at {
			at, ok = end, true
		}
	}
	return at, ok
}

// Fired implements Clocked.
func (a *SliceAggregate) Fired() int64 { return a.fired }

// Due implements Clocked. The session may have grown since it was put among the
// ends; then Advance puts it there anew.
func (a *SessionAggregate) Due() (at int64, ok bool) {
	return a.sessions.next()
}

// Fired implements Clocked.
func (a *SessionAggregate) Fired() int64 { return a.sessions.fired }

// Timed is an operator that gives rows by the clock of its task, between watermarks.
type Timed interface {
	Keyed
	// NextFiring is the instant, in ms, at which Fire has something to give; ok is
	// false while there is nothing.
	NextFiring() (at int64, ok bool)
	// Fire gives what is to go out up to an instant.
	Fire(now int64, out *Results) error
}

// AtTime is a batch with another time in one of its columns, in ms and for all rows,
// and without watermarks: nothing is late for the clock.
type AtTime struct {
	batch batch.Batch
	cols  []batch.Vec
	at    batch.Vec
}

// Of gives a view of b, which holds until the next call.
func (a *AtTime) Of(b *batch.Batch, column int, ms int64) *batch.Batch {
	t := b.Schema.Fields[column].Type
	a.at.Reset(t, 1)
	a.at.I64[0] = ms * (t.UnitsPerSecond() / 1000)
	a.at.Enc, a.at.Len = batch.Const, b.Len
	a.cols = append(a.cols[:0], b.Cols...)
	a.cols[column] = a.at
	a.batch = *b
	a.batch.Cols, a.batch.Watermark = a.cols, nil
	return &a.batch
}
