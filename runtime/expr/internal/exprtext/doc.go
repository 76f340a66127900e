// Package exprtext reads the expressions that function declarations give as
// examples, for the tests of runtime/expr and runtime/expr/fn.
//
// It is not the SQL front end: it knows literals, operators, calls, CAST,
// CASE, ARRAY[], MAP[], ROW() and columns of one schema, reports only the
// first mistake, and is never part of a program that runs jobs.
package exprtext
