package keyed

import (
	"slices"
	"sync"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
)

// corrections decides which windows go out again. All subtasks of an operator have to
// give a window whole in the same manifest, so one place decides, at the barrier:
//
//	tasks > acknowledgement: windows with late rows > hear
//	tick  > decide: those that have waited long enough, or can get no more rows
//	barrier > of: every task gives these, and says the same of them
//
// A crash loses the waiting alone: which windows have changed is in the tasks' state.
type corrections struct {
	// every is the least time between two corrections of a window, in ms, by operator.
	every map[graph.NodeID]int64

	mu      sync.Mutex
	waiting map[correction]*waitingWindow
	again   map[graph.NodeID][]operator.Span // at the barrier under way
}

type correction struct {
	node graph.NodeID
	span operator.Span
}

// waitingWindow is a window with late rows: since when, in ms of the driver, and
// whether it is waited for no longer.
type waitingWindow struct {
	since int64
	final bool
}

func newCorrections(job *graph.Job) *corrections {
	c := &corrections{every: map[graph.NodeID]int64{}, waiting: map[correction]*waitingWindow{}}
	for _, n := range job.Nodes {
		if op, ok := n.Op.(*graph.WideMerge); ok && op.Correct > 0 {
			c.every[n.ID] = op.Correct
		}
	}
	return c
}

// hear takes down the windows of an operator that have changed, as one task has them.
func (c *corrections) hear(node graph.NodeID, windows []operator.Pending, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range windows {
		k := correction{node, w.Span}
		if c.waiting[k] == nil {
			c.waiting[k] = &waitingWindow{since: now}
		}
		c.waiting[k].final = c.waiting[k].final || w.Final
	}
}

func (c *corrections) isDue(k correction, now int64) bool {
	w := c.waiting[k]
	return w.final || now-w.since >= c.every[k.node]
}

// due reports a window that is to go out again.
func (c *corrections) due(now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.waiting {
		if c.isDue(k, now) {
			return true
		}
	}
	return false
}

// decide says what goes out again at the next barrier.
func (c *corrections) decide(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = map[graph.NodeID][]operator.Span{}
	for k := range c.waiting {
		if c.isDue(k, now) {
			c.again[k.node] = append(c.again[k.node], k.span)
			delete(c.waiting, k)
		}
	}
}

// of is what goes out again of an operator, at the barrier under way.
func (c *corrections) of(node graph.NodeID) []operator.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.again[node])
}

// correctedOp is an operator of a task whose windows go out at barriers.
type correctedOp struct {
	node graph.NodeID
	op   operator.Corrected
}

// pending are the windows of the task's operators that have changed.
func (t *task) pending() map[graph.NodeID][]operator.Pending {
	var out map[graph.NodeID][]operator.Pending
	for _, c := range t.corrected {
		if ws := c.op.Pending(); len(ws) > 0 {
			if out == nil {
				out = map[graph.NodeID][]operator.Pending{}
			}
			out[c.node] = ws
		}
	}
	return out
}

// correct lets windows go out, in front of what the barrier seals.
func (t *task) correct() error {
	for _, c := range t.corrected {
		if err := c.op.Barrier(t.r.corrections.of(c.node), t.results[c.node]); err != nil {
			return err
		}
	}
	return nil
}

// stirBarrier sees to it that a checkpoint comes for windows that wait for one.
func (t *task) stirBarrier() {
	for _, c := range t.corrected {
		if c.op.Waits() {
			t.r.stirred.Store(true)
		}
	}
}

// end says that the input has ended. While windows have to go out again it has not:
// which of them is decided with one barrier, and done with the next.
func (t *task) end() {
	if t.unended = len(t.pending()) > 0; t.unended {
		t.r.post(checkpoint.Trigger{})
		return
	}
	t.r.post(checkpoint.Ended{Task: t.number})
}
