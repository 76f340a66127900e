package record

import "math/bits"

// varint reads a zigzag varint of at most 32 bits at b[pos:]. It returns the
// value and the position after it, or a negative position if the bytes end too
// early or the value does not fit.
func varint(b []byte, pos int) (int32, int) {
	if pos < len(b) && b[pos] < 0x80 { // lengths and deltas are mostly one byte
		u := uint32(b[pos])
		return int32(u>>1) ^ -int32(u&1), pos + 1
	}
	v, next := uvarint(b, pos, 5)
	if next < 0 || v > 1<<32-1 {
		return 0, -1
	}
	u := uint32(v)
	return int32(u>>1) ^ -int32(u&1), next
}

// varlong is varint for 64 bits.
func varlong(b []byte, pos int) (int64, int) {
	if pos < len(b) && b[pos] < 0x80 {
		u := uint64(b[pos])
		return int64(u>>1) ^ -int64(u&1), pos + 1
	}
	u, next := uvarint(b, pos, 10)
	return int64(u>>1) ^ -int64(u&1), next
}

func uvarint(b []byte, pos, maxBytes int) (uint64, int) {
	if pos > len(b) {
		return 0, -1
	}
	in := b[pos:]
	if len(in) > maxBytes {
		in = in[:maxBytes]
	}
	var v uint64
	for i, c := range in {
		if c < 0x80 {
			if i == 9 && c > 1 {
				return 0, -1 // more than 64 bits
			}
			return v | uint64(c)<<(7*uint(i)), pos + i + 1
		}
		v |= uint64(c&0x7f) << (7 * uint(i))
	}
	return 0, -1
}

func appendVarint(b []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for u >= 0x80 {
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}

// varintSize is the number of bytes appendVarint writes.
func varintSize(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(u|1) + 6) / 7
}
