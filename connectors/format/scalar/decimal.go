package scalar

import (
	"math/bits"
	"strconv"

	"github.com/millrace/millrace/runtime/types"
)

type uint128 struct{ hi, lo uint64 }

var pow10u128 = func() (t [39]uint128) {
	t[0].lo = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1].mulAdd(10, 0)
	}
	return
}()

func (x uint128) mulAdd(m, a uint64) uint128 {
	hi, lo := bits.Mul64(x.lo, m)
	lo, c := bits.Add64(lo, a, 0)
	return uint128{x.hi*m + hi + c, lo}
}

func (x uint128) less(y uint128) bool { return x.hi < y.hi || x.hi == y.hi && x.lo < y.lo }

// Decimal parses the text of a number, sign, fraction and exponent included,
// into the unscaled value of DECIMAL(precision, scale), rounded half up (away
// from zero). inexact: a digit other than 0 was rounded off. It is refused
// (ok false) when it is no number or has too many integer digits.
func Decimal(b []byte, precision, scale int) (d types.Decimal128, inexact, ok bool) {
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	mant, intDigits, exp, ok := splitNumber(b)
	if !ok {
		return d, false, false
	}
	// keep counts the digits, from the first significant one on, that stand
	// before the last kept place.
	keep := intDigits + exp + scale
	var x uint128
	started, pos := false, 0 // pos: index among all digits
	roundUp := false
	for _, c := range mant {
		if c == '.' {
			continue
		}
		if c != '0' {
			started = true
		}
		if pos < keep {
			if started {
				if !x.less(pow10u128[precision-1]) {
					return d, false, false
				}
				x = x.mulAdd(10, uint64(c-'0'))
			}
		} else if c != '0' {
			inexact = true
			if pos == keep && c >= '5' {
				roundUp = true
			}
		}
		pos++
	}
	for ; pos < keep && started; pos++ {
		if !x.less(pow10u128[precision-1]) {
			return d, false, false
		}
		x = x.mulAdd(10, 0)
	}
	if roundUp {
		x = x.mulAdd(1, 1)
	}
	if !x.less(pow10u128[precision]) {
		return d, false, false
	}
	d = types.Decimal128{Lo: x.lo, Hi: int64(x.hi)}
	if neg {
		d = d.Neg()
	}
	return d, inexact, true
}

// splitNumber checks digits[.digits][e[sign]digits] with at least one digit
// before the exponent, and gives the part before the exponent, how many of
// its digits stand before the point, and the exponent, bounded to +-1 million.
func splitNumber(b []byte) (mant []byte, intDigits, exp int, ok bool) {
	i, digits, point := 0, 0, -1
	for ; i < len(b); i++ {
		if b[i]-'0' <= 9 {
			digits++
		} else if b[i] == '.' && point < 0 {
			point = digits
		} else {
			break
		}
	}
	if digits == 0 {
		return nil, 0, 0, false
	}
	mant, intDigits = b[:i], digits
	if point >= 0 {
		intDigits = point
	}
	if i == len(b) {
		return mant, intDigits, 0, true
	}
	if b[i]|0x20 != 'e' || i+1 == len(b) {
		return nil, 0, 0, false
	}
	i++
	neg := b[i] == '-'
	if neg || b[i] == '+' {
		i++
	}
	if i == len(b) {
		return nil, 0, 0, false
	}
	for ; i < len(b); i++ {
		d := b[i] - '0'
		if d > 9 {
			return nil, 0, 0, false
		}
		if exp < 100_000 {
			exp = exp*10 + int(d)
		}
	}
	if neg {
		exp = -exp
	}
	return mant, intDigits, exp, true
}

// AppendDecimalJava writes as Java's BigDecimal.toString does, with an
// exponent for values below 1e-6: 2.7E-8.
func AppendDecimalJava(dst []byte, d types.Decimal128, scale int) []byte {
	var buf [40]byte
	digits := types.AppendDecimal(buf[:0], d.Abs(), 0)
	adjusted := len(digits) - 1 - scale
	if adjusted >= -6 {
		return types.AppendDecimal(dst, d, scale)
	}
	if d.Sign() < 0 {
		dst = append(dst, '-')
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	return strconv.AppendInt(append(dst, 'E'), int64(adjusted), 10)
}
