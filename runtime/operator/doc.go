// Package operator has the operators of a job, one a file. The stateless ones
// (project, filter, unnest, window assign; union is a list of inputs) run inside
// a lane, put together by a [Chain].
//
// What flows is [Rows]: a batch, the rows that are still there, and for each the
// row of the source batch it comes from. The unit of accounting is that source
// row: a row that fails anywhere on the way to a table is dead for that table,
// whatever else was made of it.
//
// Operators with state ([Keyed]) run in keyed stages. One with two inputs gets the
// rows of both, in any order, each with the number of its input ([Join],
// [SetOperation]): it keeps what may still find a partner, by key, and gives
// nothing that a later row could change, so that results do not depend on which
// side came first.
//
// In streams without a bound in time results change: [GroupAggregate], [TopN],
// [StreamJoin], [SetChanges] and [OverChanges] give -U and +U, +I and -D, and take such
// rows. A row that takes another one back ([TakesBack]) looks as that one did when it
// came; it is never dead, and not missed where the other one is not known any more.
// Those whose state has a time to live are [Aging].
//
// Windows of processing time are [Clocked]: the task gives them its clock instead of
// watermarks. [WindowChanges] gives the rows of windows before they end and when late
// ones come, by the clock too ([Timed]).
//
// Operators that are [Spilling] move state to disk when their task has no memory for
// it, and say the same as if it were there.
//
// What it is not: operators do not decide what becomes of a failed row, know no
// positions to commit and do no I/O but for spilled state.
//
// # Invariants
//
//   - Invariant 7: results do not depend on batch size.
//   - Errors of values travel in the columns; an operator fails a row only where
//     an error decides (a predicate, an UNNEST, a window's row time).
//
// # Concurrency
//
// Operators and chains keep their working memory between batches and belong to
// one goroutine. Rows are valid until the next evaluation of the same chain.
package operator
