package keyed

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// ErrStopped is what lanes get from hand-overs after Stop.
var ErrStopped = errors.New("the keyed stages are stopping")

// FailError ends the stages: a result row cannot be written and its table's
// policy is 'fail'.
type FailError struct {
	Table, Stage string
	Reason       batch.Code
	Column       string
	Message      string
	// Row is the row as JSON.
	Row []byte
}

func (e *FailError) Error() string {
	where := ""
	if e.Column != "" {
		where = ", column " + e.Column
	}
	return fmt.Sprintf("table %s: a result of %s failed: %s%s: %s (policy 'fail'): %s", e.Table, e.Stage, e.Reason, where, e.Message, e.Row)
}

// StateLimitError says that a task's state has grown beyond its budget, and that it
// cannot go to disk.
type StateLimitError struct {
	Stage        string
	Bytes, Limit int64
	// Operator is the path of the one that has most of it, Kind what it is, and Spills
	// whether its state could go to disk.
	Operator, Kind string
	Spills         bool
	// Spilled is what the task has on disk, whose index stays in memory.
	Spilled int64
}

func (e *StateLimitError) Error() string {
	why := "its state does not spill to disk yet"
	switch {
	case e.Spills && e.Spilled > 0:
		why = fmt.Sprintf("%d bytes are on disk already, and what must stay in memory of them, their index above all, does not fit", e.Spilled)
	case e.Spills:
		why = "what is in memory of its state cannot be spilled to disk"
	}
	return fmt.Sprintf("the state of %s needs more than %d bytes a task (%d), most of it in %s (%s): %s; raise %s (to '%d kb' or more), the parallelism, or use smaller windows",
		e.Stage, e.Limit, e.Bytes, e.Operator, e.Kind, why, optionState, enoughFor(max(e.Bytes, e.Limit)))
}

// enoughFor is the power of two of KiB that is more than bytes by a half at least.
func enoughFor(bytes int64) int64 {
	kb := int64(64)
	for kb<<10 < bytes+bytes/2 {
		kb *= 2
	}
	return kb
}

// AmbiguousError stops the stages because it cannot be known whether artefacts
// are visible. Invariant 3.
type AmbiguousError struct {
	Table     string
	Artifacts []connector.Artifact
	// Gone: nothing of them is left, sealed or published; else the sink cannot
	// say now.
	Gone bool
	// Err is why publishing failed, or nil.
	Err error
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s: ", e.Table)
	if e.Gone {
		b.WriteString("sealed results are neither staged nor published: ")
	} else {
		b.WriteString("it cannot be known whether results were published: ")
	}
	for i := range e.Artifacts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(e.Artifacts[i].Location)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *AmbiguousError) Unwrap() error { return e.Err }

// LostStateError says that the ledger counts rows as folded, and no checkpoint
// holds them.
type LostStateError struct {
	Stages []string
	Rows   int64
}

func (e *LostStateError) Error() string {
	return fmt.Sprintf("the ledger counts %d rows as folded into %s, and there is no checkpoint that holds them; restore the checkpoints' directory, or start a new generation with --fresh",
		e.Rows, strings.Join(e.Stages, ", "))
}

// UnusedStateError says that a checkpoint holds state of operators that the job
// no longer has.
type UnusedStateError struct{ Paths []string }

func (e *UnusedStateError) Error() string {
	return fmt.Sprintf("the checkpoint holds state of %s, which the job no longer has: its open windows would be lost; name it with STATE_ID, or start a new generation with --fresh",
		strings.Join(e.Paths, ", "))
}
