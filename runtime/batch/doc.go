// Package batch holds rows as columns: the unit that moves through a job.
//
// A [Batch] is a schema, one [Vec] a column, and where the rows come from.
// A [Vec] is a column in the layout of runtime/types, with three states a
// row: a value, NULL, or an error. Errors are values: a decoder or a kernel
// never fails because of data; it records an error for that row and goes on,
// and only the operator that needs the value decides what the row's fate is.
//
// Source positions: rows of one partition lie together in a [Run]. A run
// covers every log offset in [BaseOffset, EndOffset), also those without a
// row: a malformed or empty record is a [Note], anything else that is not
// there (compacted away, a control record) needs no accounting.
//
//	Runs     [ p=0 rows 0..3 offsets 100..104 ][ p=2 rows 3..5 offsets 7..9 ]
//	rows       0   1   2                         3   4
//	offsets   100 101 101 (Note: 102 malformed)  7   8
//	row index  0   0   1                         0   0
//
// Values have one canonical encoding ([AppendValue], docs/format/value.md), of
// which key and row hashes are made; [ToArrow] and [FromArrow] show a batch as
// an Arrow record for IPC without a copy. Arrow appears nowhere else.
//
// Ownership: a Batch belongs to whoever holds it. Operators may re-use the
// columns of their input; a batch that crosses a goroutine is never touched
// again by its sender. Nothing here is safe for concurrent writing.
package batch
