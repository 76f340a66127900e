package parquetfmt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
)

func joinPath(p []string) string { return strings.Join(p, ".") }

// appendValues appends the values of v (Flat or Const) at the given positions
// to the page in PLAIN form.
func (l *leaf) appendValues(v *batch.Vec, index []int32) error {
	p := l.plain
	le := binary.LittleEndian
	switch l.conv {
	case convBool:
		for _, i := range index {
			p = append(p, v.Bools[i>>3]>>(i&7)&1)
		}
	case convInt8:
		for _, i := range index {
			p = le.AppendUint32(p, uint32(int32(v.I8[i])))
		}
	case convInt16:
		for _, i := range index {
			p = le.AppendUint32(p, uint32(int32(v.I16[i])))
		}
	case convInt32:
		for _, i := range index {
			p = le.AppendUint32(p, uint32(v.I32[i]))
		}
	case convInt64:
		for _, i := range index {
			p = le.AppendUint64(p, uint64(v.I64[i]))
		}
	case convFloat32:
		for _, i := range index {
			p = le.AppendUint32(p, math.Float32bits(v.F32[i]))
		}
	case convFloat64:
		for _, i := range index {
			p = le.AppendUint64(p, math.Float64bits(v.F64[i]))
		}
	case convBytes:
		for _, i := range index {
			b := v.Data[v.Offsets[i]:v.Offsets[i+1]]
			p = le.AppendUint32(p, uint32(len(b)))
			p = append(p, b...)
		}
		if len(p) > maxBodyBytes {
			return fmt.Errorf("column %s: %d bytes in one page are too many", joinPath(l.path), len(p))
		}
	case convMicrosInt96:
		for _, i := range index {
			p = appendInt96(p, v.I64[i], 1_000_000)
		}
	case convNanosInt96:
		for _, i := range index {
			p = appendInt96(p, v.I64[i], 1_000_000_000)
		}
	default:
		return l.appendDecimals(v, index)
	}
	l.plain = p
	return nil
}

// appendDecimals appends unscaled DECIMAL values. A value beyond the declared
// precision cannot come from our own arithmetic; it is refused rather than cut.
func (l *leaf) appendDecimals(v *batch.Vec, index []int32) error {
	p := l.plain
	var buf [16]byte
	for _, i := range index {
		var lo uint64
		var hi int64
		if l.conv == convDec128Fixed {
			lo, hi = v.D128[i].Lo, v.D128[i].Hi
		} else {
			lo, hi = uint64(v.I64[i]), v.I64[i]>>63
		}
		if !fits128(lo, hi, 8*l.width) {
			return fmt.Errorf("column %s: a decimal does not fit its precision", joinPath(l.path))
		}
		if l.conv == convInt64Int32 {
			p = binary.LittleEndian.AppendUint32(p, uint32(lo))
			continue
		}
		binary.BigEndian.PutUint64(buf[:8], uint64(hi))
		binary.BigEndian.PutUint64(buf[8:], lo)
		p = append(p, buf[16-l.width:]...)
	}
	l.plain = p
	return nil
}

// fits128 reports whether a two's complement number fits n bits, sign included.
func fits128(lo uint64, hi int64, n int) bool {
	if hi < 0 {
		lo, hi = ^lo, ^hi
	}
	used := bits.Len64(lo)
	if hi != 0 {
		used = 64 + bits.Len64(uint64(hi))
	}
	return used < n
}

const (
	secondsPerDay  = 86400
	julianUnixDay  = 2440588 // Julian day number of 1970-01-01
	nanosPerSecond = 1_000_000_000
)

// appendInt96 appends a time as nanoseconds of the day and Julian day. The
// division floors, so that times before 1970 keep their day.
func appendInt96(p []byte, t, perSecond int64) []byte {
	perDay := perSecond * secondsPerDay
	day := t / perDay
	rest := t % perDay
	if rest < 0 {
		day--
		rest += perDay
	}
	p = binary.LittleEndian.AppendUint64(p, uint64(rest*(nanosPerSecond/perSecond)))
	return binary.LittleEndian.AppendUint32(p, uint32(int32(day+julianUnixDay)))
}
