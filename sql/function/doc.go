// Package function finds the function that a call means.
//
// Functions are declared in runtime/expr/fn, once, with their typing; this
// package knows how SQL's operators and special forms are named there, and
// what to say about a name that does not exist: the nearest one, the
// equivalent of a name from another dialect, or that it has to wait.
//
// It has no state.
package function
