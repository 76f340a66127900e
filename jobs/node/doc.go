// Package node is the owner of a data directory: the embedded log, the
// ledger, the jobs' records and the jobs that run, behind control.API.
//
//	DIR/log/             the log store (storage/topiclog); its LOCK is held while
//	                     a process owns the directory
//	DIR/jobs/            the jobs' records (storage/manifest): name, UUID, files
//	DIR/checkpoints/     those of keyed stages, a folder a job and generation
//	DIR/spill/           state of keyed stages that memory has no room for, a folder
//	                     a run; removed at start and end
//	DIR/access           users, access rules, quotas (storage/access)
//	DIR/control.sock     control.API for other commands
//
//	topic __millrace_ledger    the ledger (runtime/ledger), compacted
//	topic <job>.dead           dead letters
//
// A command that runs jobs opens a [Node]; every other command asks the node
// of the process that is there already, or opens one for the moment.
//
// What it is not: it holds no SQL semantics (sql/compile), no commit protocol
// (runtime/engine, runtime/lane) and prints nothing.
package node
