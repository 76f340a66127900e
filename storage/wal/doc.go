// Package wal is the journal of one shard of the log: a ring of zero-filled,
// recycled files to which groups of entries are appended and made durable
// together.
//
//	file:   +-------------+---------+---------+----------------------------+
//	        | header 4096 | group   | group   | zeros, or groups of before |
//	        +-------------+---------+---------+----------------------------+
//
//	group:  +-----------+---------+---------+-----------+-----+-----------+
//	(4096   | header 72 | entry 1 | entry 2 | directory | pad | header 72 |
//	 bytes  |           |         |         |           |     | once more |
//	 each)  +-----------+---------+---------+-----------+-----+-----------+
//
//	entry:  +-----------+------+---------+---------+
//	        | header 48 | note | payload | pad to 8|
//	        +-----------+------+---------+---------+
//
// The directory repeats the entry headers. So each header exists twice and one
// flipped bit costs at most one entry's payload. docs/format/journal.md has the
// layout byte by byte.
//
// # Torn or rotten
//
// A group names the last group known to be durable when it was written, its
// durable mark. Damage at or before the highest mark found is rot: exactly the
// damaged entries are lost and everything after them is kept. Damage behind the
// mark may be an interrupted write, whose groups were never acknowledged; the
// caller decides what to keep (see Recovered).
//
// Groups have rising sequence numbers and the journal's epoch, which is raised
// each time the journal is opened. What recycled files still hold has a
// sequence that is too low; what a lost tail left behind has an epoch that is.
//
// What it is not: it gives no offsets, knows no topics and keeps nothing in
// memory. storage/topiclog does.
//
// # Concurrency
//
// Write and Sync belong to one goroutine. Recycle, Bytes and Close may be
// called from others. A Builder belongs to one goroutine.
package wal
