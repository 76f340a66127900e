package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/node"
)

// activeJob is a job that runs: in this process, or for it in the owner of the data
// directory.
type activeJob interface {
	Name() string
	AlreadyFinished() bool
	// Wait returns when the job has ended, with why if it did not end well.
	Wait(context.Context) error
	// Stop finishes what is open, commits it and ends the job.
	Stop(context.Context) error
	Progress() control.Progress
	Report() control.Report
}

var _ activeJob = (*node.Running)(nil)

// attachedJob runs in the owner.
type attachedJob struct {
	client  *control.Client
	started control.RunStarted
	ended   chan struct{}
	err     error // once ended is closed

	mu       sync.Mutex
	progress control.Progress
	report   control.Report
}

// attach has the owner run a job, and returns when it runs.
func (e *Env) attach(ctx context.Context, c *control.Client, o node.RunOptions) (activeJob, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("looking for the directory that relative paths mean: %w", err)
	}
	req := control.RunJob{Files: o.Files, Path: o.Path, Directory: dir, Set: o.Vars.Set, Env: environmentOf(o),
		Fresh: o.Fresh, Append: o.Append, Adopt: o.Adopt, DiscardAfter: o.DiscardAfter, MaxDead: o.MaxDead}
	j := &attachedJob{client: c, ended: make(chan struct{})}
	started := make(chan struct{})
	// The first signal asks the owner to stop the job, and then its last words are
	// wanted: the connection goes on.
	go func() {
		defer close(j.ended)
		j.err = c.Run(context.WithoutCancel(ctx), req, func(ev *control.RunEvent) error {
			switch {
			case ev.Started != nil:
				j.started = *ev.Started
				j.progress.Job, j.report.Job = j.started.Job, j.started.Job
				close(started)
			case ev.Progress != nil:
				j.mu.Lock()
				j.progress = *ev.Progress
				j.mu.Unlock()
			case ev.Report != nil:
				j.mu.Lock()
				j.report = *ev.Report
				j.mu.Unlock()
			case ev.Findings != "":
				o.Notice(ev.Findings)
			default:
				o.Notice(ev.Notice)
			}
			return nil
		})
	}()
	select {
	case <-started:
		return j, nil
	case <-j.ended:
		select {
		case <-started:
			return j, nil
		default:
		}
		return nil, j.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (j *attachedJob) Name() string          { return j.started.Job }
func (j *attachedJob) AlreadyFinished() bool { return j.started.Finished }

func (j *attachedJob) Wait(ctx context.Context) error {
	select {
	case <-j.ended:
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *attachedJob) Stop(ctx context.Context) error {
	err := j.client.StopJob(ctx, j.started.Job)
	var gone *control.Error
	if errors.As(err, &gone) && gone.Kind == "not_found" {
		return nil // it has just ended
	}
	return err
}

func (j *attachedJob) Progress() control.Progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.progress
}

func (j *attachedJob) Report() control.Report {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.report
}

// variable finds what files may take from the environment: ${NAME}, ${NAME:-default}
// and ${secret:NAME}.
var variable = regexp.MustCompile(`\$\{(secret:)?([A-Za-z_][A-Za-z0-9_]*)`)

// environmentOf is what the files take from this process's environment; the owner has
// another one. Secrets travel over the data directory's socket, which is its user's.
func environmentOf(o node.RunOptions) map[string]string {
	env := map[string]string{}
	for _, f := range o.Files {
		for _, m := range variable.FindAllStringSubmatch(f.Text, -1) {
			look, key := o.Vars.Lookup, m[2]
			if m[1] != "" {
				look, key = o.Vars.Secret, "MILLRACE_SECRET_"+m[2]
			}
			if v, ok := look(m[2]); ok {
				env[key] = v
			}
		}
	}
	return env
}
