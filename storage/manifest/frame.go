package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/storage/record"
)

// Errors that callers branch on.
var (
	// ErrVersion says that the files were written by a newer format.
	ErrVersion = errors.New("unknown manifest version")
	// ErrMissing says that there is no manifest where there has to be one.
	ErrMissing = errors.New("manifest missing")
	// ErrTooLarge says that a batch of edits passes MaxBatchBytes.
	ErrTooLarge = errors.New("manifest batch too large")
	// ErrFailed says that an earlier write or sync failed, or that the Log is
	// closed.
	ErrFailed = errors.New("manifest failed earlier")
)

// RotError says that a part of the manifest that had been durable is damaged in
// both copies. The state cannot be restored from this file.
type RotError struct {
	Path     string
	Position int64 // in the file, bytes
	Sequence uint64
	Reason   string
}

// Error names the file and the place.
func (e *RotError) Error() string {
	return fmt.Sprintf("%s: rotten at byte %d (frame %d): %s", e.Path, e.Position, e.Sequence, e.Reason)
}

// MaxBatchBytes bounds one batch of edits, with 6 bytes of overhead each.
const MaxBatchBytes = 64 << 20

const (
	version = 1

	fileHeaderSize  = 32
	dataStart       = 2 * fileHeaderSize // the file header stands there twice
	frameHeaderSize = 48
	editHeaderSize  = 6
	// emptyFileSize is that of a file without entries: the headers and the end
	// of an empty snapshot, each twice.
	emptyFileSize = dataStart + 2*frameHeaderSize

	fileMagic  = "MRMANIFS"
	frameMagic = "MRMF"
)

// frameType says what a frame holds.
type frameType uint8

const (
	frameSnapshot    frameType = 1 // entries of the snapshot
	frameSnapshotEnd frameType = 2 // no entries; the snapshot is whole
	frameEdits       frameType = 3 // one batch of edits, all or nothing
	frameMark        frameType = 4 // no entries; only the durable mark
)

func encodeFileHeader(b []byte, generation uint64) {
	copy(b, fileMagic)
	binary.BigEndian.PutUint16(b[8:], version)
	clear(b[10:16])
	binary.BigEndian.PutUint64(b[16:], generation)
	clear(b[24:28])
	binary.BigEndian.PutUint32(b[28:], record.Checksum(b[:28]))
}

// decodeFileHeader reads one copy of the file header.
func decodeFileHeader(b []byte) (generation uint64, ok bool, err error) {
	if len(b) < fileHeaderSize || string(b[:8]) != fileMagic || record.Checksum(b[:28]) != binary.BigEndian.Uint32(b[28:]) {
		return 0, false, nil
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != version {
		return 0, false, fmt.Errorf("%w: %d", ErrVersion, v)
	}
	return binary.BigEndian.Uint64(b[16:]), true, nil
}

// frame is a decoded frame header.
type frame struct {
	kind       frameType
	copy       uint8 // 0 or 1
	generation uint64
	sequence   uint64
	durable    int64 // everything before this position was durable
	length     uint32
	entries    uint32
	checksum   uint32 // of the payload
}

// size is that of one copy, in bytes.
func (h *frame) size() int64 { return frameHeaderSize + int64(h.length) }

func (h *frame) encode(b []byte) {
	copy(b, frameMagic)
	b[4], b[5], b[6], b[7] = byte(h.kind), h.copy, 0, 0
	binary.BigEndian.PutUint64(b[8:], h.generation)
	binary.BigEndian.PutUint64(b[16:], h.sequence)
	binary.BigEndian.PutUint64(b[24:], uint64(h.durable))
	binary.BigEndian.PutUint32(b[32:], h.length)
	binary.BigEndian.PutUint32(b[36:], h.entries)
	binary.BigEndian.PutUint32(b[40:], h.checksum)
	binary.BigEndian.PutUint32(b[44:], record.Checksum(b[:44]))
}

func decodeFrame(b []byte) (h frame, ok bool) {
	if len(b) < frameHeaderSize || string(b[:4]) != frameMagic || record.Checksum(b[:44]) != binary.BigEndian.Uint32(b[44:]) {
		return h, false
	}
	h = frame{
		kind:       frameType(b[4]),
		copy:       b[5],
		generation: binary.BigEndian.Uint64(b[8:]),
		sequence:   binary.BigEndian.Uint64(b[16:]),
		durable:    int64(binary.BigEndian.Uint64(b[24:])),
		length:     binary.BigEndian.Uint32(b[32:]),
		entries:    binary.BigEndian.Uint32(b[36:]),
		checksum:   binary.BigEndian.Uint32(b[40:]),
	}
	return h, true
}

// appendFrame appends both copies of a frame whose payload is given.
func appendFrame(dst []byte, h frame, payload []byte) []byte {
	h.length, h.checksum = uint32(len(payload)), record.Checksum(payload)
	for h.copy = 0; h.copy < 2; h.copy++ {
		n := len(dst)
		dst = append(dst, make([]byte, frameHeaderSize)...)
		h.encode(dst[n:])
		dst = append(dst, payload...)
	}
	return dst
}

// Edit is one entry: what it means is the caller's business.
type Edit struct {
	Kind    uint16
	Payload []byte
}

func appendEdit(dst []byte, kind uint16, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, kind)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...)
}

// eachEdit hands the entries of a verified payload to apply. payload ends are
// checked all the same: the checksum proves what was written, not that it was
// right. ok is false if the entries do not fill the payload.
func eachEdit(payload []byte, entries uint32, apply func(kind uint16, payload []byte) error) (ok bool, err error) {
	for ; entries > 0; entries-- {
		if len(payload) < editHeaderSize {
			return false, nil
		}
		kind, n := binary.BigEndian.Uint16(payload), binary.BigEndian.Uint32(payload[2:])
		payload = payload[editHeaderSize:]
		if uint64(n) > uint64(len(payload)) {
			return false, nil
		}
		if err := apply(kind, payload[:n:n]); err != nil {
			return true, err
		}
		payload = payload[n:]
	}
	return len(payload) == 0, nil
}
