package parquetfmt

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// maxBoundBytes is the longest byte value that becomes a bound; longer ones
// leave the column without bounds rather than with cut ones.
const maxBoundBytes = 64

// bounds are the least and greatest value of a column in the order that the
// Parquet format defines for its logical type.
type bounds struct {
	any      bool // lo and hi, or fLo and fHi, or bLo and bHi are set
	lost     bool // a value was too long to be a bound
	lo, hi   int64
	fLo, fHi float64
	bLo, bHi []byte
}

func (b *bounds) int(lo, hi int64) {
	if !b.any {
		b.any, b.lo, b.hi = true, lo, hi
		return
	}
	b.lo, b.hi = min(b.lo, lo), max(b.hi, hi)
}

func (b *bounds) float(v float64) {
	// NaN has no place in the order and is never a bound.
	if v != v {
		return
	}
	if !b.any {
		b.any, b.fLo, b.fHi = true, v, v
		return
	}
	b.fLo, b.fHi = min(b.fLo, v), max(b.fHi, v)
}

func (b *bounds) bytes(v []byte, cmp func(a, b []byte) int) {
	if !b.any {
		b.any = true
		b.bLo, b.bHi = append(b.bLo[:0], v...), append(b.bHi[:0], v...)
		return
	}
	if cmp(v, b.bLo) < 0 {
		b.bLo = append(b.bLo[:0], v...)
	} else if cmp(v, b.bHi) > 0 {
		b.bHi = append(b.bHi[:0], v...)
	}
}

// compareSigned orders big-endian two's complement numbers of equal width.
func compareSigned(a, b []byte) int {
	if x, y := int8(a[0]), int8(b[0]); x != y {
		if x < y {
			return -1
		}
		return 1
	}
	return bytes.Compare(a[1:], b[1:])
}

// addPlain takes n values in the form that leaf.plain has.
func (b *bounds) addPlain(l *leaf, plain []byte, n int) {
	if n == 0 || b.lost {
		return
	}
	switch l.phys {
	case format.Boolean:
		lo, hi := int64(1), int64(0)
		for _, v := range plain {
			lo, hi = min(lo, int64(v)), max(hi, int64(v))
		}
		b.int(lo, hi)
	case format.Int32:
		lo, hi := int32(math.MaxInt32), int32(math.MinInt32)
		for ; len(plain) >= 4; plain = plain[4:] {
			v := le32(plain)
			lo, hi = min(lo, v), max(hi, v)
		}
		b.int(int64(lo), int64(hi))
	case format.Int64:
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for ; len(plain) >= 8; plain = plain[8:] {
			v := le64(plain)
			lo, hi = min(lo, v), max(hi, v)
		}
		b.int(lo, hi)
	case format.Float:
		for ; len(plain) >= 4; plain = plain[4:] {
			b.float(float64(leF32(plain)))
		}
	case format.Double:
		for ; len(plain) >= 8; plain = plain[8:] {
			b.float(leF64(plain))
		}
	case format.FixedLenByteArray:
		for ; len(plain) >= l.width; plain = plain[l.width:] {
			b.bytes(plain[:l.width], compareSigned)
		}
	case format.ByteArray:
		for len(plain) > 0 {
			k := 4 + int(binary.LittleEndian.Uint32(plain))
			if k-4 > maxBoundBytes {
				b.any, b.lost = false, true
				return
			}
			b.bytes(plain[4:k], bytes.Compare)
			plain = plain[k:]
		}
	}
}

// merge adds another row group's bounds of the same column.
func (b *bounds) merge(l *leaf, o *bounds) {
	if b.lost || o.lost {
		b.any, b.lost = false, true
		return
	}
	if !o.any {
		return
	}
	switch l.phys {
	case format.Float, format.Double:
		b.float(o.fLo)
		b.float(o.fHi)
	case format.ByteArray:
		b.bytes(o.bLo, bytes.Compare)
		b.bytes(o.bHi, bytes.Compare)
	case format.FixedLenByteArray:
		b.bytes(o.bLo, compareSigned)
		b.bytes(o.bHi, compareSigned)
	default:
		b.int(o.lo, o.hi)
	}
}

// encode gives the PLAIN form of the bounds, nil when there are none.
func (b *bounds) encode(l *leaf) (lo, hi []byte) {
	if !b.any || b.lost {
		return nil, nil
	}
	switch l.phys {
	case format.Boolean:
		return []byte{byte(b.lo)}, []byte{byte(b.hi)}
	case format.Int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(b.lo)), binary.LittleEndian.AppendUint32(nil, uint32(b.hi))
	case format.Int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(b.lo)), binary.LittleEndian.AppendUint64(nil, uint64(b.hi))
	case format.Float, format.Double:
		fLo, fHi := b.fLo, b.fHi
		// Zero bounds cover both zeros, as the format asks.
		if fLo == 0 {
			fLo = math.Copysign(0, -1)
		}
		if fHi == 0 {
			fHi = 0
		}
		if l.phys == format.Float {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(fLo))),
				binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(fHi)))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(fLo)),
			binary.LittleEndian.AppendUint64(nil, math.Float64bits(fHi))
	}
	return b.bLo, b.bHi
}
