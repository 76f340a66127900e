package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Sizes and positions in a batch, in bytes.
const (
	// HeaderSize is the size of a batch header: the smallest batch.
	HeaderSize = 61
	// PrefixSize is the size of the part before the attributes: what the batch
	// checksum leaves unprotected, and the checksum itself.
	PrefixSize = 21
	// Magic is the only batch format this package reads and writes.
	Magic = 2

	lengthEnd      = 12 // the length field counts the bytes after itself
	posLength      = 8
	posLeaderEpoch = 12
	posMagic       = 16
	posCRC         = 17
	posAttributes  = 21
	posLastDelta   = 23
	posBaseTime    = 27
	posMaxTime     = 35
	posProducerID  = 43
	posProducerEp  = 51
	posBaseSeq     = 53
	posCount       = 57

	// minRecordSize is the smallest record: length, attributes, two deltas, two
	// lengths and a header count of one byte each.
	minRecordSize = 7
)

// Values of fields that are not in use.
const (
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
	NoTimestamp     int64 = -1
	NoLeaderEpoch   int32 = -1
)

// Attributes are the flag bits of a batch.
type Attributes int16

// The bits of Attributes above the codec.
const (
	attrCodecMask     Attributes = 0x07
	attrLogAppendTime Attributes = 0x08
	attrTransactional Attributes = 0x10
	attrControl       Attributes = 0x20
	attrDeleteHorizon Attributes = 0x40
)

// Codec is the compression; check Known before using it.
func (a Attributes) Codec() Codec { return Codec(a & attrCodecMask) }

// LogAppendTime reports whether every record's timestamp is the batch's
// MaxTimestamp, stamped by the log, rather than the producer's create time.
func (a Attributes) LogAppendTime() bool { return a&attrLogAppendTime != 0 }

// Transactional reports whether the batch belongs to a transaction.
func (a Attributes) Transactional() bool { return a&attrTransactional != 0 }

// Control reports whether the batch holds transaction markers, not user data.
func (a Attributes) Control() bool { return a&attrControl != 0 }

// DeleteHorizon reports whether BaseTimestamp holds the delete horizon that
// compaction set. Record timestamps are still relative to BaseTimestamp.
func (a Attributes) DeleteHorizon() bool { return a&attrDeleteHorizon != 0 }

// Header is a decoded batch header. Timestamps are milliseconds since 1970 UTC.
type Header struct {
	BaseOffset      int64
	Length          int32 // bytes after the length field; see Size
	LeaderEpoch     int32
	CRC             uint32
	Attributes      Attributes
	LastOffsetDelta int32
	BaseTimestamp   int64
	MaxTimestamp    int64
	ProducerID      int64
	ProducerEpoch   int16
	BaseSequence    int32
	Count           int32 // records in the batch; 0 after compaction emptied it
}

// Size is the size of the whole batch, in bytes.
func (h *Header) Size() int { return lengthEnd + int(h.Length) }

// LastOffset is the offset of the last record the batch had when it was
// written; compaction may have removed that record.
func (h *Header) LastOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) }

// LastSequence is the sequence number of the last record, or NoSequence for a
// batch of a producer that is not idempotent. Sequences wrap to 0 after 2^31-1.
func (h *Header) LastSequence() int32 {
	if h.BaseSequence == NoSequence {
		return NoSequence
	}
	return int32((int64(h.BaseSequence) + int64(h.LastOffsetDelta)) & 0x7fffffff)
}

// ParseHeader decodes and checks the header at the start of b. It needs
// HeaderSize bytes and does not look at the records; the checksum is not
// verified. Errors wrap ErrTruncated (fewer than HeaderSize bytes), ErrMagic,
// ErrCodec or ErrCorrupt.
func ParseHeader(b []byte) (Header, error) {
	var h Header
	if len(b) < HeaderSize {
		return h, fmt.Errorf("%w: %d bytes where a header has %d", ErrTruncated, len(b), HeaderSize)
	}
	if b[posMagic] != Magic {
		return h, fmt.Errorf("%w: magic %d", ErrMagic, int8(b[posMagic]))
	}
	h = Header{
		BaseOffset:      int64(binary.BigEndian.Uint64(b)),
		Length:          int32(binary.BigEndian.Uint32(b[posLength:])),
		LeaderEpoch:     int32(binary.BigEndian.Uint32(b[posLeaderEpoch:])),
		CRC:             binary.BigEndian.Uint32(b[posCRC:]),
		Attributes:      Attributes(binary.BigEndian.Uint16(b[posAttributes:])),
		LastOffsetDelta: int32(binary.BigEndian.Uint32(b[posLastDelta:])),
		BaseTimestamp:   int64(binary.BigEndian.Uint64(b[posBaseTime:])),
		MaxTimestamp:    int64(binary.BigEndian.Uint64(b[posMaxTime:])),
		ProducerID:      int64(binary.BigEndian.Uint64(b[posProducerID:])),
		ProducerEpoch:   int16(binary.BigEndian.Uint16(b[posProducerEp:])),
		BaseSequence:    int32(binary.BigEndian.Uint32(b[posBaseSeq:])),
		Count:           int32(binary.BigEndian.Uint32(b[posCount:])),
	}
	return h, h.check()
}

// check finds fields that contradict each other or the layout.
func (h *Header) check() error {
	switch {
	case h.Length < HeaderSize-lengthEnd:
		return fmt.Errorf("%w: length %d", ErrCorrupt, h.Length)
	case h.BaseOffset < 0:
		return fmt.Errorf("%w: base offset %d", ErrCorrupt, h.BaseOffset)
	case h.LastOffsetDelta < 0 || h.LastOffset() < 0:
		return fmt.Errorf("%w: last offset delta %d at base offset %d", ErrCorrupt, h.LastOffsetDelta, h.BaseOffset)
	case h.Count < 0 || int64(h.Count) > int64(h.LastOffsetDelta)+1:
		return fmt.Errorf("%w: %d records in offsets %d to %d", ErrCorrupt, h.Count, h.BaseOffset, h.LastOffset())
	case !h.Attributes.Codec().Known():
		return fmt.Errorf("%w: %s", ErrCodec, h.Attributes.Codec())
	}
	return nil
}

// put writes the header to the first HeaderSize bytes of b.
func (h *Header) put(b []byte) {
	binary.BigEndian.PutUint64(b, uint64(h.BaseOffset))
	binary.BigEndian.PutUint32(b[posLength:], uint32(h.Length))
	binary.BigEndian.PutUint32(b[posLeaderEpoch:], uint32(h.LeaderEpoch))
	b[posMagic] = Magic
	binary.BigEndian.PutUint32(b[posCRC:], h.CRC)
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[posLastDelta:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[posBaseTime:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[posMaxTime:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[posProducerID:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[posProducerEp:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[posBaseSeq:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[posCount:], uint32(h.Count))
}

// castagnoli is the table of CRC-32C; crc32 uses the processor's instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is CRC-32C, the checksum of record batches and of all log files.
func Checksum(b []byte) uint32 { return UpdateChecksum(0, b) }

// UpdateChecksum continues a Checksum over more bytes.
func UpdateChecksum(crc uint32, b []byte) uint32 {
	// What was just read from a disk or a socket is in no near cache, and the sum would
	// wait for each line of it: the next step is brought in while this one is summed.
	for len(b) >= 2*sumStep {
		prefetch(&b[sumStep], sumStep/lineBytes)
		crc = crc32.Update(crc, castagnoli, b[:sumStep])
		b = b[sumStep:]
	}
	return crc32.Update(crc, castagnoli, b)
}

const (
	// sumStep is how much is summed at a time, in bytes.
	sumStep = 4 << 10
	// lineBytes is what the processor brings into its cache at once.
	lineBytes = 64
)
