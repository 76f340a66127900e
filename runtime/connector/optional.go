package connector

import (
	"context"

	"github.com/millrace/millrace/runtime/batch"
)

// OnError says what becomes of a row that cannot be used.
type OnError uint8

const (
	// OnErrorDeadLetter: it goes to the table's dead letter. The default.
	OnErrorDeadLetter OnError = iota
	// OnErrorDrop: it is dropped and counted as filtered, by reason.
	OnErrorDrop
	// OnErrorFail: the lane stops at it.
	OnErrorFail
)

// String is the policy as options spell it.
func (o OnError) String() string { return [...]string{"dead-letter", "drop", "fail", "?"}[o&3] }

// DecodePolicy is a Source whose table says what becomes of malformed records
// (Notes) and of values that the decoder marked as errors ('<format>.on-error').
// A Source without it has OnErrorDeadLetter.
type DecodePolicy interface {
	// DecodeErrors gives the policy for what the decoder could not make NULL,
	// and whether a value error's code is one of a decoder, so that this
	// policy holds for it and not 'lane.on-error'.
	DecodeErrors() (OnError, func(code string) bool)
}

// StartExplainer is a Source that can say why Start gave the positions it gave.
type StartExplainer interface {
	// ExplainStart has a few words for each partition, such as the option that
	// names the place; a place that nobody has asked for is called a warning.
	ExplainStart(parts []Partition) []string
}

// TopicFinder is a Source that may find topics which nobody has named.
type TopicFinder interface {
	// FindsTopics reports that topics come to the table while jobs read it. Those that
	// come after a first position was saved are read from their first record on: no
	// start option was meant for them.
	FindsTopics() bool
}

// ByteCounter is a Reader that counts its input.
type ByteCounter interface {
	// InputBytes is how many bytes of records, as stored in the source and
	// decompressed, Next has decoded since Open.
	InputBytes() int64
}

// EpochLister is a Reader that knows the leader epoch of what it reads. A
// Reader without it reads at the epoch of its split's start.
type EpochLister interface {
	// LeaderEpoch is the leader epoch of the last record that Next gave of a
	// split; it is stored with the position behind that record.
	LeaderEpoch(split int32) int32
}

// ReplayableSeals is a Sink that keeps what is sealed in this process alone,
// because what it publishes can tell exactly once by itself.
type ReplayableSeals interface {
	// ReplayableSeals reports true when an artefact for which Resolve says
	// Absent was never visible to anybody and never will be. An intent all of
	// whose artefacts are Absent is then voided without asking anybody, and its
	// rows are read and sealed again. The sink promises that an intent is never
	// partly Published and partly Absent.
	ReplayableSeals() bool
}

// Settler is a Sink that keeps a record of each published artefact, for
// Resolve, until it is told that nobody will ask any more.
type Settler interface {
	// Settled says that every artefact of id's job, table and lane (Keyed:
	// subtask) that comes before id by (Generation, Epoch, Manifest, Sequence)
	// has an outcome that is durable in the ledger, so that Publish, Resolve and
	// Discard are not called for it again. A lane calls it after `committed` is
	// durable, with the sequence it will give next, and after it has resolved
	// what earlier epochs left, with its own epoch and sequence 0; while an intent
	// of the lane is pending that is another lane's to resolve, it does not. A keyed stage
	// calls it when no manifest that can be restored lists the artefacts. It is
	// cheap: records are dropped in batches. An error costs space, nothing else.
	Settled(ctx context.Context, id ArtifactID) error
}

// SinkExplainer is a Sink that can say how it keeps its guarantee with the table
// that it found.
type SinkExplainer interface {
	// ExplainSink has a few sentences for people, such as the commit method and why
	// it was chosen.
	ExplainSink() []string
}

// UnknownExplainer is a Sink that can say why Resolve answered Unknown, and what a
// person can do about it.
type UnknownExplainer interface {
	// ExplainUnknown is a sentence, or "".
	ExplainUnknown(a Artifact) string
}

// PartitionPruner is a Source of a partitioned table that leaves table partitions
// unread when no row of them is wanted.
type PartitionPruner interface {
	// Prune is called at most once, before any other method. It is a hint: rows of
	// other table partitions that come nevertheless are filtered by the job.
	Prune(f PartitionFilter)
}

// PartitionFilter tells which table partitions are wanted. It is safe for
// concurrent use.
type PartitionFilter interface {
	// Wanted reports whether rows of a table partition may be wanted: b is one row
	// of the partition columns, in the order of Table.PartitionKeys.
	Wanted(b *batch.Batch) bool
	// String is the predicate as EXPLAIN shows it.
	String() string
}
