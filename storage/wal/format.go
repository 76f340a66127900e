package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Sizes in bytes.
const (
	// Align is what groups start and end on: the unit that disks and the page
	// cache write.
	Align = 4096

	fileHeaderSize  = 64 // of the first Align bytes of a file
	groupHeaderSize = 72
	entryHeaderSize = 48

	version = 1
)

const (
	fileMagic  = "MRJOURNL"
	groupMagic = "MRGP"
	entryMagic = "MREN"
)

// Kind says what an entry holds.
type Kind uint8

// The kinds of entries.
const (
	// KindBatch holds record batches of a partition.
	KindBatch Kind = 1
	// KindReference says where in a segment record batches of a partition are.
	KindReference Kind = 2
	// KindProducer holds the state of producers.
	KindProducer Kind = 3
	// KindCursor holds committed positions of a group.
	KindCursor Kind = 4
	// KindTransaction holds the state of a transaction.
	KindTransaction Kind = 5
)

// Errors that callers branch on.
var (
	// ErrNotJournal says that a file is not a journal file of this shard.
	ErrNotJournal = errors.New("not a journal file of this shard")
	// ErrVersion says that a file was written by a newer format.
	ErrVersion = errors.New("unknown journal version")
	// ErrFull says that the journal may not grow and has no file to recycle.
	ErrFull = errors.New("journal is full")
	// ErrFailed says that an earlier write or sync failed.
	ErrFailed = errors.New("journal failed earlier")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// salt starts all header checksums. Made of the store's and the shard's
// identity, it keeps bytes of other journals, also when they are the content of
// a record, from being taken for groups of this one.
func salt(store [16]byte, shard uint32) uint32 {
	var b [20]byte
	copy(b[:], store[:])
	binary.BigEndian.PutUint32(b[16:], shard)
	return crc32.Checksum(b[:], castagnoli)
}

func sum(salt uint32, b []byte) uint32 { return crc32.Update(salt, castagnoli, b) }

// fileHeader starts a journal file.
type fileHeader struct {
	store  [16]byte
	shard  uint32
	number uint64
	size   int64
}

func (h *fileHeader) encode(b []byte) {
	copy(b, fileMagic)
	binary.BigEndian.PutUint16(b[8:], version)
	binary.BigEndian.PutUint16(b[10:], 0)
	binary.BigEndian.PutUint32(b[12:], h.shard)
	copy(b[16:32], h.store[:])
	binary.BigEndian.PutUint64(b[32:], h.number)
	binary.BigEndian.PutUint64(b[40:], uint64(h.size))
	clear(b[48:60])
	binary.BigEndian.PutUint32(b[60:], sum(0, b[:60]))
}

// decodeFileHeader reads a file header. Its checksum is not salted: a file must
// be recognizable before anything is known.
func decodeFileHeader(b []byte) (fileHeader, error) {
	var h fileHeader
	if len(b) < fileHeaderSize || string(b[:8]) != fileMagic || sum(0, b[:60]) != binary.BigEndian.Uint32(b[60:]) {
		return h, ErrNotJournal
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != version {
		return h, fmt.Errorf("%w %d", ErrVersion, v)
	}
	h.shard = binary.BigEndian.Uint32(b[12:])
	copy(h.store[:], b[16:32])
	h.number = binary.BigEndian.Uint64(b[32:])
	h.size = int64(binary.BigEndian.Uint64(b[40:]))
	return h, nil
}

// groupHeader starts and ends a group.
type groupHeader struct {
	epoch        uint32
	sequence     uint64
	mark         uint64
	length       uint32 // of the group, a multiple of Align
	entries      uint32
	directory    uint32 // position in the group
	directoryCRC uint32
	timeMs       int64
	shard        uint32
}

func (h *groupHeader) encode(b []byte, salt uint32) {
	copy(b, groupMagic)
	binary.BigEndian.PutUint16(b[4:], version)
	binary.BigEndian.PutUint16(b[6:], 0)
	binary.BigEndian.PutUint32(b[8:], h.shard)
	binary.BigEndian.PutUint32(b[12:], h.epoch)
	binary.BigEndian.PutUint64(b[16:], h.sequence)
	binary.BigEndian.PutUint64(b[24:], h.mark)
	binary.BigEndian.PutUint32(b[32:], h.length)
	binary.BigEndian.PutUint32(b[36:], h.entries)
	binary.BigEndian.PutUint32(b[40:], h.directory)
	binary.BigEndian.PutUint32(b[44:], h.directoryCRC)
	binary.BigEndian.PutUint64(b[48:], uint64(h.timeMs))
	clear(b[56:68])
	binary.BigEndian.PutUint32(b[68:], sum(salt, b[:68]))
}

// decodeGroupHeader reads a group header; ok is false if it is not one of this
// journal or contradicts itself. An unknown version is an error.
func decodeGroupHeader(b []byte, salt uint32) (h groupHeader, ok bool, err error) {
	if len(b) < groupHeaderSize || string(b[:4]) != groupMagic || sum(salt, b[:68]) != binary.BigEndian.Uint32(b[68:]) {
		return h, false, nil
	}
	if v := binary.BigEndian.Uint16(b[4:]); v != version {
		return h, false, fmt.Errorf("%w %d", ErrVersion, v)
	}
	h = groupHeader{
		shard:        binary.BigEndian.Uint32(b[8:]),
		epoch:        binary.BigEndian.Uint32(b[12:]),
		sequence:     binary.BigEndian.Uint64(b[16:]),
		mark:         binary.BigEndian.Uint64(b[24:]),
		length:       binary.BigEndian.Uint32(b[32:]),
		entries:      binary.BigEndian.Uint32(b[36:]),
		directory:    binary.BigEndian.Uint32(b[40:]),
		directoryCRC: binary.BigEndian.Uint32(b[44:]),
		timeMs:       int64(binary.BigEndian.Uint64(b[48:])),
	}
	end := int64(h.directory) + int64(h.entries)*entryHeaderSize + groupHeaderSize
	if h.length == 0 || h.length%Align != 0 || h.directory < groupHeaderSize || end > int64(h.length) {
		return h, false, nil
	}
	return h, true, nil
}

// entryHeader precedes an entry and stands in the directory.
type entryHeader struct {
	kind       Kind
	flags      uint8
	partition  uint32
	noteLength uint32
	base, last int64
	length     uint32 // of note and payload
	payloadCRC uint32
	sequence   uint32 // low half of the group's: binds the entry to its group
}

func (h *entryHeader) encode(b []byte, salt uint32) {
	copy(b, entryMagic)
	b[4], b[5] = byte(h.kind), h.flags
	b[6], b[7] = 0, 0
	binary.BigEndian.PutUint32(b[8:], h.partition)
	binary.BigEndian.PutUint32(b[12:], h.noteLength)
	binary.BigEndian.PutUint64(b[16:], uint64(h.base))
	binary.BigEndian.PutUint64(b[24:], uint64(h.last))
	binary.BigEndian.PutUint32(b[32:], h.length)
	binary.BigEndian.PutUint32(b[36:], h.payloadCRC)
	binary.BigEndian.PutUint32(b[40:], h.sequence)
	binary.BigEndian.PutUint32(b[44:], sum(salt, b[:44]))
}

func decodeEntryHeader(b []byte, salt uint32) (h entryHeader, ok bool) {
	if len(b) < entryHeaderSize || string(b[:4]) != entryMagic || sum(salt, b[:44]) != binary.BigEndian.Uint32(b[44:]) {
		return h, false
	}
	h = entryHeader{
		kind:       Kind(b[4]),
		flags:      b[5],
		partition:  binary.BigEndian.Uint32(b[8:]),
		noteLength: binary.BigEndian.Uint32(b[12:]),
		base:       int64(binary.BigEndian.Uint64(b[16:])),
		last:       int64(binary.BigEndian.Uint64(b[24:])),
		length:     binary.BigEndian.Uint32(b[32:]),
		payloadCRC: binary.BigEndian.Uint32(b[36:]),
		sequence:   binary.BigEndian.Uint32(b[40:]),
	}
	return h, h.noteLength <= h.length
}

func padTo(n, to int) int { return (n + to - 1) / to * to }
