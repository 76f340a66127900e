package topiclog

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/storage/record"
)

// UUID names a store or a topic; never re-used.
type UUID [16]byte

// String is the usual 8-4-4-4-12 form.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// PartitionID is a partition's number in the whole store, never re-used. A
// partition's number within its topic is its Index.
type PartitionID uint32

// TopicSpec asks for a topic.
type TopicSpec struct {
	// Name is 1 to 249 of the characters a-z A-Z 0-9 . _ -, not "." or "..".
	Name string
	// Partitions is at least 1.
	Partitions int
	// Config holds options by name; unknown names and bad values are errors.
	// See ConfigKeys.
	Config map[string]string
}

// Topic describes a topic. It is a copy that never changes.
type Topic struct {
	Name    string
	ID      UUID
	Created time.Time
	// Config holds what was set; Settings the parsed values with defaults.
	Config   map[string]string
	Settings Settings
	// Closing says that a forced deletion waits for the topic's subscribers.
	Closing bool
	// Partitions are in the order of their Index, 0 to len-1.
	Partitions []Partition
}

// Target is what a request that reads or writes a topic has to know of it. It is a
// view: unlike a Topic it costs no memory.
type Target struct {
	Name     string
	Settings Settings
	parts    []*partition // never changed
}

// Partition finds a partition by its index.
func (t *Target) Partition(index int32) (PartitionID, bool) {
	if index < 0 || int(index) >= len(t.parts) {
		return 0, false
	}
	return t.parts[index].id, true
}

// Partition is a partition's fixed identity.
type Partition struct {
	ID    PartitionID
	Index int32
	// Shard is the shard that owns the partition's I/O.
	Shard int
}

// PartitionState is a partition's state at one moment.
type PartitionState struct {
	// Start is the first offset that can be read; what lies below was removed
	// by retention or DeleteRecords.
	Start int64
	// HighWatermark is the offset after the last record that can be read.
	HighWatermark int64
	// StableEnd is the offset after the last record that is not in, and not behind
	// the beginning of, a transaction without an end. Kafka calls it the last
	// stable offset.
	StableEnd int64
	// DurableEnd is the offset after the last record that survives a power
	// cut. It equals HighWatermark on topics with fsync durability.
	DurableEnd int64
	// LeaderEpoch is the epoch of the next record.
	LeaderEpoch int32
	// SizeBytes is the size of the record batches between Start and the end.
	SizeBytes int64
	// LastAppend is when the last batch was appended in this process or, after
	// a restart, as far as the files say; zero if there is none.
	LastAppend time.Time
}

// CommittedEnd is up to where a durable reader of committed records reads.
func (s PartitionState) CommittedEnd() int64 { return min(s.StableEnd, s.DurableEnd) }

// EpochRange says which offsets were given in a leader epoch.
type EpochRange struct {
	LeaderEpoch int32
	// Start is the first offset of the epoch, End the offset after its last
	// record. The next epoch may start later than that: offsets that a crash
	// may have taken away are not given again.
	Start, End int64
}

// AppendRequest asks to append record batches to one partition.
type AppendRequest struct {
	Partition PartitionID
	// Batches is one or more whole Kafka v2 batches (see storage/record). The
	// store copies them before the request ends and rewrites base offset and
	// leader epoch in its copy. They must not change until then.
	Batches []byte
	// Note, if not empty, is stored in the same journal entry as the batches:
	// it survives exactly if they do. Notes of one partition and NoteKey are
	// kept, in order, until TrimNotes. It has at most 8 MiB. A producing job notes here which source
	// offsets the batches hold.
	NoteKey string
	Note    []byte
	// Trusted says that the caller built the batches itself a moment ago: the
	// checksum of the bodies is not verified again. Headers always are.
	Trusted bool
	// Header, if not nil, is that of the only batch, as record.Split read it from
	// Batches a moment ago and CheckProduced passed it: neither is done again. The
	// store keeps the pointer as long as Batches.
	Header *record.Header
	// TransactionalID, if not empty, is that of the batches' producer, whose open
	// transaction must have the partition.
	TransactionalID string
	// FreshEpoch says that a producer that the partition does not know must begin
	// with sequence 0, as one does that gets a new epoch for each transaction.
	FreshEpoch bool
}

// AppendResult says where the batches are.
type AppendResult struct {
	// BaseOffset and LastOffset are the first and the last record's offsets.
	BaseOffset, LastOffset int64
	LeaderEpoch            int32
	// AppendTime is the time of the group that holds the batches, or of now if
	// they are Repeated.
	AppendTime time.Time
	// StampedMillis is the timestamp that every record of the append got, in ms
	// since 1970, on a topic with log-append time; -1 where records keep their own.
	StampedMillis int64
	// Start is the first offset that the partition has.
	Start int64
	// Repeated says that an idempotent producer appended the same batch before:
	// the offsets are those of then, and nothing was appended.
	Repeated bool
}

// Note is what an append left beside its batches.
type Note struct {
	// BaseOffset and LastOffset are those of the append.
	BaseOffset, LastOffset int64
	Data                   []byte
}

// Isolation says what a fetch reads of transactions.
type Isolation uint8

const (
	// Committed reads up to the first record of a transaction without an end, and
	// leaves the batches of aborted ones out. Markers are in it, so that a reader
	// gets to the end.
	Committed Isolation = iota
	// Uncommitted reads everything.
	Uncommitted
	// CommittedRaw reads as far as Committed and leaves nothing out:
	// Lease.Aborted says what the reader must skip.
	CommittedRaw
)

// FetchRequest asks for batches of one partition.
type FetchRequest struct {
	Partition PartitionID
	// Offset is the first record wanted. The first batch returned holds it, so
	// it may begin with earlier records.
	Offset int64
	// MaxBytes bounds what is returned; the first batch is returned whole even
	// if it is larger. 0 means 1 MiB.
	MaxBytes int
	// BoundsOnly reads nothing: the lease has only the bounds of the partition.
	BoundsOnly bool
	// MaxWait is how long to wait for the first byte; 0 does not wait.
	MaxWait time.Duration
	// Isolation says what of transactions is read; by default what is committed.
	Isolation Isolation
	// Durable limits reading to the durable end on topics with os durability.
	// A reader that keeps positions across restarts sets it.
	Durable bool
}

// Cursor is the committed position of a group in a partition.
type Cursor struct {
	Partition PartitionID
	// Offset is the next offset to read.
	Offset      int64
	LeaderEpoch int32
	// Metadata is free text of at most 4096 bytes.
	Metadata string
	// CommitTime is set by the store.
	CommitTime time.Time
}

// Subscription says that a group reads a topic: the topic cannot be deleted
// without force.
type Subscription struct {
	Group string
	Topic UUID
	// Owner is shown to people, such as "job clicks".
	Owner string
}

// Hold keeps records from retention.
type Hold struct {
	// Name identifies the hold; one of the same name and partition replaces it.
	Name      string
	Partition PartitionID
	// Offset is the lowest offset to keep.
	Offset int64
}

// ShardState says whether a shard takes appends.
type ShardState struct {
	Shard int
	// Fenced is nil while the shard works. After a failed fsync or write it is
	// the reason, and the shard refuses appends until the store is opened
	// again.
	Fenced error
	// Full says that the disk was full at the last attempt; appends fail with
	// DiskFullError until there is space.
	Full bool
	// CacheBytes is what the write cache holds, JournalBytes the size of the
	// journal's files and UnflushedBytes the part of it that is not in
	// segments yet.
	CacheBytes, JournalBytes, UnflushedBytes int64
	// Promoted is how many partitions have segments of their own now.
	Promoted int
}

// Status is the store's state for people and metrics.
type Status struct {
	Shards     []ShardState
	Topics     int
	Partitions int
	Segments   int
	// SegmentBytes is the size of all segment files.
	SegmentBytes int64
	// RetentionPaused, if not empty, says why retention waits.
	RetentionPaused string
	// Recovery tells what opening the store found.
	Recovery RecoveryReport
}

// DamageKind says what is known about a damaged place.
type DamageKind uint8

// Kinds of damage.
const (
	// DamageTorn is an incomplete last write. Nothing acknowledged is lost if
	// the disk told the truth about its flushes.
	DamageTorn DamageKind = iota + 1
	// DamageTornOrRotten is damage in the last group of a journal, which an
	// interrupted write and a flipped bit may both have made.
	DamageTornOrRotten
	// DamageRotten is data that was once durable and has changed since.
	DamageRotten
)

// String names the kind.
func (k DamageKind) String() string {
	switch k {
	case DamageTorn:
		return "torn"
	case DamageTornOrRotten:
		return "torn or rotten"
	case DamageRotten:
		return "rotten"
	}
	return fmt.Sprintf("DamageKind(%d)", uint8(k))
}

// Damage is a stretch of a partition that cannot be read, or a place in a file
// whose owner is not known.
type Damage struct {
	Kind DamageKind
	// File and Position are where.
	File     string
	Position int64
	// Topic is the name, empty if the owner is unknown or deleted.
	Topic     string
	Index     int32
	Partition PartitionID
	// From and To are the first and last lost offsets; From > To if none are
	// known to be lost.
	From, To int64
	// Detail says what was wrong.
	Detail string
}

// String is one line for people.
func (d Damage) String() string {
	where := fmt.Sprintf("%s at %d", d.File, d.Position)
	if d.Topic == "" {
		return fmt.Sprintf("%s: %s: %s", d.Kind, where, d.Detail)
	}
	return fmt.Sprintf("%s: topic %s partition %d offsets %d..%d: %s: %s",
		d.Kind, d.Topic, d.Index, d.From, d.To, where, d.Detail)
}

// RecoveryReport says what Open found and did.
type RecoveryReport struct {
	// Clean says that the last owner closed the store.
	Clean bool
	// Groups, Batches and Bytes count what was read back from the journals.
	Groups, Batches int
	Bytes           int64
	// Dropped counts batches of partitions that are proven deleted.
	Dropped  int
	Damage   []Damage
	Duration time.Duration
}
