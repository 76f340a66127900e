package operator

import (
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// A window of a wide table has parts of its keys' rows on disk, which are merged when it
// goes out: nothing is looked for before. Windows that go out again keep their runs.
var _ Spilling = (*WideMerge)(nil)

// SpillTo implements Spilling.
func (w *WideMerge) SpillTo(s *spill.Store, budget int64) { w.panes.spiller.SpillTo(s, budget) }

// Spill implements Spilling.
func (w *WideMerge) Spill() error { return w.panes.spill() }

// Spilled implements Spilling.
func (w *WideMerge) Spilled() bool { return w.panes.spilled() }

// SaveTo implements Spilling.
func (w *WideMerge) SaveTo(p *state.Payload) error {
	w.panes.saveTo(p, w.saveHead())
	return nil
}
