package topiclog

import (
	"sort"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/storage/segment"
)

// topic is a topic's state. name, id and createdMs never change; the rest is
// guarded by Store.mu, settings also by each shard's mutex for writing.
type topic struct {
	name      string
	id        UUID
	createdMs int64
	config    map[string]string
	settings  Settings
	closing   bool
	joining   int  // subscriptions being committed
	deleting  bool // the deletion is being committed
	parts     []*partition
}

// internal says that the topic belongs to Millrace itself and goes on working
// on a full disk.
func (t *topic) internal() bool { return len(t.name) > 1 && t.name[:2] == "__" }

// describe copies the topic for callers; Store.mu is held.
func (t *topic) describe() Topic {
	d := Topic{Name: t.name, ID: t.id, Created: timeOf(t.createdMs), Settings: t.settings, Closing: t.closing,
		Config: make(map[string]string, len(t.config)), Partitions: make([]Partition, len(t.parts))}
	for k, v := range t.config {
		d.Config[k] = v
	}
	for i, p := range t.parts {
		d.Partitions[i] = Partition{ID: p.id, Index: p.index, Shard: p.shard.number}
	}
	return d
}

// partition is a partition's state in memory. An idle one must stay small:
// there are tens of thousands. The first block of fields never changes, the rest
// is guarded by shard.mu.
type partition struct {
	topic *topic
	shard *shard
	id    PartitionID
	index int32

	dead   atomic.Bool // deleted
	assign int64       // the writer's own: the offset it gives next
	// The writer's own, too: stagedIn is shard.staging when the present group has batches
	// of producers here; stagedBy is the first of their requests while it is the only one,
	// and what it changes is not staged yet.
	stagedIn uint64
	stagedBy *request
	own      atomic.Pointer[own]
	// coldNext is the offset behind what was last read of the segments.
	coldNext atomic.Int64

	dirty     bool // in shard.dirty: recent is not empty
	noted     bool // in shard.freshNotes
	lagging   bool // in shard.unsynced: durable is behind end
	start     int64
	end       int64 // the high watermark
	next      int64 // offset of the next record, at least end
	floor     int64 // the lowest next offset after a crash, durable
	durable   int64
	reserved  int64 // os topics: offsets below may have been shown to readers
	lastMs    int64 // append time of the last batch
	segBytes  int64
	compacted int64    // compaction has seen the keys up to this offset
	recent    []cached // in the write cache, in order
	segs      []segRef // in segments, in order, all below recent
	epochs    []EpochRange
	newEpochs int // how many of epochs, from the end, no manifest has
	watchers  []*Watcher
	notes     map[string]*noteList
	damage    []Damage // rotten offsets, in order
	producers *producers
}

// cached is one append in the write cache.
type cached struct {
	base, last int64
	block      *block
	off, size  uint32 // of the batches in the block
	seq        uint64 // of the group
	maxTs      int64  // largest record timestamp, ms
	timeMs     int64  // append time
}

func (c *cached) bytes() []byte { return c.block.buf[c.off : c.off+c.size : c.off+c.size] }

// segRef is what a segment holds of a partition.
type segRef struct {
	seg        *segmentInfo
	base, last int64
	bytes      int64
}

// segmentInfo is a segment file; refs is guarded by the owning shard's mutex.
type segmentInfo struct {
	id                       uint64
	kind                     segment.Kind
	shard                    int
	minAppendMs, maxAppendMs int64
	sizeBytes                int64
	path                     string
	refs                     int // partitions that still need it
}

// noteList is the notes of one producer in one partition.
type noteList struct {
	below int64 // notes whose last offset is below this were trimmed
	notes []Note
	fresh int // how many, from the end, no manifest has
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// noteEpoch records that records from base to last have the epoch.
func (p *partition) noteEpoch(epoch int32, base, last int64) {
	if n := len(p.epochs); n > 0 && p.epochs[n-1].LeaderEpoch >= epoch {
		p.epochs[n-1].End = last + 1
		return
	}
	p.epochs = append(p.epochs, EpochRange{LeaderEpoch: epoch, Start: base, End: last + 1})
	p.newEpochs++
}

// below is the part of an epoch's range below an offset.
func (r EpochRange) below(offset int64) EpochRange {
	r.End = min(r.End, offset)
	return r
}

// epochEnd returns the offset after the last record of the epoch or, if it has
// none, of the latest one before it.
func (p *partition) epochEnd(epoch int32) int64 {
	i := sort.Search(len(p.epochs), func(i int) bool { return p.epochs[i].LeaderEpoch > epoch })
	if i == len(p.epochs) {
		return p.end
	}
	if i == 0 {
		return p.start
	}
	return p.epochs[i-1].End
}

// sizeBytes is the size of the batches from start on.
func (p *partition) sizeBytes() int64 {
	n := p.segBytes
	for i := range p.recent {
		n += int64(p.recent[i].size)
	}
	return n
}

// findRecent is the index of the first cached append that ends at or after the
// offset.
func (p *partition) findRecent(offset int64) int {
	return sort.Search(len(p.recent), func(i int) bool { return p.recent[i].last >= offset })
}

// findSegment is the index of the first segment that ends at or after the
// offset.
func (p *partition) findSegment(offset int64) int {
	return sort.Search(len(p.segs), func(i int) bool { return p.segs[i].last >= offset })
}

// damageAt returns the known damage that holds the offset.
func (p *partition) damageAt(offset int64) (Damage, bool) {
	i := sort.Search(len(p.damage), func(i int) bool { return p.damage[i].To >= offset })
	if i < len(p.damage) && p.damage[i].From <= offset {
		return p.damage[i], true
	}
	return Damage{}, false
}

// nextDamage is the first damaged offset at or after the offset, or -1.
func (p *partition) nextDamage(offset int64) int64 {
	i := sort.Search(len(p.damage), func(i int) bool { return p.damage[i].To >= offset })
	if i < len(p.damage) {
		return max(p.damage[i].From, offset)
	}
	return -1
}

// addDamage keeps the list sorted and free of doubles.
func (p *partition) addDamage(d Damage) bool {
	if d.From > d.To {
		return false
	}
	i := sort.Search(len(p.damage), func(i int) bool { return p.damage[i].From >= d.From })
	if i < len(p.damage) && p.damage[i].From == d.From {
		if p.damage[i].To >= d.To {
			return false
		}
		p.damage[i] = d
		return true
	}
	p.damage = append(p.damage, Damage{})
	copy(p.damage[i+1:], p.damage[i:])
	p.damage[i] = d
	return true
}
