package operator

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// Spilling is a Keyed that can move state to disk, so that it may have more than there
// is memory for. What it says and saves is the same wherever its state lies.
type Spilling interface {
	Keyed
	// SpillTo gives it a place on disk, and the bytes from which on it moves state
	// there by itself while it loads. It is called before anything else; without it
	// nothing spills.
	SpillTo(s *spill.Store, budget int64)
	// Spill moves state to disk until what is in memory is a fraction of the budget,
	// or nothing is left that can be moved.
	Spill() error
	// Spilled reports that some state is on disk: SaveTo is called in place of Save
	// then, and where there is more of it than PartBytes.
	Spilled() bool
	// SaveTo appends the state in parts of at most about PartBytes, each of which Load takes.
	// The payload holds what it needs on disk until it is released.
	SaveTo(p *state.Payload) error
}

// PartBytes is about the length of a part of large saved state: what is in memory beside
// the state while it is loaded.
const PartBytes = 256 << 10

// blockBytes is about the length of a block that is gone through with many others.
const blockBytes = 64 << 10

// spiller is what operators have for the tables of theirs that spill: those whose
// groups are merged from parts, in any order.
type spiller struct {
	spillPlace
	// fresh makes an empty table.
	fresh func() *aggTable
	own   []int // the accumulators by their number in a block
	// swell is how much longer what is on disk is in memory.
	swell int64
}

// spill moves tables to disk, the largest first, until a quarter of the budget is
// left.
func (s *spiller) spill(tables []*aggTable) error {
	if s.store == nil {
		return nil
	}
	move := s.largest(len(tables), func(i int) int64 {
		if tables[i].keys.Len() == 0 {
			return 0
		}
		return tables[i].bytes()
	})
	out := make([]*aggTable, len(move))
	for k, i := range move {
		out[k] = tables[i]
	}
	return s.move(out)
}

// largest are the numbers of the largest of n things, without which a quarter of the
// budget is left; those of no bytes are not among them.
func (s *spiller) largest(n int, bytes func(int) int64) []int {
	var all []int
	var sum int64
	sizes := make([]int64, n)
	for i := range sizes {
		if sizes[i] = bytes(i); sizes[i] > 0 {
			all, sum = append(all, i), sum+sizes[i]
		}
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	for k, i := range all {
		if sum <= s.budget/4 {
			return all[:k]
		}
		sum -= sizes[i]
	}
	return all
}

// move writes tables to disk and empties them.
func (s *spiller) move(tables []*aggTable) error {
	if len(tables) == 0 {
		return nil
	}
	runs, err := s.writeRuns(len(tables), func(w *spill.Writer, i int) error { return s.writeTable(w, tables[i]) })
	if err != nil {
		return err
	}
	for i, t := range tables {
		empty := s.fresh()
		t.keys, t.accs, t.reached, t.runs = empty.keys, empty.accs, empty.reached, append(t.runs, runs[i])
	}
	return nil
}

// writeTable writes the groups of a table in order of their hashes.
func (s *spiller) writeTable(w *spill.Writer, t *aggTable) error {
	slots, held, written := byHash(t.keys), t.held(), int64(0)
	n := int(max(blockBytes*int64(len(slots))/max(held, 1), 1))
	for len(slots) > 0 {
		chunk := hashChunk(t.keys, slots, n)
		s.buf = t.saveSlots(s.buf[:0], chunk)
		written += int64(len(s.buf))
		if err := w.Block(s.buf, hashesOf(t.keys, chunk)); err != nil {
			return err
		}
		slots = slots[len(chunk):]
	}
	if held > blockBytes { // in less, what is there for no group is most of it
		s.swell = max(s.swell, held/max(written, 1))
	}
	return nil
}

// numbers are 0 to n-1.
func numbers(n int, buf []int) []int {
	for buf = buf[:min(n, len(buf))]; len(buf) < n; buf = append(buf, len(buf)) {
	}
	return buf
}

// byHash are the slots of keys in the order of their hashes.
func byHash(k *state.Keys) []int32 {
	out := make([]int32, 0, k.Len())
	for slot := range int32(k.Len()) {
		if !k.Deleted(slot) {
			out = append(out, slot)
		}
	}
	hashes := k.Hashes()
	slices.SortFunc(out, func(a, b int32) int { return cmp.Compare(hashes[a], hashes[b]) })
	return out
}

// hashChunk is the first n of slots in order of hashes, and more while the hash is
// the same.
func hashChunk(k *state.Keys, slots []int32, n int) []int32 {
	n = min(n, len(slots))
	for n < len(slots) && k.Hash(int(slots[n])) == k.Hash(int(slots[n-1])) {
		n++
	}
	return slots[:n]
}

func hashesOf(k *state.Keys, slots []int32) []uint64 {
	out := make([]uint64, len(slots))
	for i, slot := range slots {
		out[i] = k.Hash(int(slot))
	}
	return out
}

// each calls f with tables that have the groups of all of tables, each group merged
// and in one of them: with the one table as it is where nothing is on disk, else with
// one range of hashes after the other.
func (s *spiller) each(tables []*aggTable, f func(*aggTable) error) error {
	if len(tables) == 1 && len(tables[0].runs) == 0 {
		return f(tables[0])
	}
	if err := s.move(slices.DeleteFunc(slices.Clone(tables), func(t *aggTable) bool { return t.keys.Len() == 0 })); err != nil {
		return err
	}
	var runs []*spill.Run
	for _, t := range tables {
		runs = append(runs, t.runs...)
	}
	for _, x := range spill.Ranges(runs, s.mergeBytes(len(runs))/max(s.swell, 1)) {
		part := s.fresh()
		for _, r := range runs {
			for i := range r.In(x) {
				if err := s.merge(part, r, i, x); err != nil {
					return err
				}
			}
		}
		if err := f(part); err != nil {
			return err
		}
	}
	return nil
}

// mergeBytes is how much of so many runs is in memory at a time: a block of each as far as
// there is room, since one is read for each range that has some of its hashes.
func (s *spiller) mergeBytes(runs int) int64 {
	return max(s.rangeBytes(), min(int64(runs)*blockBytes, s.budget/4))
}

// eachKept is each of a table that stays. Where it has many runs they become one.
func (s *spiller) eachKept(t *aggTable, f func(*aggTable) error) error {
	if len(t.runs) < mergeRuns {
		return s.each([]*aggTable{t}, f)
	}
	var merged *spill.Run
	err := s.write(func(w *spill.Writer) error {
		merged = w.Begin(0)
		return s.each([]*aggTable{t}, func(part *aggTable) error {
			if err := s.writeTable(w, part); err != nil {
				return err
			}
			return f(part)
		})
	})
	if err != nil {
		return err
	}
	t.release()
	t.runs = append(t.runs, merged)
	return nil
}

// merge folds the keys of a block that are of a range into a table.
func (s *spiller) merge(t *aggTable, r *spill.Run, block int, x spill.Range) error {
	in, err := s.read(r, block)
	if err != nil {
		return err
	}
	s.own = numbers(max(len(t.accs), len(t.reached)), s.own)
	_, err = t.loadWhere(in, t.types, func(_ []*batch.Vec, _ int, h uint64) bool { return x.Has(h) }, s.own[:len(t.accs)], s.own[:len(t.reached)])
	return err
}

// release lets go of what a table has on disk.
func (t *aggTable) release() {
	for _, r := range t.runs {
		r.Release()
	}
	t.runs = nil
}

// empty reports a table without keys.
func (t *aggTable) empty() bool { return t.keys.Len() == 0 && len(t.runs) == 0 }
