package jobtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/keyed"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/runtime/types"
)

// outcome is what a job has written by the end of a step, or of its input.
type outcome struct {
	tables map[string]*tableRows
	dead   []deadRow
}

// tableRows is what a table holds.
type tableRows struct {
	fields []types.Field
	rows   []json.RawMessage
}

// execution runs the steps of a test one after the other, each as a run of the job that
// goes on where the one before was stopped. A stop commits what was read and what it
// fired: nothing waits in the job when a step is looked at, and no timer decides what is
// seen.
type execution struct {
	job   graph.Job
	deps  engine.Deps
	given *given
	c     *compiledJob
	dead  *deadLetters
	clock *standingClock // nil: the system's
	// literal is how many inputs are literal rows.
	literal int
}

// standingClock tells one time during a run. What waits for a time to pass (pauses of
// the engine's own) waits by the system's clock, and finds that none has passed.
type standingClock struct {
	slot.SystemClock
	now time.Time // changes between runs
}

// Now implements slot.Clock.
func (c *standingClock) Now() time.Time { return c.now }

// execute runs a bounded job of which nothing is kept but its rows. There is an outcome
// for each step that was run, and for the end of the input.
func execute(ctx context.Context, t *Test, c *compiledJob, g *given) ([]*outcome, error) {
	x, err := newExecution(ctx, t, c, g)
	if err != nil {
		return nil, err
	}
	var out []*outcome
	for i := range len(t.steps) + 1 {
		if i < len(t.steps) && !t.steps[i].clock.IsZero() {
			x.clock.now = t.steps[i].clock
		}
		o, err := x.run(ctx, i)
		out = append(out, o)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func newExecution(ctx context.Context, t *Test, c *compiledJob, g *given) (*execution, error) {
	l, err := ledger.OpenLedger(ctx, ledger.NewMemStore())
	if err != nil {
		return nil, err
	}
	x := &execution{job: *c.graph, given: g, c: c}
	x.job.Bounded = true // given records end, whatever the connector's would do
	x.job.Options = maps.Clone(x.job.Options)
	if x.job.Options == nil {
		x.job.Options = map[string]string{}
	}
	// All input is there from the start, and an error will not go away. No table goes on
	// alone: what one reader has read, every table has.
	maps.Copy(x.job.Options, map[string]string{"lane.linger": "0", "lane.quarantine-after": "1", "lane.restart.min-delay": "1 ms",
		"lane.restart.max-delay": "1 ms", "lane.detach-after": "1 d"})
	for _, n := range x.job.Nodes {
		if _, ok := n.Op.(*graph.Values); ok {
			x.literal++
		}
	}
	x.dead = &deadLetters{behind: behindExchanges(&x.job)}
	store := checkpoint.NewMemStore().Handle()
	x.deps = engine.Deps{
		Ledger: l, Scope: ledger.Scope{Job: connector.UUID(uuid.New())}, DeadLetters: x.dead,
		Keyed: &keyed.Factory{Store: func(ledger.Scope) checkpoint.Store { return store }},
	}
	if !t.clock.IsZero() {
		x.clock = &standingClock{now: t.clock}
		x.deps.Clock = x.clock
	}
	return x, nil
}

// run runs the job until the records of a step were processed, or to its end.
func (x *execution) run(ctx context.Context, step int) (*outcome, error) {
	read := x.given.begin(step)
	deps, changed := x.deps, make(chan struct{}, 1)
	deps.Hooks.Changed = func() {
		select {
		case changed <- struct{}{}:
		default: // it is to be looked at already
		}
	}
	run, err := engine.Start(ctx, &x.job, deps)
	if err != nil {
		return nil, err
	}
	err = x.await(ctx, run, read, changed)
	c := x.c.collect
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &outcome{tables: map[string]*tableRows{}, dead: x.dead.all()}
	for name, tab := range c.tables {
		if lost := tab.rows.Err(); err == nil && lost != nil {
			err = fmt.Errorf("table %s: %w", name, lost)
		}
		out.tables[name] = &tableRows{tab.fields, tab.rows.Rows()}
	}
	return out, err
}

// await waits until the records of the step were processed, and stops the run, or until
// it has ended. changed says that a lane may have another state.
func (x *execution) await(ctx context.Context, run *engine.Run, read, changed <-chan struct{}) error {
	ended := make(chan error, 1)
	go func() { ended <- run.Wait(ctx) }()
	all := false
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				err = errors.Join(err, run.Stop(context.WithoutCancel(ctx)))
			}
			return err
		case <-read:
			all, read = true, nil
		case <-changed:
		}
		if x.given.step >= x.given.steps {
			continue // it ends by itself
		}
		finished, failed := looked(run)
		if failed != nil {
			return errors.Join(failed, run.Stop(ctx))
		}
		// Behind a step given records go on; what has finished is literal rows.
		if all && finished == x.literal {
			return run.Stop(ctx)
		}
	}
}

// looked counts the lanes that have finished; failed is why one is not going to.
func looked(run *engine.Run) (finished int, failed error) {
	for _, l := range run.Status().Lanes {
		switch l.State {
		case lane.Starting, lane.Running:
		case lane.Finished:
			finished++
		default:
			return finished, fmt.Errorf("lane %s is %s: %s", l.Name, l.State, l.Error)
		}
	}
	return finished, nil
}
