// Package rawfmt reads and writes a record as the bytes of one column: the format
// `raw`, with Flink's options. A table, or the key of its records, has one column
// then.
//
//	STRING, CHAR(n), VARCHAR(n)   UTF-8, checked
//	BYTES, BINARY(n), VARBINARY   the bytes
//	BOOLEAN                       one byte, 0 is FALSE
//	TINYINT to BIGINT             1, 2, 4, 8 bytes, two's complement, by raw.endianness
//	FLOAT, DOUBLE                 4, 8 bytes of IEEE 754, by raw.endianness
//
// A record without a value is empty (see the codes of batch); one of no bytes is an
// empty STRING or BYTES, and an error for other types. Bytes of another number are
// an error of the value. NULL cannot be written.
//
// A Decoder belongs to one goroutine at a time, an Encoder to any number.
package rawfmt
