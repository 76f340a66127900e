// Package keyed runs the keyed stages of a job: everything behind an exchange,
// and literal rows. It implements engine.KeyedFactory.
//
// The graph behind the exchanges is cut into stages at exchanges and in front of
// every operator with state; a stage runs as a number of tasks, each with its
// share of the key groups, on one goroutine:
//
//	lanes > Gate > Inbox > task: operators > sinks      (writers, sealed at barriers)
//	                                       > Inboxes of the next stage
//
// A stage may have several inputs, from lanes and from stages before it: a join has
// two exchanges, by the same key types, so that rows of equal keys meet in one
// task; what is behind it goes over another exchange into the next stage.
//
// One checkpoint.Coordinator decides for all stages of the job; a [Stages] does
// what it says, in three kinds of goroutines beside the tasks: the driver (events
// and actions, nothing that blocks), the scribe (manifests, ledger, dead letters,
// in order) and one publisher a table (publish, look, committed, table
// partitions).
//
// # What happens to a result row
//
// An error of a value above an exchange reaches nobody's record: the row goes to
// the dead letter as JSON, with a header stage=keyed, named by (stage, subtask,
// manifest, number), and is counted in ledger.Emitted beside the equation.
//
// # Processing time
//
// Operators that go by the clock get rows with the time at which their task takes
// them, and are advanced by a timer. Their state has the clock, so that it never goes
// back; what they emit without input is sealed by a checkpoint of its own. See
// taskClock for what a crash does.
//
// # Invariants
//
//   - Invariant 2: a writer's artefacts carry the number of the manifest that will
//     list them; nothing is published before that manifest is durable and the
//     ledger has publishing{n, ids}.
//   - Invariant 3: a publish whose outcome is unknown is looked up; if it cannot be
//     known, the stages stop with a sentence.
//   - Invariant 7: results do not depend on parallelism, batch sizes or order of
//     arrival; those of processing time depend on the clock alone.
//   - Invariant 8: state beyond Options.StateBytes goes to disk, where the operator
//     can (operator.Spilling), else it stops the stages with *StateLimitError. What is
//     on disk is a cache: the checkpoints have all of it.
//
// # Concurrency
//
// A Stages is safe for concurrent use.
package keyed
