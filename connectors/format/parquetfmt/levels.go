package parquetfmt

import "encoding/binary"

// maxGroups bounds a bit-packed run so that its header is one byte, as
// parquet-mr writes it.
const maxGroups = 63

// bitWidth is the number of bits that hold 0..v.
func bitWidth(v int) int {
	w := 0
	for v > 0 {
		w++
		v >>= 1
	}
	return w
}

// appendHybrid appends vals in the RLE/bit-packing hybrid of the given width
// (no length, no width byte). Every value must fit the width.
//
//	run        = header, body
//	RLE        header uvarint(count<<1),    body: value in ceil(width/8) bytes, little-endian
//	bit-packed header uvarint(groups<<1|1), body: groups of 8 values, LSB first
func appendHybrid[T uint8 | int32](dst []byte, vals []T, width int) []byte {
	start, i, n := 0, 0, len(vals)
	for i < n {
		v := vals[i]
		j := i + 1
		for j < n && vals[j] == v {
			j++
		}
		// Values that complete the group being packed cannot start a run.
		pad := (8 - (i-start)&7) & 7
		if j-i-pad < 8 {
			i = j
			continue
		}
		i += pad
		dst = appendPacked(dst, vals[start:i], width)
		dst = appendRun(dst, j-i, uint64(v), width)
		start, i = j, j
	}
	return appendPacked(dst, vals[start:], width)
}

func appendRun(dst []byte, count int, v uint64, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(count)<<1)
	for b := 0; b < width; b += 8 {
		dst = append(dst, byte(v>>b))
	}
	return dst
}

func appendPacked[T uint8 | int32](dst []byte, vals []T, width int) []byte {
	for len(vals) > 0 {
		n := min(len(vals), maxGroups*8)
		groups := (n + 7) / 8
		dst = append(dst, byte(groups<<1|1))
		var acc uint64
		bits := 0
		for _, v := range vals[:n] {
			acc |= uint64(v) << bits
			bits += width
			for bits >= 8 {
				dst = append(dst, byte(acc))
				acc >>= 8
				bits -= 8
			}
		}
		if bits > 0 {
			dst = append(dst, byte(acc))
		}
		// The last group is filled up with zeros.
		for have := (n*width + 7) / 8; have < groups*width; have++ {
			dst = append(dst, 0)
		}
		vals = vals[n:]
	}
	return dst
}
