// Package state keeps what keyed stages remember: hash tables with typed keys,
// and the encoding in which operators save and restore them.
//
// A [Keys] is a set of keys, each a row of typed columns, with a dense slot
// number; aggregates are columns by slot beside it. The hash of a key is xxh64
// of its canonical encoding (docs/format/value.md), so that it is the same
// wherever and whenever it is computed; NULL is a key like any other.
//
// A key belongs to one of 256 key groups for ever ([GroupOf]); a subtask owns a
// range of them ([RangeOf]). Restoring at another parallelism gives each subtask
// the keys of its range.
//
// Saved state is [Section]s, one an operator, in a file of frames. A section is its head and
// parts, each of which its operator loads by itself, so that neither writing ([Sections]) nor
// reading ([FileReader]) a file needs more than one of them in memory:
//
//	+--------+---------+ - - - - - - - - - - - - - - - - - - - - -+-------+
//	| "MRSF" | version | section, part, part, ..., section, part  |  end  |
//	+--------+---------+ - - - - - - - - - - - - - - - - - - - - -+-------+
//	frame:   kind (1), length (8), crc32c of these, bytes, crc32c of the bytes
//
// docs/format/checkpoint.md has the fields. Columns in a part are written by
// [AppendVec] without their types: the fingerprint guards those.
//
// State that memory has no room for goes to disk (runtime/state/spill); a [Payload]
// takes it into a checkpoint from there.
//
// What it is not: tables do not move themselves. Operators decide what goes to disk,
// and the stage when.
//
// # Concurrency
//
// A Keys belongs to one goroutine.
package state
