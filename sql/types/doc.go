// Package types gives SQL's type rules over the logical types of
// runtime/types: what a type as written means ([FromAST]), and which value may
// go into which column without a CAST ([Assignable]).
//
// It is not the home of the types themselves (runtime/types), of the common
// type of several values (runtime/types.Common) or of what CAST can do
// (runtime/expr/fn); those are shared with the kernels.
//
// Everything is a pure function and safe for concurrent use.
package types
