// Package keyvalue says which columns of a table lie in a record's key and which in
// its value, in which formats, and decodes and encodes both. The log's and Kafka's
// connectors share it, with the option names of Flink's Kafka connector:
//
//	format | value.format      how values are encoded
//	key.format, key.fields     how keys are, and which columns they hold
//	key.fields-prefix          what stands before a column's name and not in the key
//	value.fields-include       ALL columns, or those that are not in the key
//	<format>.*                 options of 'format'
//	value.<format>.*           options of 'value.format'
//	key.<format>.*             options of 'key.format'
//
// With ALL the value holds every column and the key is not looked at when records
// are read. Without key.format a table with a primary key writes it as the record's
// key in the value's format, and keys are not read.
//
// What becomes of faulty keys is said by the value's on-error. A record without a
// key has NULL in its key's columns (Flink drops it in silence).
//
// A Layout is immutable; a Decoder belongs to one goroutine at a time, an Encoder to
// any number.
package keyvalue
