package record

import (
	"encoding/binary"
	"fmt"
)

// Batch is a parsed header together with the raw bytes it was parsed from. It
// is a view: it stays valid as long as the bytes do.
type Batch struct {
	Header
	// Raw is the whole batch, exactly Size bytes.
	Raw []byte
}

// Split takes the first batch off b, with its checksum verified, and returns
// the bytes after it. On an error nothing was taken: rest is b. An empty b gives
// ErrTruncated; loop while len(rest) > 0.
func Split(b []byte) (batch Batch, rest []byte, err error) {
	batch, rest, err = SplitUnverified(b)
	if err != nil {
		return batch, b, err
	}
	if err := batch.Verify(); err != nil {
		return batch, b, err
	}
	return batch, rest, nil
}

// SplitUnverified is Split without the checksum: for bytes that were verified
// before, such as those in the write cache.
func SplitUnverified(b []byte) (batch Batch, rest []byte, err error) {
	h, err := ParseHeader(b)
	if err != nil {
		return Batch{Header: h}, b, err
	}
	if h.Size() > len(b) {
		return Batch{Header: h}, b, fmt.Errorf("%w: %d bytes of %d at base offset %d", ErrTruncated, len(b), h.Size(), h.BaseOffset)
	}
	n := h.Size()
	return Batch{Header: h, Raw: b[:n:n]}, b[n:], nil
}

// Verify compares the body with the checksum in the header.
func (b *Batch) Verify() error {
	if got := Checksum(b.Raw[posAttributes:]); got != b.CRC {
		return fmt.Errorf("%w: base offset %d, size %d, have %08x, want %08x", ErrChecksum, b.BaseOffset, len(b.Raw), got, b.CRC)
	}
	return nil
}

// Payload is what follows the header: the records, compressed if the attributes
// say so.
func (b *Batch) Payload() []byte { return b.Raw[HeaderSize:] }

// Assign gives the batch at the start of raw its place in a log, in place. The
// checksum stays valid, it covers neither field. raw must hold a whole header.
func Assign(raw []byte, baseOffset int64, leaderEpoch int32) {
	binary.BigEndian.PutUint64(raw, uint64(baseOffset))
	binary.BigEndian.PutUint32(raw[posLeaderEpoch:], uint32(leaderEpoch))
}

// StampLogAppendTime turns the batch into one with log-append time: every
// record then reads as written at timestampMs. It rewrites the checksum, so raw
// must be exactly one whole batch that was verified before.
func StampLogAppendTime(raw []byte, timestampMs int64) {
	attrs := Attributes(binary.BigEndian.Uint16(raw[posAttributes:])) | attrLogAppendTime
	binary.BigEndian.PutUint16(raw[posAttributes:], uint16(attrs))
	binary.BigEndian.PutUint64(raw[posMaxTime:], uint64(timestampMs))
	binary.BigEndian.PutUint32(raw[posCRC:], Checksum(raw[posAttributes:]))
}

// CheckProduced applies the rules for a batch that a producer hands in, from
// its header alone: at least one record, offsets without gaps, no log-append
// time, idempotence fields that go together. Errors wrap ErrInvalid.
func (h *Header) CheckProduced() error {
	switch {
	case h.Count < 1:
		return fmt.Errorf("%w: no records", ErrInvalid)
	case h.LastOffsetDelta != h.Count-1:
		return fmt.Errorf("%w: %d records with a last offset delta of %d", ErrInvalid, h.Count, h.LastOffsetDelta)
	case h.Attributes.LogAppendTime():
		return fmt.Errorf("%w: log-append time set by the producer", ErrInvalid)
	case h.Attributes.Control():
		return fmt.Errorf("%w: control batch from a producer", ErrInvalid)
	case h.ProducerID != NoProducerID && (h.ProducerID < 0 || h.ProducerEpoch < 0 || h.BaseSequence < 0):
		return fmt.Errorf("%w: producer id %d with epoch %d and sequence %d", ErrInvalid, h.ProducerID, h.ProducerEpoch, h.BaseSequence)
	case h.ProducerID == NoProducerID && h.Attributes.Transactional():
		return fmt.Errorf("%w: transactional without a producer id", ErrInvalid)
	}
	return nil
}

// CheckRecords unpacks the batch and compares its records with its header: the
// number, offsets 0..n-1 without gaps, and the largest timestamp, on which time
// lookups rely. Call it on what a producer hands in. Errors wrap ErrInvalid,
// ErrCorrupt, ErrTooLarge or ErrCodec.
func CheckRecords(b Batch, d *Decoder) error {
	maxTime, err := unpack(b, d)
	if err != nil {
		return err
	}
	if maxTime != b.MaxTimestamp {
		return fmt.Errorf("%w: largest timestamp is %d, the header says %d", ErrInvalid, maxTime, b.MaxTimestamp)
	}
	return nil
}

// CorrectRecords is CheckRecords, but puts the header's largest timestamp right, in
// place, where that is wrong: some producers leave 0 there when no record has a time.
// It rewrites the checksum, which must have been verified before.
func CorrectRecords(b *Batch, d *Decoder) error {
	maxTime, err := unpack(*b, d)
	if err != nil || maxTime == b.MaxTimestamp {
		return err
	}
	b.MaxTimestamp = maxTime
	binary.BigEndian.PutUint64(b.Raw[posMaxTime:], uint64(maxTime))
	b.CRC = Checksum(b.Raw[posAttributes:])
	binary.BigEndian.PutUint32(b.Raw[posCRC:], b.CRC)
	return nil
}

// unpack reads all records of a batch, whose number and offsets must be those of the
// header, and returns their largest timestamp.
func unpack(b Batch, d *Decoder) (largest int64, err error) {
	it, err := d.Records(b)
	if err != nil {
		return 0, err
	}
	var r Record
	next, maxTime := b.BaseOffset, NoTimestamp
	for it.Next(&r) {
		if r.Offset != next {
			return 0, fmt.Errorf("%w: record %d has offset delta %d", ErrInvalid, next-b.BaseOffset, r.Offset-b.BaseOffset)
		}
		if next == b.BaseOffset || r.Timestamp > maxTime {
			maxTime = r.Timestamp
		}
		next++
	}
	return maxTime, it.Err()
}
