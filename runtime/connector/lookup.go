package connector

import (
	"context"

	"github.com/millrace/millrace/runtime/batch"
)

// LookupConnector is a connector whose tables can be looked up by key, for joins
// FOR SYSTEM_TIME AS OF processing time. Its Spec says Lookup.
type LookupConnector interface {
	Connector
	// OpenLookup connects to the table's system for lookups by equality with the
	// key columns that give the listed columns; both are indexes into t.Columns.
	// It must not read data.
	OpenLookup(ctx context.Context, t *Table, keys, columns []int) (Lookup, error)
}

// Lookup is a table that is looked up by fixed key columns. A job opens it once
// and all its lanes use it: methods may be called from any goroutine, Find from
// many at a time.
type Lookup interface {
	// Find looks keys up. It may wait for another system, at most until ctx ends.
	// Any error is retryable: the lane ends its attempt and tries the rows again
	// later, so that none is dropped.
	Find(ctx context.Context, keys *LookupKeys, out *Found) error
	// Local reports that Find would answer from memory now, without waiting.
	Local() bool
	Close() error
}

// LookupKeys are the keys of a batch, each once, without NULL, NaN and errors. They
// belong to the caller, who changes them after Find has returned.
type LookupKeys struct {
	// Cols are the key columns, Flat, of the table's types.
	Cols []batch.Vec
	// Hashes are batch.HashKey of each key.
	Hashes []uint64
}

// Len is the number of keys.
func (k *LookupKeys) Len() int { return len(k.Hashes) }

// Found is what Find gives: the rows of key i are Rows[Sel[First[i]:First[i+1]]].
type Found struct {
	// Rows has the wanted columns. It is to be read only; the caller does not look
	// at it any more when it calls Find again with the same Found.
	Rows *batch.Batch
	// Sel and First belong to the caller; Find fills them from their beginning.
	Sel   batch.Sel
	First []int32
}

// Reset empties f, keeping its memory.
func (f *Found) Reset() {
	f.Rows, f.Sel, f.First = nil, f.Sel[:0], append(f.First[:0], 0)
}

// EndKey says that the rows of one more key are all in Sel.
func (f *Found) EndKey() { f.First = append(f.First, int32(len(f.Sel))) }

// LookupChecker is a LookupConnector that can tell from a declaration alone whether a
// table can be looked up by some keys.
type LookupChecker interface {
	// CheckLookup is OpenLookup's check of the table and of the keys, without asking
	// the table's system. Its error is an *OptionError, a *ColumnError, a
	// *MissingKeyError, or about the table as a whole.
	CheckLookup(t *Table, keys []int) error
}

// ColumnError says that a column, as it is declared, is none that a connector can use.
type ColumnError struct {
	// Column is an index into Table.Columns.
	Column int
	// Message is a sentence without a position; one that begins with "not_yet: " is
	// about something that is not supported yet. Hint may say what to do instead.
	Message, Hint string
}

func (e *ColumnError) Error() string { return e.Message }

// MissingKeyError says that a table cannot be looked up without an equality with a
// column.
type MissingKeyError struct {
	// Column is an index into Table.Columns.
	Column int
	// Message says why, without a position.
	Message string
}

func (e *MissingKeyError) Error() string { return e.Message }
