package connector

import (
	"context"

	"github.com/millrace/millrace/runtime/batch"
)

// ReplaceMode says when the content of a table's partitions is replaced whole.
type ReplaceMode uint8

const (
	// ReplaceNever: the table only grows.
	ReplaceNever ReplaceMode = iota
	// ReplaceOnRequest: INSERT OVERWRITE replaces, every other result is published
	// artefact by artefact.
	ReplaceOnRequest
	// ReplaceResults: whatever keyed stages write is published by replacing: a wide
	// table or the result of a window at the window's end, and again with the rows
	// that come late. A lane cannot write such a table.
	ReplaceResults
)

// ReplacingConnector is a SinkConnector that has tables whose sinks are Replacers.
type ReplacingConnector interface {
	SinkConnector
	// ReplaceMode is the mode of a table, by its declaration alone: it is asked when
	// a job is checked, without a connection. For ReplaceNever, why is a sentence for
	// people, "" to say only that the connector cannot.
	ReplaceMode(t *Table) (mode ReplaceMode, why string)
}

// Replacement is the content that a table partition is to have.
type Replacement struct {
	// TablePartition is the partition, named as in Bucket.TablePartition; "" is the
	// whole of an unpartitioned table.
	TablePartition string
	// Version grows with each content that one job gives to the partition, over all
	// its generations and restarts; at least 1. Versions of different jobs do not
	// compare: who owns the table now has the newest.
	Version uint64
	// Parts are all sealed artefacts of the content, of all subtasks, sealed by
	// writers whose Attempt.Replace was set, ordered by id. None: the partition becomes
	// empty, whether or not it existed.
	Parts []Artifact
}

// Replacer is a Sink that can make sealed artefacts the whole content of a table
// partition, at once: a reader sees all of the old content or all of the new one,
// also after a crash at any point.
//
// The runtime calls
//
//	Writer.Seal         as ever (Attempt.Replace is set)
//	                    -> a manifest names the parts; "publishing" in the ledger
//	Replacer.Replace    the partition's content is exactly Parts
//	                    -> "committed" of every part, in one ledger batch
//
// from the table's one committer, a newer version never before an older one has
// an outcome. After a crash it asks Resolve for what has no "committed", and calls
// Replace again for what is Sealed. A version that a newer one has overtaken
// before it was published goes to Committer.Discard instead. Committer.Publish and
// Committer.Resolve are not called for parts.
//
// Discard refuses parts of the content that is visible, and takes a part of a
// Replace that was cut short. Removing the content before, once no reader can be
// at it, is the sink's own; so is what Replace leaves behind in a crash.
//
// A PartitionCommitter is told of a replaced partition afterwards, as of any other:
// CommitPartition announces the content that is there and never changes which
// that is.
type Replacer interface {
	Sink
	// PartitionOf names the table partition that a row belongs to; only the
	// partition columns of the row are read.
	PartitionOf(b *batch.Batch, row int) (string, error)
	// Replace carries out replacements, in order, and makes them durable. Errors
	// are in the order of the argument; what they mean is as for
	// Committer.Publish. It is idempotent: where the content is of the same or of a
	// newer version of this job already, it changes nothing and gives nil. Content
	// that no version is known of, or that another job made, is older.
	// Invariant 9: a process that lost the table gets ErrFenced.
	Replace(ctx context.Context, r []Replacement) []error
	// ResolveReplace looks what became of replacements. Published: the content of
	// the partition is this version, or a newer one of this job, and durable. Sealed:
	// it is not, and Replace can be called, also when a crash came in the middle of
	// one. Absent: it is not, and a part is gone. Unknown: it cannot be said now.
	ResolveReplace(ctx context.Context, r []Replacement) ([]Outcome, error)
}
