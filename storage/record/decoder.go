package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// DefaultMaxUnpackedBytes bounds what one batch may unpack to if the Decoder
// says nothing else.
const DefaultMaxUnpackedBytes = 64 << 20

// Decoder opens batches for reading records. The zero value works. It keeps one
// buffer and the decompressors between calls and belongs to one goroutine.
type Decoder struct {
	// MaxUnpackedBytes bounds the memory one batch may unpack to, so that a few
	// crafted bytes cannot fill the heap. 0 means DefaultMaxUnpackedBytes.
	MaxUnpackedBytes int

	buf  []byte
	src  bytes.Reader
	gzip *gzip.Reader
	lz4  *lz4.Reader
	zstd *zstd.Decoder
}

// Records starts iterating b. An uncompressed batch is read in place; the
// records of a compressed one stay valid until the next call. The checksum is
// not checked here, Split does that. Errors wrap ErrCorrupt, ErrTooLarge or
// ErrCodec.
func (d *Decoder) Records(b Batch) (Iter, error) {
	if b.Count == 0 && len(b.Payload()) == 0 {
		return Iter{}, nil // emptied by compaction, nothing to unpack
	}
	payload, err := d.unpack(b.Attributes.Codec(), b.Payload())
	if err != nil {
		return Iter{}, fmt.Errorf("unpacking %s batch at base offset %d: %w", b.Attributes.Codec(), b.BaseOffset, err)
	}
	// The count comes from the input: compare before anyone sizes by it.
	if int64(b.Count)*minRecordSize > int64(len(payload)) {
		return Iter{}, fmt.Errorf("%w: %d records in %d bytes at base offset %d", ErrCorrupt, b.Count, len(payload), b.BaseOffset)
	}
	return Iter{
		buf:       payload,
		left:      b.Count,
		lastDelta: b.LastOffsetDelta,
		base:      b.BaseOffset,
		baseTime:  b.BaseTimestamp,
		appended:  b.Attributes.LogAppendTime(),
		maxTime:   b.MaxTimestamp,
	}, nil
}

// Close releases the decompressors. The Decoder may be used again after it.
func (d *Decoder) Close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
	d.gzip, d.lz4, d.buf = nil, nil, nil
}

func (d *Decoder) limit() int {
	if d.MaxUnpackedBytes > 0 {
		return d.MaxUnpackedBytes
	}
	return DefaultMaxUnpackedBytes
}

func (d *Decoder) unpack(c Codec, in []byte) ([]byte, error) {
	switch c {
	case None:
		return in, nil
	case Gzip:
		return d.unpackGzip(in)
	case Snappy:
		out, err := unpackSnappy(d.buf[:0], in, d.limit())
		d.keep(out)
		return out, err
	case LZ4:
		if d.lz4 == nil {
			d.lz4 = lz4.NewReader(nil)
		}
		d.src.Reset(in)
		d.lz4.Reset(&d.src)
		return d.readAll(d.lz4)
	case Zstd:
		return d.unpackZstd(in)
	}
	return nil, fmt.Errorf("%w: %s", ErrCodec, c)
}

// keep remembers the largest buffer seen.
func (d *Decoder) keep(out []byte) {
	if cap(out) > cap(d.buf) {
		d.buf = out[:0]
	}
}

func (d *Decoder) unpackGzip(in []byte) ([]byte, error) {
	d.src.Reset(in)
	if d.gzip == nil {
		r, err := gzip.NewReader(&d.src)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		d.gzip = r
	} else if err := d.gzip.Reset(&d.src); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return d.readAll(d.gzip)
}

func (d *Decoder) unpackZstd(in []byte) ([]byte, error) {
	if d.zstd == nil {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(d.limit())))
		if err != nil {
			return nil, fmt.Errorf("opening zstd: %w", err)
		}
		d.zstd = r
	}
	out, err := d.zstd.DecodeAll(in, d.buf[:0])
	d.keep(out)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, fmt.Errorf("%w: over %d bytes unpacked", ErrTooLarge, d.limit())
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	case len(out) > d.limit():
		return nil, fmt.Errorf("%w: over %d bytes unpacked", ErrTooLarge, d.limit())
	}
	return out, nil
}

// readAll unpacks a stream into the buffer, growing it as bytes come and never
// past the limit.
func (d *Decoder) readAll(r io.Reader) ([]byte, error) {
	out, limit := d.buf[:0], d.limit()
	defer func() { d.keep(out) }()
	for {
		if len(out) == cap(out) {
			size := min(max(2*cap(out), 16<<10), limit+1)
			grown := make([]byte, len(out), size)
			copy(grown, out)
			out = grown
		}
		n, err := r.Read(out[len(out):min(cap(out), limit+1)])
		out = out[:len(out)+n]
		switch {
		case len(out) > limit:
			return nil, fmt.Errorf("%w: over %d bytes unpacked", ErrTooLarge, limit)
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
}
