package types

import (
	"math"
	"strconv"
)

// AppendFloat writes a FLOAT (bitSize 32) or DOUBLE (64) as Java's toString
// does, with the shortest digits: 0.1, 1.0E7, 1.234E-5, NaN, Infinity.
func AppendFloat(dst []byte, f float64, bitSize int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case f == 0:
		if math.Signbit(f) {
			return append(dst, "-0.0"...)
		}
		return append(dst, "0.0"...)
	}
	if a := math.Abs(f); a >= 1e-3 && a < 1e7 {
		n := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, bitSize)
		for _, c := range dst[n:] {
			if c == '.' {
				return dst
			}
		}
		return append(dst, ".0"...)
	}
	var buf [32]byte
	s := strconv.AppendFloat(buf[:0], f, 'e', -1, bitSize)
	e := len(s) - 1
	for s[e] != 'e' {
		e--
	}
	dst = append(dst, s[:e]...)
	hasPoint := false
	for _, c := range s[:e] {
		hasPoint = hasPoint || c == '.'
	}
	if !hasPoint {
		dst = append(dst, ".0"...)
	}
	dst = append(dst, 'E')
	exp := s[e+1:]
	if exp[0] == '-' {
		dst = append(dst, '-')
	}
	exp = exp[1:]
	for len(exp) > 1 && exp[0] == '0' {
		exp = exp[1:]
	}
	return append(dst, exp...)
}

// ParseFloat reads what Java's parseDouble reads, without hexadecimal and
// type suffixes: digits with an optional point and exponent, NaN, Infinity
// with a sign. A finite text beyond the range is ErrRange.
func ParseFloat(s string, bitSize int) (float64, error) {
	t, sign := s, 1.0
	if t != "" && (t[0] == '+' || t[0] == '-') {
		if t[0] == '-' {
			sign = -1
		}
		t = t[1:]
	}
	switch t {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(int(sign)), nil
	}
	for i := 0; i < len(t); i++ {
		c := t[i]
		if !(c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || (c == '+' || c == '-') && i > 0) {
			return 0, ErrSyntax
		}
	}
	f, err := strconv.ParseFloat(t, bitSize)
	if err != nil {
		if math.IsInf(f, 0) {
			return 0, ErrRange
		}
		return 0, ErrSyntax
	}
	return sign * f, nil
}
