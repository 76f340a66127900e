package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
)

// Java clients frame Snappy their own way (the xerial library): a fixed header,
// then blocks of a big-endian length and a raw Snappy block. Others send one raw
// block. Both are read; the framed form is written, which every client reads.
var xerialHeader = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

const (
	xerialMagicSize  = 8
	xerialHeaderSize = 16
	xerialBlockBytes = 32 << 10 // what the Java client writes
)

// unpackSnappy appends the unpacked bytes to dst[:0], at most limit of them.
func unpackSnappy(dst, in []byte, limit int) ([]byte, error) {
	if len(in) < xerialHeaderSize || !bytes.Equal(in[:xerialMagicSize], xerialHeader[:xerialMagicSize]) {
		return unpackSnappyBlock(dst, in, limit)
	}
	in = in[xerialHeaderSize:] // versions differ between writers, the layout does not
	for len(in) > 0 {
		if len(in) < 4 {
			return nil, fmt.Errorf("%w: snappy block length cut off", ErrCorrupt)
		}
		n := binary.BigEndian.Uint32(in)
		if uint64(n) > uint64(len(in)-4) {
			return nil, fmt.Errorf("%w: snappy block of %d bytes in %d", ErrCorrupt, n, len(in)-4)
		}
		var err error
		if dst, err = unpackSnappyBlock(dst, in[4:4+n], limit); err != nil {
			return nil, err
		}
		in = in[4+n:]
	}
	return dst, nil
}

func unpackSnappyBlock(dst, block []byte, limit int) ([]byte, error) {
	size, err := snappy.DecodedLen(block)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if size > limit-len(dst) {
		return nil, fmt.Errorf("%w: over %d bytes unpacked", ErrTooLarge, limit)
	}
	// A block cannot expand by more than about 64/3; refuse a size that lies
	// before allocating for it.
	if size > 32*len(block) {
		return nil, fmt.Errorf("%w: snappy block of %d bytes claims %d", ErrCorrupt, len(block), size)
	}
	start := len(dst)
	if cap(dst)-start < size {
		grown := make([]byte, start, max(start+size, 2*cap(dst)))
		copy(grown, dst)
		dst = grown
	}
	out, err := snappy.Decode(dst[start:start+size], block)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(out) != size {
		return nil, fmt.Errorf("%w: snappy block unpacked to %d bytes of %d", ErrCorrupt, len(out), size)
	}
	return dst[:start+size], nil
}

// packSnappy appends in, framed, to dst. It uses the fast encoder: on JSON events
// the better one takes two thirds longer to save three hundredths.
func packSnappy(dst, in []byte) []byte {
	dst = append(dst, xerialHeader...)
	for len(in) > 0 {
		n := min(len(in), xerialBlockBytes)
		at := len(dst) + 4
		dst = slices.Grow(dst, 4+s2.MaxEncodedLen(n))
		block := s2.EncodeSnappy(dst[at:cap(dst)], in[:n])
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
		dst = dst[:at+len(block)]
		in = in[n:]
	}
	return dst
}
