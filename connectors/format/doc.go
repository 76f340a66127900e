// Package format is what the text formats (json, csv) have in common: the
// [Format], [Decoder] and [Encoder] interfaces that connectors code against,
// the error policy, and the [Appender] that turns a stream of records into
// the rows, runs and notes of a batch.
//
// How a connector reads:
//
//	a := format.NewAppender()
//	a.Begin(b, schema)                    // the caller's batch, emptied
//	a.BeginRun(split, offset)             // offset of the first record
//	for each record {
//		n := dec.Decode(value, offset, a) // n rows, or a note
//		...                               // n values into each metadata column
//	}
//	a.EndRun(next, logTime)               // first offset not covered
//	a.Finish()                            // b is complete
//
// What a decoder does with a record:
//
//   - it is malformed: no row, a note with batch.CodeMalformed;
//   - it is empty (no bytes, white space only, null value, `[]`): no row, a
//     note with batch.CodeEmpty;
//   - else one row or several, in order, all of the record's offset. A value
//     that does not fit its column is an error in Vec.Errs of that column (of
//     the nested column where it lies: for `actor ROW<id BIGINT>` the error is
//     in the Vec of `id`, and `actor` itself is not NULL); Vec.DeepErr finds it.
//
// Decoders give these codes in Vec.Errs, and no kernel gives them, so the
// table's `<format>.on-error` applies to an error if [IsDecodeError] holds:
// batch.CodeTypeMismatch, CodeMissingField, CodeNullInNotNull.
//
// Invariant 6: whatever a decoder changes or passes over on a column (rounded,
// missing, duplicate key, error made NULL) is counted in [Counts].
//
// It is not a registry: programs hand the formats they know to connectors.
// Decoders, encoders and appenders belong to one goroutine at a time.
package format
