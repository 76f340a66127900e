// Package logictest runs golden SQL files: what a query must give, by the
// standard, by Flink's documents, or by a reference engine run side by side;
// never by our own output alone.
//
// A file (testdata/*.slt) is a list of blocks, separated by empty lines. Lines
// that start with # are comments.
//
//	statement ok
//	CREATE TABLE t (a INT, s STRING) WITH ('connector' = 'given')
//
//	statement error unknown_column 1:8
//	SELECT b FROM t
//
//	query rowsort : INT, STRING
//	SELECT a, s FROM t
//	----
//	1|x
//	2|NULL
//
//	query error division_by_zero
//	SELECT 1 / a FROM t
//
//	query dead cast:2
//	...
//
//	job t rowsort
//	CREATE TABLE t (...) WITH ('connector' = 'given'); INSERT INTO t ...;
//	----
//	rows of t
//
// statement error names the code of the first error and, if wanted, its line
// and column in the block. query compares rows, in order (nosort) or sorted
// (rowsort); after a colon the types of the columns. query error: the first
// row that fails must fail with this code. "dead" after the sort word lists
// how many source rows must have failed by code; the others are compared.
// "late" likewise lists how many rows were late.
//
// Tables of connector "given" hold what INSERT INTO t VALUES put into them.
// Values are written as CAST to STRING does, joined by '|'.
//
// Each query runs six ways, which must agree (Invariant 7): straight, with a
// checkpoint and restore in the middle, with other parallelism and batch
// size, as a bounded backfill, with the optimizer off, and with all state that can
// spill on disk. A query about late rows ("streaming" after the sort word) leaves
// the backfill out, where nothing is late; its table has one partition.
//
// Rows come out of an [Executor]. [Direct] is the one of this package: a plain
// in-process evaluation, the reference that the engine is compared with; [Engine]
// is the engine itself.
package logictest
