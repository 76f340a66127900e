package operator

import (
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// Each run of a Rank has the first rows of keys of a part of a window's input, in order
// of hashes; they are merged when the window is over.
var _ Spilling = (*Rank)(nil)

// leastPane is the part of the budget that the rows of a window must take to be worth a
// run.
const leastPane = 64

// SpillTo implements Spilling.
func (r *Rank) SpillTo(s *spill.Store, budget int64) { r.disk.SpillTo(s, budget) }

// Spilled implements Spilling.
func (r *Rank) Spilled() bool {
	return slices.ContainsFunc(r.open, func(p *rankPane) bool { return len(p.runs) > 0 })
}

// Spill implements Spilling.
func (r *Rank) Spill() error {
	if r.disk.store == nil {
		return nil
	}
	var move []*rankPane
	for _, p := range r.open {
		if len(p.slots) > 0 && p.bytes() > r.disk.budget/leastPane {
			move = append(move, p)
		}
	}
	return r.move(move)
}

func (p *rankPane) bytes() int64 { return p.keys.Bytes() + p.rows.bytes() + int64(4*cap(p.slots)) }

// move writes the rows of windows to disk, as a run each.
func (r *Rank) move(panes []*rankPane) error {
	if len(panes) == 0 {
		return nil
	}
	runs, err := r.disk.writeRuns(len(panes), func(w *spill.Writer, i int) error { return r.writePane(w, panes[i]) })
	if err != nil {
		return err
	}
	for i, p := range panes {
		empty := r.newPane(p.Span)
		empty.runs = append(p.runs, runs[i])
		*p = *empty
	}
	return nil
}

// writePane writes the first rows of each key, the keys in order of their hashes.
func (r *Rank) writePane(w *spill.Writer, p *rankPane) error {
	r.clear(p)
	rows, _ := r.first(p) // by slot
	from := make([]int, p.keys.Len()+1)
	for i, row := range rows {
		from[p.slots[row]+1] = i + 1
	}
	for i := range p.keys.Len() {
		from[i+1] = max(from[i+1], from[i])
	}
	slots := byHash(p.keys)
	n := int(max(min(blockBytes, r.disk.rangeBytes())*int64(len(slots))/max(p.bytes(), 1), 1))
	var hashes []uint64
	for len(slots) > 0 {
		chunk := hashChunk(p.keys, slots, n)
		slots = slots[len(chunk):]
		sel := batch.Sel{}
		hashes = hashes[:0]
		for _, slot := range chunk {
			for _, row := range rows[from[slot]:from[slot+1]] {
				sel, hashes = append(sel, row), append(hashes, p.rows.hashes[row])
			}
		}
		if len(sel) == 0 {
			continue
		}
		r.disk.buf = p.rows.save(r.disk.buf[:0], sel)
		if err := w.Block(r.disk.buf, hashes); err != nil {
			return err
		}
	}
	return nil
}

// each calls f with windows that have the rows of p, those of a key in one of them: with
// p where nothing of it is on disk, else with one range of hashes after the other.
func (r *Rank) each(p *rankPane, f func(*rankPane) error) error {
	if len(p.runs) == 0 {
		return f(p)
	}
	if len(p.slots) > 0 {
		if err := r.move([]*rankPane{p}); err != nil {
			return err
		}
	}
	for _, x := range spill.Ranges(p.runs, r.disk.rangeBytes()) {
		part := r.newPane(p.Span)
		for _, run := range p.runs {
			for block := range run.In(x) {
				if err := r.read(part, run, block, x); err != nil {
					return err
				}
			}
		}
		r.findKeys(part)
		if err := f(part); err != nil {
			return err
		}
	}
	for _, run := range p.runs {
		run.Release()
	}
	return nil
}

// read adds the rows of a block that are of a range.
func (r *Rank) read(p *rankPane, run *spill.Run, block int, x spill.Range) error {
	in, err := r.disk.read(run, block)
	if err != nil {
		return err
	}
	saved, err := p.rows.read(in)
	if err != nil {
		return err
	}
	for i, h := range saved.hashes {
		if x.Has(h) {
			p.rows.addSaved(saved, i)
		}
	}
	return nil
}

// findKeys finds the keys of rows that were added behind the others.
func (r *Rank) findKeys(p *rankPane) {
	added := batch.Sel(slotsOf(len(p.slots), p.rows.batch.Len, nil))
	p.slots = append(p.slots, make([]int32, len(added))...)
	p.keys.Find(p.rows.columns(r.op.Keys, nil), p.rows.hashes, added, p.slots)
	p.tidy = len(p.slots)
}

// SaveTo implements Spilling: as Save, with windows in pieces.
func (r *Rank) SaveTo(p *state.Payload) error {
	w := r.disk.parts(p, func(n int, _ bool) []byte {
		return binary.AppendUvarint(binary.AppendVarint(nil, r.fired), uint64(n))
	})
	for _, x := range r.open {
		head := x.Span.append(nil)
		var sel batch.Sel
		if len(x.slots) > 0 {
			sel, _ = r.first(x)
		}
		kept, each := x.rows.snapshot(), x.bytes()/int64(max(len(sel), 1))
		for n := w.chunk(len(sel), x.bytes()); len(sel) > 0; sel = sel[min(n, len(sel)):] {
			some := sel[:min(n, len(sel))]
			w.later(each*int64(len(some)), func(dst []byte) []byte { return kept.save(append(dst, head...), some) })
		}
		for _, run := range x.runs {
			w.run(run, head)
		}
	}
	w.finish()
	return nil
}
