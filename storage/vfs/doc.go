// Package vfs is the only door to the filesystem for everything that must
// survive a crash: the log store, checkpoints, ledgers and file sinks.
//
// It is an interface (FS, File) with one real implementation (NewOS), one in
// memory (NewMem) that forgets at a simulated crash whatever was not synced,
// and wrappers for tests and operations: NewFault makes chosen operations fail,
// NewTrace writes each operation to a log that golden tests compare,
// NewLimited runs out of space after a number of bytes.
//
// It is not a general purpose filesystem abstraction: there are no
// permissions (but for Restrict), no symbolic links and no working directory. Paths are passed to
// the operating system as they are; Mem treats them as slash separated and
// cleans them with path.Clean.
//
// # What is durable
//
// These rules are POSIX's and Mem enforces the strictest reading of them:
//
//   - bytes written to a file are durable after Sync or SyncData of the file;
//   - a name (created, renamed, linked or removed) is durable after SyncDir of
//     the directory that holds it; a new directory needs SyncDir of its parent;
//   - a rename is atomic: after a crash the file has the old name, the new one
//     or, across directories, both, but never none;
//   - after Sync failed nothing is known about the file's unsynced bytes, and a
//     second Sync that succeeds proves nothing.
//
// # Concurrency
//
// An FS is safe for concurrent use. A File is safe for concurrent ReadAt,
// WriteAt, Sync and SyncData; Read and Write share one cursor and belong to one
// goroutine.
package vfs
