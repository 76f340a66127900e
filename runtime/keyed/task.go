package keyed

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/exchange"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
)

// task is one subtask of a stage, on one goroutine.
type task struct {
	r       *Stages
	st      *stagePlan
	number  int // among all tasks
	subtask int
	inbox   *exchange.Inbox
	ectx    *expr.Context
	ctx     context.Context

	states  map[graph.NodeID]operator.Keyed
	results map[graph.NodeID]*operator.Results
	plain   map[graph.NodeID]operator.Operator
	rows    map[graph.NodeID]*operator.Rows
	sinks   map[graph.NodeID]*sinkPart
	senders map[graph.NodeID][]*exchange.Sender
	order   []graph.NodeID // of states
	aging   []operator.Aging
	clocked taskClock
	spill   *spill.Store // nil: there is no place on disk
	// corrected are the operators whose windows go out at barriers; unended: the input
	// has ended, and windows of theirs have yet to go out.
	corrected []correctedOp
	unended   bool

	next      uint64 // number of the manifest that what is sealed now goes into
	watermark int64
	dead      []checkpoint.DeadResult
	deadBytes int64
	asked     bool
	messages  int   // since the state was measured
	entered   int   // rows since then
	held      int64 // bytes of state that the collector's pace is for
	// counts of rows that died before they were any sink's, by table.
	counts map[connector.UUID]*emitted

	// What Status shows.
	bytes atomic.Int64
	fired atomic.Int64
	out   atomic.Int64
	// expired are the entries of state whose time to live was over.
	expired atomic.Int64
}

// acknowledgement is what a task has at a barrier.
type acknowledgement struct {
	task      *task
	n         uint64
	body      *state.Sections
	watermark int64
	sealed    []connector.Artifact
	dead      []checkpoint.DeadResult
	counts    map[connector.UUID]*emitted
	// pending are the windows that are to go out, by operator.
	pending map[graph.NodeID][]operator.Pending
}

// run is the task's goroutine.
func (t *task) run(ctx context.Context) (err error) {
	t.ctx = ctx
	defer func() {
		for _, s := range t.sinks {
			s.close()
		}
	}()
	for _, s := range t.sinks {
		if err := s.start(ctx, t.r.opts.WriterBytes); err != nil {
			return err
		}
	}
	// Stages behind this one know nothing of what it was restored with.
	if err := t.forward(exchange.Message{Kind: exchange.Watermark, Time: t.outTime()}); err != nil {
		return err
	}
	if t.watermark == batch.MaxWatermark {
		t.end(false)
	}
	t.clocked.restored()
	defer t.clocked.stop()
	for {
		t.wakeByClock()
		m, err := t.inbox.Recv(ctx)
		if err != nil {
			return err
		}
		if t.ectx.Now = t.r.env.ClockMicros; t.ectx.Now == 0 {
			t.ectx.Now = t.r.now().UnixMicro()
		}
		t.age()
		if err := t.advanceByClock(); err != nil {
			return fmt.Errorf("%s: %w", t.st.name, err)
		}
		switch m.Kind {
		case exchange.Data:
			err = t.enter(m.Rows)
		case exchange.Watermark:
			err = t.advance(m.Time)
		case exchange.Barrier:
			err = t.barrier(m.Checkpoint)
		case exchange.Tick:
			t.clocked.timer = nil // it may have been early: the system's clock moves
		}
		if err == nil {
			err = t.limits()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.st.name, err)
		}
	}
}

// enter takes rows out of a channel.
func (t *task) enter(r *exchange.Rows) error {
	in := &t.st.inputs[r.Input]
	t.entered += len(r.Sel)
	if !in.pass {
		return t.fold(in.to, r)
	}
	rows := &operator.Rows{Batch: r.Batch, Sel: r.Sel}
	for _, c := range t.st.local[in.to.node] {
		if _, ok := t.states[c.node]; ok {
			if err := t.fold(c, r); err != nil {
				return err
			}
			continue
		}
		if err := t.give(c, rows, r.Batch); err != nil {
			return err
		}
	}
	return t.send(in.to.node, rows, r.Batch)
}

func (t *task) fold(c consumer, r *exchange.Rows) error {
	k := operator.KeyedRows{Input: c.input, Batch: r.Batch, Sel: r.Sel, Hashes: r.Hashes}
	if r.Origin != nil {
		k.Topic, k.Partitions = r.Origin.Topic, r.Origin.Partitions
	}
	if c := t.clocked.of(c.node); c != nil {
		k.Batch = c.view.Of(r.Batch, c.time, t.clocked.now)
	}
	return t.states[c.node].Fold(t.ectx, &k, t.results[c.node])
}

// deliver passes the rows of a node on. Rows that failed on the way are of root.
func (t *task) deliver(from graph.NodeID, r *operator.Rows, root *batch.Batch) error {
	for _, c := range t.st.local[from] {
		if err := t.give(c, r, root); err != nil {
			return err
		}
	}
	return t.send(from, r, root)
}

func (t *task) give(c consumer, r *operator.Rows, root *batch.Batch) error {
	if s := t.sinks[c.node]; s != nil {
		t.out.Add(int64(r.Len()))
		return s.write(t.ctx, r, root)
	}
	p := t.plain[c.node]
	if p == nil {
		return t.deliver(c.node, r, root) // a union
	}
	out := t.rows[c.node]
	p.Eval(t.ectx, r, out)
	return t.deliver(c.node, out, root)
}

func (t *task) send(from graph.NodeID, r *operator.Rows, root *batch.Batch) error {
	for _, s := range t.senders[from] {
		for i := range r.Failed {
			if !operator.TakesBack(root, r.Failed[i].Row) {
				t.lose(from, root, &r.Failed[i])
			}
		}
		if r.Len() == 0 {
			continue
		}
		if err := s.Send(t.ctx, r.Batch, r.Sel); err != nil {
			return err
		}
	}
	return nil
}

// lose gives a row that failed inside the stages to the first table behind it.
func (t *task) lose(from graph.NodeID, b *batch.Batch, e *batch.ValueError) {
	n := t.r.plan.sinkBehind(from)
	if n == nil {
		return
	}
	op := n.Op.(*graph.Sink)
	if op.OnError == graph.Fail {
		t.r.fail(&FailError{Table: op.Table.Name, Stage: t.st.name, Reason: e.Code, Column: e.Where, Message: e.Message,
			Row: appendRow(nil, b, int(e.Row))})
		return
	}
	table := t.r.env.Sinks[n.ID].Table
	c := t.counts[table.ID]
	if c == nil {
		c = &emitted{}
		t.counts[table.ID] = c
	}
	c.dead.Add(ledger.Reason{Code: string(e.Code), Column: e.Where}, 1)
	if op.OnError == graph.DeadLetter {
		if err := t.bury(table, b, e); err != nil {
			t.r.fail(err)
		}
	}
}

// bury keeps a dead row for the next manifest.
func (t *task) bury(table *ledger.Table, b *batch.Batch, e *batch.ValueError) error {
	d := checkpoint.DeadResult{Table: table.ID, TableName: table.Name, Stage: t.st.name, Subtask: uint32(t.number),
		Sequence: uint64(len(t.dead)), Reason: string(e.Code), Column: e.Where, Message: e.Message, Row: appendRow(nil, b, int(e.Row))}
	t.dead = append(t.dead, d)
	t.deadBytes += int64(len(d.Row) + len(d.Message) + 128)
	if t.deadBytes > t.r.opts.DeadBytes {
		return fmt.Errorf("table %s: more than %d bytes of result rows are dead since the last checkpoint, the last one: %s: %s",
			table.Name, t.r.opts.DeadBytes, e.Code, e.Message)
	}
	if t.deadBytes > t.r.opts.DeadBytes/2 && !t.asked {
		t.asked = true
		t.r.post(checkpoint.Trigger{})
	}
	return nil
}

func (t *task) advance(time int64) error {
	t.watermark = time
	for _, id := range t.order {
		// What goes by the clock learns only that the input has ended.
		if t.clocked.of(id) != nil && time != batch.MaxWatermark {
			continue
		}
		if err := t.states[id].Advance(t.ectx, time, t.results[id]); err != nil {
			return err
		}
	}
	t.fired.Store(time)
	if err := t.forward(exchange.Message{Kind: exchange.Watermark, Time: t.outTime()}); err != nil {
		return err
	}
	t.stirBarrier()
	if time == batch.MaxWatermark {
		t.end(false)
	}
	return nil
}

// outTime is the watermark of what the stage emits: a window's results come when
// the lateness has passed, with the window's time.
func (t *task) outTime() int64 {
	if t.watermark == batch.NoWatermark || t.watermark == batch.MaxWatermark {
		return t.watermark
	}
	return t.watermark - t.st.lateness
}

func (t *task) forward(m exchange.Message) error {
	if m.Kind == exchange.Watermark && m.Time == batch.NoWatermark {
		return nil
	}
	seen := map[*exchange.Inbox]bool{}
	for _, ss := range t.senders {
		for _, s := range ss {
			// Several edges to one stage share a channel.
			if seen[s.Inboxes[0]] {
				continue
			}
			seen[s.Inboxes[0]] = true
			if err := s.Forward(t.ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// barrier saves everything at checkpoint n.
func (t *task) barrier(n uint64) error {
	if err := t.correct(); err != nil {
		return err
	}
	// What follows the barrier waits in the next stage while this one seals.
	if err := t.forward(exchange.Message{Kind: exchange.Barrier, Checkpoint: n}); err != nil {
		return err
	}
	a := &acknowledgement{task: t, n: n, watermark: t.complete(), dead: t.dead, counts: t.counts}
	if t.next != n {
		return fmt.Errorf("BUG: barrier %d, expected %d", n, t.next)
	}
	for _, s := range t.sinks {
		sealed, counts, err := s.cut(t.ctx)
		if err != nil {
			return err
		}
		a.sealed = append(a.sealed, sealed...)
		c := a.counts[s.handle.Table.ID]
		if c == nil {
			c = &emitted{}
			a.counts[s.handle.Table.ID] = c
		}
		c.rows += counts.rows
		c.dead.AddAll(counts.dead)
	}
	var err error
	if a.body, err = t.save(); err != nil {
		return err
	}
	a.pending = t.pending()
	t.hold(t.measure())
	t.next, t.dead, t.deadBytes, t.asked = n+1, nil, 0, false
	t.counts = map[connector.UUID]*emitted{}
	t.r.acknowledge(a)
	if t.unended {
		t.end(true)
	}
	return nil
}
