package batch

import "github.com/millrace/millrace/runtime/types"

// Schema is the columns of a batch. It is immutable and shared.
type Schema struct {
	Fields []types.Field
}

// Kind says what a row does to a table: a changelog.
type Kind byte

const (
	Insert       Kind = iota // +I
	UpdateBefore             // -U, directly before its UpdateAfter
	UpdateAfter              // +U
	Delete                   // -D
)

// String is the kind as Flink prints it: "+I", "-U", "+U", "-D".
func (k Kind) String() string { return [...]string{"+I", "-U", "+U", "-D"}[k&3] }

// NoWatermark is the watermark before anything is known.
const NoWatermark int64 = -1 << 63

// MaxWatermark is the watermark after the end of bounded input.
const MaxWatermark int64 = 1<<63 - 1

// Batch is rows as columns, with their origin.
type Batch struct {
	Schema *Schema
	Cols   []Vec
	Len    int

	// Kinds of the rows; nil: every row is Insert.
	Kinds []Kind

	// Runs are the rows' source positions; nil behind the first exchange.
	Runs []Run
	// OffsetDelta is each row's offset minus its run's BaseOffset; nil: the
	// rows of each run are consecutive offsets.
	OffsetDelta []int32
	// RowIndex is each row's index within its record; nil: all 0.
	RowIndex []int32
	// Notes are the records of the runs that gave no row, ascending within a run.
	Notes []Note

	// Watermark is, a row, its own partition's event-time watermark in
	// milliseconds before that row, NoWatermark when none; nil where the
	// table declares none. A row is late by it alone.
	Watermark []int64
}

// Run is a stretch of rows of one source partition.
type Run struct {
	// Partition is the number that the lane gave the source partition.
	Partition int32
	// FirstRow and Rows bound the run's rows in the batch.
	FirstRow, Rows int32
	// BaseOffset (included) to EndOffset (excluded) are the log offsets the
	// run disposes of.
	BaseOffset, EndOffset int64
	// FirstNote and Notes bound the run's notes.
	FirstNote, Notes int32
	// LogTime is the log append time of the run's last record in
	// milliseconds since 1970, 0 when unknown.
	LogTime int64
}

// Note is a record that gave no row.
type Note struct {
	Offset int64
	// Code is CodeEmpty (filtered, one row read), CodeMalformed or another
	// reason (one dead row), or "" for a record of no rows at all (`[]` is
	// CodeEmpty).
	Code Code
	// Where and Message as in ValueError; for malformed text the message
	// names the byte position.
	Where, Message string
}

// Offset is the log offset of row i of run r.
func (b *Batch) Offset(r *Run, i int) int64 {
	if b.OffsetDelta == nil {
		return r.BaseOffset + int64(i) - int64(r.FirstRow)
	}
	return r.BaseOffset + int64(b.OffsetDelta[i])
}

// Index is the index of row i within its record.
func (b *Batch) Index(i int) int32 {
	if b.RowIndex == nil {
		return 0
	}
	return b.RowIndex[i]
}

// Reset empties the batch for a schema, keeping its memory.
func (b *Batch) Reset(s *Schema) {
	b.Schema, b.Len = s, 0
	for len(b.Cols) < len(s.Fields) {
		b.Cols = append(b.Cols, Vec{})
	}
	b.Cols = b.Cols[:len(s.Fields)]
	b.Kinds, b.Runs = nil, b.Runs[:0]
	b.OffsetDelta, b.RowIndex, b.Notes, b.Watermark = nil, nil, b.Notes[:0], nil
}

// KindOf is what a row does to a table; without kinds all rows are new ones.
func (b *Batch) KindOf(row int) Kind {
	if b.Kinds == nil {
		return Insert
	}
	return b.Kinds[row]
}

// Sel selects rows of a batch: nil is all of them, else ascending row numbers.
type Sel []int32

// Each calls f for the selected ones of n rows, in order, until it gives an error.
func (s Sel) Each(n int, f func(row int) error) error {
	if s == nil {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	for _, i := range s {
		if err := f(int(i)); err != nil {
			return err
		}
	}
	return nil
}
