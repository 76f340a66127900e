package ledger

import (
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
)

// Scope is a job and its generation ('run --fresh' starts a new one).
type Scope struct {
	Job        connector.UUID
	Generation uint32
}

// Fact is one record of the ledger; the implementations are those of this
// file.
type Fact interface {
	kind() kind
	// appendKey appends what follows the scope in the key.
	appendKey(b []byte) []byte
	// appendFields appends what the key does not say.
	appendFields(b []byte) []byte
}

// Start says that a process has started the job. Its epoch is what table
// owners and keyed artefacts carry.
type Start struct {
	Epoch      uint64
	TimeMillis int64
}

// Table gives an output its id at first use.
type Table struct {
	// Name is the sink table's; for an exchange the path of the stage behind.
	Name string
	ID   connector.UUID
	// Exchange: the output is a hand-over to a keyed stage, and Feeds names
	// the sink tables behind it.
	Exchange bool
	Feeds    []string
}

// Lane gives a lane its number at first use. The partitions never change.
type Lane struct {
	ID connector.LaneID
	// Topic is its name, for people; Source is the table it is read as.
	Topic, Source string
	Partitions    []int32
	// Retired: the topic is gone for good, and the user has said so.
	Retired bool
	// Later: the topic came after the table was first read, so that it is read from
	// its first record on, whatever the table's start option says.
	Later bool
}

// Open starts a lane epoch: every fact of a lower one that follows is void.
type Open struct {
	Lane  connector.LaneID
	Epoch uint64
	// Fingerprint is the hash of the lane's chains.
	Fingerprint uint64
	TimeMillis  int64
	// Ends are where a bounded run stops, as they were found at its first start;
	// empty when nothing is bounded. EndsBy is the hash of the options that
	// they come from: under others they are found anew.
	Ends   []PartitionOffset
	EndsBy uint64
}

// End is where a bounded run stops in a partition, by options of a hash.
func (o *Open) End(partition int32, by uint64) (offset int64, ok bool) {
	if o == nil || o.EndsBy != by {
		return 0, false
	}
	for _, e := range o.Ends {
		if e.Partition == partition {
			return e.Offset, true
		}
	}
	return 0, false
}

// Cursor is an output's resume position in one source partition: everything
// below it is disposed of and counted here.
type Cursor struct {
	Output    connector.UUID
	Topic     connector.UUID
	Partition int32
	Lane      connector.LaneID
	Epoch     uint64
	// Offset is the next one to read; LeaderEpoch that of the record before it.
	Offset      int64
	LeaderEpoch int32
	// Watermark is the partition's before Offset, in milliseconds.
	Watermark int64
	// Counts of all rows below Offset; Counts.Open() is 0.
	Counts Counts
	// LostRanges are the offsets behind Counts.Lost.
	LostRanges offsets.Set
}

// MinuteKind says which clock a minute is of.
type MinuteKind uint8

const (
	// EventMinute: the row time's.
	EventMinute MinuteKind = iota
	// LogMinute: the log append time's.
	LogMinute
)

// OtherHour is the hour of minutes outside log time -30 d .. +1 d.
const OtherHour int64 = -1 << 62

// Hour is the counts by minute of one hour of a cursor: rows below the resume
// position of the Cursor that stands in the same store batch, or before it.
type Hour struct {
	Output    connector.UUID
	Topic     connector.UUID
	Partition int32
	Lane      connector.LaneID
	Epoch     uint64
	Kind      MinuteKind
	// Hour counts hours since 1970 UTC, or is OtherHour.
	Hour int64
	// Minutes has a row for each minute with rows; after the roll-up one row
	// with Minute -1. In OtherHour Minute is -1.
	Minutes []Minute
}

// Minute is one minute of an hour.
type Minute struct {
	Minute int8
	Counts MinuteCounts
}

// Head is how far an output has got, so that after a crash the age of its
// files counts on and is acted upon only where they were.
type Head struct {
	Output connector.UUID
	Lane   connector.LaneID
	Epoch  uint64
	// Next are the first offsets not processed yet, by partition.
	Next []PartitionOffset
	// OldestAgeMillis is the age of the oldest open file, -1 when none is.
	OldestAgeMillis int64
}

// PartitionOffset is an offset of a partition of the lane's topic.
type PartitionOffset struct {
	Partition int32
	Offset    int64
}

// Input is what an intent disposes of in one source partition.
type Input struct {
	Topic     connector.UUID
	Partition int32
	Offsets   offsets.Set
	// Odd are exceptions; every one is in Offsets.
	Odd Odds
}

// Counts are the counts of the input's offsets in [from, to).
func (in *Input) Counts(from, to int64) Counts {
	n := in.Offsets.CountIn(from, to)
	c := Counts{Records: n, Read: n, Written: n, Expanded: n}
	for o := range in.Odd.All() {
		if o.Offset < from {
			continue
		}
		if o.Offset >= to {
			break
		}
		c.Read += o.Read() - 1
		c.Written += o.Written - 1
		c.Expanded += o.Expanded - 1
		c.Late += o.Late
		c.Filtered.AddAll(o.Filtered)
		c.Dead.AddAll(o.Dead)
	}
	return c
}

// Intent says that sealed artefacts are about to be published, all of them:
// they share records, so they stand and fall together. It is named by the id
// of its first artefact.
type Intent struct {
	// Writer is the lane epoch (or job epoch) that writes this record; the
	// artefacts' own epoch is in their ids.
	Writer    Writer
	Artifacts []connector.Artifact
	Inputs    []Input
	// Minutes are the written rows by minute, by kind and minute.
	Minutes []MinuteSum
	// SealedMillis is the wall clock, for people.
	SealedMillis int64
	// Rewrite: the artefacts hold rows of void ones at another home of the table
	// (see Moved), which are counted where these are. Inputs have no exceptions,
	// and there are no Minutes.
	Rewrite bool
}

// MinuteSum is the counts of one minute.
type MinuteSum struct {
	Kind MinuteKind
	// Minute counts minutes since 1970 UTC; OtherHour: outside log time
	// -30 d .. +1 d.
	Minute int64
	Counts MinuteCounts
}

// ID names the intent.
func (i *Intent) ID() connector.ArtifactID { return i.Artifacts[0].Header.ID }

// Input gives the input of one source partition.
func (i *Intent) Input(topic connector.UUID, partition int32) *Input {
	for k := range i.Inputs {
		if in := &i.Inputs[k]; in.Topic == topic && in.Partition == partition {
			return in
		}
	}
	return nil
}

// Writer is who writes a fact about an artefact.
type Writer struct {
	// Keyed: Epoch is a job epoch; else it is the lane's.
	Keyed bool
	Lane  connector.LaneID
	Epoch uint64
}

// Result ends an intent.
type Result uint8

const (
	// Pending: no result yet; never in a record.
	Pending Result = iota
	// Committed: every artefact of the intent is visible and durable.
	Committed
	// Void: given up for good; its rows are sealed again under new ids.
	Void
)

// String is the result in one word.
func (r Result) String() string { return [...]string{"pending", "committed", "void", "?"}[r&3] }

// Outcome ends the intent of an id.
type Outcome struct {
	ID         connector.ArtifactID
	Writer     Writer
	Result     Result
	TimeMillis int64
	// Reason says why it is void.
	Reason string
}

// CloseStep is how far the closing of a table partition has got.
type CloseStep uint8

const (
	// Closing: Bounds are fixed; rows below them belong to the partition.
	Closing CloseStep = iota + 1
	// Closed: every row below the bounds is committed.
	Closed
	// Announced: registration, _SUCCESS and readiness are done.
	Announced
)

// String is the step in one word.
func (s CloseStep) String() string { return [...]string{"?", "closing", "closed", "announced"}[s&3] }

// Bound is the first offset of a source partition that comes too late for a
// table partition.
type Bound struct {
	Topic     connector.UUID
	Partition int32
	Offset    int64
}

// Close is the state of one table partition.
type Close struct {
	Table          connector.UUID
	TablePartition string
	Step           CloseStep
	// Version counts: late rows that are written after the announcement close
	// and announce the partition again.
	Version    uint32
	Bounds     []Bound
	TimeMillis int64
}

// Late reports whether a row of a source partition comes too late for the table
// partition. It says the same as long as the partition is closing, after a crash, too;
// of one that is closed every row that is not committed is late.
func (c *Close) Late(topic connector.UUID, partition int32, offset int64) bool {
	if c.Step >= Closed {
		return true
	}
	for i := range c.Bounds {
		if b := &c.Bounds[i]; b.Topic == topic && b.Partition == partition {
			return offset >= b.Offset
		}
	}
	return true // nothing was waited for from there
}

// Switch makes a home of a table the one where its new partitions begin.
type Switch struct {
	Table connector.UUID
	// Number counts the table's switches, from 1.
	Number uint32
	To     uint8
	// Edge: partitions that have begun stay where they are.
	Edge       bool
	TimeMillis int64
	// Reason says who or what wanted it.
	Reason string
}

// Moved moves a table partition to another home: artefacts of it are void for
// good, also those already committed, and their rows are written anew at its new
// home, from the log. It stands in one store batch with its Switch.
type Moved struct {
	Table          connector.UUID
	TablePartition string
	// Number is the Switch's.
	Number uint32
	To     uint8
	// IDs are the artefacts that are void from here on.
	IDs []connector.ArtifactID
	// Retracted: no reader sees them any more at the home they lie in.
	Retracted bool
}

// Publishing says that a keyed stage's manifest is about to be published.
type Publishing struct {
	Epoch    uint64
	Manifest uint64
	IDs      []connector.ArtifactID
}

// Emitted counts a keyed stage's results, outside the equation.
type Emitted struct {
	Table    connector.UUID
	Epoch    uint64
	Manifest uint64
	Rows     int64
	// Dead are result rows that no table could hold.
	Dead Tallies
}
