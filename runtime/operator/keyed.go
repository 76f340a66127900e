package operator

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/state"
)

// KeyedRows is what a keyed operator gets: rows whose key groups are its
// subtask's. They are read only.
type KeyedRows struct {
	// Input is the number of the operator's input that they come from.
	Input int
	Batch *batch.Batch
	// Sel is never nil.
	Sel batch.Sel
	// Hashes are key hashes by row.
	Hashes []uint64
	// Topic and Partitions (by batch.Run.Partition) say what the batch's Runs are
	// of; nil behind another stage, where there are none.
	Topic      string
	Partitions []int32
}

// Results is where a keyed operator's results go.
type Results struct {
	// Emit takes rows; the batch is the operator's again when it returns.
	Emit func(b *batch.Batch) error
	// Dead takes a row of the input that cannot be used (e.Row in b).
	Dead func(b *batch.Batch, e *batch.ValueError)
}

// Keyed is an operator with state: one subtask of it. It belongs to one
// goroutine.
type Keyed interface {
	// Fold takes rows in. An error is one of the program, not of data.
	Fold(ctx *expr.Context, in *KeyedRows, out *Results) error
	// Advance says that no row follows that belongs to a window which the
	// watermark (ms) has passed; batch.MaxWatermark: no row follows at all.
	Advance(ctx *expr.Context, watermark int64, out *Results) error
	// Save gives the state as bytes, which Load of any operator with the same
	// Kind and Fingerprint takes.
	Save() []byte
	// Load takes in what is of the given key groups. It may be called several
	// times, before the first Fold.
	Load(payload []byte, groups state.Range) error
	// Kind and Fingerprint say which saved state fits.
	Kind() string
	Fingerprint() uint64
	// Bytes estimates the memory of the state.
	Bytes() int64
}

// emitRows is the most rows of one result batch.
const emitRows = 4096
