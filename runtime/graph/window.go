package graph

import (
	"time"

	"github.com/millrace/millrace/runtime/batch"
)

// WindowKind is how time is divided into windows.
type WindowKind uint8

const (
	// Tumble: windows of Size, one behind the other.
	Tumble WindowKind = iota
	// Hop: windows of Size, one beginning every Step.
	Hop
	// Cumulate: windows that begin as those of Tumble do and end every Step, up to
	// Size.
	Cumulate
	// Session: windows of one key that end Size after their last row.
	Session
	// Given: the windows stand in the columns Start and End.
	Given
)

// Window is how time is divided into windows.
type Window struct {
	Kind WindowKind
	// Size and Offset in milliseconds; of Session Size is the gap.
	Size, Offset int64
	// Step in milliseconds, of Hop (the slide) and Cumulate.
	Step int64
	// Start and End are the columns of Given.
	Start, End int
	// Zone is the session zone for TIMESTAMP_LTZ row time: windows align to
	// its wall clock; nil for TIMESTAMP.
	Zone *time.Location
	// Processing: a row's time is that at which the aggregate takes it, whatever the
	// time column says, and windows end by the clock; of a WindowAggregate alone.
	Processing bool
}

func (v *validator) window(w Window, time int, in *batch.Schema) error {
	switch {
	case w.Kind == Given:
		for _, c := range []int{w.Start, w.End} {
			if c < 0 || c >= len(in.Fields) || !in.Fields[c].Type.IsTimestamp() {
				return v.fault("window column %d is no timestamp", c)
			}
		}
		if time < 0 {
			return nil
		}
	case w.Size <= 0:
		return v.fault("window size %d ms", w.Size)
	case (w.Kind == Hop || w.Kind == Cumulate) && (w.Step <= 0 || w.Step > w.Size):
		return v.fault("window step %d ms of size %d ms", w.Step, w.Size)
	case w.Kind == Cumulate && w.Size%w.Step != 0:
		return v.fault("window size %d ms is no multiple of its step %d ms", w.Size, w.Step)
	}
	if time < 0 || time >= len(in.Fields) || !in.Fields[time].Type.IsTimestamp() {
		return v.fault("row time column %d is no timestamp", time)
	}
	return nil
}
