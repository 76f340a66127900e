package connector

import (
	"fmt"

	"github.com/millrace/millrace/runtime/offsets"
)

// LaneID names a lane: a topic and the number of its set of partitions.
type LaneID struct {
	Topic UUID
	Set   uint32
}

// ArtifactID names one artefact for ever: a file, a block, a row-store batch.
// File names, query ids and dedup tokens are made of it.
type ArtifactID struct {
	Job        UUID
	Generation uint32
	Table      UUID
	// Lane and Epoch are set for artefacts of a lane.
	Lane  LaneID
	Epoch uint64
	// Keyed artefacts carry a subtask, the job epoch (in Epoch) and the
	// manifest number instead of a lane.
	Keyed    bool
	Subtask  uint32
	Manifest uint64
	// Sequence counts the artefacts of one lane epoch, or of one subtask and
	// manifest.
	Sequence uint64
}

// String is the id as a file name stem: lower-case letters, digits and '-',
// unique among all artefacts of all jobs.
func (a ArtifactID) String() string {
	if a.Keyed {
		return fmt.Sprintf("%x-g%d-%x-k%d-e%d-m%d-%d", a.Job[:], a.Generation, a.Table[:6], a.Subtask, a.Epoch, a.Manifest, a.Sequence)
	}
	return fmt.Sprintf("%x-g%d-%x-%x-l%d-e%d-%d", a.Job[:], a.Generation, a.Table[:6], a.Lane.Topic[:], a.Lane.Set, a.Epoch, a.Sequence)
}

// Input is the exact set of offsets of one source partition that an artefact
// disposes of.
type Input struct {
	Topic     UUID
	Partition int32
	Offsets   offsets.Set
}

// Header is what the runtime knows of an artefact; sinks store it with the
// artefact (a file's footer) and hand it back unchanged.
type Header struct {
	ID ArtifactID
	// TablePartition is the sink table's partition, e.g. "dt=2021-07-21/hr=06",
	// "" for an unpartitioned table.
	TablePartition string
	Inputs         []Input
	Rows           int64
	// RowHash is the sum modulo 2^64 of the rows' hashes, SchemaHash the hash
	// of the columns they were taken over (docs/format/value.md).
	RowHash, SchemaHash uint64
	// MinEventTime and MaxEventTime are in ms, 0 and 0 when unknown.
	MinEventTime, MaxEventTime int64
}

// Artifact is something sealed: durable, and not yet visible to readers.
type Artifact struct {
	Header Header
	// Home is the table's home that it lies in.
	Home uint8
	// Bytes is the size of the artefact as stored.
	Bytes int64
	// Location is where it will be found once published, for people and for
	// the ledger: a path, a table and shard.
	Location string
	// Payload is what the sink needs to publish or resolve it, in the sink's
	// own versioned encoding.
	Payload []byte
}

// Outcome is what Resolve found.
type Outcome uint8

const (
	// Unknown: it cannot be said now. Invariant 3: ambiguous is not failed.
	Unknown Outcome = iota
	// Published: readers see it.
	Published
	// Absent: neither published nor can it become so by itself; nothing
	// sealed is left of it.
	Absent
	// Sealed: not published, still sealed: Publish can be called.
	Sealed
)

// String is the outcome in one word.
func (o Outcome) String() string {
	return [...]string{"unknown", "published", "absent", "sealed"}[o&3]
}
