package keyed

import (
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/slot"
)

// corrections decides which windows go out again, and of wide tables with offline
// branches which go out at all. All subtasks of an operator have to give a window whole
// in the same manifest, so one place decides, at the barrier:
//
//	tasks > acknowledgement: windows with late rows, or that are held > hear
//	tick  > decide: those that have waited long enough, or can get no more rows
//	barrier > of: every task gives these, and says the same of them
//
// A crash loses the waiting alone: which windows have changed, or are held, is in the
// tasks' state.
type corrections struct {
	// every is the least time between two corrections of a window, in ms, by operator;
	// 0: its windows go out once.
	every map[graph.NodeID]int64
	// offline are what the operators with offline branches read.
	offline map[graph.NodeID]*generations

	mu      sync.Mutex
	waiting map[correction]*waitingWindow
	// with says, of windows that went out without a generation, which ones they had.
	with  map[correction][]*operator.Generation
	again map[graph.NodeID]*operator.Release // at the barrier under way
}

type correction struct {
	node graph.NodeID
	span operator.Span
}

// waitingWindow is a window that is to go out: what for, and since when, in ms of the
// driver.
type waitingWindow struct {
	operator.Pending
	since int64
	timer slot.Timer // ends the patience of a held window
}

func newCorrections(r *Stages) (*corrections, error) {
	c := &corrections{every: map[graph.NodeID]int64{}, offline: map[graph.NodeID]*generations{},
		waiting: map[correction]*waitingWindow{}, with: map[correction][]*operator.Generation{}}
	for _, n := range r.job.Nodes {
		op, ok := n.Op.(*graph.WideMerge)
		if !ok || op.Correct == 0 && len(op.Offline) == 0 {
			continue
		}
		c.every[n.ID] = op.Correct
		if len(op.Offline) == 0 {
			continue
		}
		var err error
		if c.offline[n.ID], err = newGenerations(r, n.ID, op); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// decides reports an operator whose windows go out at barriers.
func (c *corrections) decides(node graph.NodeID) bool { _, ok := c.every[node]; return ok }

// hear takes down the windows of an operator that are to go out, as one task has them.
func (c *corrections) hear(node graph.NodeID, windows []operator.Pending, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.offline[node]
	for _, w := range windows {
		k := correction{node, w.Span}
		x := c.waiting[k]
		if x == nil {
			x = &waitingWindow{since: now}
			c.waiting[k] = x
		}
		x.Span, x.Held, x.Late, x.Gap, x.Final = w.Span, x.Held || w.Held, x.Late || w.Late, x.Gap || w.Gap, x.Final || w.Final
		if g == nil {
			continue
		}
		g.want(w.Span)
		if x.timer == nil && g.timeout > 0 && !w.Gap {
			x.timer = g.r.env.Clock.AfterFunc(time.Duration(g.timeout)*time.Millisecond, func() { g.r.post(checkpoint.Trigger{}) })
		}
	}
}

// isDue reports a window that is to go out at the next barrier, with its generations
// where its operator has offline branches.
func (c *corrections) isDue(k correction, now int64) (rows []*operator.Generation, missing []string, due bool) {
	w := c.waiting[k]
	late := w.Late && (w.Final || now-w.since >= c.every[k.node])
	g := c.offline[k.node]
	if g == nil {
		return nil, nil, late
	}
	rows, missing, ready := g.choose(k.span, !w.Gap && now-w.since < g.timeout)
	if w.Gap && !w.Held {
		had := c.with[k]
		for i := range rows {
			late = late || rows[i] != nil && (had == nil || had[i] == nil)
		}
	}
	return rows, missing, ready && (w.Held || late)
}

// due reports a window that is to go out.
func (c *corrections) due(now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.waiting {
		if _, _, due := c.isDue(k, now); due {
			return true
		}
	}
	return false
}

// decide says what goes out at the next barrier. Windows that are held go out in the
// order of their ends.
func (c *corrections) decide(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = map[graph.NodeID]*operator.Release{}
	for node := range c.every {
		c.again[node] = c.release(node, now)
	}
}

func (c *corrections) release(node graph.NodeID, now int64) *operator.Release {
	r := &operator.Release{Generations: map[operator.Span][]*operator.Generation{}}
	g := c.offline[node]
	held := false
	for _, k := range c.waitingOf(node) {
		w := c.waiting[k]
		rows, missing, due := c.isDue(k, now)
		if !due || w.Held && held {
			held = held || w.Held
			r.Waiting = append(r.Waiting, k.span)
			continue
		}
		r.Windows = append(r.Windows, k.span)
		if w.timer != nil {
			w.timer.Stop()
		}
		delete(c.waiting, k)
		if g == nil {
			continue
		}
		r.Generations[k.span] = rows
		delete(c.with, k)
		if len(missing) > 0 {
			g.gap(k.span, missing)
			if c.every[node] > 0 {
				c.with[k] = rows // it goes out again when a generation comes
			}
		}
	}
	if g != nil {
		g.keep(r.Waiting)
	}
	return r
}

// waitingOf are the waiting windows of an operator, by their ends.
func (c *corrections) waitingOf(node graph.NodeID) []correction {
	var out []correction
	for k := range c.waiting {
		if k.node == node {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b correction) int { return a.span.Compare(b.span) })
	return out
}

// of is what goes out of an operator at the barrier under way.
func (c *corrections) of(node graph.NodeID) *operator.Release {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.again[node]; r != nil {
		return r
	}
	return &operator.Release{}
}

// correctedOp is an operator of a task whose windows go out at barriers.
type correctedOp struct {
	node graph.NodeID
	op   operator.Corrected
}

// pending are the windows of the task's operators that are to go out.
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

// complete is the watermark that what has gone out at a barrier is complete up to.
func (t *task) complete() int64 {
	time := t.watermark
	for _, c := range t.corrected {
		if at, ok := c.op.Holds(); ok && (time == batch.MaxWatermark || at < time) {
			time = at
		}
	}
	return time
}

// end says that the input has ended. While windows have to go out it has not: which of
// them is decided with one barrier, and done with the next. Where a window waits for a
// generation, whoever looks for it asks for that barrier, once the window was heard of.
func (t *task) end(heard bool) {
	t.unended = false
	ask := false
	for _, ws := range t.pending() {
		for _, w := range ws {
			// One that went out without a generation has gone out.
			t.unended = t.unended || w.Held || w.Late
			ask = ask || w.Late || w.Held && !heard
		}
	}
	switch {
	case ask:
		t.r.post(checkpoint.Trigger{})
	case !t.unended:
		t.r.post(checkpoint.Ended{Task: t.number})
	}
}
