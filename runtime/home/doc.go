// Package home makes one table of its two homes: a [Sink] that lanes write as any
// other, over a sink at each home.
//
// Where a file goes is decided here, by the ledger: the files of a table partition
// that is not announced go to the partition's own home, all others to the active
// one. Who decides that a table moves, and what is written anew then, is not
// decided here (runtime/engine, runtime/lane).
//
// # Invariants
//
//   - A home is connected to when it is needed first: a table whose active home
//     serves does not need the other one.
//   - An artefact is published, resolved and discarded at the home that it names
//     (connector.Artifact.Home).
//   - Invariant 2: before anything is published at a home, the artefacts of its
//     table partition that are void there are out of readers' sight ([Sink.Clear]).
//
// # Concurrency
//
// A Sink is safe for concurrent use. Homes do not change while a writer lives: a
// table's lanes are stopped while it moves.
package home
