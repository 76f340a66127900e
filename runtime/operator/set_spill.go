package operator

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// Each run of a SetOperation has rows with how often each side has them in a part of the
// input, in order of hashes; they are added up at the end.
var _ Spilling = (*SetOperation)(nil)

// SpillTo implements Spilling.
func (s *SetOperation) SpillTo(store *spill.Store, budget int64) { s.disk.SpillTo(store, budget) }

// Spilled implements Spilling.
func (s *SetOperation) Spilled() bool { return len(s.runs) > 0 }

// Spill implements Spilling.
func (s *SetOperation) Spill() error {
	if s.disk.store == nil || s.keys.Len() == 0 {
		return nil
	}
	slots := byHash(s.keys)
	n := int(max(min(blockBytes, s.disk.rangeBytes())*int64(len(slots))/max(s.inMemory(), 1), 1))
	runs, err := s.disk.writeRuns(1, func(w *spill.Writer, _ int) error {
		for len(slots) > 0 {
			chunk := hashChunk(s.keys, slots, n)
			s.disk.buf = s.saveSlots(s.disk.buf[:0], chunk)
			if err := w.Block(s.disk.buf, hashesOf(s.keys, chunk)); err != nil {
				return err
			}
			slots = slots[len(chunk):]
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.runs = append(s.runs, runs...)
	s.keys, s.counts = state.NewKeys(s.types), [2][]int64{}
	return nil
}

// saveSlots appends rows, then how often each side has each.
func (s *SetOperation) saveSlots(dst []byte, slots []int32) []byte {
	dst = appendKeys(dst, s.keys, slots)
	for _, side := range s.counts {
		for _, slot := range slots {
			dst = binary.AppendUvarint(dst, uint64(side[slot]))
		}
	}
	return dst
}

// loadSlots adds what saveSlots has appended, as far as it is wanted.
func (s *SetOperation) loadSlots(r *state.Reader, is func(hash uint64) bool) error {
	cols, hashes, err := readKeys(r, s.types)
	if err != nil {
		return err
	}
	slots := slices.Repeat([]int32{-1}, len(hashes))
	for i, h := range hashes {
		if is(h) {
			slots[i] = s.keys.FindOne(cols, h, i)
		}
	}
	s.resize()
	for side := range s.counts {
		for _, slot := range slots {
			n := r.Uvarint()
			if n > math.MaxInt64 {
				return state.ErrCorrupt
			}
			if slot >= 0 {
				s.counts[side][slot] += int64(n)
			}
		}
	}
	return r.Err()
}

// closeRuns gives the rows of what is on disk, a range of hashes at a time.
func (s *SetOperation) closeRuns(out *Results) error {
	if err := s.Spill(); err != nil {
		return err
	}
	for _, x := range spill.Ranges(s.runs, s.disk.rangeBytes()) {
		part := NewSetOperation(s.op, s.schema)
		for _, run := range s.runs {
			for block := range run.In(x) {
				in, err := s.disk.read(run, block)
				if err != nil {
					return err
				}
				if err := part.loadSlots(in, x.Has); err != nil {
					return err
				}
			}
		}
		if err := part.give(out); err != nil {
			return err
		}
	}
	for _, run := range s.runs {
		run.Release()
	}
	s.runs = nil
	return nil
}

// SaveTo implements Spilling: as Save, with several times rows.
func (s *SetOperation) SaveTo(p *state.Payload) error {
	w := s.disk.parts(p, func(int, bool) []byte { return s.head() })
	slots := slotsOf(0, s.keys.Len(), nil)
	for n := w.chunk(len(slots), s.inMemory()); len(slots) > 0; slots = slots[min(n, len(slots)):] {
		w.bytes(s.saveSlots(nil, slots[:min(n, len(slots))]))
	}
	for _, run := range s.runs {
		w.run(run, nil)
	}
	w.finish()
	return nil
}

var _ Spilling = (*SetChanges)(nil)

// SpillTo implements Spilling.
func (s *SetChanges) SpillTo(store *spill.Store, budget int64) { s.disk.SpillTo(store, budget) }

// Spill implements Spilling.
func (s *SetChanges) Spill() error { return s.disk.evict() }

// Spilled implements Spilling.
func (s *SetChanges) Spilled() bool { return s.disk.spilled() }

// SaveTo implements Spilling: in each part no rows, then pieces up to the end.
func (s *SetChanges) SaveTo(p *state.Payload) error {
	s.disk.saveTo(s.disk.parts(p, func(_ int, more bool) []byte {
		return appendFollow(s.ages.save(appendKeys(nil, s.keys, []int32{}), nil), more)
	}))
	return nil
}

func (s *SetChanges) groupKeys() *state.Keys { return s.keys }
func (s *SetChanges) groupAges() *ages       { return &s.ages }
func (s *SetChanges) groupSlots() []int32    { return byHash(s.keys) }

func (s *SetChanges) part() (grouped, *groupDisk) {
	p := NewSetChanges(s.op, s.schema)
	p.ages.now = s.ages.now
	return p, &p.disk
}

// savePart implements grouped: rows, how often each side has them, rows that are not
// there any more, and the ages.
func (s *SetChanges) savePart(dst []byte, slots, gone []int32) []byte {
	dst = appendKeys(dst, s.keys, slots)
	for _, side := range s.counts {
		for _, slot := range slots {
			dst = binary.AppendUvarint(dst, uint64(side[slot]))
		}
	}
	return s.ages.save(s.disk.saveGone(dst, gone), slots)
}

// loadPart implements grouped.
func (s *SetChanges) loadPart(r *state.Reader, is wanted, now int64) error {
	cols, hashes, err := readKeys(r, s.types)
	if err != nil {
		return err
	}
	slots := slices.Repeat([]int32{-1}, len(hashes))
	for i, h := range hashes {
		if is(cols, i, h) {
			slots[i] = s.keys.FindOne(cols, h, i)
		}
	}
	s.resize()
	for side := range s.counts {
		for _, slot := range slots {
			n := r.Uvarint()
			if n > math.MaxInt64 {
				return state.ErrCorrupt
			}
			if slot >= 0 {
				s.counts[side][slot] = int64(n)
			}
		}
	}
	if err := s.disk.loadGone(r, is); err != nil {
		return err
	}
	at := readAges(r, len(hashes), now)
	for i, slot := range slots {
		if slot >= 0 {
			s.ages.hold(slot, at[i])
		}
	}
	return r.Err()
}

// leave implements grouped.
func (s *SetChanges) leave(slots []int32) {
	for _, slot := range slots {
		s.dropGroup(slot)
	}
	s.tidy()
}
