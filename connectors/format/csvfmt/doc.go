// Package csvfmt reads and writes comma-separated values: the format `csv`,
// with Flink's options.
//
// A record is one line, or several; each gives a row, and fields are columns by
// position. Fields may be quoted; a quote within quotes is doubled, or written
// behind the escape character if there is one. A blank record is empty, and so
// is a comment line where comments are allowed.
//
// A record is malformed when a quote is not closed, text follows a closing
// quote, bytes are not UTF-8, or a line has another number of fields than the
// table has columns; under on-error `null` and `null-or-drop` fields that are
// absent are NULL and surplus ones are passed over, as in Flink.
//
// An empty field is an empty STRING and an error for any other type, unless
// csv.null-literal is ” and makes it NULL. Types are the scalar ones, and
// ARRAY of them with csv.array-element-delimiter. BYTES are base64, times are in
// SQL's form, TIMESTAMP_LTZ with a Z behind it.
//
// It has no header line: positions count, as in Flink. A Decoder belongs to one
// goroutine at a time, an Encoder to any number.
package csvfmt
