// Package connector is the contract between the runtime and the systems that
// it reads and writes: what a connector declares ([Spec]), what a source gives
// ([Source], [Reader]) and what a sink promises ([Sink], [Writer], [Committer]).
//
// A connector implements [Connector] and, as it can, [SourceConnector] and
// [SinkConnector]; further abilities are small optional interfaces
// ([PartitionCommitter], [RowChecker], [Replacer], [CursorMirror], [Holder]). Connectors are
// handed to the SQL front end and to the engine in a [Registry]; there is no
// global one.
//
// The commit cycle that every sink takes part in (docs/architecture.md):
//
//	Writer.Write    rows go into open files or blocks, one per bucket
//	Writer.Seal     finish, make durable in a place no reader looks at
//	                -> the runtime appends the intent to the ledger
//	Committer.Publish   one rename or one insert, idempotent by artefact id
//	                -> the runtime appends "committed", then moves the position
//
// After a crash the runtime asks [Committer.Resolve] about every intent that has no
// "committed": published, absent or unknown. Invariant 3: unknown is not failed.
//
// Exported signatures use runtime/batch, runtime/types and runtime/offsets
// only; Arrow does not appear.
package connector
