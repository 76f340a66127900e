// Package clickhouse is the connector `clickhouse`: tables of a ClickHouse server,
// written exactly once where the table allows it, and read from pinned parts.
//
// It converts columns straight into ClickHouse's native form, each value checked;
// it does not parse or print values, and it does not decide
// when a block is sealed: the lane does. The driver, which is confined to this
// package, carries sealed blocks and asks questions; it never converts a value.
//
// # Protocol
//
//	Write     columns into native buffers, one block a table partition
//	Seal      the block's bytes into a file of the lane's staging directory, synced
//	          -> the runtime appends the intent to the ledger
//	Publish   <id>.sealed becomes <id>.tried, then one INSERT of one block:
//	          query id and deduplication token are the artefact's id
//	          <id>.tried becomes <id>.done when the server has acknowledged all rows
//	Resolve   ends the query if it still runs, then looks
//
// A block's file is in one of four states, by its suffix: .sealed is for certain
// not in the table, .tried may be, .done is, .void never will be. Its format is in
// docs/format/sealed-block.md.
//
//	<staging>/clickhouse/<job>/t-<table>/
//	  owner                        the job's epoch that writes
//	  <topic>-l<set>/e<epoch>/     one attempt of one lane
//	  <topic>-l<set>/e<epoch>.fenced/
//
// Method token: a .tried block is sent again, the same bytes under the same token,
// while fewer than half of the blocks that the table remembers were written by
// anybody since it was sealed; later its outcome is unknown and the lane stops.
// Method column: the rows whose _mr_artifact is the block's id are counted: all of
// them, or none, or the lane stops. Where a table has both, counting decides.
//
// Method replace loads a table partition's whole content beside it and exchanges it:
// replace.go. Of a Distributed table each shard is a sink of its own: sharded.go.
//
// # Reading
//
// Blocks come in the native form, over either protocol, straight into columns. A split
// is a range of one table partition as it was when it was listed, a position a row's
// place in a total order; snapshot.go says how it stays the same while parts are merged.
//
// # Invariants
//
//   - Invariant 2: a block's id is its artefact id, in the query log, in the token
//     and, where the table has the column, in each row.
//   - Invariant 3: an error that says nothing about the outcome leaves .tried.
//   - Invariant 6: a value that ClickHouse's type cannot hold exactly is refused by
//     Check, with column and value.
//   - Invariant 9: an attempt's directory is renamed by a newer epoch, and the owner
//     file names the job's run; whoever finds either changed stops.
//   - One INSERT is one block of one partition of one table, so that the server
//     commits all of it or nothing.
//
// # Concurrency
//
// A sink is safe for concurrent use; what is asked about one artefact waits for
// what is done with it. A writer belongs to one goroutine at a time.
package clickhouse
