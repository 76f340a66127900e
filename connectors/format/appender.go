package format

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/runtime/batch"
)

// Appender fills a batch record by record. The connector opens and closes
// runs, the decoder appends values and commits records. The zero value is
// ready for Begin.
type Appender struct {
	b      *batch.Batch
	begun  uint64
	rows   int
	inRun  bool
	counts []Counts
	// pending are the counts of the record being decoded, as column and
	// counter: a record that turns out malformed counts nothing.
	pending []pendingCount
}

type pendingCount struct {
	column  int32
	counter Counter
}

// NewAppender returns an appender.
func NewAppender() *Appender { return new(Appender) }

// Begin empties b for a schema and starts filling it.
func (a *Appender) Begin(b *batch.Batch, schema *batch.Schema) {
	b.Reset(schema)
	for i := range b.Cols {
		b.Cols[i].Reset(schema.Fields[i].Type, 0)
	}
	a.b, a.rows, a.inRun = b, 0, false
	a.begun++
	if cap(a.counts) < len(b.Cols) {
		a.counts = make([]Counts, len(b.Cols))
	}
	a.counts = a.counts[:len(b.Cols)]
	clear(a.counts)
	a.pending = a.pending[:0]
}

// BeginRun starts the rows of a split at the offset of its first record.
func (a *Appender) BeginRun(split int32, offset int64) {
	a.b.Runs = append(a.b.Runs, batch.Run{Partition: split, FirstRow: int32(a.rows),
		BaseOffset: offset, EndOffset: offset, FirstNote: int32(len(a.b.Notes))})
	a.inRun = true
}

// EndRun ends the run: next is the first offset that it does not dispose of,
// logTime the append time in ms of its last record, 0 when unknown.
func (a *Appender) EndRun(next, logTime int64) {
	r := a.run()
	r.EndOffset, r.LogTime = next, logTime
	a.inRun = false
}

// Finish completes the batch. Every column must have a value for every row.
func (a *Appender) Finish() {
	if a.inRun {
		panic("BUG: Finish within a run")
	}
	if a.b.Kinds != nil && len(a.b.Kinds) != a.rows {
		panic(fmt.Sprintf("BUG: %d kinds of %d rows", len(a.b.Kinds), a.rows))
	}
	a.b.Len = a.rows
	for i := range a.b.Cols {
		v := &a.b.Cols[i]
		if v.Len != a.rows {
			panic(fmt.Sprintf("BUG: column %q has %d values for %d rows", a.b.Schema.Fields[i].Name, v.Len, a.rows))
		}
		Seal(v)
	}
}

// Rows is the number of rows of the records decoded since Begin.
func (a *Appender) Rows() int { return a.rows }

// Counts is what was counted on a batch column since Begin.
func (a *Appender) Counts(column int) *Counts { return &a.counts[column] }

// The methods below are for decoders.

// Begun changes with every Begin; a decoder that has bound its columns for
// another value binds them anew.
func (a *Appender) Begun() uint64 { return a.begun }

// Column is a column of the batch to append to.
func (a *Appender) Column(i int) *batch.Vec { return &a.b.Cols[i] }

// Count adds one to a counter of a column when the record is committed.
func (a *Appender) Count(column int, c Counter) {
	a.pending = append(a.pending, pendingCount{int32(column), c})
}

// Pending and ResetPending let a decoder take back what it counted for a
// value that it decodes a second time.
func (a *Appender) Pending() int { return len(a.pending) }

// ResetPending drops the counts after the first n of the record.
func (a *Appender) ResetPending(n int) { a.pending = a.pending[:n] }

// Commit ends a record of n rows, which were appended to all of the decoder's
// columns.
func (a *Appender) Commit(offset int64, n int) {
	for _, p := range a.pending {
		a.counts[p.column][p.counter]++
	}
	a.pending = a.pending[:0]
	r := a.run()
	if offset-r.BaseOffset > math.MaxInt32 {
		r = a.splitRun(r, offset)
	}
	dense := a.b.OffsetDelta == nil && n == 1 && offset == r.BaseOffset+int64(r.Rows)
	if !dense {
		a.explicitOffsets(r)
		for range n {
			a.b.OffsetDelta = append(a.b.OffsetDelta, int32(offset-r.BaseOffset))
		}
	}
	if n > 1 || a.b.RowIndex != nil {
		for len(a.b.RowIndex) < a.rows {
			a.b.RowIndex = append(a.b.RowIndex, 0)
		}
		for i := range n {
			a.b.RowIndex = append(a.b.RowIndex, int32(i))
		}
	}
	r.Rows += int32(n)
	a.rows += n
}

// Changes says what the last n rows do to a table. A batch of which it is said of one
// row has it said of each.
func (a *Appender) Changes(n int, kind batch.Kind) {
	if a.b.Kinds == nil {
		a.b.Kinds = make([]batch.Kind, 0, 64)
	}
	for range n {
		a.b.Kinds = append(a.b.Kinds, kind)
	}
}

// Rollback drops what was appended for the record being decoded.
func (a *Appender) Rollback() {
	a.pending = a.pending[:0]
	for i := range a.b.Cols {
		// A column that is shorter is filled at the end, from elsewhere.
		if v := &a.b.Cols[i]; v.Len > a.rows || v.Len == a.rows && len(v.Children) > 0 {
			Truncate(v, a.rows)
		}
	}
}

// Note records a record that gives no row.
func (a *Appender) Note(offset int64, code batch.Code, where, message string) {
	a.b.Notes = append(a.b.Notes, batch.Note{Offset: offset, Code: code, Where: where, Message: message})
	a.run().Notes++
}

func (a *Appender) run() *batch.Run {
	if !a.inRun {
		panic("BUG: a record outside of a run")
	}
	return &a.b.Runs[len(a.b.Runs)-1]
}

// splitRun starts another run of the same split, because deltas are 32 bit.
func (a *Appender) splitRun(r *batch.Run, offset int64) *batch.Run {
	split := r.Partition
	r.EndOffset = offset
	a.BeginRun(split, offset)
	return a.run()
}

// explicitOffsets writes out the deltas of all rows so far, which were
// consecutive in their runs.
func (a *Appender) explicitOffsets(current *batch.Run) {
	if a.b.OffsetDelta != nil {
		return
	}
	d := make([]int32, 0, max(a.rows*2, 64))
	for i := range a.b.Runs {
		for k := range a.b.Runs[i].Rows {
			d = append(d, k)
		}
	}
	a.b.OffsetDelta = d
}
