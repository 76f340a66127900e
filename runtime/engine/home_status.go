package engine

import (
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

// HomeStatus is where a table is.
type HomeStatus struct {
	Home, Place string
	Switches    uint32
	// Moving are partitions whose rows are being written anew, MovingRows those
	// rows.
	Moving     []string
	MovingRows int64
	// FailingSince is since when the home fails, zero: it serves; Why says how.
	FailingSince time.Time
	Why          string
}

func (r *Run) homeStatus(t *table) *HomeStatus {
	s := t.standby
	if s == nil {
		return nil
	}
	active, number := r.book.ActiveHome(t.fact.ID)
	out := &HomeStatus{Home: connector.HomeName(active), Place: s.Main, Switches: number}
	if active == connector.StandbyHome {
		out.Place = s.Standby.Standby
	}
	for _, m := range r.book.Moves(t.fact.ID, nil) {
		if !m.Done() {
			out.Moving = append(out.Moving, m.TablePartition)
		}
	}
	for _, n := range r.book.Moving(t.fact.ID) {
		out.MovingRows += n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.FailingSince = s.since
	if s.why != nil {
		out.Why = s.why.Error()
	}
	return out
}
