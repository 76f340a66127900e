// Package diag holds diagnostics about SQL text: places (File, Span, Pos), messages (Diagnostic, List),
// their one renderer for people (Renderer), their JSON form, the search for the nearest name, and the
// registry of codes with a page for each (Pages, pages_*.go).
//
// It is not for errors at run time (Go errors, dead letters) and knows no SQL.
//
// Columns are counted in code points from 1, in text and in JSON; offsets are bytes. Carets are aligned by
// terminal width, so they stand under wide characters and tabs alike.
//
// Files, spans and codes are immutable values and safe for concurrent use; a List belongs to one goroutine.
package diag
