package topiclog

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/vfs"
)

// Clock tells the time. Tests give their own.
type Clock struct {
	// Wall is the time of day: append times and retention.
	Wall func() time.Time
	// Mono is the time since some fixed moment of this process, which nobody
	// can set: it shows when Wall jumps.
	Mono func() time.Duration
}

// Options say where a store is and how it works. FS and Dir are needed.
type Options struct {
	FS vfs.FS
	// Dir is the data directory; made if missing.
	Dir string
	// Shards is the number of shards of a new store, 1 to 64; 0 means 2. An
	// existing store keeps its own.
	Shards int
	// CacheBytes bounds the write cache of all shards together, which is flushed when it
	// is half full; 0 means 128 MiB. The cost of a flush goes by the number of partitions
	// that have something in it, so that a larger cache makes many partitions cheaper.
	CacheBytes int64
	// GroupBytes is the size at which a group is committed although more is
	// waiting; 0 means 512 KiB.
	GroupBytes int
	// DirectBytes is how much of a promoted partition must be at hand to go past
	// the journal, into its own segment; 0 means 128 KiB, negative that no
	// partition is promoted. What own segments have in the write cache comes on
	// top of CacheBytes, at most as much again.
	DirectBytes int
	// GroupDelay is how long a group collects at most; 0 means 2 ms.
	GroupDelay time.Duration
	// SyncInterval is how long records of os topics may stay unsynced; 0 means
	// 100 ms.
	SyncInterval time.Duration
	// MarkDelay is how long a shard is idle before it writes down that its last
	// group is durable; 0 means 50 ms.
	MarkDelay time.Duration
	// FlushInterval is the age at which the write cache goes to segments even
	// if it is not full, so that retention can reach it; 0 means 10 minutes.
	FlushInterval time.Duration
	// RetentionInterval is the time between retention runs; 0 means 1 minute,
	// negative none but by RunRetention.
	RetentionInterval time.Duration
	// HoldMaxBytes bounds the segments that holds may keep; 0 means half of
	// the disk at opening. Beyond it retention goes on over the holds.
	HoldMaxBytes int64
	// ReserveBytes is the size of a file that is given up when the disk is
	// full, so that metadata and deletion still work; 0 means 64 MiB, negative
	// none.
	ReserveBytes int64
	// ProducerExpiration is how long a partition knows an idempotent producer that
	// appends nothing; 0 means 24 hours. Kafka calls it producer.id.expiration.ms.
	ProducerExpiration time.Duration
	// MaxTransactionTimeout bounds what a producer may ask for its transactions; 0
	// means 15 minutes. TransactionInterval is the time between looks for
	// transactions past their timeout; 0 means 10 seconds, negative none but by
	// ExpireTransactions. TransactionalIDExpiration is how long an unused
	// transactional id is known; 0 means 7 days.
	MaxTransactionTimeout, TransactionInterval, TransactionalIDExpiration time.Duration
	// MaxTransactionalIDs bounds the transactional ids known at once; 0 means
	// 100,000.
	MaxTransactionalIDs int
	// MaxProducers bounds the producers that all partitions know together, about
	// 250 bytes each; 0 means a million. Beyond it the idlest are forgotten.
	MaxProducers int
	// JournalFileBytes and JournalMaxBytes are those of each shard's journal;
	// 0 means 4 MiB and three times the shard's part of the cache, at least
	// 64 MiB.
	JournalFileBytes, JournalMaxBytes int64
	// MaxOpenFiles bounds the open segment files, each of which takes one descriptor or
	// two; 0 means 500.
	MaxOpenFiles int
	// MaxIndexBytes bounds the segment indexes in memory; 0 means 64 MiB.
	MaxIndexBytes int64
	// ColdReads bounds the reads of segments for Fetch that go on at once: readers of
	// old records wait for each other rather than make appends and readers of new
	// ones wait, which the write cache serves; 0 means 2.
	ColdReads int
	// ReadAheadBytes bounds what is read of segments ahead of Fetches that go on
	// where the one before ended; 0 means 32 MiB, negative none.
	ReadAheadBytes int64
	// PoisonReleased overwrites memory that was given back to be used again, to find who
	// uses it afterwards; segments then verify what they get of the cache.
	PoisonReleased bool
	Clock          Clock
	Logger         *slog.Logger

	// blockBytes and ownBlockBytes are the sizes of the cache's blocks, 0 means those of
	// the constants; tests have small ones, which come and go often.
	blockBytes, ownBlockBytes int
	// manifest tunes the metadata log; tests make it rewrite itself often.
	manifest manifest.Options
	// promoteBytes and demoteBytes are what a partition must bring in a generation
	// of the cache to be promoted, and not to be demoted; 0 means a 16th and a 64th
	// of the shard's cache.
	promoteBytes, demoteBytes int64
	// keepOwnBytes is the size from which on own segments are not merged; 0 means
	// 4 MiB.
	keepOwnBytes int64
}

func (o *Options) keepOwn() int64 {
	if o.keepOwnBytes > 0 {
		return o.keepOwnBytes
	}
	return 4 << 20
}

// ownLimits are promoteBytes and demoteBytes.
func (o *Options) ownLimits(shards int) (up, down int64) {
	up, down = o.promoteBytes, o.demoteBytes
	if up == 0 {
		up = o.shardCache(shards) / 16
	}
	if down == 0 {
		down = o.shardCache(shards) / 64
	}
	return up, down
}

// defaults fills in what is not set and names the field that is wrong.
func (o *Options) defaults() error {
	set := func(p *int64, v int64) {
		if *p == 0 {
			*p = v
		}
	}
	setDuration := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	if o.Shards == 0 {
		o.Shards = 2
	}
	if o.GroupBytes == 0 {
		o.GroupBytes = 512 << 10
	}
	if o.DirectBytes == 0 {
		o.DirectBytes = 128 << 10
	}
	if o.ColdReads == 0 {
		o.ColdReads = 2
	}
	if o.blockBytes == 0 {
		o.blockBytes, o.ownBlockBytes = blockBytes, ownBlockBytes
	}
	o.PoisonReleased = o.PoisonReleased || vfs.PoisonAlways
	set(&o.CacheBytes, 128<<20)
	set(&o.ReadAheadBytes, 32<<20)
	if o.MaxOpenFiles == 0 {
		o.MaxOpenFiles = 500
	}
	set(&o.ReserveBytes, 64<<20)
	set(&o.JournalFileBytes, 4<<20)
	setDuration(&o.GroupDelay, 2*time.Millisecond)
	setDuration(&o.SyncInterval, 100*time.Millisecond)
	setDuration(&o.MarkDelay, 50*time.Millisecond)
	setDuration(&o.FlushInterval, 10*time.Minute)
	setDuration(&o.RetentionInterval, time.Minute)
	setDuration(&o.ProducerExpiration, 24*time.Hour)
	setDuration(&o.MaxTransactionTimeout, 15*time.Minute)
	setDuration(&o.TransactionInterval, 10*time.Second)
	setDuration(&o.TransactionalIDExpiration, 7*24*time.Hour)
	if o.MaxTransactionalIDs == 0 {
		o.MaxTransactionalIDs = 100_000
	}
	if o.MaxProducers == 0 {
		o.MaxProducers = 1_000_000
	}
	if o.Clock.Wall == nil {
		o.Clock.Wall = time.Now
	}
	if o.Clock.Mono == nil {
		start := time.Now()
		o.Clock.Mono = func() time.Duration { return time.Since(start) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.FS == nil:
		return errors.New("log store options: FS is missing")
	case o.Dir == "":
		return errors.New("log store options: Dir is missing")
	case o.Shards < 1 || o.Shards > 64:
		return fmt.Errorf("log store options: Shards is %d, want 1 to 64", o.Shards)
	case o.CacheBytes < 1<<20:
		return fmt.Errorf("log store options: CacheBytes is %d, want at least 1 MiB", o.CacheBytes)
	case o.ColdReads < 1:
		return fmt.Errorf("log store options: ColdReads is %d, want at least 1", o.ColdReads)
	case o.GroupBytes < 4096:
		return fmt.Errorf("log store options: GroupBytes is %d, want at least 4096", o.GroupBytes)
	}
	return nil
}

// shardCache is one shard's part of the cache.
func (o *Options) shardCache(shards int) int64 { return o.CacheBytes / int64(shards) }

func (o *Options) journalMax(shards int) int64 {
	if o.JournalMaxBytes > 0 {
		return max(o.JournalMaxBytes, 2*o.JournalFileBytes)
	}
	return max(3*o.shardCache(shards), 64<<20)
}
