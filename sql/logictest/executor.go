package logictest

import (
	"context"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
)

// RunOptions is one way to run a job.
type RunOptions struct {
	// BatchRows bounds the rows of a batch.
	BatchRows int
	// Parallelism is the number of subtasks of keyed stages, and of splits
	// read side by side.
	Parallelism int
	// Restart takes a checkpoint in the middle, throws everything away and
	// goes on from it.
	Restart bool
	// CheckpointInterval is the time between checkpoints of keyed stages on the
	// engine (2 ms; negative: only the last one).
	CheckpointInterval time.Duration
	// CrashAt is the operation of the engine's process on the outside world after
	// which it crashes, with Restart (4).
	CrashAt int
	// NoSharing evaluates common subexpressions at each place anew.
	NoSharing bool
	// Spill moves keyed state to disk on the engine with every batch.
	Spill bool
}

// Outcome is what a run did beside writing rows.
type Outcome struct {
	// Dead counts source rows that failed, Late those late for their window,
	// by table and reason.
	Dead []Failure
	Late int
}

// Failure is a row that failed.
type Failure struct {
	Table string
	Error batch.ValueError
}

// Executor runs bounded jobs to their end. Rows go to the sinks of the graph.
type Executor interface {
	Run(ctx context.Context, job *graph.Job, o RunOptions) (*Outcome, error)
}

// RowError ends a run whose sink's policy is to fail.
type RowError struct{ Failure Failure }

// Error implements error.
func (e *RowError) Error() string {
	return "table " + e.Failure.Table + ": " + string(e.Failure.Error.Code) + ": " + e.Failure.Error.Where + ": " + e.Failure.Error.Message
}
