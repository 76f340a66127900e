// Package expr evaluates typed SQL expressions over batches.
//
// An [Expr] is an immutable typed tree, built by the constructors here (which
// insert implicit casts) from the functions that runtime/expr/fn declares. A
// [Program] is a compiled list of expressions; it is immutable and shared,
// all its working memory is in a [Context], of which each goroutine has one.
// It is not a parser and resolves no names: columns are ordinals of the input
// schema.
//
// Three states: a value, NULL, an error. An error of an argument is the error
// of the call; the exceptions are the lazy forms:
//
//	FALSE AND error = FALSE   TRUE OR error = TRUE    in either order
//	NULL AND error  = error   NULL OR error = error
//	CASE IF COALESCE NULLIF   evaluate only the branches whose value they return
//	TRY_CAST                  makes its own failure NULL, not its argument's
//
// Errors inside a ROW, ARRAY or MAP stay with the element until something
// looks at it; batch.Vec.DeepErr finds them.
//
// Common subexpressions are evaluated once a batch, non-deterministic calls
// once per reference. Lazy branches are evaluated over the rows that need
// them only.
//
// Invariant 7: results do not depend on batch size, selection, encoding of
// the input (flat, const, dict) or on the sharing of subexpressions.
package expr
