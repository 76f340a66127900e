// Package lsp is the language server: the Language Server Protocol 3.17 over a
// pair of streams, in front of sql/assist.
//
//	Content-Length: 57\r\n
//	\r\n
//	{"jsonrpc":"2.0", ...}
//
// Documents are synced as a whole. A document is checked with the DDL of its
// workspace, as `millrace check FILE -f ddl/` does; what is open in the editor
// counts before what is on disk. Diagnostics come when no message is waiting, so
// that fast typing is not checked letter by letter.
//
// What it is not: it holds no knowledge of SQL, reads SQL files alone, and
// opens no connection.
//
// A server is one goroutine that handles messages in order, and one that reads
// them. A fault in a handler is an answer with an error, never the end.
package lsp
