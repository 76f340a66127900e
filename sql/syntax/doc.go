// Package syntax turns SQL text into syntax trees and back.
//
// It is the lexer, the parser and the printer of the dialect, a strict subset of Flink SQL with a few
// marked extensions. It knows no tables, no types beyond their spelling and no functions beyond the ones
// with a grammar of their own; what a name means is for the binder.
//
//	text --Lex--> tokens (with trivia) --Parse--> tree --Print--> text
//	                                       |
//	                                       +--Substitute--> tree with loop variables bound
//
// Invariants:
//
//   - Every node has a span of the file it came from; spans of children lie inside their parent's.
//   - Trees are immutable. Substitute copies what it changes and shares the rest.
//   - Parse never panics and always returns: nesting is limited, and a statement with an error becomes a
//     BadStmt while the next one is parsed.
//   - Parsing what Print wrote gives an equal tree (spans aside).
//   - The value of a variable is never lexed: it can hold quotes, semicolons and comments without effect.
//   - Secrets are printed as placeholders.
//
// Everything here is safe for concurrent use as long as each Parse has its own Options.Vars or one that is
// itself safe.
package syntax
