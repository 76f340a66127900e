// Package logtopic is the connector 'log': topics of the embedded log store as
// tables, read and written in this process without a socket.
//
// # Reading
//
// One split is one partition; records are decoded by the table's format straight
// out of leased log memory. A batch holds runs of several partitions when each
// has little, and stops in the middle of a record batch when it has enough. The
// reader has the leases of one batch and no more, so what it pins is bounded by
// the size of a batch.
//
// Positions are (topic UUID, partition, leader epoch, offset). Topics with `os`
// durability are read up to their durable end only, because positions outlive
// the process. What does not fit is a connector.MismatchError, never a silent
// restart:
//
//	saved position                      Lost              Earliest
//	below the log's start               start - position  start
//	above the end of its leader epoch   -1                start
//	above the log's end                 -1                start
//	in front of damage (From..To)       To+1 - From       To + 1
//	of a topic deleted or made again    -1                start of the new one
//
// The same error comes from the reader when retention, damage or deletion is met
// while reading; everything below its position was given before.
//
// A record batch whose checksum is right but whose records cannot be unpacked
// was broken by its producer. It is one note, malformed_record, at its first
// such offset: a dead letter with the bytes of the batch, not the end of the
// lane.
//
// A table over a list or a pattern of topics has a source for each of them, looked up
// by name; which topics there are is looked for anew each time that partitions are
// listed. One that was deleted, or made again, is left out of the list, and its lane
// says so.
//
// # Writing
//
// A bucket is one partition, an artefact one append of record batches, which the
// log writes all or nothing. The same journal entry holds a note:
//
//	note key   "sink/" job(16) table(16) kind(1) lane topic(16) set(4) | subtask(4)
//	note       version(1)=1, then uvarint: generation, epoch, manifest, sequence;
//	           count of inputs, each: topic(16), partition, offset set
//
// Invariant 2: an artefact is published iff its note is there. Invariant 3: an
// append that is under way is waited for before anybody looks, and one that
// ended without an answer (a failed fsync) is Unknown until the log is opened
// again.
//
// What was sealed lives in this process. After a crash an artefact without a
// note was therefore never visible: it is Absent, and its rows are read again
// (connector.ReplayableSeals). Two kinds cannot be read again and carry their
// record batches in the payload, hence in the ledger or the manifest: artefacts
// of a keyed stage, and those that share a record with another artefact, of
// which one may be published and the other not.
//
//	payload    version(1)=1, flags(1): 1 has batches; topic(16);
//	           uvarint partition index, partition id, rows, [batches]
//
// Notes go once nobody will ask for them (connector.Settler), a few dozen at a
// time.
//
// A topic may be written by many jobs and by any producer, so it has no owner
// record; a job's older run in this process is fenced by its job epoch.
//
// # Concurrency
//
// Source, Sink and Connector are safe for concurrent use; a Reader and a Writer
// belong to one goroutine at a time. Make one Connector for a log and share it:
// it holds the fences.
//
// It is not a Kafka client, and it creates no topics. Option names are those of
// Flink's Kafka connector.
package logtopic
