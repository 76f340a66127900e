package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
)

// progressInterval is how often a job of another process tells it how far it is.
const progressInterval = time.Second

// Run implements control.API: a job of another process, over this one's log. It is
// that process's all the same: when it goes, the job finishes what is open and ends.
func (n *Node) Run(ctx context.Context, req control.RunJob, f func(*control.RunEvent) error) error {
	if !n.opts.RunsJobs {
		return &control.Error{Kind: "environment", Message: (&OwnedError{Dir: n.opts.Dir, PID: os.Getpid()}).Error()}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.mu.Lock()
	if n.closing {
		n.mu.Unlock()
		return &control.Error{Kind: "environment", Message: fmt.Sprintf("process %d is stopping", os.Getpid())}
	}
	n.served.Add(1)
	n.mu.Unlock()
	defer n.served.Done()
	defer context.AfterFunc(n.closed, cancel)()

	var mu sync.Mutex // notices come from the job's goroutines
	send := func(e *control.RunEvent) {
		mu.Lock()
		defer mu.Unlock()
		if err := f(e); err != nil {
			cancel() // nobody listens any more
		}
	}
	r, err := n.Start(ctx, RunOptions{
		Files: req.Files, Path: req.Path, Directory: req.Directory, Vars: spec.Vars{Set: req.Set, LookupEnv: lookup(req.Env)},
		Fresh: req.Fresh, Append: req.Append, Adopt: req.Adopt, DiscardAfter: req.DiscardAfter, MaxDead: req.MaxDead,
		Notice:   func(line string) { send(&control.RunEvent{Notice: line}) },
		Findings: func(l diag.List) { send(&control.RunEvent{Findings: diag.Renderer{}.String(l)}) },
	})
	if err != nil {
		return err
	}
	send(&control.RunEvent{Started: &control.RunStarted{Job: r.Name(), Finished: r.AlreadyFinished()}})
	if r.AlreadyFinished() {
		return nil
	}
	err = r.follow(ctx, func(p control.Progress) { send(&control.RunEvent{Progress: &p}) })
	if err == nil && n.closed.Err() != nil && r.stopped.Load() {
		err = &control.Error{Kind: "environment", Message: fmt.Sprintf("process %d, which ran the job, was stopped; the job has committed what was open", os.Getpid()),
			Hint: "run it again: it goes on where it was"}
	}
	p, rep := r.Progress(), r.Report()
	send(&control.RunEvent{Progress: &p})
	send(&control.RunEvent{Report: &rep})
	return err
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

// follow waits for the end of the job, and stops it when ctx ends.
func (r *Running) follow(ctx context.Context, show func(control.Progress)) error {
	ended := make(chan error, 1)
	go func() { ended <- r.Wait(context.WithoutCancel(ctx)) }()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	gone := ctx.Done()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			show(r.Progress())
		case <-gone:
			gone = nil
			go func() { _ = r.Stop(context.WithoutCancel(ctx)) }() // Wait has the error
		}
	}
}

// StopJob implements control.API.
func (n *Node) StopJob(ctx context.Context, name string) error {
	r, err := n.findRunning(name)
	if err != nil {
		return err
	}
	return r.Stop(ctx)
}

// checkPaths refuses relative paths that would mean other files here than where the
// job was written.
func checkPaths(g *graph.Job, directory string) error {
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("looking for the directory that relative paths mean: %w", err)
	}
	if directory == "" || directory == here {
		return nil
	}
	for _, node := range g.Nodes {
		var c connector.Connector
		var t *connector.Table
		switch op := node.Op.(type) {
		case *graph.Source:
			c, t = op.Connector, op.Table
		case *graph.Sink:
			c, t = op.Connector, op.Table
		default:
			continue
		}
		if !hasOption(c.Spec(), "path") {
			continue
		}
		path := t.Options.String("path")
		if path == "" || filepath.IsAbs(path) || strings.Contains(path, "://") {
			continue
		}
		return &control.Error{Kind: "input",
			Message: fmt.Sprintf("table %s: the path %q is relative, and process %d, which would run the job, works in %s, not in %s", t.Name, path, os.Getpid(), here, directory),
			Hint:    "write an absolute path, or start the server in the job's directory"}
	}
	return nil
}

func hasOption(s *connector.Spec, name string) bool {
	for i := range s.Options {
		if s.Options[i].Key == name {
			return true
		}
	}
	return false
}
