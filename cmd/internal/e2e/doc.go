// Package e2e tests the real binary from outside: it builds cmd/millrace, starts
// it, kills it, fills its topics, and compares the files it wrote, read by a
// reader that is not ours, with what plain Go makes of the same input.
//
// It has no code of its own besides tests:
//
//	binary_test.go     builds the binary, once with and once without faults
//	process_test.go    a started process: its streams, signals, exit code
//	world_test.go      a data directory, tables and job files of one test
//	feed_test.go       a producer that keeps appending over crashes
//	tables_test.go     rows of Parquet tables by xitongsys/parquet-go
//	oracle_test.go     what must be in the tables, computed by encoding/json
//	broker_*_test.go   Kafka clients over kills of the server, and the checker of
//	                   what they saw
//	*_test.go          the tests, by what they do to the process
//
// Tests wait on conditions of the process (control.sock, files, its end) and
// never on time, except where the moment of a kill is the very thing that is
// random. Each prints its seed.
//
// MILLRACE_TORTURE=1 makes the long runs; -torture.log FILE appends their
// outcome, with seed and commit, to that file.
package e2e
