// Package flinktest compares answers of Millrace with those that the real Flink
// gave to the same SQL over the same input.
//
//	testdata/*.sql      tables with their rows, and queries over them
//	testdata/*.expr     expressions, one a line
//	testdata/*.flink    what Flink answered: text, types, rows; its version on top
//	differences.txt     every difference, with the reason
//
// Beside the files there are generated cases: every example of every declared
// function, its first one with NULL and with the bounds of each type in place of
// each argument, every aggregate over its example, over NULLs and over nothing,
// casts between all types, and every two clauses of a query, in one block and in one
// over the other. A function without an answer of Flink fails the test: a new one
// needs "make oracle", or a reason in differences.txt.
//
// Which clauses a query has is read off its text. Which operator has NULL among its
// keys says the comment above it ("-- NULL key: full join"); its plan must have that
// operator. An operator or a pair of clauses without a case fails the test.
//
// The ordinary test needs no Java: it runs each case by the plain evaluation (as
// planned, and with the optimizer off), queries also on the engine, and compares.
// A difference must stand in differences.txt with our answer, below a heading: the
// Flink column of a row of docs/sql/deviations.md, or a text that begins with
// "Known:" and that docs/sql/coverage.md prints. What stands there and is none
// fails too.
//
// "make oracle" asks Flink again and writes the answers; with the build tag
// services the fresh answers are compared with the stored ones. For work on cases,
// MILLRACE_ORACLE_ONLY names suites, and MILLRACE_ORACLE_NEW keeps stored answers.
//
// Compared are failure or not, the types (without length and nullability) and
// the rows; in batch mode in order where the query has an ORDER BY. Floating point numbers
// may differ in the 15th digit: the libraries below differ.
//
// The package has no other code, and no state.
package flinktest
