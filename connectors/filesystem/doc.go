// Package filesystem is the connector `filesystem`: tables that are directories
// of Parquet, JSON or CSV files in Hive's layout.
//
// It writes exactly once, reads back what it or others wrote, and announces
// finished table partitions with a _SUCCESS file. It is not a file format
// (connectors/format), it has no metastore (connectors/hive) and it does not
// decide when a file is sealed or a partition is complete: the lane does.
//
// Everything goes through storage/vfs, so that faults and crashes can be tested.
//
// # Layout
//
//	<table>/
//	  dt=2024-05-01/hr=08/
//	    part-<artefact id>.parquet     published: whole, synced, never changed
//	    _SUCCESS                       the partition was announced
//	  .staging/                        no reader looks into names with '.' or '_'
//	    owner                          who writes the table; created exclusively
//	    <job>/<lane>/<epoch>/          one attempt of one lane
//	      open-<n>                     being written
//	      part-<artefact id>.parquet   sealed: synced, length compared
//	    <job>/<lane>/<epoch>.fenced/   a lower epoch, cut off by a newer one
//	    <job>/void/                    hidden: written anew at the table's other home
//	    <job>/taken/                   copies that are made of files of the other home
//
// # Compressed text
//
// Text files are decompressed by the ending of their names while they are read, and offsets
// are those of the text. Its length is not known before; so the split of such a file ends
// at a bound by its compressed size, and the run of its last row goes up to there. What is
// written is compressed in pieces, each a member or frame of its own, so that open files
// need no compressors.
//
// # Replacing
//
// INSERT OVERWRITE makes new files the whole content of a table partition: they
// are put into a directory beside the partition's, with a record of whose and which
// content it is (.content), and the two directories change places in one operation
// of the system (renameat2, RENAME_EXCHANGE). So a reader, and a crash, find the old
// content or the new. What stood there before is removed then. Of an unpartitioned
// table it is the table's own directory that is exchanged; the staging directory
// is brought along, by the next start if a crash came in between.
//
// The names and encodings are in docs/format/table-directory.md.
//
// # Protocol
//
// Seal finishes a file, syncs it, compares its length and gives it its name in
// the staging directory. Publish renames it, without replacing, to its final
// name, and syncs the directory and every new parent. Resolve looks at the
// final name, then in the staging directory and its fenced form, then at the
// final name again, since a rename may happen meanwhile.
//
// Fence: an attempt creates its directory once, at open; nobody creates parents
// later. A newer epoch renames all lower directories to "<epoch>.fenced". So an
// old attempt that is still alive finds its directory gone at the next create or
// rename, and ends with connector.ErrFenced. An attempt creates its directory
// before it lists the others and ends when it sees a higher one: of two that
// start at once, at least one sees the other.
//
// # Invariants
//
//   - Invariant 2: a file's name is its artefact id; its footer (Parquet) holds
//     the offset sets. Two committed copies of one artefact cannot exist, since
//     they would have one name.
//   - Invariant 3: a failed publish says nothing; Resolve looks. Nothing is
//     removed before the outcome is known.
//   - Invariant 9: see Fence.
//   - A published file is never opened for writing or replaced, and removed only
//     with the whole content of its partition.
//
// # Concurrency
//
// Sink and Source are safe for concurrent use. A Writer belongs to one goroutine
// at a time; its files are written behind it by one goroutine a file while there
// is something to write, so that Write itself never waits for the disk.
package filesystem
