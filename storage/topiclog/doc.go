// Package topiclog is the log store: topics of partitions of record batches in
// one data directory, durable before they are acknowledged.
//
//	                  Append
//	                    |
//	partition -> shard (fixed at creation)
//	                    v
//	+---------+   one writer goroutine per shard: assigns offsets, copies the
//	| shard   |   batches into a group, writes the group to the journal, one
//	|  writer |   fdatasync, then publishes and acknowledges all of them
//	+----+----+   (large flows: into segments of the partitions' own, with
//	     |         references in the group)
//	     |  the group's memory is the write cache
//	     v
//	+---------+   when a generation of the cache is full, its batches, sorted
//	| flusher |   by (partition, offset), become a segment file; the manifest
//	+----+----+   names it; then the journal's files are used again
//	     v
//	segments  <- Fetch reads from the cache, else from segments
//
// The calls, all safe for concurrent use:
//
//	Open(Options) (*Store, error)
//	(*Store) Close() error
//	         ID() UUID; Dir() string; Status() Status
//	         CreateTopic(ctx, TopicSpec) (Topic, error)
//	         CreateTopics(ctx, []TopicSpec) ([]Topic, error)  // one commit, all or none
//	         DeleteTopic(ctx, name string, force bool) error
//	         Topic(name string) (Topic, error); TopicByID(UUID) (Topic, error); Topics() []Topic
//	         Target(name string) (Target, error); TargetByID(UUID) (Target, error)  // views, without a copy
//	         AlterConfig(ctx, name, set map[string]string, reset []string) (Topic, error)
//	         AddPartitions(ctx, name string, total int) (Topic, error)
//	         Append(ctx, AppendRequest) (AppendResult, error)
//	         AppendAsync(AppendRequest, done func(AppendResult, error))
//	         AppendAll([]AppendRequest, done func(i int, AppendResult, error), ended func())
//	         Notes(PartitionID, key string) ([]Note, error); TrimNotes(ctx, PartitionID, key string, below int64) error
//	         AllocateProducerID(ctx) (int64, error); Producers(PartitionID) ([]ProducerInfo, error); ExpireProducers() int
//	         Fetch(ctx, FetchRequest) (*Lease, error)
//	         Watch(notify func()) *Watcher
//	         State(PartitionID) (PartitionState, error); Start(PartitionID) (int64, error)
//	         EpochHistory(PartitionID) ([]EpochRange, error)
//	         EpochEnd(PartitionID, leaderEpoch int32) (int64, error)
//	         OffsetForTimestamp(ctx, PartitionID, timestampMillis int64) (offset, foundMillis int64, err error)
//	         DeleteRecords(ctx, PartitionID, before int64) (start int64, err error)
//	         CommitCursors(ctx, group string, []Cursor) error; Cursors(group string) []Cursor
//	         Groups() []string; DeleteGroup(ctx, group string) error
//	         Subscribe(ctx, Subscription) error; Unsubscribe(ctx, group string, topic UUID) error; Subscriptions() []Subscription
//	         SetHolds(ctx, name string, []Hold) error; ReleaseHold(ctx, name string) error; Holds() []Hold
//	         Flush(ctx) error; RunRetention(ctx) (RetentionReport, error); Compact(ctx, name) error
//	         Scrub(ctx) (VerifyReport, error); ConfirmClock(); CheckSpace() bool
//	Verify(ctx, Options, repair bool) (VerifyReport, error)
//
// What it is not: it speaks no network protocol (storage/broker does), it does
// not look into records except for compaction and timestamps, and it does not
// replicate.
//
// # Invariants
//
//   - Invariant 5, acknowledged is durable: on a topic with fsync durability no
//     append is acknowledged, and no record can be read, before the fdatasync of
//     its group has returned.
//   - An offset never names two records. What an unclean end may have shown to
//     readers of an os topic is jumped over, and the leader epoch rises.
//   - A batch of an idempotent producer is in the log once: what each partition
//     knows of its producers is as durable as their batches.
//   - A partition accepts appends only after its creation is durable.
//   - A write or fsync that failed is never tried again on the same file: the
//     shard is fenced and says why. A full disk alone fences nothing.
//   - A bad checksum costs the batch that has it, which is named; it never hides
//     what follows, and never makes other bytes look like records.
//   - A journal file is used again only when all of it is in synced segments
//     that a synced manifest names.
//   - A group is written only when the one before is durable, with everything that
//     its references name.
//   - What own segments have that no manifest names is in the write cache, too.
//
// # Concurrency
//
// Lock order: Store.mu, then shard.mu, then Store.cursorMu or Watcher.mu. A partition's log state
// (offsets, cache index, segment list) belongs to its shard's mutex, which is
// never held during I/O. Each shard has a writer and a flusher goroutine; the
// store has one goroutine that commits metadata and one for retention. What is read
// ahead of a Fetch has a goroutine for as long as that takes; Close waits for it.
//
// # Memory that is used again
//
// Each kind has an owner and an end. Options.PoisonReleased, and a build with the tag
// faults, overwrite it there.
//
//   - block, of the write cache: counted. One reference each belong to the writer, for the
//     block where it lays out the next group or region; to each region of the group under
//     way, until the group is published or has failed; to the cache (blocks, ownBlocks),
//     until the flush of all groups in it is in the manifest; to each lease that reads
//     from it. So what partition.recent lists is there for as long as the shard's mutex is
//     held, or no flush that takes it has ended. A failed group's part of a block is laid
//     out again if the journal was to get it, and left out if an own segment was.
//   - readBuffer, for reads of segments and copies of small leases: counted. One reference
//     each belong to a lease, and to a window that was read ahead; who splits a window
//     takes another one.
//   - requests, of AppendAll: the store's, until the last of them was told how it went.
//     What the caller handed in is the caller's again at each one's done: the cache has a
//     copy.
//   - segmentBuf and flushMemory: the shard's flusher's, for one flush after another.
//   - cached appends (partition.recent): elements never change. The array is used again
//     after a flush that took all of it; only that flush and the writer's copy of a gap,
//     which has later ones, look at it without the mutex.
//   - producerState: a snapshot is its producer's until the manifest has a later one, and
//     then the garbage collector's.
package topiclog
