package connector

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/runtime/batch"
)

// ErrFull is returned by Writer.Write when the batch does not fit the
// writer's memory now; nothing of it was taken.
var ErrFull = errors.New("writer is full")

// ErrFenced is returned when a newer epoch, or another owner, has taken over.
// Invariant 9: whoever gets it stops for good.
var ErrFenced = errors.New("fenced by a newer epoch")

// OwnedError is returned by OpenSink when the table's location belongs to
// another job or data directory.
type OwnedError struct {
	Location string
	// Owner describes who owns it.
	Owner string
}

func (e *OwnedError) Error() string {
	return "table location " + e.Location + " belongs to " + e.Owner
}

// Owner is who writes a table.
type Owner struct {
	Job UUID
	// DataDirectory is the UUID of the data directory the job runs from.
	DataDirectory UUID
	// JobEpoch rises at each process start of the job.
	JobEpoch uint64
	// JobName is for people.
	JobName string
	// Adopt takes the location over from another owner.
	Adopt bool
}

// SinkConnector is a connector whose tables can be written.
type SinkConnector interface {
	Connector
	// OpenSink connects to the table's system and claims the table for the
	// owner (*OwnedError when it is another's). Columns that the table
	// declares are exactly those of the batches it will be given.
	OpenSink(ctx context.Context, t *Table, o Owner) (Sink, error)
}

// Sink is a table being written. Methods may be called from any goroutine.
type Sink interface {
	Committer
	// MaxEpoch is the highest lane epoch (Keyed: job epoch) found in the
	// sink's own records (staging names, owner tables) for a lane; 0: none.
	MaxEpoch(ctx context.Context, lane LaneID) (uint64, error)
	// OpenWriter starts an attempt: it fences all lower epochs of the same
	// lane (or, for a keyed subtask, of the same subtask).
	OpenWriter(ctx context.Context, a Attempt) (Writer, error)
	// Roll says when an open bucket should be sealed.
	Roll() RollPolicy
	Close() error
}

// Attempt is one life of a writer.
type Attempt struct {
	// ID has everything but TablePartition-dependent parts: the sink uses
	// Job, Generation, Table, Lane or Subtask, and Epoch.
	ID ArtifactID
	// MemoryBytes bounds what the writer may hold.
	MemoryBytes int64
	// Replace: what is sealed goes to Replacer.Replace, never to Publish.
	Replace bool
}

// RollPolicy says when an open file or block is to be sealed; zero values
// mean "never for this reason".
type RollPolicy struct {
	Bytes int64
	Age   time.Duration
}

// BucketID is the sink's name for one open file or block: a table partition,
// with a shard where there are several. Ids are valid for one Writer.
type BucketID int32

// Bucket describes an open bucket.
type Bucket struct {
	ID             BucketID
	TablePartition string
	Rows           int64
	// Bytes is the size so far as it would be stored.
	Bytes int64
}

// SealRequest asks for one bucket to be sealed under a header.
type SealRequest struct {
	Bucket BucketID
	Header Header
}

// Writer writes rows of one attempt. It belongs to one goroutine at a time.
// Write never does I/O that can block; Seal does.
type Writer interface {
	// Buckets gives the bucket of each selected row, appended to out in the
	// order of sel. Rows have no errors and no NULL in NOT NULL columns.
	Buckets(b *batch.Batch, sel batch.Sel, out []BucketID) ([]BucketID, error)
	// Write takes the selected rows into one bucket, or returns ErrFull and
	// takes none. It does not keep the batch.
	Write(b *batch.Batch, sel batch.Sel, bucket BucketID) error
	// Open lists the buckets that hold rows.
	Open() []Bucket
	// HeldBytes is the memory the writer holds.
	HeldBytes() int64
	// Seal finishes buckets and makes them durable where no reader looks.
	// On an error none of the requested buckets counts as sealed; what was
	// written is garbage for the next Fence, and the writer must be closed.
	Seal(ctx context.Context, req []SealRequest) ([]Artifact, error)
	// Close drops whatever is not sealed.
	Close() error
}

// Committer publishes sealed artefacts. All methods are idempotent, take
// batches, and may be called from any goroutine, also by another process than
// the one that sealed. Results are in the order of the arguments.
type Committer interface {
	// Publish makes artefacts visible, in order. A nil error means visible
	// and durable. An error that says nothing about the outcome (a time-out)
	// is followed by Resolve; one that wraps ErrRefused is definite.
	Publish(ctx context.Context, a []Artifact) []error
	// Resolve looks what became of artefacts.
	Resolve(ctx context.Context, a []Artifact) ([]Outcome, error)
	// Discard removes sealed artefacts that will never be published. It must
	// refuse to touch a published one.
	Discard(ctx context.Context, a []Artifact) error
}

// ErrRefused marks an error of Publish after which the artefact is certainly
// not visible and will not become so by itself.
var ErrRefused = errors.New("refused by the sink")

// RowChecker is a Writer that cannot represent every value of its columns'
// types; it is asked before Buckets and Write.
type RowChecker interface {
	// Check appends the rows among sel that cannot be written, ascending.
	Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError
}

// CommitTrigger says what closes a table partition.
type CommitTrigger uint8

const (
	// NoCommit: table partitions are never announced.
	NoCommit CommitTrigger = iota
	// PartitionTime: when the watermark passes the partition's time + delay.
	PartitionTime
	// ProcessTime: when the delay has passed since the partition's first row.
	ProcessTime
)

// PartitionCommitter is a Sink whose table partitions are announced as
// complete (a _SUCCESS file, a metastore entry).
type PartitionCommitter interface {
	CommitPolicy() CommitPolicy
	// CommitPartition announces; idempotent.
	CommitPartition(ctx context.Context, tablePartition string) error
}

// PartitionBatchCommitter is a PartitionCommitter to which many table partitions
// cost less than one by one.
type PartitionBatchCommitter interface {
	PartitionCommitter
	// CommitPartitions announces several; errors are in the order of the
	// argument, and one partition's does not keep the others from being
	// announced. Idempotent.
	CommitPartitions(ctx context.Context, tablePartitions []string) []error
}

// CommitPolicy is the announcing rule of a table.
type CommitPolicy struct {
	Trigger CommitTrigger
	Delay   time.Duration
	// Time is the partition's time in ms since 1970 for PartitionTime, read
	// in the zone of the watermark.
	Time func(tablePartition string) (int64, error)
	// OneByOne: announcing a table partition takes so long by itself that each is
	// recorded before the next is begun.
	OneByOne bool
	// Aside: rows that come too late for a table partition that closes are written
	// aside, and no file comes into it once it is closed. The writers of the sink
	// are AsideWriters.
	Aside bool
	// Readiness is the topic that is told of each announced table partition, after
	// CommitPartition.
	Readiness ReadinessTopic
}

// ReadinessTopic is a topic that is told of complete table partitions.
type ReadinessTopic struct {
	Name string // "": none
	// Cluster is how the Kafka cluster that has it is reached, by the names of Java's
	// clients (bootstrap.servers and the like); empty: it is one of the log.
	Cluster map[string]string
}

// Retryable is implemented by errors that may go away by themselves.
type Retryable interface{ Retryable() bool }
