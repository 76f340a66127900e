package keyed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/runtime/types"
)

// Open implements engine.KeyedFactory: it fences lower epochs, restores the
// newest checkpoint, publishes or resolves exactly what it lists, and starts.
func (f *Factory) Open(ctx context.Context, job *graph.Job, env engine.KeyedEnv) (engine.Keyed, error) {
	s, err := f.OpenStages(ctx, job, env)
	if err != nil {
		return nil, err // and no interface that holds a nil pointer
	}
	return s, nil
}

// OpenStages is Open with the concrete type.
func (f *Factory) OpenStages(ctx context.Context, job *graph.Job, env engine.KeyedEnv) (*Stages, error) {
	p, err := newPlan(job)
	if err != nil {
		return nil, err
	}
	if env.Clock == nil {
		env.Clock = slot.SystemClock{}
	}
	if env.Notice == nil {
		env.Notice = func(string) {}
	}
	env.Log = logger(env.Log)
	store := f.Store(env.Book.Scope())
	r, err := f.newStages(job, env, p, store)
	if err != nil {
		return nil, err
	}
	if err := store.Open(ctx, env.JobEpoch); err != nil {
		return nil, err
	}
	if err := r.openSpill(); err != nil {
		return nil, err
	}
	from, err := checkpoint.Restore(ctx, store, env.Book, r.opts.DiscardAfter, func(c *checkpoint.Candidate) error {
		if len(r.tasks) > 0 { // with state of a checkpoint that is damaged
			r.letGo()
			if r, err = f.newStages(job, env, p, store); err != nil {
				return err
			}
		}
		return r.build(c)
	})
	if err == nil && from.Manifest == nil {
		err = r.build(nil)
	}
	if err == nil {
		err = r.settleRestored(ctx, from)
	}
	if err != nil {
		r.letGo()
		return nil, err
	}
	r.coordinate(from)
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.start()
	return r, nil
}

// newStages makes stages without tasks.
func (f *Factory) newStages(job *graph.Job, env engine.KeyedEnv, p *plan, store checkpoint.Store) (*Stages, error) {
	r := &Stages{job: job, env: env, opts: f.Options.withDefaults(job.Options), store: store, plan: p, spillFS: f.SpillFS, spillDir: f.SpillDir,
		tables: map[connector.UUID]*tableState{}, writers: map[connector.UUID]uint32{}, done: make(chan struct{}), changed: make(chan struct{}),
		events: newMailbox[any](), scribe: newMailbox[func(context.Context) error](),
		acks: map[int]*acknowledgement{}, known: map[connector.ArtifactID]sealedArtifact{}, totals: map[connector.UUID]*emitted{},
		floors: map[uint64]uint64{}, zone: types.UTC()}
	if job.Zone != nil {
		var err error
		if r.zone, err = types.LoadZone(job.Zone.String()); err != nil {
			return nil, fmt.Errorf("session zone: %w", err)
		}
	}
	var err error
	if r.corrections, err = newCorrections(r); err != nil {
		return nil, err
	}
	return r, r.findTables()
}

// findTables collects the tables that the stages write.
func (r *Stages) findTables() error {
	for _, s := range r.plan.stages {
		for _, id := range s.nodes {
			op, ok := r.job.Nodes[id].Op.(*graph.Sink)
			if !ok {
				continue
			}
			h, ok := r.env.Sinks[id]
			if !ok {
				return fmt.Errorf("BUG: the sink of table %s is not open", op.Table.Name)
			}
			t := r.tables[h.Table.ID]
			if t == nil {
				t = newTableState(r, h)
				r.tables[h.Table.ID] = t
				if err := t.replaces(op); err != nil {
					return err
				}
			}
			t.stages = append(t.stages, s.id)
		}
	}
	// The lanes' heads close the partitions of their tables, checkpoints those of
	// the stages': a table of both has no one who knows.
	for _, n := range r.job.Nodes {
		if _, ok := n.Op.(*graph.Sink); !ok {
			continue
		}
		h, ok := r.env.Sinks[n.ID]
		if !ok || r.tables[h.Table.ID] == nil || r.tables[h.Table.ID].policy.Trigger == connector.NoCommit {
			continue
		}
		for _, in := range n.Inputs {
			if !r.plan.runs(in) {
				return &graph.NotYetError{Feature: fmt.Sprintf("partition commit of table %s, which is written both directly and behind an exchange", h.Table.Name)}
			}
		}
	}
	return nil
}

// runs reports a node of some stage.
func (p *plan) runs(id graph.NodeID) bool {
	return slices.ContainsFunc(p.stages, func(s *stagePlan) bool { return slices.Contains(s.nodes, id) })
}

// settleRestored finishes the cycle of the restored checkpoint: its record in the
// ledger, and every artefact that it lists.
func (r *Stages) settleRestored(ctx context.Context, from *checkpoint.Restored) error {
	m := from.Manifest
	if m == nil {
		if err := r.nothingFolded(); err != nil {
			return err
		}
		r.notice("keyed stages: no checkpoint yet")
		return nil
	}
	if r.opts.DiscardAfter > 0 {
		if err := r.giveUp(ctx, m.Number); err != nil {
			return err
		}
	}
	for _, n := range from.Newer {
		if r.opts.DiscardAfter > 0 {
			r.notice("keyed stages: checkpoint %d is given up", n)
		} else {
			r.notice("keyed stages: checkpoint %d cannot be read, and nothing of it was published; it is dropped", n)
		}
		if err := r.store.Remove(ctx, n); err != nil {
			return err
		}
	}
	for i := range m.Emitted {
		e := &m.Emitted[i]
		r.totals[e.Table] = &emitted{rows: e.Rows, dead: e.Dead}
	}
	r.current = m
	err := r.record(ctx, m)
	if err != nil {
		return err
	}
	published := 0
	for _, t := range r.tables {
		var mine []connector.Artifact
		for _, a := range m.Artifacts {
			if e, ok := r.env.Book.Intent(a.Header.ID); a.Header.ID.Table == t.handle.Table.ID && (!ok || e.Result == ledger.Pending) {
				mine = append(mine, a)
			}
		}
		if t.overwrite {
			err = r.resume(ctx, t, m)
		} else {
			err = t.settle(ctx, mine)
		}
		if err != nil {
			return err
		}
		published += len(mine)
	}
	for _, a := range m.Artifacts {
		if r.tables[a.Header.ID.Table] == nil {
			if e, ok := r.env.Book.Intent(a.Header.ID); !ok || e.Result == ledger.Pending {
				return fmt.Errorf("checkpoint %d lists results of a table that the job no longer writes: %s; run the job as it was once more", m.Number, a.Location)
			}
		}
	}
	r.notice("keyed stages: restored from checkpoint %d, %d artefacts of it were not yet known to be published", m.Number, published)
	return nil
}

// giveUp ends the intents of checkpoints above n: what is visible stays so and is
// said, what is only sealed is discarded.
func (r *Stages) giveUp(ctx context.Context, n uint64) error {
	for _, t := range r.tablesInOrder() {
		var as []connector.Artifact
		for _, e := range r.env.Book.Intents(func(e *ledger.Entry) bool {
			id := e.ID()
			return id.Keyed && id.Table == t.handle.Table.ID && id.Manifest > n && e.Result == ledger.Pending
		}) {
			as = append(as, e.Artifacts...)
		}
		if err := t.giveUp(ctx, as); err != nil {
			return err
		}
		var rows int64
		for _, e := range r.env.Book.Intents(func(e *ledger.Entry) bool {
			id := e.ID()
			return id.Keyed && id.Table == t.handle.Table.ID && id.Manifest > n && e.Result == ledger.Committed
		}) {
			rows += e.Artifacts[0].Header.Rows
		}
		if rows > 0 {
			r.notice("table %s: %d rows of given up checkpoints are visible; the same results come again", t.handle.Table.Name, rows)
		}
	}
	return nil
}

// nothingFolded makes sure that without a checkpoint there was none.
func (r *Stages) nothingFolded() error {
	var rows int64
	var stages []string
	for node, output := range r.env.Outputs {
		var n int64
		for _, c := range r.env.Book.Cursors(output) {
			n += c.Counts.Folded
		}
		if n > 0 {
			stages = append(stages, r.stageOf(node).name)
			rows += n
		}
	}
	if rows > 0 {
		slices.Sort(stages)
		return &LostStateError{Stages: slices.Compact(stages), Rows: rows}
	}
	return nil
}

func (r *Stages) stageOf(node graph.NodeID) *stagePlan {
	for _, s := range r.plan.stages {
		if slices.Contains(s.nodes, node) {
			return s
		}
	}
	return &stagePlan{name: "?"}
}

// errNoOutcome is a sink that answers about another number of artefacts.
var errNoOutcome = errors.New("BUG: the sink gave another number of results than artefacts")
