// Package graph is the job graph: what the SQL front end (or the Go API)
// hands to the engine. It knows operators, columns by number and compiled-to-be
// expressions; it knows no SQL text.
//
// A [Job] is nodes in topological order. Nodes between a [Source] and the next
// [Exchange] or [Sink] are stateless and run inside the source's lane; nodes
// behind an [Exchange] are a keyed stage:
//
//	Source > Filter > Project > Sink                     a lane, commits alone
//	Source > Filter > Exchange > WindowAggregate > Sink  a lane and a keyed stage
//
//	Source > Exchange \
//	Source > Exchange > Join > Exchange > GroupAggregate  stages with two inputs, and in a row
//
// A node may feed several others; a [Union] and a [Sink] may have several
// inputs, a [Join] and a [SetOperation] have two, a [WideMerge] one a branch:
// each an exchange of its own, by the same key types, so that rows of equal keys
// meet in one task. [Job.Validate] checks shape, column numbers and types, that row time
// is there where a window needs it, and the rule that a topic may not reach
// one table both directly and through an exchange.
//
// Graphs are immutable once validated and may be shared.
package graph
