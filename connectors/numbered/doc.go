// Package numbered is what sources have in common whose rows follow from their number
// alone, such as datagen and nexmark: one partition, offsets that are row numbers,
// positions that fit as long as the rows are the same ones, and stretches of numbers to
// make rows for. How a row is made is each connector's own.
//
// A Source is immutable and may be used from any goroutine; Splits belong to a reader.
package numbered
