package keyed

import (
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/slot"
)

// taskClock is what a task has for its operators of processing time.
//
// A row gets its time when the operator takes it. Rows that were taken before a
// checkpoint have theirs in its state; those after it are taken again, with the time
// of then, and nothing that was emitted in between is seen by anybody. So a row counts
// once, in one window.
type taskClock struct {
	ops []*clockedOp
	// timed are operators of either time that also give rows by the clock.
	timed []timedOp
	// now in ms. It never goes back, also behind a restart, where the system's does:
	// a window that has ended stays so.
	now   int64
	timer slot.Timer
	// armed is what the timer waits for, when there is one: not yet, or for a message
	// that has not come out yet.
	armed int64
}

type clockedOp struct {
	node graph.NodeID
	op   operator.Clocked
	time int // its time column
	view operator.AtTime
}

type timedOp struct {
	node graph.NodeID
	op   operator.Timed
}

// add takes an operator that goes by the clock; others are left alone.
func (c *taskClock) add(id graph.NodeID, op graph.Op, k operator.Keyed) {
	if t, ok := k.(operator.Timed); ok {
		c.timed = append(c.timed, timedOp{id, t})
	}
	w, ok := op.(*graph.WindowAggregate)
	if !ok || !w.Window.Processing {
		return
	}
	c.ops = append(c.ops, &clockedOp{node: id, op: k.(operator.Clocked), time: w.Time})
}

func (c *taskClock) of(id graph.NodeID) *clockedOp {
	for _, o := range c.ops {
		if o.node == id {
			return o
		}
	}
	return nil
}

// restored begins where the operators' state was saved.
func (c *taskClock) restored() {
	for _, o := range c.ops {
		if f := o.op.Fired(); f != batch.NoWatermark && f != batch.MaxWatermark {
			c.now = max(c.now, f+1)
		}
	}
}

func (c *taskClock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// due is the first instant at which an operator has something to do.
func (c *taskClock) due() (at int64, ok bool) {
	for _, o := range c.ops {
		if x, some := o.op.Due(); some && (!ok || x < at) {
			at, ok = x, true
		}
	}
	for _, o := range c.timed {
		if x, some := o.op.NextFiring(); some && (!ok || x < at) {
			at, ok = x, true
		}
	}
	return at, ok
}

// advanceByClock ends the windows whose time is over, and gives what is due by the
// clock, before a message meets them.
func (t *task) advanceByClock() error {
	c := &t.clocked
	if len(c.ops)+len(c.timed) == 0 {
		return nil
	}
	c.now = max(c.now, t.ectx.Now/1000)
	for _, o := range c.ops {
		if at, ok := o.op.Due(); !ok || at > c.now {
			continue
		}
		// Results are there without input: the next checkpoint has something to say.
		t.r.stirred.Store(true)
		if err := o.op.Advance(t.ectx, c.now-1, t.results[o.node]); err != nil {
			return err
		}
	}
	for _, o := range c.timed {
		if at, ok := o.op.NextFiring(); !ok || at > c.now {
			continue
		}
		t.r.stirred.Store(true)
		if err := o.op.Fire(c.now, t.results[o.node]); err != nil {
			return err
		}
	}
	return nil
}

// wakeByClock sees to it that the task looks at the clock when a window ends. Where the
// clock stands still, for a run, windows end with the input.
func (t *task) wakeByClock() {
	c := &t.clocked
	at, ok := c.due()
	if t.r.env.ClockMicros != 0 || c.timer != nil && ok && at == c.armed {
		return
	}
	c.stop()
	if c.timer = nil; !ok {
		return
	}
	wait := time.Duration(at-t.r.now().UnixMilli()) * time.Millisecond
	c.timer, c.armed = t.r.env.Clock.AfterFunc(max(wait, time.Millisecond), t.inbox.Tick), at
}
