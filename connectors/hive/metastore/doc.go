// Package metastore talks to a Hive Metastore: the fifteen calls that a table's
// writer and reader need, over Thrift's binary protocol on TCP.
//
// It is no general client (no transactions, locks, privileges, functions) and
// it decides nothing: what is registered, and when, is connectors/hive's.
//
// # Versions
//
// Metastores from 2.3 to 4 are spoken to with one set of calls. Two differ:
// `get_table` is gone in 4 and `get_table_req` missing before 2.3, so the newer
// is asked first and the older one when the server does not know the method;
// `alter_partitions` takes no context before 2.2. Fields that this package does
// not know are kept and written back, so that a table that is read, changed and
// altered loses nothing.
//
// # Errors
//
//   - [Fault]: the metastore answered with an exception; it did nothing. Compare
//     with errors.Is: ErrNoSuchObject, ErrAlreadyExists, ErrInvalidObject...
//   - [CallError]: there was no answer. Sent tells whether the request may have
//     been carried out. Invariant 3: who gets one looks before deciding.
//
// A call that got no answer, for another reason than its deadline, is made once
// more on a new connection, at the next address if need be. All calls can be
// repeated: those that add do so only if absent, those that alter write a whole
// object; CreateTable answers ErrAlreadyExists when its first try went through.
//
// # Concurrency
//
// A [Client] is safe for concurrent use: it keeps up to Options.Connections
// connections, each used by one call at a time. A connection on which a call
// failed to end, by a deadline too, is out of step with its server and closed.
//
// # Wire format
//
//	message = 0x8001 | type | name | sequence | struct      (Thrift binary, strict)
//	struct  = { field type | field id | value }* | 0
//	reply   = struct with field 0 the result, fields 1.. the exceptions in declared order
package metastore
