// Package manifest keeps a small state durable: a snapshot followed by a log of
// checksummed edits, rewritten when the log outgrows the snapshot.
//
// The log store uses it for its topics, partitions, segments and cursors. The
// package knows none of them: an edit is a kind and opaque bytes, and on Open
// each is handed to a function in the order it was written.
//
//	CURRENT                  names the file in force, with a checksum
//	manifest-000007
//	  +------------------+--------------+-----+-----+--------------+-------+-----
//	  | file header, 2 x | snapshot 2 x | ... | end | edits 2 x    | 2 x   | ...
//	  +------------------+--------------+-----+-----+--------------+-------+-----
//	frame: magic, type, copy, generation, sequence, durable mark, length,
//	       entries, checksum of the payload, checksum of the header; payload
//
// Every frame is written twice in a row, in one write: unlike a damaged record
// batch, a damaged edit cannot be skipped, the state after it would be wrong. So
// one fault loses nothing. The exact layout is in docs/format/manifest.md.
//
// Torn or rotten: each frame carries the position up to which the file was known
// durable when the frame was written. A frame that is bad in both copies is a
// torn tail, and is cut off, unless a later frame proves that it had been
// durable; then it is rot, and Open refuses.
//
// What it is not: a database. The state lives in the caller's memory; there is
// no reading of single entries.
//
// Invariants:
//   - When Append or Sync returned nil, the edits survive a crash of the machine.
//   - After a crash the state is that of some prefix of the appended batches,
//     never a part of a batch, and never less than what was synced.
//   - After a failed write or sync the Log does nothing more (a failed fsync is
//     never tried again on the same file); open it anew.
//   - Open holds one frame in memory at a time, whatever the size of the log.
//
// Concurrency: all methods are safe for concurrent use; concurrent Append calls
// share one fsync. Snapshot must not run while the caller changes the state, see
// there.
package manifest
