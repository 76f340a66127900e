package logictest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/keyed"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/vfs"
)

// Engine runs jobs on the engine, over a ledger and dead letters in memory.
// With Restart the process crashes in the middle and another one goes on. It
// counts the runs, and those that crashed in between. BatchRows bounds what sources
// give at once, where it is above 0.
type Engine struct {
	Runs    int
	Crashes int
}

// Run implements Executor.
func (e *Engine) Run(ctx context.Context, job *graph.Job, o RunOptions) (*Outcome, error) {
	e.Runs++
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if o.CheckpointInterval == 0 {
		o.CheckpointInterval = 2 * time.Millisecond
	}
	if o.CrashAt == 0 {
		o.CrashAt = 4
	}
	j, failing := e.prepare(job, o)
	w := lanetest.NewWorld()
	id := connector.UUID(uuid.New())
	store := checkpoint.NewMemStore()
	if o.Restart {
		p := w.Process()
		p.CrashAt(o.CrashAt, true)
		err := e.attempt(ctx, j, o, id, store.Handle(), p)
		if err == nil {
			return e.outcome(w, failing)
		}
		if !p.Crashed() {
			return nil, err
		}
		e.Crashes++
	}
	if err := e.attempt(ctx, j, o, id, store.Handle(), w.Process()); err != nil {
		return nil, err
	}
	return e.outcome(w, failing)
}

// prepare makes every sink dead-letter what fails, and notes which would have
// ended the run instead.
func (e *Engine) prepare(job *graph.Job, o RunOptions) (*graph.Job, map[string]bool) {
	j := *job
	j.Options = map[string]string{"lane.restart.min-delay": "1 ms", "lane.restart.max-delay": "4 ms", "lane.linger": "0"}
	j.Nodes = slices.Clone(job.Nodes)
	failing := map[string]bool{}
	for i, n := range j.Nodes {
		if s, ok := n.Op.(*graph.Source); ok && o.BatchRows > 0 {
			source, node := *s, *n
			source.Connector = batches{s.Connector, o.BatchRows}
			node.Op = &source
			j.Nodes[i] = &node
		}
		if s, ok := n.Op.(*graph.Sink); ok {
			failing[s.Table.Name] = s.OnError == graph.Fail
			sink, node := *s, *n
			sink.OnError, sink.NotNull = graph.DeadLetter, graph.DeadLetter
			node.Op = &sink
			j.Nodes[i] = &node
		}
	}
	return &j, failing
}

// attempt is one process.
func (e *Engine) attempt(ctx context.Context, j *graph.Job, o RunOptions, job connector.UUID, store checkpoint.Store, p *lanetest.Process) error {
	led, err := ledger.OpenLedger(ctx, p.Store())
	if err != nil {
		return fmt.Errorf("opening the ledger: %w", err)
	}
	r, err := engine.Start(ctx, j, engine.Deps{Ledger: led, Scope: ledger.Scope{Job: job}, DeadLetters: p.DeadLetters(),
		Keyed: e.keyed(o, store)})
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	select {
	case <-r.Done():
		return r.Err()
	case <-p.Dying():
		r.Kill()
		<-r.Done()
		return errors.New("the process has crashed")
	case <-ctx.Done():
		r.Kill()
		<-r.Done()
		return fmt.Errorf("the run has not ended: %+v", r.Status())
	}
}

// keyed makes the keyed stages.
func (e *Engine) keyed(o RunOptions, store checkpoint.Store) engine.KeyedFactory {
	f := &keyed.Factory{Store: func(ledger.Scope) checkpoint.Store { return store }, Options: keyed.Options{CheckpointInterval: o.CheckpointInterval}}
	if o.Spill {
		f.SpillFS, f.SpillDir = vfs.NewMem(), "/spill"
		f.Options.SpillBytes, f.Options.MeasureEvery = 1, 1
	}
	return f
}

func (e *Engine) outcome(w *lanetest.World, failing map[string]bool) (*Outcome, error) {
	out := &Outcome{}
	type place struct {
		table, topic connector.UUID
		partition    int32
		offset       int64
		row          int32
	}
	seen := map[place]bool{}
	for _, d := range w.Dead() {
		// Written again after a crash, a letter is the same one.
		rows := 0
		for _, row := range append(slices.Clone(d.Rows), -1)[:max(len(d.Rows), 1)] {
			if p := (place{d.Table, d.TopicID, d.Partition, d.Offset, row}); !seen[p] {
				seen[p] = true
				rows++
			}
		}
		if rows == 0 {
			continue
		}
		if d.Reason == batch.CodeLate {
			out.Late += rows
			continue
		}
		f := Failure{Table: d.TableName, Error: batch.ValueError{Code: d.Reason, Where: d.Column, Message: d.Message}}
		if failing[d.TableName] {
			return out, &RowError{f}
		}
		for range rows {
			out.Dead = append(out.Dead, f)
		}
	}
	return out, nil
}
