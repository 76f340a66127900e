// Package ledger is the memory of a job's lanes: which artefacts were intended,
// committed or given up, from which position each output goes on, which table
// partitions are closed, and the counts that prove that no row was lost or
// written twice.
//
// A [Ledger] is a log of facts in a compacted, durable topic (a [Store] given
// from above). A [Book] is what one job (and generation) has in it, folded in
// memory. The runtime appends facts; everybody else only reads.
//
// What it is not: it moves no files and decides nothing. runtime/lane decides.
//
// # Records
//
// Every fact has its own key, so that a compactor which only drops what is
// superseded under the same key loses nothing. Keys of what a lane writes end
// in its lane epoch: a process that lost its lane can supersede only its own
// facts.
//
//	key    +------+----------+------------+ - - - - - - - - - +
//	       | kind | job (16) | generation | what the fact is of |
//	       +------+----------+------------+ - - - - - - - - - +
//	value  +-----------+---------+------+ - - - - +------------------+
//	       | 'M' 'R' 'L' | version | kind | fields  | crc32c (key, all) |
//	       +-----------+---------+------+ - - - - +------------------+
//
// docs/format/ledger.md has the fields.
//
// # Invariants
//
//   - A fact of a lane epoch lower than the highest open before it in the log is
//     void, record by record (Invariant 9). [Book.Append] refuses to write one.
//   - read = written + folded + filtered + dead + late (+ open, which only a
//     running lane has) holds in every [Cursor], and in every committed
//     [Intent] (Invariant 6). [Book.Check] verifies it.
//   - No offset of a source partition is in two committed intents of a table
//     (Invariant 2). [Book.Check] verifies that, too.
//
// # Concurrency
//
// Ledger and Book are safe for concurrent use. Concurrent appends are put into
// one store batch. Values handed out (Cursor, *Intent) are immutable.
package ledger
