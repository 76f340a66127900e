package wal

import (
	"encoding/binary"
	"fmt"
)

// EntrySpec describes an entry to be added to a group.
type EntrySpec struct {
	Kind      Kind
	Partition uint32
	// Base and Last are the first and last offsets of a batch entry.
	Base, Last int64
	// Note and Payload are the two parts of the content.
	Note, Payload []byte
}

// Builder lays out one group in memory that the caller provides, so that the
// same memory can serve as the write cache. The zero value is ready for Begin.
type Builder struct {
	salt     uint32
	buf      []byte
	n        int // bytes of header and entries
	at       int // of the payload last reserved
	entries  int
	heads    []byte // the directory
	sequence uint64
}

// GroupSize bounds the size of a group from above, in bytes, given the number of
// its entries and the sum of their note and payload bytes.
func GroupSize(entries, content int) int {
	return padTo(2*groupHeaderSize+entries*(2*entryHeaderSize+7)+content, Align)
}

// Begin starts a group with the journal's next sequence number. buf's length is
// the most the group may take.
func (b *Builder) Begin(j *Journal, buf []byte) {
	b.salt, b.sequence = j.salt, j.next
	b.buf, b.n, b.entries, b.heads = buf, groupHeaderSize, 0, b.heads[:0]
}

// Entries is the number of entries so far.
func (b *Builder) Entries() int { return b.entries }

// Size is the size of the group as it stands, in bytes.
func (b *Builder) Size() int {
	return padTo(b.n+len(b.heads)+groupHeaderSize, Align)
}

// Fits says whether an entry with so many bytes of note and payload fits.
func (b *Builder) Fits(content int) bool {
	return padTo(padTo(b.n+entryHeaderSize+content, 8)+len(b.heads)+entryHeaderSize+groupHeaderSize, Align) <= len(b.buf)
}

// Reserve adds an entry whose note is given and whose payload of the given size
// is yet to be filled in: the returned slice is the payload's place in the
// group. Commit must follow before anything else.
func (b *Builder) Reserve(note []byte, payload int) ([]byte, error) {
	if !b.Fits(len(note) + payload) {
		return nil, fmt.Errorf("adding an entry of %d bytes: %w: %d of %d bytes taken", len(note)+payload, ErrFull, b.n, len(b.buf))
	}
	at := b.n + entryHeaderSize
	copy(b.buf[at:], note)
	at += len(note)
	b.at = at
	return b.buf[at : at+payload : at+payload], nil
}

// Position is where in the group the payload last reserved begins.
func (b *Builder) Position() int { return b.at }

// Commit finishes the reserved entry. Payload and Note of the spec are taken
// from the group; only their lengths count.
func (b *Builder) Commit(s EntrySpec) {
	content := len(s.Note) + len(s.Payload)
	at := b.n + entryHeaderSize
	h := entryHeader{
		kind: s.Kind, partition: s.Partition, base: s.Base, last: s.Last,
		noteLength: uint32(len(s.Note)), length: uint32(content),
		payloadCRC: sum(0, b.buf[at:at+content]), sequence: uint32(b.sequence),
	}
	h.encode(b.buf[b.n:at], b.salt)
	b.heads = append(b.heads, b.buf[b.n:at]...)
	end := padTo(at+content, 8)
	clear(b.buf[at+content : end])
	b.n = end
	b.entries++
}

// Add adds an entry and returns its payload's place in the group.
func (b *Builder) Add(s EntrySpec) ([]byte, error) {
	dst, err := b.Reserve(s.Note, len(s.Payload))
	if err != nil {
		return nil, err
	}
	copy(dst, s.Payload)
	b.Commit(s)
	return dst, nil
}

// Finish completes the group and returns its bytes. timeMs is the group's append
// time in milliseconds since 1970 UTC.
func (b *Builder) Finish(j *Journal, timeMs int64) []byte {
	size := b.Size()
	g := b.buf[:size]
	copy(g[b.n:], b.heads)
	end := b.n + len(b.heads)
	clear(g[end : size-groupHeaderSize])
	h := groupHeader{
		shard: j.opts.Shard, epoch: j.epoch, sequence: b.sequence, mark: j.durable,
		length: uint32(size), entries: uint32(b.entries), directory: uint32(b.n),
		directoryCRC: sum(b.salt, b.heads), timeMs: timeMs,
	}
	h.encode(g, b.salt)
	copy(g[size-groupHeaderSize:], g[:groupHeaderSize])
	return g
}

// sequenceOf reads the sequence of a finished group.
func sequenceOf(group []byte) uint64 { return binary.BigEndian.Uint64(group[16:]) }
