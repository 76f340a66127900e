package operator

import (
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// spillPlace is where an operator spills. Without a store it does not.
type spillPlace struct {
	store *spill.Store
	// budget is the bytes of state from which on it spills while it loads.
	budget int64
	buf    []byte
}

func (p *spillPlace) SpillTo(s *spill.Store, budget int64) { p.store, p.budget = s, budget }

// over reports more in memory than there should be.
func (p *spillPlace) over(bytes int64) bool { return p.store != nil && bytes > p.budget }

// rangeBytes is how much of what is on disk is gone through at a time.
func (p *spillPlace) rangeBytes() int64 { return min(max(p.budget/32, 1<<10), 4<<20) }

// write writes a file with the runs that f begins. They are there when it has no error.
func (p *spillPlace) write(f func(w *spill.Writer) error) error {
	w, err := p.store.NewWriter()
	if err != nil {
		return err
	}
	if err := f(w); err != nil {
		w.Abort()
		return err
	}
	return w.Finish()
}

// writeRuns writes n runs: f writes the blocks of each.
func (p *spillPlace) writeRuns(n int, f func(w *spill.Writer, i int) error) ([]*spill.Run, error) {
	runs := make([]*spill.Run, n)
	return runs, p.write(func(w *spill.Writer) error {
		for i := range runs {
			runs[i] = w.Begin(0)
			if err := f(w, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads a block of a run. It is good until the next one is read or written.
func (p *spillPlace) read(r *spill.Run, block int) (*state.Reader, error) {
	buf, err := r.Read(block, p.buf)
	if err != nil {
		return nil, err
	}
	p.buf = buf
	return state.NewReader(buf), nil
}

// parts begins a saved state. head begins a part of n pieces; more: there is another one.
func (p *spillPlace) parts(to *state.Payload, head func(n int, more bool) []byte) *parted {
	limit := int64(PartBytes)
	if p.store != nil {
		limit = min(max(p.budget/16, 1<<10), PartBytes)
	}
	return &parted{to: to, limit: limit, head: head}
}
