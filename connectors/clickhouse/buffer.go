package clickhouse

import (
	"encoding/binary"
	"slices"
)

// buffer is the rows of one column, or of a part of a nested one, as the native
// format has them.
type buffer struct {
	rows int
	// nulls is a byte a row, for Nullable.
	nulls []byte
	// data are fixed-width values, or texts with their lengths; the keys of a
	// LowCardinality.
	data []byte
	// ends are the end of each row in the children, for Array and Map.
	ends []byte
	kids []buffer
	// keys and codes are a LowCardinality's.
	keys  map[string]uint32
	codes []uint32
}

// bytes is the memory held, about.
func (b *buffer) bytes() int64 {
	n := int64(cap(b.nulls) + cap(b.data) + cap(b.ends) + 4*cap(b.codes) + 64*len(b.keys))
	for i := range b.kids {
		n += b.kids[i].bytes()
	}
	return n
}

// size is what the rows will take in the native format, about.
func (b *buffer) size() int64 {
	n := int64(len(b.nulls) + len(b.data) + len(b.ends) + 4*len(b.codes))
	for i := range b.kids {
		n += b.kids[i].size()
	}
	return n
}

func (b *buffer) children(n int) {
	if len(b.kids) < n {
		b.kids = make([]buffer, n)
	}
}

// grow extends a slice by n bytes, whose content is whatever stood there.
func grow(b []byte, n int) []byte {
	b = slices.Grow(b, n)
	return b[:len(b)+n]
}

// appendInts appends values as little-endian integers of a width in bytes; wider
// ones than 8 are sign-extended.
func appendInts(dst []byte, xs []int64, width int) []byte {
	at := len(dst)
	dst = grow(dst, len(xs)*width)
	out := dst[at:]
	switch width {
	case 1:
		for i, x := range xs {
			out[i] = byte(x)
		}
	case 2:
		for i, x := range xs {
			binary.LittleEndian.PutUint16(out[2*i:], uint16(x))
		}
	case 4:
		for i, x := range xs {
			binary.LittleEndian.PutUint32(out[4*i:], uint32(x))
		}
	case 8:
		for i, x := range xs {
			binary.LittleEndian.PutUint64(out[8*i:], uint64(x))
		}
	default:
		for i, x := range xs {
			binary.LittleEndian.PutUint64(out[width*i:], uint64(x))
			for k := 8; k < width; k += 8 {
				binary.LittleEndian.PutUint64(out[width*i+k:], uint64(x>>63))
			}
		}
	}
	return dst
}

// appendText appends a text with its length.
func appendText(dst, s []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
