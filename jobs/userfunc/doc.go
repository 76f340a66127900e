// Package userfunc lets a Go program bring functions of its own into SQL.
//
//	set, err := userfunc.NewSet(
//		userfunc.Scalar1("MASK_EMAIL", maskEmail, userfunc.Options{Doc: "Hides the name of an address."}),
//		userfunc.Aggregate1("GEOMETRIC_MEAN", geometricMean, userfunc.Options{Version: "2"}),
//	)
//
// The set goes into jobs.Options, node.Options, jobtest.Options or
// cmd/command.Options; every SQL text that is compiled there knows the functions
// by their names. There is no registry beside it.
//
// A scalar function is a plain Go function of typed values ([Scalar0] to
// [Scalar4]); columns are unpacked once a batch, so that a row costs the call
// alone. [Vector] is for what needs whole columns, or types that Go has no word
// for (DECIMAL, ARRAY, ROW). An aggregate ([Aggregate1], [Aggregate2]) is a typed
// state with what adds to it, merges, saves and loads it.
//
// What functions must keep, and what happens if not:
//
//   - They are called from many goroutines at once and share nothing that is
//     written. An aggregate's state belongs to one goroutine at a time.
//   - Equal arguments give equal results, or Options.NonDeterministic says so; then
//     they are refused where a replay would change rows. They may be evaluated
//     at plan time, more than once a row, or not at all.
//   - A changed meaning gets a new Options.Version: saved state is taken over by
//     the version that made it and by no other.
//   - An aggregate's result depends on the set of its rows, never on their order or
//     on how they were split between states that are merged.
//   - An error makes the value of that row an error value, as a failing CAST does:
//     the row becomes a dead letter where it reaches a table. A panic is caught and
//     becomes such an error; it never ends the process.
//
// What it is not: a sandbox (functions run with the program's rights), and a loader
// of other people's code.
package userfunc
