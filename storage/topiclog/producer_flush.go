package topiclog

import (
	"slices"

	"github.com/millrace/millrace/storage/manifest"
)

// stateSlab is how many states are allocated at once: a flush takes and gives back
// those of tens of thousands of producers.
const stateSlab = 64

// spareState returns memory for a state; mu is held.
func (sh *shard) spareState() *producerState {
	if len(sh.states) == 0 {
		sh.states = make([]producerState, stateSlab)
	}
	st := &sh.states[0]
	sh.states = sh.states[1:]
	return st
}

// trimProducers forgets the aborted transactions before the partition's start. What
// cached batches that are dropped there say of their producers goes with the next
// flush all the same, since the journal has them until then.
func (p *partition) trimProducers() {
	ps := p.producers
	if ps == nil {
		return
	}
	n := 0
	for n < len(ps.aborted) && ps.aborted[n].LastOffset < p.start {
		n++
	}
	if n > 0 {
		ps.aborted = append([]AbortedTransaction(nil), ps.aborted[n:]...)
		ps.freshAborted = min(ps.freshAborted, len(ps.aborted))
	}
}

// takenProducers are what a flush writes down of producers.
type takenProducers struct {
	states  []takenState
	aborted []takenAborted
	edits   []manifest.Edit // of the aborted transactions
}

// takenState is a state as of the flush.
type takenState struct {
	part PartitionID
	freshState
	st producerState
}

// takenAborted says that the aborted transactions of a partition that ended below an
// offset go with the flush.
type takenAborted struct {
	p     *partition
	limit int64
}

// takeProducers copies the states that the manifest does not have, and makes the
// edits of the aborted transactions; mu is held. The flush takes everything published,
// so the present states are those after what it writes.
func (sh *shard) takeProducers() *takenProducers {
	t := &takenProducers{states: slices.Grow(sh.flushing.states[:0], len(sh.freshProducers))}
	for _, p := range sh.freshProducers {
		ps := p.producers
		if p.dead.Load() || ps == nil {
			continue
		}
		for _, f := range ps.fresh {
			t.states = append(t.states, takenState{p.id, f, f.x.producerState})
		}
		if ps.freshAborted > 0 {
			for i := len(ps.aborted) - ps.freshAborted; i < len(ps.aborted); i++ {
				t.edits = append(t.edits, abortedEdit(p.id, &ps.aborted[i]))
			}
			t.aborted = append(t.aborted, takenAborted{p, p.end})
		}
	}
	return t
}

// encode makes the edits. It takes no lock. The aborted transactions come first: when
// there are too many edits for one commit, a crash may leave the first ones alone. Who
// has a state takes nothing from a marker in the journal that the state knows, so the
// transaction that it aborted must be there by then.
func (t *takenProducers) encode() []manifest.Edit {
	var w producersEdit
	for i := range t.states {
		f := &t.states[i]
		w.add(f.part, f.id, &f.st)
	}
	return append(t.edits, w.edits()...)
}

// settleProducers notes what the manifest has by now and forgets the partitions of
// which it has all; mu is held.
func (sh *shard) settleProducers(t *takenProducers) {
	for i := range t.states {
		f := &t.states[i]
		switch {
		case f.x.flushed == nil: // cannot be: only this settles
		case f.st.lastOffset == f.x.lastOffset:
			f.x.flushed = nil
		default:
			*f.x.flushed = f.st
		}
	}
	for _, a := range t.aborted {
		ps := a.p.producers
		if ps == nil {
			continue
		}
		ps.freshAborted = 0
		for n := len(ps.aborted); n > 0 && ps.aborted[n-1].LastOffset >= a.limit; n-- {
			ps.freshAborted++
		}
	}
	kept := sh.freshProducers[:0]
	for _, p := range sh.freshProducers {
		ps := p.producers
		if p.dead.Load() || ps == nil {
			continue
		}
		ps.fresh = slices.DeleteFunc(ps.fresh, func(f freshState) bool { return f.x.flushed == nil })
		if ps.listed = len(ps.fresh) > 0 || ps.freshAborted > 0; ps.listed {
			kept = append(kept, p)
		}
	}
	clear(sh.freshProducers[len(kept):])
	sh.freshProducers = kept
}

// dumpProducers appends what segments say of the producers.
func (p *partition) dumpProducers(states *producersEdit, all *[]manifest.Edit) {
	ps := p.producers
	if ps == nil {
		return
	}
	for id, x := range ps.states {
		st := &x.producerState
		if x.flushed != nil {
			st = x.flushed
		}
		states.add(p.id, id, st)
	}
	for i := range len(ps.aborted) - ps.freshAborted {
		*all = append(*all, abortedEdit(p.id, &ps.aborted[i]))
	}
}
