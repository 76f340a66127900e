package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/jobs/node"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/sql/diag"
)

// vars looks variables up for this command.
func (e *Env) vars(set map[string]string) spec.Vars {
	return spec.Vars{Set: set, LookupEnv: e.LookupEnv, ReadFile: os.ReadFile}
}

func runCommand(e *Env) *cobra.Command {
	var job jobFlags
	var o node.RunOptions
	var report string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "run JOB.sql...",
		Short: "run jobs in this process until they end or are stopped",
		Long: `Runs each job file, in the foreground. Jobs over bounded input end by themselves
with exit 0. The first SIGINT or SIGTERM finishes what is open, commits, and
exits 0; a second leaves at once, and loses nothing all the same.

The process owns the data directory meanwhile; other commands given the same
--data talk to it.`,
		Example: `  millrace run job.sql -f ddl/
  millrace run job.sql -f ddl/ --set BOUNDED=latest-offset --report report.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := job.variables()
			if err != nil {
				return err
			}
			o.Vars = e.vars(set)
			if o.Overwrite && (o.Append || !o.Fresh) {
				return exitcode.With(exitcode.Input, errors.New("--overwrite goes with --fresh, and without --append"))
			}
			if dryRun {
				return e.dryRun(cmd, &job, args)
			}
			return e.runJobs(cmd, &job, args, o, report)
		},
	}
	job.register(cmd)
	f := cmd.Flags()
	f.BoolVar(&dryRun, "dry-run", false, "compile and print the plan; nothing runs")
	f.BoolVar(&o.Fresh, "fresh", false, "start anew, from where the tables' start options say, as if the job had never run")
	f.BoolVar(&o.Append, "append", false, "with --fresh: add to tables that have rows of earlier runs")
	f.BoolVar(&o.Overwrite, "overwrite", false, "with --fresh: every INSERT replaces what the table partitions it touches hold, as INSERT OVERWRITE")
	f.BoolVar(&o.Adopt, "adopt", false, "take over tables that belong to another data directory")
	f.Int64Var(&o.MaxDead, "max-dead", -1, "stop with exit 1 when more than `N` rows are dead; -1: never")
	f.Uint64Var(&o.DiscardAfter, "discard-after", 0, "give up checkpoints above number `N`, after a message that asked for it")
	f.StringVar(&report, "report", "", "write a JSON summary to `FILE` at the end")
	return cmd
}

func (e *Env) dryRun(cmd *cobra.Command, job *jobFlags, args []string) error {
	for _, a := range args {
		c, err := e.compileOffline(job, []string{a}, compileRun)
		if err != nil {
			return err
		}
		if err := c.Err(); err != nil {
			return err
		}
		fmt.Fprint(e.Stdout, explainText(c.Unit.Explain))
	}
	return nil
}

func (e *Env) runJobs(cmd *cobra.Command, job *jobFlags, args []string, o node.RunOptions, report string) (err error) {
	// What is wrong with the files is said before the data directory is touched.
	type prepared struct {
		opts node.RunOptions
	}
	var all []prepared
	for _, a := range args {
		files, err := job.read([]string{a})
		if err != nil {
			return err
		}
		p := prepared{opts: o}
		p.opts.Files = files
		if p.opts.Path, err = filepath.Abs(a); err != nil {
			return err
		}
		all = append(all, p)
	}
	n, err := e.open(cmd.Context(), commandName(cmd))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if rec := n.Recovery(); len(rec.Damage) > 0 {
		for _, d := range rec.Damage {
			e.note("log: %s", d)
		}
	}
	var running []*node.Running
	for _, p := range all {
		p.opts.Notice = func(line string) { e.note("%s", line) }
		p.opts.Findings = func(l diag.List) {
			_ = diag.Renderer{Color: e.StderrTerminal}.Render(e.Stderr, l) // warnings; stderr may be gone
		}
		r, err := n.Start(cmd.Context(), p.opts)
		if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
			e.note("stopped while starting")
			return stopAll(running)
		}
		if err != nil {
			return errors.Join(err, stopAll(running))
		}
		if r.AlreadyFinished() {
			e.note("job %s has finished; nothing to do (--fresh runs it again)", r.Name())
			continue
		}
		running = append(running, r)
	}
	err = e.watch(cmd.Context(), running)
	if report != "" {
		err = errors.Join(err, writeReport(report, running))
	}
	return err
}

func stopAll(running []*node.Running) error {
	var errs []error
	for _, r := range running {
		errs = append(errs, r.Stop(context.Background()))
	}
	return errors.Join(errs...)
}

// watch shows progress until every job has ended, or stops them when the
// context does.
func (e *Env) watch(ctx context.Context, running []*node.Running) error {
	if len(running) == 0 {
		return nil
	}
	ended := make(chan error, len(running))
	for _, r := range running {
		go func() { ended <- r.Wait(context.Background()) }()
	}
	p, err := e.newProgress()
	if err != nil {
		return errors.Join(err, stopAll(running))
	}
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	var errs []error
	stopping := ctx.Done()
	for left := len(running); left > 0; {
		select {
		case err := <-ended:
			left--
			errs = append(errs, err)
		case <-tick.C:
			p.show(running)
		case <-stopping:
			stopping = nil
			e.note("stopping: finishing what is open; again to leave at once")
			go func() { _ = stopAll(running) }() // Wait has the errors
		}
	}
	e.noBar()
	for _, r := range running {
		s := r.Progress()
		e.note("%s", summaryLine(s))
		if s.Dead > 0 {
			e.note("dead letters: millrace dead ls --job %s", s.Job)
		}
	}
	return exitcode.With(exitcode.Failed, errors.Join(errs...))
}

func writeReport(path string, running []*node.Running) error {
	reports := make([]node.Report, 0, len(running))
	for _, r := range running {
		reports = append(reports, r.Report())
	}
	var v any = reports
	if len(reports) == 1 {
		v = reports[0]
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return exitcode.With(exitcode.Environment, os.WriteFile(path, append(b, '\n'), 0o644))
}
