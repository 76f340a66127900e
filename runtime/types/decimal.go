package types

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// The arithmetic of Decimal128 is checked: each operation that can leave 128
// bits says so. The precision of a DECIMAL is checked apart, by FitsPrecision.

// pow10 holds 10^0 .. 10^38.
var pow10 = func() (p [39]Decimal128) {
	p[0] = Decimal128{Lo: 1}
	for i := 1; i < len(p); i++ {
		p[i], _ = p[i-1].Mul(Decimal128{Lo: 10})
	}
	return p
}()

// Pow10 is 10^n for 0 <= n <= 38.
func Pow10(n int) Decimal128 { return pow10[n] }

// Pow10Int64 is 10^n for 0 <= n <= 18.
func Pow10Int64(n int) int64 { return int64(pow10[n].Lo) }

// DecimalFromInt64 widens an integer.
func DecimalFromInt64(x int64) Decimal128 { return Decimal128{Lo: uint64(x), Hi: x >> 63} }

// Int64 is the value as int64, if it fits.
func (d Decimal128) Int64() (int64, bool) {
	return int64(d.Lo), d.Hi == int64(d.Lo)>>63
}

// Sign is -1, 0 or 1.
func (d Decimal128) Sign() int {
	switch {
	case d.Hi < 0:
		return -1
	case d.Hi == 0 && d.Lo == 0:
		return 0
	}
	return 1
}

// Cmp compares two unscaled values of one scale.
func (d Decimal128) Cmp(o Decimal128) int {
	switch {
	case d.Hi < o.Hi || d.Hi == o.Hi && d.Lo < o.Lo:
		return -1
	case d == o:
		return 0
	}
	return 1
}

// Neg is -d; it wraps only for the minimum, which no DECIMAL holds.
func (d Decimal128) Neg() Decimal128 {
	lo, c := bits.Add64(^d.Lo, 1, 0)
	return Decimal128{Lo: lo, Hi: ^d.Hi + int64(c)}
}

// abs is the magnitude as two unsigned words.
func (d Decimal128) abs() (hi, lo uint64) {
	if d.Hi < 0 {
		d = d.Neg()
	}
	return uint64(d.Hi), d.Lo
}

// Abs is the magnitude.
func (d Decimal128) Abs() Decimal128 {
	if d.Hi < 0 {
		return d.Neg()
	}
	return d
}

// Add is d + o; false on overflow of 128 bits.
func (d Decimal128) Add(o Decimal128) (Decimal128, bool) {
	lo, c := bits.Add64(d.Lo, o.Lo, 0)
	hi := d.Hi + o.Hi + int64(c)
	// Overflow exactly if both operands differ in sign from the result.
	return Decimal128{Lo: lo, Hi: hi}, (d.Hi^hi)&(o.Hi^hi) >= 0
}

// Sub is d - o; false on overflow of 128 bits.
func (d Decimal128) Sub(o Decimal128) (Decimal128, bool) {
	lo, b := bits.Sub64(d.Lo, o.Lo, 0)
	hi := d.Hi - o.Hi - int64(b)
	return Decimal128{Lo: lo, Hi: hi}, (d.Hi^o.Hi)&(d.Hi^hi) >= 0
}

// Mul is d * o; false on overflow of 128 bits.
func (d Decimal128) Mul(o Decimal128) (Decimal128, bool) {
	p := mul256(d, o)
	if p.w[2]|p.w[3] != 0 || p.w[1]>>63 != 0 {
		return Decimal128{}, false
	}
	return p.signed128(), true
}

// u256 is a sign and an unsigned magnitude of 256 bits, low word first.
type u256 struct {
	w   [4]uint64
	neg bool
}

func (u u256) signed128() Decimal128 {
	d := Decimal128{Lo: u.w[0], Hi: int64(u.w[1])}
	if u.neg {
		return d.Neg()
	}
	return d
}

func mul256(a, b Decimal128) u256 {
	ah, al := a.abs()
	bh, bl := b.abs()
	var p u256
	p.neg = (a.Hi < 0) != (b.Hi < 0)
	h, l := bits.Mul64(al, bl)
	p.w[0], p.w[1] = l, h
	var c uint64
	h, l = bits.Mul64(ah, bl)
	p.w[1], c = bits.Add64(p.w[1], l, 0)
	p.w[2], c = bits.Add64(p.w[2], h, c)
	p.w[3] += c
	h, l = bits.Mul64(al, bh)
	p.w[1], c = bits.Add64(p.w[1], l, 0)
	p.w[2], c = bits.Add64(p.w[2], h, c)
	p.w[3] += c
	h, l = bits.Mul64(ah, bh)
	p.w[2], c = bits.Add64(p.w[2], l, 0)
	p.w[3], _ = bits.Add64(p.w[3], h, c)
	return p
}

// divHalfUp divides the magnitude by a positive divisor, half away from zero.
func (u u256) divHalfUp(div Decimal128) (Decimal128, bool) {
	var q, r big.Int
	q.QuoRem(u.big(), div.Big(), &r)
	if r.Lsh(&r, 1).CmpAbs(div.Big()) >= 0 {
		q.Add(&q, big.NewInt(1))
	}
	if u.neg {
		q.Neg(&q)
	}
	return DecimalFromBig(&q)
}

func (u u256) big() *big.Int {
	var b big.Int
	for i := 3; i >= 0; i-- {
		b.Lsh(&b, 64)
		b.Or(&b, new(big.Int).SetUint64(u.w[i]))
	}
	return &b
}

// MulScaled is d * o / 10^drop, rounded half up (away from zero); false on
// overflow of 128 bits. drop is 0..76.
func (d Decimal128) MulScaled(o Decimal128, drop int) (Decimal128, bool) {
	p := mul256(d, o)
	if drop == 0 {
		if p.w[2]|p.w[3] != 0 || p.w[1]>>63 != 0 {
			return Decimal128{}, false
		}
		return p.signed128(), true
	}
	if p.w[2]|p.w[3] == 0 && p.w[1]>>63 == 0 && drop <= 38 {
		return p.signed128().divPow10(drop), true
	}
	if drop <= 38 {
		return p.divHalfUp(pow10[drop])
	}
	b := p.big()
	if p.neg {
		b.Neg(b)
	}
	return DecimalFromBig(QuoHalfUp(b, bigPow10(drop)))
}

func bigPow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// QuoHalfUp is a / b rounded half away from zero; a is not changed.
func QuoHalfUp(a, b *big.Int) *big.Int {
	var q, r big.Int
	q.QuoRem(a, b, &r)
	if r.Lsh(&r, 1).CmpAbs(b) >= 0 {
		if a.Sign()*b.Sign() < 0 {
			q.Sub(&q, big.NewInt(1))
		} else {
			q.Add(&q, big.NewInt(1))
		}
	}
	return &q
}

// DivScaled is d * 10^shift / o rounded half up (away from zero), for shift
// in -76..114; false on overflow of 128 bits. o must not be 0.
func (d Decimal128) DivScaled(o Decimal128, shift int) (Decimal128, bool) {
	if shift >= 0 && shift <= 38 {
		if n, ok := d.Mul(pow10[shift]); ok {
			q, r := n.QuoRem(o)
			rh, rl := r.abs()
			oh, ol := o.abs()
			// 2r >= o, without overflow: r >= o - r.
			dl, bw := bits.Sub64(ol, rl, 0)
			dh, _ := bits.Sub64(oh, rh, bw)
			if rh > dh || rh == dh && rl >= dl {
				one := Decimal128{Lo: 1}
				if (n.Hi < 0) != (o.Hi < 0) {
					one = one.Neg()
				}
				return q.Add(one)
			}
			return q, true
		}
	}
	n, den := d.Big(), o.Big()
	if shift >= 0 {
		n.Mul(n, bigPow10(shift))
	} else {
		den.Mul(den, bigPow10(-shift))
	}
	return DecimalFromBig(QuoHalfUp(n, den))
}

// QuoRem divides truncating; the remainder has d's sign. o must not be 0.
func (d Decimal128) QuoRem(o Decimal128) (q, r Decimal128) {
	nh, nl := d.abs()
	dh, dl := o.abs()
	var qh, ql, rh, rl uint64
	if dh == 0 {
		qh = nh / dl
		ql, rl = bits.Div64(nh%dl, nl, dl)
	} else {
		ql, rh, rl = divWide(nh, nl, dh, dl)
	}
	q, r = Decimal128{Lo: ql, Hi: int64(qh)}, Decimal128{Lo: rl, Hi: int64(rh)}
	if (d.Hi < 0) != (o.Hi < 0) {
		q = q.Neg()
	}
	if d.Hi < 0 {
		r = r.Neg()
	}
	return q, r
}

// divWide divides two 128-bit magnitudes where the divisor's high word is not
// 0, so that the quotient has one word (Knuth D for two words).
func divWide(nh, nl, dh, dl uint64) (q, rh, rl uint64) {
	s := uint(bits.LeadingZeros64(dh))
	vh := dh<<s | dl>>1>>(63-s)
	// (n >> 1) / vh, shifted back, is the quotient or 1 more (Hacker's Delight,
	// udivdi3): one less is corrected by one step.
	q, _ = bits.Div64(nh>>1, nh<<63|nl>>1, vh)
	q >>= 63 - s
	if q > 0 {
		q--
	}
	ph, pl := bits.Mul64(q, dl)
	ph += q * dh
	rl, b := bits.Sub64(nl, pl, 0)
	rh, _ = bits.Sub64(nh, ph, b)
	if rh > dh || rh == dh && rl >= dl {
		q++
		rl, b = bits.Sub64(rl, dl, 0)
		rh, _ = bits.Sub64(rh, dh, b)
	}
	return q, rh, rl
}

// divPow10 is d / 10^n rounded half away from zero, 1 <= n <= 38.
func (d Decimal128) divPow10(n int) Decimal128 {
	p := pow10[n]
	q, r := d.QuoRem(p)
	rr := r.Abs()
	twice, ok := rr.Add(rr)
	if !ok || twice.Cmp(p) >= 0 {
		one := Decimal128{Lo: 1}
		if d.Hi < 0 {
			one = one.Neg()
		}
		q, _ = q.Add(one)
	}
	return q
}

// Rescale changes the scale, rounding half up (away from zero) when digits
// are dropped; false on overflow of 128 bits. Scales are 0..38.
func (d Decimal128) Rescale(from, to int) (Decimal128, bool) {
	switch {
	case from == to:
		return d, true
	case to > from:
		return d.Mul(pow10[to-from])
	}
	return d.divPow10(from - to), true
}

// Truncate changes to a smaller or equal scale, dropping digits.
func (d Decimal128) Truncate(from, to int) Decimal128 {
	if to >= from {
		return d
	}
	q, _ := d.QuoRem(pow10[from-to])
	return q
}

// FitsPrecision reports whether |d| < 10^p, 1 <= p <= 38.
func (d Decimal128) FitsPrecision(p int) bool {
	hi, lo := d.abs()
	l := pow10[p]
	return hi < uint64(l.Hi) || hi == uint64(l.Hi) && lo < l.Lo
}

// Big is the value as a big.Int.
func (d Decimal128) Big() *big.Int {
	hi, lo := d.abs()
	b := new(big.Int).SetUint64(hi)
	b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(lo))
	if d.Hi < 0 {
		b.Neg(b)
	}
	return b
}

// DecimalFromBig narrows a big.Int; false if it needs more than 127 bits.
func DecimalFromBig(b *big.Int) (Decimal128, bool) {
	if b.BitLen() > 127 {
		return Decimal128{}, false
	}
	var m big.Int
	m.Abs(b)
	lo := new(big.Int).And(&m, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	hi := m.Rsh(&m, 64).Uint64()
	d := Decimal128{Lo: lo, Hi: int64(hi)}
	if b.Sign() < 0 {
		d = d.Neg()
	}
	return d, true
}

// Float64 is the nearest double of d / 10^scale.
func (d Decimal128) Float64(scale int) float64 {
	if x, ok := d.Int64(); ok && scale <= 22 && x >= -1<<53 && x <= 1<<53 {
		// Both are exact doubles, so one division rounds once.
		return float64(x) / math.Pow10(scale)
	}
	r := new(big.Rat).SetFrac(d.Big(), bigPow10(scale))
	f, _ := r.Float64()
	return f
}

// DecimalFromFloat converts the shortest decimal form of f (as Java's
// BigDecimal.valueOf does; bits is 32 for a FLOAT), rounded half up to the
// scale; false for NaN, infinities and values that do not fit the precision.
func DecimalFromFloat(f float64, bits, precision, scale int) (Decimal128, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Decimal128{}, false
	}
	var buf [32]byte
	d, _, err := ParseDecimal(strconv.AppendFloat(buf[:0], f, 'e', -1, bits), precision, scale)
	return d, err == nil
}

// AddScaled is a (of scale as) + b (of scale bs) at scale rs, rounded once,
// half up; false on overflow of 128 bits.
func AddScaled(a Decimal128, as int, b Decimal128, bs, rs int) (Decimal128, bool) {
	s := max(as, bs)
	x, ok1 := a.Mul(pow10[s-as])
	y, ok2 := b.Mul(pow10[s-bs])
	if ok1 && ok2 {
		if sum, ok := x.Add(y); ok {
			return sum.Rescale(s, rs)
		}
	}
	n := new(big.Int).Mul(a.Big(), bigPow10(s-as))
	n.Add(n, new(big.Int).Mul(b.Big(), bigPow10(s-bs)))
	if rs >= s {
		return DecimalFromBig(n.Mul(n, bigPow10(rs-s)))
	}
	return DecimalFromBig(QuoHalfUp(n, bigPow10(s-rs)))
}

// RemScaled is the remainder of a / b with a's sign, at scale rs, which is at
// least max(as, bs) but for the rounding of the result rules; false on
// overflow. b must not be 0.
func RemScaled(a Decimal128, as int, b Decimal128, bs, rs int) (Decimal128, bool) {
	s := max(as, bs)
	x, ok1 := a.Mul(pow10[s-as])
	y, ok2 := b.Mul(pow10[s-bs])
	if ok1 && ok2 {
		_, r := x.QuoRem(y)
		return r.Rescale(s, rs)
	}
	n := new(big.Int).Mul(a.Big(), bigPow10(s-as))
	n.Rem(n, new(big.Int).Mul(b.Big(), bigPow10(s-bs)))
	if rs >= s {
		return DecimalFromBig(n.Mul(n, bigPow10(rs-s)))
	}
	return DecimalFromBig(QuoHalfUp(n, bigPow10(s-rs)))
}

// Rescale2 is Rescale from a scale that may be negative, as after rounding
// before the point.
func (d Decimal128) Rescale2(from, to int) (Decimal128, bool) {
	if to-from > 38 {
		return Decimal128{}, d.Sign() == 0
	}
	if to >= from {
		return d.Mul(pow10[to-from])
	}
	return d.Rescale(from, to)
}
