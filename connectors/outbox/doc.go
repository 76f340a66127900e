// Package outbox is the sealing half of sinks whose outside system takes rows by
// requests that can be repeated: what is sealed waits in a file of the data
// directory until the system has acknowledged it.
//
// It turns a [Sender], which delivers one sealed body, and an [Encoder], which
// makes bodies of rows, into a connector.Sink. It is not for systems in which a
// repeated request leaves a second copy: those look for the first one before they
// send again (connectors/clickhouse).
//
// The files lie in a connectors/sealdir, which has the layout and the fencing. By its
// suffix a file was never sent (.sealed), may have been (.tried), was acknowledged
// (.done) or never will be sent (.void). Its format is in docs/format/outbox.md:
//
//	+--------+---------+----+------+-------+--------+------+--------+
//	| magic  | version | id | rows | units | length | body | CRC32C |
//	+--------+---------+----+------+-------+--------+------+--------+
//
// # Invariants
//
//   - Invariant 2: the file's name and content carry the artefact id; a retry sends
//     the same bytes under the same id.
//   - Invariant 3: an error that says nothing about the outcome leaves .tried, and
//     .tried is never discarded.
//   - Invariant 9: an attempt's directory is renamed by a newer epoch, and the owner
//     file names the job's run; whoever finds either changed stops.
//   - Artefacts of one lane are sent in order: what follows a failure is not sent
//     before it.
//
// # Concurrency
//
// A Sink is safe for concurrent use; one artefact is worked on by one caller at a
// time. A writer belongs to one goroutine at a time.
package outbox
