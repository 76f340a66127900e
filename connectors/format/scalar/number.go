package scalar

import (
	"math"
	"strconv"

	"github.com/millrace/millrace/runtime/types"
)

// Trim cuts white space and control characters (all bytes up to 0x20) off both
// ends, as Java's String.trim does.
func Trim(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// Int parses an optional sign and decimal digits.
func Int(b []byte) (x int64, ok bool) {
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var u uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || u > math.MaxUint64/10-1 {
			return 0, false
		}
		u = u*10 + d
	}
	if neg {
		if u > 1<<63 {
			return 0, false
		}
		return -int64(u), true
	}
	if u > math.MaxInt64 {
		return 0, false
	}
	return int64(u), true
}

// IntFromNumber converts the text of a number with a fraction or an exponent
// to an integer if its value is one: 12.0 and 1e2, not 3.7.
func IntFromNumber(b []byte) (x int64, ok bool) {
	d, inexact, ok := Decimal(b, 19, 0)
	if !ok || inexact {
		return 0, false
	}
	if d.Hi == 0 && d.Lo <= math.MaxInt64 || d.Hi == -1 && d.Lo >= 1<<63 {
		return int64(d.Lo), true
	}
	return 0, false
}

// FitsInt reports whether x fits an integer of the given bits.
func FitsInt(x int64, bits uint) bool { return x<<(64-bits)>>(64-bits) == x }

var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
	1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Float64 parses a decimal number, or NaN, Infinity, +Infinity, -Infinity. A
// number beyond the range is refused; one too small to be told from zero is 0.
func Float64(b []byte) (float64, bool) {
	if f, ok := simpleFloat(b); ok {
		return f, true
	}
	if f, ok := nonFinite(b); ok {
		return f, true
	}
	if !isDecimalText(b) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(b), 64)
	return f, err == nil
}

// Float32 is Float64 rounded once, to FLOAT.
func Float32(b []byte) (float32, bool) {
	if f, ok := nonFinite(b); ok {
		return float32(f), true
	}
	if !isDecimalText(b) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(b), 32)
	return float32(f), err == nil
}

// simpleFloat converts digits with an optional fraction where one division of
// two exact doubles gives the correctly rounded result.
func simpleFloat(b []byte) (float64, bool) {
	i, neg := 0, false
	if len(b) > 0 && b[0] == '-' {
		neg, i = true, 1
	}
	var u uint64
	digits, point := 0, -1
	for ; i < len(b); i++ {
		c := b[i]
		if d := c - '0'; d <= 9 {
			u = u*10 + uint64(d)
			digits++
		} else if c == '.' && point < 0 {
			point = digits
		} else {
			return 0, false
		}
	}
	if digits == 0 || digits > 18 || u > 1<<53 {
		return 0, false
	}
	f := float64(u)
	if point >= 0 {
		f /= pow10[digits-point]
	}
	if neg {
		f = -f
	}
	return f, true
}

func nonFinite(b []byte) (float64, bool) {
	switch string(b) {
	case "NaN":
		return math.NaN(), true
	case "Infinity", "+Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	return 0, false
}

// isDecimalText keeps out what strconv takes and SQL does not: hexadecimal
// floats, underscores, "inf".
func isDecimalText(b []byte) bool {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9', c == '.', c == '+', c == '-', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return len(b) > 0
}

// Bool parses true or false in any case.
func Bool(b []byte) (x, ok bool) {
	switch len(b) {
	case 4:
		if equalFold(b, "true") {
			return true, true
		}
	case 5:
		if equalFold(b, "false") {
			return false, true
		}
	}
	return false, false
}

func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if c|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// AppendFloat64 writes the shortest text that gives f back, in the form of
// Java's Double.toString: 1.0, 0.001, 1.0E7, NaN, -Infinity.
func AppendFloat64(dst []byte, f float64) []byte { return types.AppendFloat(dst, f, 64) }

// AppendFloat32 is AppendFloat64 for FLOAT.
func AppendFloat32(dst []byte, f float32) []byte { return types.AppendFloat(dst, float64(f), 32) }
