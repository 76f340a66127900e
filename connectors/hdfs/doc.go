// Package hdfs is the filesystem behind paths "hdfs://...": what the connectors
// of files write to and read from when a table lies in HDFS.
//
// It is a vfs.FS of whole files ([FS]) and the [Scheme] by which a path and the
// options "hdfs.*" of a table select it. It is no connector of its own, knows no
// tables and no formats, and does not decide when a file is whole. Of Hadoop's
// features it leaves out appending, truncating, hard links and locks
// (vfs.ErrNotSupported), encryption zones and erasure coded files (refused).
//
// # Writing
//
//	Write --> spool (memory, then an unnamed local file)
//	Sync  --> create, send, close until nil, compare length --> the file is there
//
// HDFS only ever sees whole files. Each transfer has a client of its own. When
// anything but "replication in progress" goes wrong, client and file are given
// up, and the bytes are sent again under a new name: the library does not mend a
// pipeline, and a second Close would confirm what no DataNode has. So after Sync
// File.Name says what the file is called.
//
// A nil Close may stand for a short file (a quota was hit): the length is
// compared. Durable means that all replicas have acknowledged; that they are on
// disk then is the cluster's choice (dfs.datanode.synconclose).
//
// # Calls
//
// Nothing in the library has a deadline: connections get one for each read and
// write, that rolls. After an error that is no answer of a NameNode the client
// is given up, since its answers may be those of earlier questions, and the
// NameNode that did not answer is asked last. Calls are tried again while the
// cluster does not serve them (restart, failover, safe mode), up to a bound.
// A rename whose answer was lost is looked for before it is sent again
// (Invariant 3). A request that was lost may also be carried out late: callers
// use names once only, so that a late one finds nothing to do.
//
// # Errors
//
// [Error] says what was done to which path, of what [Kind] the obstacle is, and
// what to do about it.
//
// # Concurrency
//
// FS and Scheme are safe for concurrent use. A file being written belongs to one
// goroutine at a time; of all of one cluster, option hdfs.transfers bounds how
// many are sent at once. A file being read may be used by many; reads queue up.
package hdfs
