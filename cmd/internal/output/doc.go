// Package output renders what commands print: tables for people, one JSON
// envelope for one-shot verbs, JSON lines and CSV for streams of rows.
//
// stdout carries the result alone; progress, notes and hints go to stderr.
// Row streams default to a table on a terminal and to JSON lines elsewhere.
//
//	{"command":"check","ok":false,"summary":"...","result":{...},"error":null}
package output
