// Package difftest runs random queries in Millrace and in DuckDB and compares
// the rows.
//
// A seeded, typed generator writes each query twice, once a dialect, over small
// random tables. Every expression form is a production (productions_test.go): a
// name, a type, the text in both dialects and the types of its operands. Rows are
// compared as multisets, in order where the query orders by every column.
//
// Where the two mean different things by the same words, there are two ways, both
// named with their reason (rules_test.go): a rewrite says in DuckDB's SQL what
// Flink's documents ask for; an exclusion leaves something out of the generator,
// or lets one kind of outcome pass, and is counted.
//
// Errors count as results: a query that fails here must fail in DuckDB too. The
// other way round DuckDB may be too eager, since here an error matters only where
// its value is needed.
//
// The comparison carries the build tag services and runs by `make test-services`;
// without the tag the tests only compile and run what is generated, with the
// optimizer on and off. The package has no other code, and no state.
package difftest
