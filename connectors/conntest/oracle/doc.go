// Package oracle asks readers that are not ours what they see: DuckDB and
// pyarrow, in a Python process, for tests.
//
//	rows := oracle.Query(t, `SELECT count(*) FROM read_parquet('/lake/t/**/*.parquet')`)
//	table := oracle.Parquet(t, "/lake/t/a.parquet") // by pyarrow
//
// Tests that use it carry the build tag `services`; `make test-services` installs
// the pinned packages outside the repository and runs them. Without that the
// functions fail the test and say so: they never skip it.
//
// The protocol is one JSON request on standard input and JSON lines on standard
// output: an object with columns and types, then one array a row.
//
//	value                      JSON
//	NULL                       null
//	BOOLEAN, integers          true, 1
//	FLOAT, DOUBLE              a number, or "NaN", "Infinity", "-Infinity"
//	DECIMAL                    "1.50"
//	text                       "text"
//	bytes                      "0x6d72"
//	dates and times            ISO 8601 by DuckDB; an integer in the stored unit by pyarrow
//	lists                      arrays
//	rows                       objects
//	maps                       arrays of [key, value], in the order stored, by pyarrow;
//	                           objects by DuckDB, whose map_entries keeps the order
//
// DuckDB's clock values lose their nanoseconds in Python: select epoch_ns(c).
//
// It is no part of the product, holds no state and opens no network connection.
package oracle
