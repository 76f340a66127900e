package record

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Builder packs records into one batch. The zero value builds uncompressed
// batches without a producer id. It keeps its buffers over Reset and belongs to
// one goroutine.
type Builder struct {
	// Codec is the compression wished for. Records that would grow by it are
	// stored uncompressed, which the attributes of the batch then say.
	Codec Codec

	raw       []byte // HeaderSize bytes for the header, then the records
	packed    []byte // the same, compressed
	count     int32
	lastDelta int32
	baseTime  int64
	maxTime   int64
	producer  producer

	gzip *gzip.Writer
	lz4  *lz4.Writer
	zstd *zstd.Encoder
}

type producer struct {
	id       int64
	epoch    int16
	sequence int32
	flags    Attributes
	set      bool
}

// SetProducer makes the batch one of an idempotent or transactional producer.
// Reset clears it.
func (b *Builder) SetProducer(id int64, epoch int16, baseSequence int32, transactional bool) {
	b.producer = producer{id: id, epoch: epoch, sequence: baseSequence, set: true}
	if transactional {
		b.producer.flags = attrTransactional
	}
}

// Append adds a record with the next offset. A nil key or value is null. The
// bytes are copied. It fails with ErrTooLarge if the batch would pass 2 GiB.
func (b *Builder) Append(timestampMs int64, key, value []byte, headers []RecordHeader) error {
	delta := int32(0)
	if b.count > 0 {
		if b.lastDelta == math.MaxInt32 {
			return fmt.Errorf("%w: no offset left", ErrTooLarge)
		}
		delta = b.lastDelta + 1
	}
	return b.AppendAt(delta, timestampMs, key, value, headers)
}

// AppendAt is Append with an explicit offset relative to the base offset; it
// must grow from record to record. Compaction uses it to keep gaps.
func (b *Builder) AppendAt(offsetDelta int32, timestampMs int64, key, value []byte, headers []RecordHeader) error {
	if offsetDelta < 0 || b.count > 0 && offsetDelta <= b.lastDelta {
		return fmt.Errorf("%w: offset delta %d after %d", ErrInvalid, offsetDelta, b.lastDelta)
	}
	if len(b.raw) == 0 {
		b.raw = append(b.raw, make([]byte, HeaderSize)...)
	}
	if b.count == 0 {
		b.baseTime, b.maxTime = timestampMs, timestampMs
	}
	timeDelta := timestampMs - b.baseTime
	body := 1 + varintSize(timeDelta) + varintSize(int64(offsetDelta)) + bytesSize(key) + bytesSize(value) + varintSize(int64(len(headers)))
	for i := range headers {
		if headers[i].Key == nil {
			return fmt.Errorf("%w: header %d has no key", ErrInvalid, i)
		}
		body += bytesSize(headers[i].Key) + bytesSize(headers[i].Value)
	}
	if total := int64(len(b.raw)) + int64(body) + 5; total > math.MaxInt32 {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, total)
	}
	out := appendVarint(b.raw, int64(body))
	out = append(out, 0)
	out = appendVarint(out, timeDelta)
	out = appendVarint(out, int64(offsetDelta))
	out = appendBytes(out, key)
	out = appendBytes(out, value)
	out = appendVarint(out, int64(len(headers)))
	for i := range headers {
		out = appendBytes(out, headers[i].Key)
		out = appendBytes(out, headers[i].Value)
	}
	b.raw = out
	b.count++
	b.lastDelta = offsetDelta
	b.maxTime = max(b.maxTime, timestampMs)
	return nil
}

// Grow makes room for a batch of n bytes before compression, so that a batch that
// becomes that large is not copied as it grows.
func (b *Builder) Grow(n int) {
	if n > cap(b.raw) {
		b.raw = slices.Grow(b.raw, n-len(b.raw))
	}
}

// Count is the number of records appended since Reset.
func (b *Builder) Count() int { return int(b.count) }

// Size is the size of the batch so far, uncompressed, in bytes.
func (b *Builder) Size() int { return max(len(b.raw), HeaderSize) }

// RecordSize bounds from above what a record adds to a batch, in bytes.
func RecordSize(key, value []byte, headers []RecordHeader) int {
	n := 5 + 1 + 10 + 5 + bytesSize(key) + bytesSize(value) + varintSize(int64(len(headers)))
	for i := range headers {
		n += bytesSize(headers[i].Key) + bytesSize(headers[i].Value)
	}
	return n
}

// Build finishes the batch at base offset 0 and leader epoch NoLeaderEpoch (the
// log assigns both, see Assign). The bytes belong to the Builder and stay valid
// until it is used again; the caller may Assign in them. Call Reset before the
// next batch. Without records it fails with ErrInvalid.
func (b *Builder) Build() ([]byte, error) {
	if b.count == 0 {
		return nil, fmt.Errorf("%w: no records", ErrInvalid)
	}
	return b.finish()
}

func (b *Builder) finish() ([]byte, error) {
	out, codec := b.raw, None
	if b.Codec != None {
		packed, err := b.pack()
		if err != nil {
			return nil, fmt.Errorf("packing %s batch: %w", b.Codec, err)
		}
		if len(packed) < len(b.raw) {
			out, codec = packed, b.Codec
		}
	}
	h := Header{
		Length:          int32(len(out) - lengthEnd),
		LeaderEpoch:     NoLeaderEpoch,
		Attributes:      Attributes(codec),
		LastOffsetDelta: b.lastDelta,
		BaseTimestamp:   b.baseTime,
		MaxTimestamp:    b.maxTime,
		ProducerID:      NoProducerID,
		ProducerEpoch:   NoProducerEpoch,
		BaseSequence:    NoSequence,
		Count:           b.count,
	}
	if b.producer.set {
		h.ProducerID, h.ProducerEpoch, h.BaseSequence = b.producer.id, b.producer.epoch, b.producer.sequence
		h.Attributes |= b.producer.flags
	}
	h.put(out)
	h.CRC = Checksum(out[posAttributes:])
	h.put(out)
	return out, nil
}

// Reset empties the builder for the next batch; Codec stays.
func (b *Builder) Reset() {
	b.raw = b.raw[:0]
	b.count, b.lastDelta = 0, 0
	b.producer = producer{}
}

func (b *Builder) pack() ([]byte, error) {
	records := b.raw[HeaderSize:]
	if cap(b.packed) < HeaderSize {
		b.packed = make([]byte, HeaderSize, HeaderSize+len(records))
	}
	b.packed = b.packed[:HeaderSize]
	switch b.Codec {
	case Gzip:
		buf := bytes.NewBuffer(b.packed)
		if b.gzip == nil {
			b.gzip = gzip.NewWriter(buf)
		} else {
			b.gzip.Reset(buf)
		}
		return b.stream(b.gzip, buf, records)
	case Snappy:
		b.packed = packSnappy(b.packed, records)
		return b.packed, nil
	case LZ4:
		buf := bytes.NewBuffer(b.packed)
		if b.lz4 == nil {
			b.lz4 = lz4.NewWriter(buf)
			// 64 KiB independent blocks: what the Java client reads and writes.
			if err := b.lz4.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)); err != nil {
				return nil, fmt.Errorf("setting lz4 options: %w", err)
			}
		} else {
			b.lz4.Reset(buf)
		}
		return b.stream(b.lz4, buf, records)
	case Zstd:
		if b.zstd == nil {
			w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
			if err != nil {
				return nil, fmt.Errorf("opening zstd: %w", err)
			}
			b.zstd = w
		}
		b.packed = b.zstd.EncodeAll(records, b.packed)
		return b.packed, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrCodec, b.Codec)
}

// stream packs records through a writer whose output buf began with b.packed.
func (b *Builder) stream(w io.WriteCloser, buf *bytes.Buffer, records []byte) ([]byte, error) {
	if _, err := w.Write(records); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	b.packed = buf.Bytes()
	return b.packed, nil
}

func bytesSize(v []byte) int {
	if v == nil {
		return 1
	}
	return varintSize(int64(len(v))) + len(v)
}

func appendBytes(b, v []byte) []byte {
	if v == nil {
		return append(b, 1) // zigzag of -1
	}
	return append(appendVarint(b, int64(len(v))), v...)
}
