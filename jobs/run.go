package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/node"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/jobs/userfunc"
)

// File is a SQL file: its name as messages print it, and its text.
type File = control.SQLFile

// Report sums a run up.
type Report = node.Report

// Options of Run. Files, Dir and Connectors are required.
type Options struct {
	// Files are the job's SQL files, DDL first, the job file last. The last one's
	// base name is the job's name unless it sets 'pipeline.name'.
	Files []File
	// Dir is the data directory: log, ledger, checkpoints. Made if missing.
	Dir string
	// Connectors makes the connectors that tables may name, e.g. connectors/all.
	Connectors node.Connectors
	// Functions are those of the program; nil: none.
	Functions *userfunc.Set
	// Set are the values of ${NAME} in the files.
	Set map[string]string
	// Fresh runs a job again that has finished before; see node.RunOptions.
	Fresh, Append, Overwrite bool
	// Notice gets a line for each step of the start; nil: nobody.
	Notice func(string)
	Log    *slog.Logger
}

// Run runs a job until its input has ended or ctx is done; then it finishes what is
// open, commits it, and the error is nil. A job that had finished before is not run
// again. Faulty files are a *control.Error with every finding, a directory that
// belongs to another process a *node.OwnedError.
func Run(ctx context.Context, o Options) (report Report, err error) {
	if len(o.Files) == 0 || o.Dir == "" || o.Connectors == nil {
		return Report{}, errors.New("jobs.Run needs Files, Dir and Connectors")
	}
	n, err := node.Open(ctx, node.Options{Dir: o.Dir, Connectors: o.Connectors, Functions: o.Functions, Command: "jobs.Run", Log: o.Log})
	if err != nil {
		return Report{}, fmt.Errorf("opening the data directory %s: %w", o.Dir, err)
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	path, err := filepath.Abs(o.Files[len(o.Files)-1].Name)
	if err != nil {
		return Report{}, err
	}
	r, err := n.Start(ctx, node.RunOptions{Files: o.Files, Vars: spec.Vars{Set: o.Set}, Path: path, MaxDead: -1,
		Fresh: o.Fresh, Append: o.Append, Overwrite: o.Overwrite, Notice: o.Notice})
	if err != nil {
		return Report{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Wait(context.WithoutCancel(ctx)) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = errors.Join(r.Stop(context.WithoutCancel(ctx)), <-ended)
	}
	return r.Report(), err
}
