// Package segment writes and reads segment files, where record batches live
// after the journal.
//
// A segment is a row of extents, each some consecutive raw batches of one
// partition. A mixed segment holds extents of many partitions, sorted by
// (partition, base offset), and is written in one go. An own segment belongs to
// one partition with much traffic and grows by Append until it is sealed. Both
// have the same layout, but that regions of an own segment (see Region) are filled
// up with zeros:
//
//	+-------------+----------+----------+-----+--------------------+---------+
//	| file header | extent 1 | extent 2 | ... | footer             | trailer |
//	| 64, twice   |          |          |     | headers of all     | 64      |
//	|             |          |          |     | extents + the      |         |
//	|             |          |          |     | file header, again |         |
//	+-------------+----------+----------+-----+--------------------+---------+
//
//	extent:  +-------------+-------------------+------------------+
//	         | header 72   | batch table       | raw batches,     |
//	         | own crc     | 8 for each batch: | nothing between  |
//	         |             | size, prefix crc  | them             |
//	         +-------------+-------------------+------------------+
//
// The full layout, byte by byte, is in docs/format/segment.md.
//
// Why a table: the checksum of a Kafka batch leaves its base offset, length and
// leader epoch unprotected, so one flipped bit could serve a record under a
// wrong offset. The table has a checksum of each batch's first 21 bytes, which
// include the batch checksum, and the extent header has the checksum of the
// table. A reader computes the table anew from the batches it read and compares:
// one number proves every byte. The stored table is only read when that fails,
// to tell which batch was hit and where the next one starts.
//
// Everything that is needed to find batches exists twice (extent headers and
// footer, file header and its copy), so that no single fault loses more than
// the batch it hits. Without a readable footer, as in an own segment after a
// crash, the index is rebuilt from the extent headers.
//
// What it is not: it does not decide what is written where, how long it is kept
// or what is committed; storage/topiclog does. It does not lock files against
// other processes.
//
// Invariants:
//   - A read returns only whole batches whose every byte was verified, from the
//     batch that holds the offset asked for. Damage is an error that names the
//     partition and the offsets, never a wrong or a silently missing record.
//   - After a failed write or sync a Writer does nothing more: what the file
//     holds is then unknown.
//   - An unknown version is refused.
//
// Concurrency: a Writer has one writing goroutine. Readers, also those of a
// growing Writer, and the Cache are safe for concurrent use.
package segment
