package jsonfmt

import (
	"encoding/binary"
	"math/bits"
)

// An index has one bit for each byte of a text, set where a string cannot
// simply go on: at quotes, backslashes and bytes that are not ASCII. It is
// made of the whole text in one pass without branches; afterwards the end of a
// string of up to 57 bytes is one load, one shift and one count away, and the
// branch predictor has no string lengths to guess. One more bit is set behind
// the last byte, so that looking for the end of a string always ends.
//
//	text   { " a b " : " x \ n
//	index  0 1 0 0 1 0 1 0 1 0 1
type index struct{ words []byte }

const (
	lsb       = 0x0101010101010101
	msb       = 0x8080808080808080
	low7      = lsb * 0x7f
	quotes    = lsb * '"'
	backslash = lsb * '\\'
	// gather times bits 7, 15, ... 63 puts them side by side into the top byte.
	gather = 0x0002040810204081
)

// build makes the index of b.
func (x *index) build(b []byte) {
	n := len(b)>>3 + 1
	if cap(x.words) < n+8 {
		x.words = make([]byte, n+n/2+64)
	}
	w := x.words[:n+8]
	x.words = w
	done := indexBlocks(b, w)
	for i := done; i < n; i++ {
		var v uint64
		if i*8+8 <= len(b) {
			v = binary.LittleEndian.Uint64(b[i*8:])
		} else {
			var tail [8]byte
			tail[copy(tail[:], b[i*8:])] = '"'
			v = binary.LittleEndian.Uint64(tail[:])
		}
		w[i] = byte(special(v))
	}
	clear(w[n:])
}

// special has bit i set if byte i of v is a quote, a backslash or not ASCII.
func special(v uint64) uint64 {
	l := v & low7
	// A sum's high bit is clear only where the byte is the one looked for.
	m := (v | ^((l ^ quotes + low7) & (l ^ backslash + low7))) & msb
	return m * gather >> 56
}

// near is how far behind p the first set bit is, if that is less than 57
// bytes; any larger number says that it is at least 57 bytes away.
func near(words []byte, p int) int {
	return bits.TrailingZeros64(binary.LittleEndian.Uint64(words[p>>3:]) >> (p & 7))
}

const nearLimit = 57

// next is the position of the first set bit at or behind p, for p up to the
// length of the text.
func (x *index) next(p int) int {
	if n := near(x.words, p); n < nearLimit {
		return p + n
	}
	if w := x.words[p>>3] >> (p & 7); w != 0 {
		return p + bits.TrailingZeros8(w)
	}
	for p = p&^7 + 8; ; p += 64 {
		if w := binary.LittleEndian.Uint64(x.words[p>>3:]); w != 0 {
			return p + bits.TrailingZeros64(w)
		}
	}
}
