package topiclog

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/storage/manifest"
)

// Kinds of manifest edits. docs/format/store.md describes their payloads; a kind
// is never given another meaning.
const (
	editStore         uint16 = 1  // identity and shard count of the store
	editTopic         uint16 = 2  // a topic as it is now, with its partitions
	editTopicDeleted  uint16 = 3  // a topic and its partitions are gone
	editPartition     uint16 = 4  // start, next and reserved offset of a partition
	editEpoch         uint16 = 5  // a leader epoch's range in a partition
	editSegment       uint16 = 6  // a segment file and what it holds
	editSegmentGone   uint16 = 7  // a segment file is not needed any more
	editFlushed       uint16 = 8  // a shard's journal is in segments up to here
	editShardOpen     uint16 = 9  // a shard was opened with these epochs
	editShardClosed   uint16 = 10 // a shard was closed properly
	editCursor        uint16 = 11 // a group's position in a partition
	editSubscription  uint16 = 12
	editUnsubscribed  uint16 = 13
	editHold          uint16 = 14
	editHoldReleased  uint16 = 15
	editNote          uint16 = 16 // a note that was flushed from the journal
	editNotesTrimmed  uint16 = 17
	editDamage        uint16 = 18 // offsets known to be lost
	editNextPartition uint16 = 19 // lower partition ids were given before
	editNextSegment   uint16 = 20 // lower segment ids were given before
	editProducerIDs   uint16 = 40 // lower producer ids may have been given before
	editProducer      uint16 = 41 // what a partition's segments say of a producer
	editAborted       uint16 = 42 // an aborted transaction of a partition

	editTransaction     uint16 = 43 // a transactional producer
	editTransactionGone uint16 = 44 // a transactional id that nobody uses

	editProducers uint16 = 45 // many of editProducer
	editEpochs    uint16 = 46 // many of editEpoch
)

// enc builds a payload: varints, and strings with their length before them.
type enc struct{ b []byte }

func (e *enc) u(v uint64)     { e.b = binary.AppendUvarint(e.b, v) }
func (e *enc) i(v int64)      { e.b = binary.AppendVarint(e.b, v) }
func (e *enc) s(v string)     { e.u(uint64(len(v))); e.b = append(e.b, v...) }
func (e *enc) bytes(v []byte) { e.u(uint64(len(v))); e.b = append(e.b, v...) }
func (e *enc) uuid(v UUID)    { e.b = append(e.b, v[:]...) }

func (e *enc) edit(kind uint16) manifest.Edit { return manifest.Edit{Kind: kind, Payload: e.b} }

// dec reads a payload. Its first error sticks; values after it are zero.
type dec struct {
	b   []byte
	err error
}

func (d *dec) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: manifest edit ends in %s", ErrDamaged, what)
	}
	d.b = nil
}

func (d *dec) u() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("a number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *dec) i() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("a number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *dec) bytes() []byte {
	n := d.u()
	if n > uint64(len(d.b)) {
		d.fail("a string")
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *dec) s() string { return string(d.bytes()) }

func (d *dec) uuid() (v UUID) {
	if len(d.b) < len(v) {
		d.fail("an id")
		return v
	}
	copy(v[:], d.b)
	d.b = d.b[len(v):]
	return v
}

// count reads a number of items that take at least one byte each.
func (d *dec) count() int {
	n := d.u()
	if n > uint64(len(d.b)) {
		d.fail("a list")
		return 0
	}
	return int(n)
}

func storeEdit(id UUID, shards int, createdMs int64) manifest.Edit {
	var e enc
	e.uuid(id)
	e.u(uint64(shards))
	e.i(createdMs)
	return e.edit(editStore)
}

func (t *topic) edit() manifest.Edit {
	var e enc
	e.uuid(t.id)
	e.s(t.name)
	e.i(t.createdMs)
	flags := uint64(0)
	if t.closing {
		flags = 1
	}
	e.u(flags)
	e.u(uint64(len(t.config)))
	for _, k := range slices.Sorted(maps.Keys(t.config)) {
		e.s(k)
		e.s(t.config[k])
	}
	e.u(uint64(len(t.parts)))
	for _, p := range t.parts {
		e.u(uint64(p.id))
		e.u(uint64(p.shard.number))
	}
	return e.edit(editTopic)
}

func topicDeletedEdit(id UUID) manifest.Edit {
	var e enc
	e.uuid(id)
	return e.edit(editTopicDeleted)
}

// partitionEdit says the lowest offset kept, the lowest one that may be given
// next, and the reserved end.
func partitionEdit(id PartitionID, start, next, reserved int64) manifest.Edit {
	var e enc
	e.u(uint64(id))
	e.i(start)
	e.i(next)
	e.i(reserved)
	return e.edit(editPartition)
}

// segPart is what one segment holds of one partition.
type segPart struct {
	id         PartitionID
	base, last int64
	bytes      int64
}

func (s *segmentInfo) edit(parts []segPart) manifest.Edit {
	const entryBytes = 8 // of a partition with few records, about
	e := enc{b: make([]byte, 0, 64+entryBytes*len(parts))}
	e.u(s.id)
	e.u(uint64(s.kind))
	e.u(uint64(s.shard))
	e.i(s.minAppendMs)
	e.i(s.maxAppendMs)
	e.i(s.sizeBytes)
	e.u(uint64(len(parts)))
	prev := PartitionID(0)
	for _, p := range parts {
		e.u(uint64(p.id - prev))
		prev = p.id
		e.u(uint64(p.base))
		e.u(uint64(p.last - p.base))
		e.u(uint64(p.bytes))
	}
	return e.edit(editSegment)
}

func nextPartitionEdit(id PartitionID) manifest.Edit {
	var e enc
	e.u(uint64(id))
	return e.edit(editNextPartition)
}

func nextSegmentEdit(id uint64) manifest.Edit {
	var e enc
	e.u(id)
	return e.edit(editNextSegment)
}

func segmentGoneEdit(id uint64) manifest.Edit {
	var e enc
	e.u(id)
	return e.edit(editSegmentGone)
}

func flushedEdit(shard int, sequence uint64) manifest.Edit {
	var e enc
	e.u(uint64(shard))
	e.u(sequence)
	return e.edit(editFlushed)
}

func shardOpenEdit(shard int, journalEpoch uint32, leaderEpoch int32) manifest.Edit {
	var e enc
	e.u(uint64(shard))
	e.u(uint64(journalEpoch))
	e.i(int64(leaderEpoch))
	return e.edit(editShardOpen)
}

func shardClosedEdit(shard int, lastSequence uint64) manifest.Edit {
	var e enc
	e.u(uint64(shard))
	e.u(lastSequence)
	return e.edit(editShardClosed)
}

func encodeCursor(e *enc, group string, c *Cursor) {
	e.s(group)
	e.u(uint64(c.Partition))
	e.i(c.Offset)
	e.i(int64(c.LeaderEpoch))
	e.s(c.Metadata)
	e.i(c.CommitTime.UnixMilli())
}

func decodeCursor(d *dec) (group string, c Cursor) {
	group = d.s()
	c.Partition = PartitionID(d.u())
	c.Offset = d.i()
	c.LeaderEpoch = int32(d.i())
	c.Metadata = d.s()
	c.CommitTime = timeOf(d.i())
	return group, c
}

func cursorEdit(group string, c *Cursor) manifest.Edit {
	var e enc
	encodeCursor(&e, group, c)
	return e.edit(editCursor)
}

func subscriptionEdit(s Subscription) manifest.Edit {
	var e enc
	e.s(s.Group)
	e.uuid(s.Topic)
	e.s(s.Owner)
	return e.edit(editSubscription)
}

func unsubscribedEdit(group string, topic UUID) manifest.Edit {
	var e enc
	e.s(group)
	e.uuid(topic)
	return e.edit(editUnsubscribed)
}

func holdEdit(h Hold) manifest.Edit {
	var e enc
	e.s(h.Name)
	e.u(uint64(h.Partition))
	e.i(h.Offset)
	return e.edit(editHold)
}

func holdReleasedEdit(name string) manifest.Edit {
	var e enc
	e.s(name)
	return e.edit(editHoldReleased)
}

func noteEdit(id PartitionID, key string, n *Note) manifest.Edit {
	var e enc
	e.u(uint64(id))
	e.s(key)
	e.i(n.BaseOffset)
	e.i(n.LastOffset)
	e.bytes(n.Data)
	return e.edit(editNote)
}

func notesTrimmedEdit(id PartitionID, key string, below int64) manifest.Edit {
	var e enc
	e.u(uint64(id))
	e.s(key)
	e.i(below)
	return e.edit(editNotesTrimmed)
}

func producerIDsEdit(next int64) manifest.Edit {
	var e enc
	e.i(next)
	return e.edit(editProducerIDs)
}

func decodeProducer(d *dec) (id int64, st producerState) {
	id = d.i()
	st = producerState{epoch: int16(d.i()), coordinatorEpoch: int32(d.i()), lastOffset: d.i(), lastMs: d.i(), txnFirst: d.i()}
	n := d.count()
	if n > producerBatches {
		d.fail("the batches of a producer")
		return id, st
	}
	st.n = uint8(n)
	for i := range n {
		st.batches[i] = producerBatch{base: d.i(), seq: int32(d.i()), count: int32(d.i())}
	}
	return id, st
}

func abortedEdit(part PartitionID, a *AbortedTransaction) manifest.Edit {
	var e enc
	e.u(uint64(part))
	e.i(a.ProducerID)
	e.i(a.FirstOffset)
	e.i(a.LastOffset)
	e.i(a.stable)
	return e.edit(editAborted)
}

func damageEdit(d *Damage) manifest.Edit {
	var e enc
	e.u(uint64(d.Kind))
	e.u(uint64(d.Partition))
	e.i(d.From)
	e.i(d.To)
	e.s(d.File)
	e.i(d.Position)
	e.s(d.Detail)
	return e.edit(editDamage)
}
