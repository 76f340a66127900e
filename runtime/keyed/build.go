package keyed

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/exchange"
)

// build makes gate, inboxes and tasks, with the state of a checkpoint; nil: without any.
func (r *Stages) build(from *checkpoint.Candidate) error {
	saved := map[string]*checkpoint.Stage{}
	gc := exchange.GateConfig{Bounded: r.job.Bounded, Batch: r.job.Batch, Lanes: r.env.Book.Lanes}
	if from != nil {
		gc.Restored = from.Cursors
		for i := range from.Stages {
			saved[from.Stages[i].Name] = &from.Stages[i]
		}
	}
	r.gate = exchange.NewGate(gc)
	inboxes := make([][]*exchange.Inbox, len(r.plan.stages))
	channels := make([]map[int]int, len(r.plan.stages)) // first channel of an upstream stage
	for i, s := range r.plan.stages {
		time := batch.NoWatermark
		if x := saved[s.name]; x != nil {
			time = x.Watermark
		}
		if err := r.stage(s, time, inboxes, channels); err != nil {
			return err
		}
		for sub := range s.parallelism {
			t, err := newTask(r, s, len(r.tasks), sub, inboxes[i][sub])
			if err != nil {
				return err
			}
			t.watermark = time
			t.fired.Store(time)
			r.tasks = append(r.tasks, t)
			r.stages[i].tasks = append(r.stages[i].tasks, t)
		}
	}
	for _, s := range r.stages {
		for sub, t := range s.tasks {
			r.connect(t, sub, inboxes, channels)
		}
	}
	if from == nil {
		return nil
	}
	return r.loadStates(from)
}

// coordinate begins the numbers of checkpoints behind what was restored.
func (r *Stages) coordinate(from *checkpoint.Restored) {
	for _, t := range r.tasks {
		t.next = from.Next
	}
	kept := from.Kept
	for _, n := range kept {
		r.floors[n] = 0 // of another epoch: nothing is settled while they stay
	}
	cfg := checkpoint.Config{Tasks: len(r.tasks), Next: from.Next, Retained: r.opts.Retained,
		MaxUnpublished: r.opts.MaxUnpublished, Kept: kept}
	if r.opts.CheckpointInterval > 0 {
		cfg.IntervalMillis = max(r.opts.CheckpointInterval.Milliseconds(), 1)
	}
	for _, t := range r.tables {
		if t.overwrite {
			cfg.AtEnd++
		}
	}
	cfg.MinPauseMillis, cfg.TimeoutMillis = r.opts.MinPause.Milliseconds(), max(r.opts.Timeout.Milliseconds(), 0)
	r.coord = checkpoint.NewCoordinator(cfg)
	r.injected.Store(from.Next - 1)
	if m := from.Manifest; m != nil {
		r.completed, r.completeAt = m.Number, r.now()
	}
}

// stage makes the inboxes of a stage and tells the gate of it.
func (r *Stages) stage(s *stagePlan, time int64, inboxes [][]*exchange.Inbox, channels []map[int]int) error {
	lanes := slices.ContainsFunc(s.inputs, func(in inputPlan) bool { return in.lanes })
	n := 0
	// Channel 0 is the gate's; a stage without any input has it, too, for the
	// barriers.
	if lanes || len(s.upstream) == 0 {
		n = 1
	}
	channels[s.id] = map[int]int{}
	for _, u := range s.upstream {
		channels[s.id][u] = n
		n += r.plan.stages[u].parallelism
	}
	for range s.parallelism {
		inboxes[s.id] = append(inboxes[s.id], exchange.NewInbox(n, r.opts.ChannelBytes, time))
	}
	st := &stageState{plan: s, gate: -1}
	r.stages = append(r.stages, st)
	if !lanes && len(s.upstream) > 0 {
		return nil
	}
	cfg := exchange.StageConfig{Name: s.name, Inboxes: inboxes[s.id], Watermark: time}
	for i, in := range s.inputs {
		if !in.lanes {
			continue
		}
		output, ok := r.env.Outputs[in.to.node]
		if !ok {
			return fmt.Errorf("BUG: exchange %d has no output id", in.to.node)
		}
		cfg.Entrances = append(cfg.Entrances, exchange.EntranceConfig{Node: in.to.node, Input: i, Keys: in.keys, Output: output, Sources: in.sources})
	}
	st.gate = r.gate.AddStage(cfg)
	return nil
}

// connect gives a task its ways to other stages.
func (r *Stages) connect(t *task, sub int, inboxes [][]*exchange.Inbox, channels []map[int]int) {
	for from, edges := range t.st.away {
		for _, e := range edges {
			to := r.plan.stages[e.stage]
			t.senders[from] = append(t.senders[from], &exchange.Sender{
				Splitter: exchange.Splitter{Input: e.input, Keys: to.inputs[e.input].keys, Parallelism: to.parallelism},
				Inboxes:  inboxes[e.stage], Channel: channels[e.stage][t.st.id] + sub})
		}
	}
}
