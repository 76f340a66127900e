// Package print is the connector `print`: a sink that writes each row as a line
// to standard output or standard error, in Flink's form.
//
//	+I[1, hello, 2024-05-01T08:00]
//	orders> -U[1, hello, null]
//
// It is for looking at results, not for keeping them: a row is printed when its
// artefact is published, once by one process; rows that were sealed and not yet
// printed when a process died are not printed by the next one.
//
// A Sink is safe for concurrent use: lines of one artefact come out together.
// A Writer belongs to one goroutine. Its text is in memory, bounded by the
// attempt's budget.
package print
