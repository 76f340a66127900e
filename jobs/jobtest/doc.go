// Package jobtest runs the unit tests of SQL jobs: given rows in, wanted rows
// out, without any system.
//
// A test file (YAML, see docs/sql/testing.md) names a job's SQL files and has a
// list of tests. Each test compiles the job anew and runs its real graph on
// runtime/engine. Only the ends are replaced: every source table reads the
// given records, decoded by the table's own format, so that what is malformed
// dies as in production; every sink table keeps its rows in memory. Metadata
// columns, watermarks, windows, lateness, policies for errors are the job's.
//
//	file --Load--> Suite --Run--> Results --Update--> file
//
// A test with steps is several runs of its job over one ledger and one checkpoint store.
// A run reads the records up to its step and is stopped, which commits everything that
// they fire; the next goes on from there. The last one goes on to the end. Nothing waits
// for a time to pass: where a test has a clock, it stands during a run.
//
// What it is not: a test of connectors. Nothing is known here of files,
// partitions that are announced, or systems that refuse rows.
//
// Wanted rows are converted to the types of the sink table's columns before
// they are compared, so a DECIMAL is compared as a DECIMAL and a time in any
// form that JSON tables take. Rows have no order unless the test says so.
//
// A Suite belongs to one goroutine; different suites are independent.
package jobtest
