// Package sealdir is the directory in which sinks keep what is sealed until the
// system outside has it: files of one table of one job, with owner, fence and states.
// What is in a file and how it is sent is the sink's own (connectors/outbox,
// connectors/clickhouse).
//
//	<root>/<kind>/<job>/t-<table>/
//	  owner                        the job's epoch that writes
//	  <topic>-l<set>/e<epoch>/     one attempt of one lane (keyed: k<subtask>/e<epoch>)
//	  <topic>-l<set>/e<epoch>.fenced/
//	    <artefact id>.sealed | .tried | .done | .void
//
// A file's state is its suffix, and [Dir.Mark] changes it by one rename. Whoever must
// not send after a power cut without a look syncs the directory himself.
//
// Invariant 9: an attempt's directory is renamed by a newer epoch, and the owner file
// names the job's run; whoever finds either changed gets connector.ErrFenced.
//
// A Dir holds no state but its names, and is safe for concurrent use; one artefact
// is worked on by one caller at a time.
package sealdir
