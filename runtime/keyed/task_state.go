package keyed

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/state"
)

// save gives the state of all operators as it is now.
func (t *task) save() (*state.Sections, error) {
	var sections []state.Section
	for _, id := range t.order {
		k := t.states[id]
		path := t.r.plan.statePath(id)
		if s, ok := functionSection(t.r.plan.job, id, path); ok {
			sections = append(sections, s)
		}
		s := state.Section{Path: path, Kind: k.Kind(), Fingerprint: k.Fingerprint()}
		if d, ok := k.(operator.Spilling); ok && (d.Spilled() || k.Bytes() > operator.PartBytes) {
			s.Body = new(state.Payload)
			if err := d.SaveTo(s.Body); err != nil {
				return nil, err
			}
		} else {
			s.Payload = k.Save()
		}
		sections = append(sections, s)
	}
	return state.NewSections(sections), nil
}

// taker is an operator that a saved section goes into.
type taker struct {
	task *task
	op   operator.Keyed
}

// takers are the operators of tasks that a saved section goes into: none where it is the
// list of user functions, which is looked at here.
func takers(tasks []*task, s *state.Section, part []byte) ([]taker, error) {
	var out []taker
	for _, t := range tasks {
		for id, k := range t.states {
			switch {
			case t.r.plan.statePath(id) != s.Path:
			case s.Kind == kindUserFunctions:
				if err := checkFunctions(t.r.plan.job, id, s.Path, part); err != nil {
					return nil, err
				}
			case k.Kind() != s.Kind:
				return nil, &state.IncompatibleError{Path: s.Path, Reason: fmt.Sprintf("it is of %s, and the job has %s there now", s.Kind, k.Kind())}
			case k.Fingerprint() != s.Fingerprint:
				return nil, &state.IncompatibleError{Path: s.Path, Reason: fmt.Sprintf("it is of %s with other keys or another window", s.Kind)}
			default:
				out = append(out, taker{t, k})
			}
		}
	}
	return out, nil
}

// loadStates gives saved state to the tasks whose key groups it has, part by part: beside
// the state there is one part in memory, and what does not fit goes to disk at once.
// Invariant 8.
func (r *Stages) loadStates(from *checkpoint.Candidate) error {
	paths := map[string]bool{}
	for _, t := range r.tasks {
		for id := range t.states {
			paths[r.plan.statePath(id)] = true
		}
	}
	saved := map[string]bool{}
	var unused []string
	for i := range from.Stages {
		for k := range from.Stages[i].Blobs {
			b := &from.Stages[i].Blobs[k]
			tasks := slices.DeleteFunc(slices.Clone(r.tasks), func(t *task) bool {
				return !b.Groups.Overlaps(state.RangeOf(t.subtask, t.st.parallelism))
			})
			var section *state.Section
			var to []taker
			err := from.ReadState(b, func(s *state.Section, part []byte) (err error) {
				if s != section {
					section, saved[s.Path] = s, true
					if !paths[s.Path] && !slices.Contains(unused, s.Path) {
						unused = append(unused, s.Path)
					}
					if to, err = takers(tasks, s, part); err != nil {
						return err
					}
				}
				for _, x := range to {
					if err := x.load(s.Path, part); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	if len(unused) > 0 {
		return &UnusedStateError{Paths: unused}
	}
	for p := range paths {
		if !saved[p] {
			r.notice("keyed stages: %s has no state in checkpoint %d and begins empty", p, from.Number)
		}
	}
	return nil
}

// load gives the operator what is of its task in a part.
func (x taker) load(path string, part []byte) error {
	t := x.task
	before := x.op.Bytes()
	if err := x.op.Load(part, state.RangeOf(t.subtask, t.st.parallelism)); err != nil {
		return fmt.Errorf("restoring %s: %w", path, err)
	}
	// An operator keeps to the budget by itself; several share it.
	n := t.bytes.Add(x.op.Bytes() - before)
	t.hold(n)
	if n > t.r.opts.SpillBytes && t.spill != nil {
		if t.measure() > t.r.opts.SpillBytes {
			_, err := t.spillState()
			return err
		}
	}
	return nil
}
