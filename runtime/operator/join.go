package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// Join is a hash join of two inputs that end: one subtask. It keeps both sides,
// by key, and gives its rows at the end, so that they do not depend on which side
// came first.
type Join struct {
	plan  *joinPlan
	table *joinTable
	done  bool
}

// NewJoin makes a subtask of any kind of join.
func NewJoin(op *graph.Join, left, right, out *batch.Schema) (Keyed, error) {
	p, err := newJoinPlan(op, left, right, out)
	if err != nil {
		return nil, err
	}
	switch {
	case op.Windows != nil:
		return newWindowJoin(p)
	case op.Interval != nil:
		return newIntervalJoin(p), nil
	case op.Temporal != nil:
		return newTemporalJoin(p), nil
	case op.Changes:
		return newStreamJoin(p), nil
	}
	return &Join{plan: p, table: newJoinTable(p)}, nil
}

// Fold implements Keyed.
func (j *Join) Fold(_ *expr.Context, in *KeyedRows, out *Results) error {
	j.table.add(in.Input, in.Batch, in.Sel, out.Dead)
	return nil
}

// Advance implements Keyed.
func (j *Join) Advance(ctx *expr.Context, time int64, out *Results) error {
	if time < batch.MaxWatermark || j.done {
		return nil
	}
	j.done = true
	err := j.table.close(ctx, out)
	j.table = newJoinTable(j.plan)
	return err
}

// Save implements Keyed.
func (j *Join) Save() []byte { return j.table.save(j.head()) }

// head begins a saved state: 1: the rows are given.
func (j *Join) head() []byte {
	if j.done {
		return []byte{1}
	}
	return []byte{0}
}

// Load implements Keyed.
func (j *Join) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	j.done = r.Byte() == 1 || j.done
	for r.Rest() > 0 {
		if err := j.table.load(r, groups); err != nil {
			return err
		}
		if j.plan.disk.over(j.Bytes()) {
			if err := j.Spill(); err != nil {
				return err
			}
		}
	}
	return r.Err()
}

var _ Spilling = (*Join)(nil)

// SpillTo implements Spilling.
func (j *Join) SpillTo(s *spill.Store, budget int64) { j.plan.disk.SpillTo(s, budget) }

// Spill implements Spilling.
func (j *Join) Spill() error { return j.plan.spillTables([]*joinTable{j.table}) }

// Spilled implements Spilling.
func (j *Join) Spilled() bool { return j.table.spilled() }

// SaveTo implements Spilling: as Save, with several tables.
func (j *Join) SaveTo(p *state.Payload) error {
	w := j.plan.disk.parts(p, func(int, bool) []byte { return j.head() })
	j.table.saveParts(w, nil)
	w.finish()
	return nil
}

// Kind implements Keyed.
func (*Join) Kind() string { return "Join" }

// Fingerprint implements Keyed.
func (j *Join) Fingerprint() uint64 { return j.plan.fingerprint() }

// fingerprint is what saved rows depend on.
func (p *joinPlan) fingerprint() uint64 {
	all := typesAt(p.in[0], columnsOf(p.in[0]))
	more := []string{p.op.Kind.String()}
	for _, t := range typesAt(p.in[1], columnsOf(p.in[1])) {
		more = append(more, t.WithNullable(true).String())
	}
	return state.Fingerprint(all, more...)
}

func columnsOf(s *batch.Schema) []int {
	out := make([]int, len(s.Fields))
	for i := range out {
		out[i] = i
	}
	return out
}

// Bytes implements Keyed.
func (j *Join) Bytes() int64 { return j.table.bytes() }
