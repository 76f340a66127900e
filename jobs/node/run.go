package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
)

// RunOptions say what to run and how. Files is required.
type RunOptions struct {
	// Files are the job's SQL files, DDL first, the job file last.
	Files []control.SQLFile
	Vars  spec.Vars
	// Path is the job file's absolute path, which with its base name is the
	// job's identity unless the file sets 'pipeline.name'.
	Path string
	// Fresh starts a new generation. Where tables have rows of earlier ones, Append
	// adds to them; Overwrite makes every INSERT an INSERT OVERWRITE.
	Fresh, Append, Overwrite bool
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
	c := spec.Compile(o.Files, o.Vars, compile.Options{Registry: n.registry, Functions: n.opts.Functions.Extra(), Mode: compile.ModeRun, JobName: base, Overwrite: o.Overwrite})
	if err := c.Err(); err != nil {
		return nil, err
	}
	if o.Findings != nil && len(c.Findings) > 0 {
		o.Findings(c.Findings)
	}
	r := &Running{node: n, record: jobRecord{Name: c.Unit.Name}, graph: c.Unit.Job, started: time.Now(), cpuStart: cpuTime()}
	n.mu.Lock()
	err := n.busy(c.Unit.Name)
	if err == nil {
		n.running[c.Unit.Name] = r
	}
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	rec, err := n.identify(c.Unit, o)
	n.mu.Lock()
	r.record = rec
	n.mu.Unlock()
	if err == nil && (!rec.Finished || o.Fresh) {
		err = n.start(ctx, r, o)
	}
	if err != nil || r.run == nil {
		n.forget(r)
	}
	if err != nil {
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
	dead := DeadTopic(u.Name, u.Job)
	if known && !o.Fresh && rec.Dead != dead && rec.Dead != "" {
		return rec, &control.Error{Kind: "input",
			Message: fmt.Sprintf("the dead letters of job %s are in topic %s; 'dead.topic' cannot change to %s", u.Name, rec.Dead, dead),
			Hint:    "a new generation (--fresh) can have another topic"}
	}
	if o.Fresh && known {
		if err := n.checkFresh(rec, u.Job, o); err != nil {
			return rec, err
		}
		rec.Generation++
		rec.Finished, rec.BeganMillis = false, 0
	}
	if rec.BeganMillis == 0 {
		rec.BeganMillis = n.opts.Now().UnixMilli()
	}
	rec.Path, rec.Files, rec.Set, rec.Dead = o.Path, o.Files, o.Vars.Set, dead
	return rec, n.records.put(rec)
}

// checkFresh refuses to start anew over rows of earlier generations.
func (n *Node) checkFresh(rec jobRecord, g *graph.Job, o RunOptions) error {
	if o.Append {
		return nil
	}
	for gen := uint32(0); gen <= rec.Generation; gen++ {
		book := n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: gen})
		rows := map[string]int64{}
		for _, row := range book.Rows() {
			rows[row.Table.Name] += row.Counts.Written
		}
		for _, s := range sinks(g) {
			if s.Overwrite || s.Connector.Spec().Passing {
				continue
			}
			name := s.Table.Name
			if t, ok := book.Table(name); ok {
				if e := book.Emitted(t.ID); e != nil {
					rows[name] += e.Rows // by keyed stages
				}
			}
			if rows[name] > 0 {
				return &control.Error{Kind: "input",
					Message: fmt.Sprintf("--fresh: table %s holds %d rows of an earlier run, which would be there twice", name, rows[name]),
					Hint:    "empty the table first, or say --append to add to it, --overwrite to replace what it has"}
			}
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
	manifest, err := n.manifestTopic(ctx, r.graph.Options[manifestKey])
	if err != nil {
		return err
	}
	checkpoints := checkpoint.NewLocalStore(n.opts.FS, n.opts.FS.Join(n.opts.Dir, "checkpoints", fmt.Sprintf("%s-g%d", r.record.ID, r.record.Generation)))
	run, err := engine.Start(ctx, r.graph, engine.Deps{
		Ledger: n.ledger, Scope: ledger.Scope{Job: r.record.ID, Generation: r.record.Generation},
		DataDirectory: n.records.directory, NewUUID: newUUID, DeadLetters: dead,
		Keyed:     n.keyedStages(checkpoints, o.DiscardAfter),
		Apart:     func(topic connector.UUID) bool { return topic == connector.UUID(dead.topic.ID) },
		Found:     func(ctx context.Context, topic connector.UUID) error { return n.subscribeFound(ctx, r, topic) },
		BatchTime: time.UnixMilli(r.record.BeganMillis), Adopt: o.Adopt, Manifest: manifest, Readiness: n.readinessTopic, Log: n.opts.Log, Notice: o.Notice, MaxDead: o.maxDead(),
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r.run = run
	return nil
}

// deadLetters opens a dead-letter topic once.
func (n *Node) deadLetters(ctx context.Context, topic string) (*deadTopic, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.dead[topic]; d != nil {
		return d, nil
	}
	d, err := openDeadTopic(ctx, n.store, topic, n.opts.Now, n.resumeOf)
	if err != nil {
		return nil, err
	}
	n.dead[topic] = d
	return d, nil
}

// resumeOf implements resumeFunc over the ledger.
func (n *Node) resumeOf(s ledger.Scope, k deadKey) int64 {
	if c, ok := n.ledger.Book(s).Cursor(ledger.CursorKey{Output: k.table, Topic: k.topic, Partition: k.partition}); ok {
		return c.Offset
	}
	return 0
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
	if err == nil && r.graph.Bounded && !r.stopped.Load() {
		rec := r.record
		rec.Finished = true
		err = errors.Join(r.node.records.put(rec), r.node.release(context.WithoutCancel(ctx), rec, nil))
	}
	r.node.forget(r)
	return err
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
