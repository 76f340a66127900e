// Package spill keeps on disk what a task's state has no room for in memory.
//
// A [Run] is a sequence of blocks, each the bytes of some keys' state in whatever
// encoding the operator likes, in ascending order of the keys' hashes. Runs never
// change: an operator writes what it holds as a new run, and reads blocks back by
// hash ([Run.Find]) or a range of hashes at a time ([Ranges]), merging what several
// runs say of a key. Several runs of one [Writer] share a file:
//
//	file   block | block | block | ...
//	memory of each block: lowest and highest hash, offset, length, crc32c;
//	       of each run: optionally a filter of its hashes, 10 bits a key
//
// What it is not: it is a cache, never the truth. Nothing in a [Store]'s directory
// outlives the run of a job; a checkpoint copies what it needs. So there is no
// index on disk, no fsync and no recovery: whatever an earlier run has left is
// removed.
//
// # Invariants
//
//   - Invariant 8: what a run takes in memory is [Run.Memory], which whoever holds
//     it counts to its state.
//   - A block is read back as it was written, or the read is an error: its checksum
//     is in memory.
//
// # Concurrency
//
// A Store and its Runs are safe for concurrent use; a Writer belongs to one
// goroutine.
package spill
