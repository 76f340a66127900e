package connector

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
)

// UUID names topics, jobs, tables and data directories; never re-used.
type UUID [16]byte

// String is the usual 8-4-4-4-12 form.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// Partition is one source partition.
type Partition struct {
	// TopicID is the topic's UUID; for files, a hash of the path.
	TopicID UUID
	// Topic is its name, for people.
	Topic string
	// ID is the partition number in the topic (files: the split number).
	ID int32
}

// Position is the next offset to read of a partition.
type Position struct {
	Partition   Partition
	LeaderEpoch int32
	Offset      int64
}

// Split is a stretch of a partition to be read: from From.Offset up to, not
// including, End.
type Split struct {
	// Number is the number that the lane gives the split; it is
	// batch.Run.Partition of its rows.
	Number int32
	From   Position
	// End is the offset to stop at; Unbounded: never.
	End int64
}

// Unbounded is the End of a split that never ends.
const Unbounded int64 = 1<<63 - 1

// ErrNoData is returned by Reader.Next when there is nothing to read now.
var ErrNoData = errors.New("no data now")

// MismatchError says that a position does not belong to the log any more: the
// topic was deleted and created again, or records are gone. Source.Check
// returns it for saved positions, Reader.Next when it is met while reading: then
// everything below Position.Offset was given, and the lane commits that before
// it stops. After the user's consent reading goes on at Earliest.
type MismatchError struct {
	Position Position
	// Earliest and Latest are the log's present bounds; Lost is how many
	// records are gone for certain, -1 when it cannot be said.
	Earliest, Latest, Lost int64
	// Recreated: the topic has another UUID now.
	Recreated bool
	// Damaged: the records from Position.Offset to Earliest-1 are there and
	// cannot be read.
	Damaged bool
	Reason  string
	// Err is the cause, or nil.
	Err error
}

// Unwrap returns the cause.
func (e *MismatchError) Unwrap() error { return e.Err }

func (e *MismatchError) Error() string {
	if e.Damaged {
		return fmt.Sprintf("topic %s partition %d: %s", e.Position.Partition.Topic, e.Position.Partition.ID, e.Reason)
	}
	return fmt.Sprintf("topic %s partition %d: saved position %d does not match the log (%d..%d): %s",
		e.Position.Partition.Topic, e.Position.Partition.ID, e.Position.Offset, e.Earliest, e.Latest, e.Reason)
}

// SourceConnector is a connector whose tables can be read.
type SourceConnector interface {
	Connector
	// OpenSource connects to the table's system. It must not read data.
	OpenSource(ctx context.Context, t *Table) (Source, error)
}

// Source is a table being read. Methods may be called from any goroutine.
type Source interface {
	// Partitions lists what there is to read now. It is asked again for
	// discovery; a partition never changes its TopicID and ID.
	Partitions(ctx context.Context) ([]Partition, error)
	// Start gives the start position of each partition by the table's own
	// options (scan.startup.*); asked once per partition, then kept.
	Start(ctx context.Context, parts []Partition) ([]Position, error)
	// End gives the offset to stop at for each partition by the table's
	// options (scan.bounded.*), Unbounded where there is none.
	End(ctx context.Context, parts []Partition) ([]int64, error)
	// Check says for each saved position whether it still belongs to the
	// log: nil, or a *MismatchError.
	Check(ctx context.Context, saved []Position) ([]error, error)
	// Open starts reading. notify is called, from any goroutine and without
	// blocking, whenever Next may have something after it returned ErrNoData.
	// columns are indexes into Table.Columns: what is not listed is checked,
	// never converted, and not in the batches.
	Open(ctx context.Context, splits []Split, columns []int, notify func()) (Reader, error)
	Close() error
}

// Reader reads splits of one source. It belongs to one goroutine at a time.
type Reader interface {
	// Next resets b and fills it with the next rows, decoding at most about
	// maxBytes of input and maxRows rows. It never blocks on data: ErrNoData
	// means nothing now (notify will come), io.EOF that all splits have ended.
	// A batch may have runs and notes but no row.
	Next(ctx context.Context, b *batch.Batch, maxRows, maxBytes int) error
	// Raw is the record at an offset of the batch last filled, for dead
	// letters. It aliases memory that the following Next releases.
	Raw(split int32, offset int64) (r RawRecord, ok bool)
	// LogEnd is the log's end of a split as far as the reader knows: the
	// offset of the next record that will be written. A split at its LogEnd
	// has nothing more to read now.
	LogEnd(split int32) int64
	// Release gives back what the last batch holds of the source's memory
	// (Raw is invalid after it; the batch stays valid).
	Release()
	Close() error
}

// RawRecord is a record as the source stores it.
type RawRecord struct {
	Key, Value []byte
	// TimestampMillis is the record's timestamp in ms since 1970.
	TimestampMillis int64
	Headers         []RecordHeader
}

// RecordHeader is one header of a record.
type RecordHeader struct {
	Key   string
	Value []byte
}

// CursorMirror is a source that can show a job's positions to others, e.g. as
// a subscription's cursor. Recovery never reads them.
type CursorMirror interface {
	MirrorCursor(ctx context.Context, next []Position) error
}

// Holder is a source that can be asked to keep data from a position on. A
// hold replaces the one of the same name.
type Holder interface {
	Hold(ctx context.Context, name string, from []Position) error
}
