// Package fn declares every function of the SQL surface once: names, typing,
// NULL mode, determinism, doc text, runnable example and kernel.
//
// It is not a registry: [NewLibrary] builds an immutable [Library], callers
// pass it on, and a program's own functions are further declarations in its [Extra],
// marked by [User].
// It knows no SQL text; sql/function finds a Function by name, calls its Bind
// and inserts the implicit casts that Bind asked for (or lets
// runtime/expr.NewCall do both).
//
// A [Kernel] works on whole columns and never fails for data: a row that has
// no result gets an error value ([Context.Fail]). What a kernel may rely on:
//
//   - args are Flat or Const (never Dict), of exactly Bound.Params;
//   - sel is never nil, ascending, and the only rows it may read or write;
//   - with NullStrict no selected row has a NULL argument;
//   - no selected row has an argument that is an error;
//   - out was Reset to the return type with the batch's length. Rows are
//     written in ascending order; after the call the caller pads offsets.
//
// Operators of SQL are functions too, under the names "+", "=", "LIKE",
// "IS NULL"... Those that evaluate lazily (AND, CASE, COALESCE...) have a
// [Form] and no kernel; runtime/expr evaluates them.
//
// Words that SQL writes as keywords are passed as string literals: the unit
// first in EXTRACT('DAY', ts), TIMESTAMPADD('DAY', n, ts), TIMESTAMPDIFF; last
// in FLOOR(ts, 'HOUR') and CEIL. TRIM(LEADING x FROM s) is LTRIM(s, x).
//
// Aggregates are declared by [Aggregate] and run as [Accumulator]s, whose
// result does not depend on the order of rows.
//
// Concurrency: Library, Function, Bound and Kernel are immutable and shared;
// Context and Accumulator belong to one goroutine.
package fn
