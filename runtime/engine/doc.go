// Package engine runs a job graph in this process: it makes lanes of sources and
// stateless chains, recovers what the last run left, starts the lanes in slots,
// watches them, closes table partitions, and stops them.
//
//	run, err := engine.Start(ctx, job, deps)   // recovery is told to deps.Notice
//	err = run.Wait(ctx)                        // bounded jobs end by themselves
//	run.Status()                               // live counts and states
//	run.Stop(ctx)                              // finish what is open, seal, commit
//
// It knows no SQL text and no connector: both come with the graph. Keyed stages
// come from a [KeyedFactory] given from above.
//
// Order of a start, each step told before the next: the job epoch is raised;
// tables are opened and claimed; lanes are found (those of the ledger first, then
// new partitions); positions are checked against the log; lower lane epochs are
// fenced; pending intents are resolved by looking; then lanes run.
//
// # Concurrency
//
// A Run is safe for concurrent use.
package engine
