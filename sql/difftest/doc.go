// Package difftest runs random queries in Millrace and in DuckDB and compares
// the rows.
//
// A seeded, typed generator writes each query twice, once a dialect, over small
// random tables with many NULLs. Every expression form is a production: a name, a
// type, the text in both dialects and the types of its operands. Around them stand
// clauses: FROM (tables, views, queries, WITH, VALUES, UNNEST, all joins), WHERE,
// GROUP BY with grouping sets, HAVING, OVER with frames, Top-N, sub-queries, set
// operations, ORDER BY and LIMIT. Rows are compared as multisets, in order where the
// query orders by every column.
//
// A query is a list of choices (choices_test.go). One that differs is made smaller
// by taking choices away and lowering them, as long as it differs in the same way,
// and is printed with its seed and number.
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
// The report counts the queries with rows for each form and each rewrite, and the
// share of queries with rows, which must be 80 in a hundred; in the long run
// (`make torture`, 20,000 queries) each form must have given rows.
//
// The comparison carries the build tag services and runs by `make test-services`;
// without the tag the tests only compile and run what is generated, with the
// optimizer on and off. The package has no other code, and no state.
package difftest
