// Package assist answers what an editor asks about a place in SQL text: what
// stands here ([Analysis.Hover]), where it was declared ([Analysis.Definition]),
// what may be written here ([Complete]).
//
// It compiles the files (sql/compile) and looks at what the binder took down
// (plan.Index). Where the statement at the place does not parse, as it does not
// most of the time while it is being typed, completion goes by its tokens.
//
// Places are byte offsets into the text without a byte order mark. It is not a
// protocol and no terminal: those are in cmd.
//
// An Analysis is immutable; everything here is safe for concurrent use as long
// as compile.Options.Vars is.
package assist
