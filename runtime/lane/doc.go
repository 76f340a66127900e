// Package lane runs one lane: it reads partitions of one topic, evaluates a
// stateless chain, gives rows to outputs and commits them exactly once, alone.
//
// An output is one sink table with its late and dead rows, or the hand-over to
// one [Exchange]. Each has its own resume position. The commit cycle of a sink
// output:
//
//	write      rows go into open files, one a bucket; files that share a record
//	           form a group
//	seal       a group is finished, where no reader looks
//	intent     its ids and exact offset sets, durable in the ledger
//	publish    one rename or one insert
//	committed  durable in the ledger
//	cursor     the resume position moves to where the oldest open group began,
//	           with all counts below it, in the same ledger batch as committed
//
// What is decided (which rows an output skips, which files form a group, what is
// due, what an intent says, where the resume position stands) is in [Tracker]
// and its helpers: pure, without clock and I/O. The rest moves data.
//
// # Invariants
//
//   - Invariant 1: a cursor never passes a row of an open group, nor an offset
//     whose dead-letter entries are not acknowledged: dead letters are written
//     before anything else happens to a batch.
//   - Invariant 2: an output skips, before anything is evaluated for it, offsets
//     below its position, those in committed intents and rows with a durable
//     dead letter.
//   - Invariant 3: a publish whose outcome is unknown is looked up; if it cannot
//     be known, the lane stops with a sentence.
//   - What is late for its table partition, where such rows are written aside, is said
//     by the bounds of the close in the ledger; once a partition is closed no intent
//     names a file of it.
//   - One record, one intent: everything that one record gives to one output is
//     named by one intent.
//
// # Concurrency
//
// A lane computes on one goroutine, which it has only while there is input, and
// holds its slot's run token only while it computes. Sealing and publishing run
// without the token. Status may be read from anywhere.
package lane
