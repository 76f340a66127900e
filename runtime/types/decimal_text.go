package types

import (
	"errors"
	"math/bits"
)

// Errors of ParseDecimal.
var (
	// ErrSyntax: the text is no number.
	ErrSyntax = errors.New("not a number")
	// ErrRange: the number does not fit the precision.
	ErrRange = errors.New("out of range")
)

// ParseDecimal reads [+-]digits[.digits][e[+-]digits] exactly and rounds half
// up (away from zero) to the scale, reporting whether digits other than 0
// were dropped. No spaces. The value is unscaled.
func ParseDecimal[T string | []byte](s T, precision, scale int) (d Decimal128, rounded bool, err error) {
	i, neg := 0, false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	start, end := i, len(s)
	digits, point := 0, -1
	for i < end {
		c := s[i]
		if c >= '0' && c <= '9' {
			digits++
		} else if c == '.' && point < 0 {
			point = digits
		} else {
			break
		}
		i++
	}
	if digits == 0 {
		return d, false, ErrSyntax
	}
	if point < 0 {
		point = digits
	}
	mantEnd := i
	exp := 0
	if i < end {
		if exp, err = parseExponent(s[i:]); err != nil {
			return d, false, err
		}
	}
	return scaleDigits(s[start:mantEnd], point+exp, neg, precision, scale)
}

func parseExponent[T string | []byte](s T) (int, error) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, ErrSyntax
	}
	i, neg, exp := 1, false, 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	if i == len(s) {
		return 0, ErrSyntax
	}
	for ; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, ErrSyntax
		}
		// Beyond a million nothing fits or everything is 0.
		if exp < 1_000_000 {
			exp = exp*10 + int(s[i]-'0')
		}
	}
	if neg {
		exp = -exp
	}
	return exp, nil
}

// scaleDigits makes the unscaled value of digits (which may hold one point to
// skip) whose decimal point lies before digit number point (which may be
// negative or beyond the end).
func scaleDigits[T string | []byte](s T, point int, neg bool, precision, scale int) (d Decimal128, rounded bool, err error) {
	keep := point + scale // how many digits make up the unscaled value
	n := 0
	var lo uint64 // fast path while the value has at most 19 digits
	var acc Decimal128
	wide := false
	roundUp := false
	push := func(c byte) bool {
		if !wide {
			if lo <= 1_844_674_407_370_955_160 {
				lo = lo*10 + uint64(c)
				return true
			}
			acc, wide = Decimal128{Lo: lo}, true
		}
		if !acc.FitsPrecision(37) {
			return false
		}
		h, l := bits.Mul64(acc.Lo, 10)
		hi := uint64(acc.Hi)*10 + h
		l, cy := bits.Add64(l, uint64(c), 0)
		acc = Decimal128{Lo: l, Hi: int64(hi + cy)}
		return true
	}
	for i := 0; i < len(s); i++ {
		if s[i] == '.' {
			continue
		}
		c := s[i] - '0'
		switch {
		case n < keep:
			if !push(c) {
				return d, false, ErrRange
			}
		default:
			if c != 0 {
				rounded = true
			}
			if n == keep && c >= 5 {
				roundUp = true
			}
		}
		n++
	}
	zero := !wide && lo == 0
	for ; n < keep && !zero; n++ {
		if !push(0) {
			return d, false, ErrRange
		}
	}
	if !wide {
		acc = Decimal128{Lo: lo}
	}
	if roundUp {
		acc, _ = acc.Add(Decimal128{Lo: 1})
	}
	if !acc.FitsPrecision(precision) {
		return d, false, ErrRange
	}
	if neg {
		acc = acc.Neg()
	}
	return acc, rounded, nil
}

// AppendDecimal writes the plain form with exactly scale fraction digits,
// e.g. "-0.05".
func AppendDecimal(dst []byte, d Decimal128, scale int) []byte {
	hi, lo := d.abs()
	if d.Hi < 0 {
		dst = append(dst, '-')
	}
	var buf [40]byte
	i := len(buf)
	digits := 0
	for hi != 0 || lo != 0 || digits <= scale {
		// Peel 19 digits at a time off a wide value.
		var r uint64
		if hi != 0 {
			qh := hi / 10_000_000_000_000_000_000
			ql, rem := bits.Div64(hi%10_000_000_000_000_000_000, lo, 10_000_000_000_000_000_000)
			hi, lo, r = qh, ql, rem
			for k := 0; k < 19; k++ {
				i--
				buf[i] = byte(r%10) + '0'
				r /= 10
				digits++
			}
			continue
		}
		i--
		buf[i] = byte(lo%10) + '0'
		lo /= 10
		digits++
	}
	t := buf[i:]
	dst = append(dst, t[:len(t)-scale]...)
	if scale > 0 {
		dst = append(dst, '.')
		dst = append(dst, t[len(t)-scale:]...)
	}
	return dst
}

// FormatDecimal is AppendDecimal as a string.
func FormatDecimal(d Decimal128, scale int) string { return string(AppendDecimal(nil, d, scale)) }
