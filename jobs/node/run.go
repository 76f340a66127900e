package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/storage/topiclog"
)

// RunOptions say what to run and how. Files is required.
type RunOptions struct {
	// Files are the job's SQL files, DDL first, the job file last.
	Files []control.SQLFile
	Vars  spec.Vars
	// Path is the job file's absolute path, which with its base name is the
	// job's identity unless the file sets 'pipeline.name'.
	Path string
	// Fresh starts a new generation; Append lets it add to tables that have
	// rows of earlier ones.
	Fresh, Append bool
	// Adopt takes tables over from another data directory.
	Adopt bool
	// DiscardAfter gives up checkpoints above it; 0: none.
	DiscardAfter uint64
	// MaxDead ends the run when more rows are dead; negative: never.
	MaxDead int64
	// Notice gets a line for each step of the start; Findings the warnings.
	Notice   func(string)
	Findings func(diag.List)
}

// maxDead is the limit of dead rows, nil: none.
func (o *RunOptions) maxDead() *int64 {
	if o.MaxDead < 0 {
		return nil
	}
	return &o.MaxDead
}

// Running is a job of this process.
type Running struct {
	node     *Node
	record   jobRecord
	graph    *graph.Job
	run      *engine.Run // nil: it had finished before
	started  time.Time
	cpuStart time.Duration
	stopped  atomic.Bool
}

// DeadTopic is the name of a job's dead-letter topic.
func DeadTopic(job string, g *graph.Job) string {
	if t := g.Options["dead.topic"]; t != "" {
		return t
	}
	return job + ".dead"
}

// Start compiles a job and runs it. The error of faulty files is a
// *control.Error with every finding.
func (n *Node) Start(ctx context.Context, o RunOptions) (*Running, error) {
	base := strings.TrimSuffix(filepath.Base(o.Path), ".sql")
	c := spec.Compile(o.Files, o.Vars, compile.Options{Registry: n.registry, Mode: compile.ModeRun, JobName: base})
	if err := c.Err(); err != nil {
		return nil, err
	}
	if o.Findings != nil && len(c.Findings) > 0 {
		o.Findings(c.Findings)
	}
	rec, err := n.identify(c.Unit, o)
	if err != nil {
		return nil, err
	}
	r := &Running{node: n, record: rec, graph: c.Unit.Job, started: time.Now(), cpuStart: cpuTime()}
	if rec.Finished && !o.Fresh {
		return r, nil
	}
	n.mu.Lock()
	if n.running[rec.Name] != nil {
		n.mu.Unlock()
		return nil, inputError(fmt.Errorf("job %s is running already", rec.Name))
	}
	n.running[rec.Name] = r
	n.mu.Unlock()
	if err := n.start(ctx, r, o); err != nil {
		n.forget(r)
		return nil, err
	}
	return r, nil
}

func (n *Node) forget(r *Running) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running[r.record.Name] == r {
		delete(n.running, r.record.Name)
	}
}

// identify finds or makes the job's record.
func (n *Node) identify(u *compile.Unit, o RunOptions) (jobRecord, error) {
	rec, known := n.records.find(u.Name)
	switch {
	case !known:
		rec = jobRecord{Name: u.Name, ID: newUUID()}
	case rec.Path != o.Path && !u.NameSet:
		return rec, &control.Error{Kind: "input",
			Message: fmt.Sprintf("job name %q belongs to %s, not to %s", u.Name, rec.Path, o.Path),
			Hint:    "give the job a name of its own: SET 'pipeline.name' = '...'"}
	}
	if o.Fresh && known {
		if err := n.checkFresh(rec, u.Job, o); err != nil {
			return rec, err
		}
		rec.Generation++
		rec.Finished = false
	}
	rec.Path, rec.Files, rec.Set, rec.Dead = o.Path, o.Files, o.Vars.Set, DeadTopic(u.Name, u.Job)
	return rec, n.records.put(rec)
}

// checkFresh refuses to start anew over rows of earlier generations.
func (n *Node) checkFresh(rec jobRecord, g *graph.Job, o RunOptions) error {
	if o.Append {
		return nil
	}
	for gen := uint32(0); gen <= rec.Generation; gen++ {
		for _, row := range n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: gen}).Rows() {
			if row.Counts.Written == 0 || !slices.ContainsFunc(sinks(g), func(s *graph.Sink) bool { return s.Table.Name == row.Table.Name }) {
				continue
			}
			return &control.Error{Kind: "input",
				Message: fmt.Sprintf("--fresh: table %s holds %d rows of an earlier run, which would be there twice", row.Table.Name, row.Counts.Written),
				Hint:    "empty the table first, or say --append"}
		}
	}
	return nil
}

func sinks(g *graph.Job) []*graph.Sink {
	var out []*graph.Sink
	for _, node := range g.Nodes {
		if s, ok := node.Op.(*graph.Sink); ok {
			out = append(out, s)
		}
	}
	return out
}

// start opens what the job needs and hands it to the engine.
func (n *Node) start(ctx context.Context, r *Running, o RunOptions) error {
	if err := n.subscribe(ctx, r); err != nil {
		return err
	}
	dead, err := n.deadLetters(ctx, DeadTopic(r.record.Name, r.graph))
	if err != nil {
		return err
	}
	checkpoints := checkpoint.NewLocalStore(n.opts.FS, n.opts.FS.Join(n.opts.Dir, "checkpoints", fmt.Sprintf("%s-g%d", r.record.ID, r.record.Generation)))
	r.run, err = engine.Start(ctx, r.graph, engine.Deps{
		Ledger: n.ledger, Scope: ledger.Scope{Job: r.record.ID, Generation: r.record.Generation},
		DataDirectory: n.records.directory, NewUUID: newUUID, DeadLetters: dead,
		Keyed: keyedStages(checkpoints, o.DiscardAfter),
		Adopt: o.Adopt, Log: n.opts.Log, Notice: o.Notice, MaxDead: o.maxDead(),
	})
	return err
}

// subscribe tells the log that the job reads its topics.
func (n *Node) subscribe(ctx context.Context, r *Running) error {
	for _, t := range logTopics(r.graph) {
		topic, err := n.findTopic(t)
		if err != nil {
			var ce *control.Error
			if errors.As(err, &ce) && ce.Hint == "" {
				ce.Hint = "make it: millrace topics create " + t
			}
			return err
		}
		if err := n.store.Subscribe(ctx, topiclog.Subscription{Group: jobGroup(r.record.Name), Topic: topic.ID, Owner: "job " + r.record.Name}); err != nil {
			return fmt.Errorf("subscribing to topic %s: %w", t, err)
		}
	}
	return nil
}

// jobGroup is the name of a job's subscriptions.
func jobGroup(job string) string { return "job/" + job }

// logTopics are the topics of the embedded log that a graph reads.
func logTopics(g *graph.Job) []string {
	var out []string
	for _, node := range g.Nodes {
		if s, ok := node.Op.(*graph.Source); ok && s.Connector.Spec().Name == "log" {
			if t := s.Table.Options.String("topic"); !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// deadLetters opens a dead-letter topic once.
func (n *Node) deadLetters(ctx context.Context, topic string) (*deadTopic, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.dead[topic]; d != nil {
		return d, nil
	}
	d, err := openDeadTopic(ctx, n.store, topic, n.opts.Now)
	if err != nil {
		return nil, err
	}
	n.dead[topic] = d
	return d, nil
}

// Name is the job's name.
func (r *Running) Name() string { return r.record.Name }

// AlreadyFinished reports a bounded job that had ended before: nothing runs.
func (r *Running) AlreadyFinished() bool { return r.run == nil }

// Wait returns when the job has ended, with why if it did not end well.
func (r *Running) Wait(ctx context.Context) error {
	if r.run == nil {
		return nil
	}
	err := r.run.Wait(ctx)
	if ctx.Err() != nil && err != nil {
		return err
	}
	r.node.forget(r)
	if err == nil && r.graph.Bounded && !r.stopped.Load() {
		rec := r.record
		rec.Finished = true
		err = errors.Join(r.node.records.put(rec), r.unsubscribe())
	}
	return err
}

// unsubscribe lets the topics go: a finished job reads no more.
func (r *Running) unsubscribe() error {
	var errs []error
	for _, t := range logTopics(r.graph) {
		topic, err := r.node.store.Topic(t)
		if errors.Is(err, topiclog.ErrTopicNotFound) {
			continue
		}
		if err == nil {
			err = r.node.store.Unsubscribe(context.Background(), jobGroup(r.record.Name), topic.ID)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Stop finishes what is open, commits it and ends the job.
func (r *Running) Stop(ctx context.Context) error {
	if r.run == nil {
		return nil
	}
	r.stopped.Store(true)
	err := r.run.Stop(ctx)
	r.node.forget(r)
	return err
}

// cpuTime is the CPU time of this process, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxRSS is the largest memory of this process so far, in bytes.
func maxRSS() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10
}
