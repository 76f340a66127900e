// Package hive is the connector `hive`: tables of a Hive Metastore, written as
// Parquet files exactly once and read by Hive, Spark, Trino and DuckDB; and read
// here, whoever wrote them.
//
// Its files are those of connectors/filesystem, on the same filesystems and by
// the same protocol: this package maps a table of the metastore to a table
// directory, and registers what lies there. It is no file writer, and it does
// not decide when a table partition is complete: the runtime does.
//
//	metastore table -> columns, location, checks ------+
//	                                                   v
//	rows -> filesystem sink -> renames into dt=.../hr=.../   (exactly once)
//	                                                   |
//	partition complete -> count files -> add or alter the partition -> _SUCCESS
//
// # Announcing a partition
//
//  1. The table is read again: dropped, moved, or with columns that no longer
//     fit what is written, it is an error that names the difference. Nothing is
//     registered, files go on being committed, it is tried again.
//  2. The directory's files are counted: numFiles, totalSize, numRows.
//  3. Partitions that the metastore does not have are added, if not exists, with
//     the owner's tag. One that is there must lie in the directory we write and
//     carry no higher epoch of our job; its statistics are altered if they differ.
//  4. _SUCCESS is written, over an older one.
//
// Each step can be repeated; after a lost reply or a crash all are. Late rows
// are one more file, and the steps once more.
//
// # Reading
//
//	partition names -> those that the query wants -> their directories -> files
//
// A source is connector filesystem's over the directories of partitions, which may
// lie anywhere; values of partition columns come from the metastore, not from
// paths. Columns must hold all that the table's columns can hold.
//
// # Versions
//
//	<table>/dt=2024-05-01/                       appended files; nothing points elsewhere
//	<table>/.versions/dt=2024-05-01/v7-<job>/    a content that replaced all, or files
//	                                             that were merged
//
// The metastore's location says which is the partition's content. A version's
// record names the files in the partition's own directory that it takes the place
// of, so that rows which are appended later are told from those, and so that who
// asks for a file that is gone learns that it was published.
//
// # Invariants
//
//   - Invariant 3: a call without an answer says nothing; the next try looks first.
//   - Invariant 6: no column is converted: types must agree, or the table is
//     refused with all differences.
//   - Invariant 9: before anything is announced the table's owner record is read.
//   - A partition is never dropped, a location only pointed to a version below the
//     table, a table of another job never altered.
//   - Late rows of a table of their own are artefacts of the table that they are late
//     for, with table partition "": whoever fences, publishes or looks for one does it
//     in both tables.
//   - A reader sees all files of one content: they are in place before the location
//     is changed, and stay for the retention after it was changed again.
//
// # Concurrency
//
// A Connector shares one client a metastore between its tables. A Sink is safe
// for concurrent use; the runtime announces from one goroutine a table.
package hive
