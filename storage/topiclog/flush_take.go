package topiclog

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/storage/manifest"
)

// What a flush takes of the partitions while it holds the shard's mutex, and what it
// settles when the manifest has it. With tens of thousands of partitions both are felt
// by every append, so they copy and leave the rest for later.

// flushPart is what a flush takes of one partition.
type flushPart struct {
	p       *partition
	batches []cached // for the mixed segment
	seg     segPart
	// own, if it is not nil, has what comes after batches; behind follows it.
	own    *sealed
	behind []cached
	// limit is the offset behind all of it.
	limit int64
}

// bytes is the size of everything in the part.
func (f *flushPart) bytes() (n int64) {
	for i := range f.batches {
		n += int64(f.batches[i].size)
	}
	for i := range f.behind {
		n += int64(f.behind[i].size)
	}
	if f.own != nil {
		n += f.own.ref.bytes
	}
	return n
}

// takeParts lists what is cached; mu is held.
func (sh *shard) takeParts() []flushPart {
	parts := slices.Grow(sh.flushing.parts[:0], len(sh.dirty))
	for _, p := range sh.dirty {
		n, from := len(p.recent), 0
		for from < n && p.recent[from].last < p.start {
			from++
		}
		if from == n || p.dead.Load() {
			continue
		}
		// The list only grows behind n and its elements never change.
		parts = append(parts, flushPart{p: p, batches: p.recent[from:n:n], seg: segPart{id: p.id}, limit: p.end})
	}
	return parts
}

// sortParts sorts by partition. There may be tens of thousands, so it is their short
// keys that are sorted.
func (sh *shard) sortParts(parts []flushPart) []flushPart {
	if slices.IsSortedFunc(parts, func(a, b flushPart) int { return cmp.Compare(a.seg.id, b.seg.id) }) {
		return parts
	}
	f := &sh.flushing
	f.keys = slices.Grow(f.keys[:0], len(parts))[:len(parts)]
	for i := range parts {
		f.keys[i] = uint64(parts[i].seg.id)<<32 | uint64(i)
	}
	slices.Sort(f.keys)
	sorted := slices.Grow(f.sorted[:0], len(parts))[:len(parts)]
	for i, k := range f.keys {
		sorted[i] = parts[uint32(k)]
	}
	f.sorted = sorted
	return sorted
}

// flushMemory is what flushes work in, one after another: with tens of thousands of
// partitions it is megabytes, which each would take anew.
type flushMemory struct {
	parts, sorted []flushPart
	keys          []uint64
	states        []takenState
}

// release lets go of what the last flush worked on, but for the memory.
func (f *flushMemory) release() {
	clear(f.parts)
	clear(f.sorted)
	clear(f.states)
}

// takeEpochs makes the edits for the leader epochs that only the journal has; the
// shard's mutex is held.
func takeEpochs(parts []flushPart) *epochsEdit {
	var edits epochsEdit
	for i := range parts {
		p := parts[i].p
		n := len(p.epochs)
		// The latest one grows with each append.
		for k := max(n-max(p.newEpochs, 1), 0); k < n && p.epochs[k].Start < p.end; k++ {
			edits.add(p.id, p.epochs[k].below(p.end))
		}
	}
	return &edits
}

// settleEpochs says that the manifest has the epochs of the records below an offset;
// the shard's mutex is held.
func (p *partition) settleEpochs(limit int64) {
	p.newEpochs = 0
	for k := len(p.epochs); k > 0 && p.epochs[k-1].Start >= limit; k-- {
		p.newEpochs++
	}
}

// freshNotes says that the notes of a partition's records below limit go into the
// manifest with a flush.
type freshNotes struct {
	p     *partition
	limit int64
}

// takeNotes makes the edits for the notes that only the journal has; mu is held.
func (sh *shard) takeNotes() ([]manifest.Edit, []freshNotes) {
	var edits []manifest.Edit
	var out []freshNotes
	for _, p := range sh.freshNotes {
		for key, l := range p.notes {
			for i := len(l.notes) - l.fresh; i < len(l.notes) && l.notes[i].LastOffset < p.end; i++ {
				edits = append(edits, noteEdit(p.id, key, &l.notes[i]))
			}
		}
		out = append(out, freshNotes{p, p.end})
	}
	return edits, out
}

// settle notes what the manifest has by now; the shard's mutex is held. It goes
// by offsets: notes may have been trimmed, and others added, since the edits were
// made.
func (f *freshNotes) settle() {
	for _, l := range f.p.notes {
		l.fresh = 0
		for k := len(l.notes); k > 0 && l.notes[k-1].LastOffset >= f.limit; k-- {
			l.fresh++
		}
	}
}
