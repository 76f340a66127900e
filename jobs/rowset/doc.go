// Package rowset keeps the rows that changes leave of a table: +I and +U put one
// there, -U and -D take one away. It is no table: there are no keys, rows are equal
// when their text is, and the same row may be there several times.
//
// A [Set] belongs to one goroutine.
package rowset
