package keyed

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/state/spill"
)

// spillStore is the place on disk of a task, nil: there is none.
func (r *Stages) spillStore(task int) *spill.Store {
	if r.spillFS == nil {
		return nil
	}
	return spill.New(r.spillFS, r.spillFS.Join(r.spillDir, strconv.Itoa(task)))
}

// openSpill removes what an earlier run has left on disk.
func (r *Stages) openSpill() error {
	if r.spillFS == nil {
		return nil
	}
	if err := r.spillFS.RemoveAll(r.spillDir); err != nil {
		return fmt.Errorf("removing what an earlier run has spilled: %w", err)
	}
	return nil
}

// letGo ends the state of the tasks, in memory and on disk, after the last of them has
// ended.
func (r *Stages) letGo() {
	for _, t := range r.tasks {
		t.hold(0)
	}
	if r.spillFS == nil {
		return
	}
	for _, t := range r.tasks {
		if err := t.spill.Close(); err != nil {
			r.env.Log.Warn("removing spilled state failed", "error", err)
		}
	}
	// The next start tries again.
	if err := r.spillFS.RemoveAll(r.spillDir); err != nil {
		r.env.Log.Warn("removing spilled state failed", "error", err)
	}
}

// largest are the operators with state, those with most of it first.
func (t *task) largest() []graph.NodeID {
	ids := slices.Clone(t.order)
	slices.SortStableFunc(ids, func(a, b graph.NodeID) int { return cmp.Compare(t.states[b].Bytes(), t.states[a].Bytes()) })
	return ids
}

// leastSpill is the part of the budget that is worth a file: where other state takes
// the memory, what can spill does not go to disk row by row.
const leastSpill = 16

// spillState moves state to disk until the rest is within the budget, and gives its
// size.
func (t *task) spillState() (int64, error) {
	n := t.bytes.Load()
	for _, id := range t.largest() {
		k, ok := t.states[id].(operator.Spilling)
		if !ok || k.Bytes() < t.r.opts.SpillBytes/leastSpill {
			continue
		}
		if err := k.Spill(); err != nil {
			return 0, err
		}
		if n = t.measure(); n <= t.r.opts.SpillBytes {
			break
		}
	}
	return n, nil
}

// limitError names the operator that has most of the state.
func (t *task) limitError(n int64) error {
	e := &StateLimitError{Stage: t.st.name, Bytes: n, Limit: t.r.opts.StateBytes}
	id := t.largest()[0]
	if e.Spills = graph.Spills(t.r.job.Nodes[id].Op) && t.spill != nil; e.Spills {
		e.Spilled = t.spill.Bytes()
	}
	e.Operator, e.Kind = t.r.plan.statePath(id), t.states[id].Kind()
	return e
}
