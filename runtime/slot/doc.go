// Package slot lets many lanes share few processors fairly.
//
// A [Slot] is one run token, an I/O pool, a memory and an open-file budget and
// one timer. Lanes join as a [Member]. A member has a goroutine only between
// [Member.Wake] and the return of its run function, and holds the token only
// while it computes: one batch, then back in line. The line is deficit round
// robin by bytes, so that a lane with large batches gets no more than one with
// small ones.
//
// [Pack] decides which lanes share a slot: a pure function of measured traffic
// and of the placement so far.
//
// What it is not: it knows nothing of sources, sinks or commits.
//
// # Invariants
//
//   - At most one member of a slot computes at a time.
//   - A member that waits for the token gets it after at most one batch of each
//     other member, and after as many of its own turns as its last batches were
//     larger than the quantum.
//   - I/O never holds the token: [Member.IO] refuses to run while it does.
//
// # Concurrency
//
// Wake, WakeAt and Leave may be called from anywhere; the other methods of a
// Member belong to the goroutine that runs it (and to those it starts for I/O).
package slot
