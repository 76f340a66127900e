package fn

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// exactSum adds doubles without any rounding: a fixed-point number in digits
// of 32 bits, digit k worth 2^(32*(k+base)-1088), held in int64 so that carries
// can wait. The value depends on the set of numbers alone, not on their order;
// so do round and appendState.
type exactSum struct {
	base     int // number of the lowest digit kept
	digits   []int64
	pending  int // additions since the last carry
	nan      bool
	posInf   bool
	negInf   bool
	negZeros bool // every addend so far was -0.0
	any      bool
}

const (
	exactBias  = 1088 // so that the smallest subnormal, 2^-1074, has a positive place
	maxPending = 1 << 29
	// maxDigits bounds what a state may hold: the squares of all doubles, and
	// 64 bits for their number.
	maxDigits = 160
)

func (s *exactSum) add(f float64) {
	if f == 0 {
		neg := math.Signbit(f)
		s.negZeros = neg && (s.negZeros || !s.any)
		s.any = true
		return
	}
	b := math.Float64bits(f)
	exp := int(b>>52) & 0x7ff
	mant := b & (1<<52 - 1)
	if exp == 0x7ff {
		switch {
		case mant != 0:
			s.nan = true
		case f > 0:
			s.posInf = true
		default:
			s.negInf = true
		}
		s.any, s.negZeros = true, false
		return
	}
	s.any, s.negZeros = true, false
	if exp == 0 {
		exp = 1
	} else {
		mant |= 1 << 52
	}
	place := exp - 1075 + exactBias // of the mantissa's lowest bit
	k, shift := place>>5, uint(place&31)
	s.cover(k, k+3)
	hi, lo := bits.Mul64(mant, 1<<shift)
	d := s.digits[k-s.base:]
	if f < 0 {
		d[0] -= int64(lo & math.MaxUint32)
		d[1] -= int64(lo >> 32)
		d[2] -= int64(hi)
	} else {
		d[0] += int64(lo & math.MaxUint32)
		d[1] += int64(lo >> 32)
		d[2] += int64(hi)
	}
	if s.pending++; s.pending >= maxPending {
		s.carry()
	}
}

// cover makes digits lo..hi-1 exist.
func (s *exactSum) cover(lo, hi int) {
	if len(s.digits) == 0 {
		s.base = lo
	}
	if lo < s.base {
		s.digits = slices.Insert(s.digits, 0, make([]int64, s.base-lo)...)
		s.base = lo
	}
	for s.base+len(s.digits) < hi {
		s.digits = append(s.digits, 0)
	}
}

// carry brings all digits but the highest into 0..2^32-1, and drops zeros at
// both ends: the one form of the value.
func (s *exactSum) carry() {
	s.pending = 0
	for i := 0; i < len(s.digits); i++ {
		c := s.digits[i] >> 32
		if i == len(s.digits)-1 {
			if c == 0 || c == -1 && s.digits[i] > -1<<32 {
				break
			}
			s.digits = append(s.digits, 0)
		}
		s.digits[i] -= c << 32
		s.digits[i+1] += c
	}
	for n := len(s.digits); n > 0 && s.digits[n-1] == 0; n-- {
		s.digits = s.digits[:n-1]
	}
	// A highest digit of -1 over a digit that is not 0 is the sign alone: fold
	// it in.
	for n := len(s.digits); n > 1 && s.digits[n-1] == -1 && s.digits[n-2] != 0; n-- {
		s.digits = s.digits[:n-1]
		s.digits[n-2] -= 1 << 32
	}
	z := 0
	for z < len(s.digits) && s.digits[z] == 0 {
		z++
	}
	s.digits = slices.Delete(s.digits, 0, z)
	s.base += z
	if len(s.digits) == 0 {
		s.base = 0
	}
}

func (s *exactSum) merge(o *exactSum) {
	if !o.any {
		return
	}
	s.negZeros = o.negZeros && (s.negZeros || !s.any)
	s.any = true
	s.nan, s.posInf, s.negInf = s.nan || o.nan, s.posInf || o.posInf, s.negInf || o.negInf
	if len(o.digits) == 0 {
		return
	}
	s.carry()
	o.carry()
	if len(o.digits) == 0 {
		return
	}
	s.cover(o.base, o.base+len(o.digits))
	for i, d := range o.digits {
		s.digits[o.base+i-s.base] += d
	}
	s.pending += 2
}

// round is the sum divided by div, rounded once to the nearest.
func (s *exactSum) round(div int64, single bool) float64 {
	switch {
	case s.nan || s.posInf && s.negInf:
		return math.NaN()
	case s.posInf:
		return math.Inf(1)
	case s.negInf:
		return math.Inf(-1)
	}
	s.carry()
	if len(s.digits) == 0 {
		if s.negZeros {
			return math.Copysign(0, -1)
		}
		return 0
	}
	var b big.Int
	for i := len(s.digits) - 1; i >= 0; i-- {
		b.Lsh(&b, 32).Add(&b, big.NewInt(s.digits[i]))
	}
	shift := 32*s.base - exactBias
	den := big.NewInt(div)
	if shift >= 0 {
		b.Lsh(&b, uint(shift))
	} else {
		den.Lsh(den, uint(-shift))
	}
	r := new(big.Rat).SetFrac(&b, den)
	if single {
		f, _ := r.Float32()
		return float64(f)
	}
	f, _ := r.Float64()
	return f
}

func (s *exactSum) reset() { *s = exactSum{digits: s.digits[:0]} }

func (s *exactSum) appendState(dst []byte) []byte {
	s.carry()
	flags := byte(0)
	for i, f := range []bool{s.nan, s.posInf, s.negInf, s.negZeros, s.any} {
		if f {
			flags |= 1 << i
		}
	}
	dst = append(dst, flags, byte(s.base))
	dst = binary.AppendUvarint(dst, uint64(len(s.digits)))
	for _, d := range s.digits {
		dst = binary.BigEndian.AppendUint64(dst, uint64(d))
	}
	return dst
}

func (s *exactSum) readState(r *stateReader) {
	if len(r.b) < 2 {
		r.bad = true
		return
	}
	flags := r.b[0]
	s.base = int(r.b[1])
	s.nan, s.posInf, s.negInf, s.negZeros, s.any = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0, flags&16 != 0
	n, k := binary.Uvarint(r.b[2:])
	if k <= 0 || n > maxDigits {
		r.bad = true
		return
	}
	r.b = r.b[2+k:]
	for ; n > 0; n-- {
		s.digits = append(s.digits, int64(r.u64()))
	}
}
