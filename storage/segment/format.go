package segment

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/storage/record"
)

// Kind tells the two uses of the one layout apart.
type Kind uint8

// The kinds of segment.
const (
	// Mixed segments hold many partitions, sorted.
	Mixed Kind = 1
	// Own segments hold one partition and grow until sealed.
	Own Kind = 2
)

// String returns mixed or own.
func (k Kind) String() string {
	switch k {
	case Mixed:
		return "mixed"
	case Own:
		return "own"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

const (
	version = 1

	fileHeaderSize   = 64
	dataStart        = 2 * fileHeaderSize // the file header stands there twice
	extentHeaderSize = 72
	tableEntrySize   = 8
	trailerSize      = 64

	fileMagic    = "MRSEGMNT"
	extentMagic  = "MREX"
	trailerMagic = "MRSEGEND"
)

// Meta is what a segment says of itself.
type Meta struct {
	// ID is unique in the store for ever; checksums of extents include it.
	ID   uint64
	Kind Kind
	// Partition and BaseOffset are those of an own segment, else 0.
	Partition  uint64
	BaseOffset int64
	// CreatedMs is the wall clock at creation, milliseconds since 1970 UTC.
	CreatedMs int64
}

func (m *Meta) encode(b []byte) {
	copy(b, fileMagic)
	binary.BigEndian.PutUint16(b[8:], version)
	b[10] = byte(m.Kind)
	clear(b[11:16])
	binary.BigEndian.PutUint64(b[16:], m.ID)
	binary.BigEndian.PutUint64(b[24:], m.Partition)
	binary.BigEndian.PutUint64(b[32:], uint64(m.BaseOffset))
	binary.BigEndian.PutUint64(b[40:], uint64(m.CreatedMs))
	clear(b[48:60])
	binary.BigEndian.PutUint32(b[60:], record.Checksum(b[:60]))
}

func decodeMeta(b []byte) (Meta, error) {
	var m Meta
	if len(b) < fileHeaderSize || record.Checksum(b[:60]) != binary.BigEndian.Uint32(b[60:]) || string(b[:8]) != fileMagic {
		return m, ErrNotSegment
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != version {
		return m, fmt.Errorf("%w: %d", ErrVersion, v)
	}
	m = Meta{
		Kind:       Kind(b[10]),
		ID:         binary.BigEndian.Uint64(b[16:]),
		Partition:  binary.BigEndian.Uint64(b[24:]),
		BaseOffset: int64(binary.BigEndian.Uint64(b[32:])),
		CreatedMs:  int64(binary.BigEndian.Uint64(b[40:])),
	}
	if m.Kind != Mixed && m.Kind != Own {
		return m, fmt.Errorf("%w: %s", ErrVersion, m.Kind)
	}
	return m, nil
}

// Extent describes consecutive batches of one partition in a segment.
type Extent struct {
	Partition              uint64
	BaseOffset, LastOffset int64
	Position               int64  // of the extent's header in the file, bytes
	Length                 uint32 // of its batches, bytes
	Batches                uint32
	MaxTimestamp           int64  // largest record timestamp, ms since 1970 UTC
	AppendTimeMs           int64  // when the log took them, ms since 1970 UTC
	Checksum               uint32 // of the batch table
}

// include adds a batch to the description and to the batch table.
func (e *Extent) include(table []byte, h *record.Header, batch []byte) []byte {
	if e.Batches == 0 {
		e.BaseOffset, e.MaxTimestamp = h.BaseOffset, h.MaxTimestamp
	}
	e.LastOffset = h.LastOffset()
	e.MaxTimestamp = max(e.MaxTimestamp, h.MaxTimestamp)
	e.Batches++
	e.Length += uint32(len(batch))
	return appendTableEntry(table, batch)
}

// payload is the position of the first batch in the file.
func (e *Extent) payload() int64 { return e.table() + tableEntrySize*int64(e.Batches) }

func (e *Extent) table() int64 { return e.Position + extentHeaderSize }

// End is the position in the file after the extent.
func (e *Extent) End() int64 { return e.payload() + int64(e.Length) }

// encode writes the extent header; the segment's id goes into its checksum, by
// idChecksum, so that an extent of another file can never be taken for one of this.
func (e *Extent) encode(b []byte, id uint32) {
	copy(b, extentMagic)
	binary.BigEndian.PutUint32(b[4:], e.Batches)
	binary.BigEndian.PutUint64(b[8:], e.Partition)
	binary.BigEndian.PutUint64(b[16:], uint64(e.BaseOffset))
	binary.BigEndian.PutUint64(b[24:], uint64(e.LastOffset))
	binary.BigEndian.PutUint64(b[32:], uint64(e.Position))
	binary.BigEndian.PutUint32(b[40:], e.Length)
	binary.BigEndian.PutUint32(b[44:], e.Checksum)
	binary.BigEndian.PutUint64(b[48:], uint64(e.MaxTimestamp))
	binary.BigEndian.PutUint64(b[56:], uint64(e.AppendTimeMs))
	clear(b[64:68])
	binary.BigEndian.PutUint32(b[68:], extentChecksum(b, id))
}

func extentChecksum(b []byte, id uint32) uint32 { return record.UpdateChecksum(id, b[:68]) }

// idChecksum is the checksum of a segment's id, with which those of its extents begin.
func idChecksum(id uint64) uint32 {
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], id)
	return record.Checksum(seed[:])
}

// decodeExtent reads an extent header; ok is false if it is not a valid one of
// this segment.
func decodeExtent(b []byte, id uint64) (e Extent, ok bool) {
	if len(b) < extentHeaderSize || string(b[:4]) != extentMagic || extentChecksum(b, idChecksum(id)) != binary.BigEndian.Uint32(b[68:]) {
		return e, false
	}
	e = Extent{
		Batches:      binary.BigEndian.Uint32(b[4:]),
		Partition:    binary.BigEndian.Uint64(b[8:]),
		BaseOffset:   int64(binary.BigEndian.Uint64(b[16:])),
		LastOffset:   int64(binary.BigEndian.Uint64(b[24:])),
		Position:     int64(binary.BigEndian.Uint64(b[32:])),
		Length:       binary.BigEndian.Uint32(b[40:]),
		Checksum:     binary.BigEndian.Uint32(b[44:]),
		MaxTimestamp: int64(binary.BigEndian.Uint64(b[48:])),
		AppendTimeMs: int64(binary.BigEndian.Uint64(b[56:])),
	}
	return e, true
}

// trailer is the last 64 bytes of a sealed segment.
type trailer struct {
	id       uint64
	footer   int64 // its position
	extents  uint32
	checksum uint32 // of the footer
}

func (t *trailer) encode(b []byte) {
	copy(b, trailerMagic)
	binary.BigEndian.PutUint16(b[8:], version)
	clear(b[10:12])
	binary.BigEndian.PutUint32(b[12:], t.extents)
	binary.BigEndian.PutUint64(b[16:], t.id)
	binary.BigEndian.PutUint64(b[24:], uint64(t.footer))
	binary.BigEndian.PutUint32(b[32:], t.checksum)
	clear(b[36:60])
	binary.BigEndian.PutUint32(b[60:], record.Checksum(b[:60]))
}

// decodeTrailer reads the trailer of a file of the given size.
func decodeTrailer(b []byte, size int64) (trailer, error) {
	var t trailer
	if len(b) < trailerSize || record.Checksum(b[:60]) != binary.BigEndian.Uint32(b[60:]) || string(b[:8]) != trailerMagic {
		return t, ErrNoFooter
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != version {
		return t, fmt.Errorf("%w: %d", ErrVersion, v)
	}
	t = trailer{
		extents:  binary.BigEndian.Uint32(b[12:]),
		id:       binary.BigEndian.Uint64(b[16:]),
		footer:   int64(binary.BigEndian.Uint64(b[24:])),
		checksum: binary.BigEndian.Uint32(b[32:]),
	}
	// The sizes have to add up before anything is allocated by them.
	if t.footer < dataStart || t.footer > size ||
		t.footer+int64(t.extents)*extentHeaderSize+fileHeaderSize+trailerSize != size {
		return t, fmt.Errorf("%w: %d extents at %d in a file of %d bytes", ErrFooter, t.extents, t.footer, size)
	}
	return t, nil
}

// appendTableEntry adds one batch to a batch table.
func appendTableEntry(table []byte, batch []byte) []byte {
	table = binary.BigEndian.AppendUint32(table, uint32(len(batch)))
	return binary.BigEndian.AppendUint32(table, record.Checksum(batch[:record.PrefixSize]))
}

// tableEntry reads entry i: the size of the batch and the checksum of its
// first record.PrefixSize bytes.
func tableEntry(table []byte, i int) (size int, sum uint32) {
	b := table[i*tableEntrySize:]
	return int(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:])
}
