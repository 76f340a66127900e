// Package scalar turns the text of a scalar value into what a column stores,
// and back: the conversions that the json and csv formats share.
//
// Forms are those of Flink's formats, where they are exact: impossible dates
// and times are refused, fractions of a second beyond the precision are cut,
// a number that does not fit its type is refused and never wraps. All
// functions are pure; parsers never allocate, Append functions only grow dst.
//
// It is not the CAST of SQL, which has forms of its own (runtime/expr/fn).
package scalar
