package scalar

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/millrace/millrace/runtime/types"
)

// Standard is a form of timestamps, as `<format>.timestamp-format.standard`.
type Standard uint8

const (
	// SQL: 2024-05-01 08:00:00.123, TIMESTAMP_LTZ with a Z behind it.
	SQL Standard = iota
	// ISO8601: 2024-05-01T08:00:00.123, seconds may be absent; TIMESTAMP_LTZ
	// with a Z behind it.
	ISO8601
	// ISO8601WithOffset: as ISO8601, TIMESTAMP_LTZ with Z or an offset.
	ISO8601WithOffset
)

// Standards are the values of the option, in the order of the constants.
var Standards = []string{"SQL", "ISO-8601", "ISO-8601-WITH-OFFSET"}

// Result says how a parse ended.
type Result uint8

const (
	// OK: the value is exact, but for fraction digits cut at the precision.
	OK Result = iota
	// BadForm: the text is not of the form, or no such day or time exists.
	BadForm
	// OutOfRange: a time that the column's 64 bits cannot hold.
	OutOfRange
)

// Date parses yyyy-MM-dd into days since 1970-01-01.
func Date(b []byte) (days int32, ok bool) {
	if len(b) != 10 {
		return 0, false
	}
	return date10(b)
}

// TimeOfDay parses HH:mm:ss with up to nine fraction digits into milliseconds,
// cut at the precision (0 to 3).
func TimeOfDay(b []byte, precision int) (ms int32, ok bool) {
	sec, nanos, rest, ok := clock(b, true)
	if !ok || len(rest) > 0 {
		return 0, false
	}
	return int32(sec)*1000 + cutNanos(nanos, min(precision, 3))/1e6, true
}

// Timestamp parses a TIMESTAMP (zoned false) or a TIMESTAMP_LTZ (zoned true) of
// the given precision into microseconds, or nanoseconds from precision 7 on.
func Timestamp(b []byte, std Standard, zoned bool, precision int) (int64, Result) {
	sep := byte('T')
	if std == SQL {
		sep = ' '
	}
	if len(b) < 16 || b[10] != sep {
		return 0, BadForm
	}
	days, ok := date10(b)
	if !ok {
		return 0, BadForm
	}
	sec, nanos, rest, ok := clock(b[11:], std == SQL)
	if !ok {
		return 0, BadForm
	}
	seconds := int64(days)*86400 + int64(sec)
	switch {
	case !zoned:
		if len(rest) > 0 {
			return 0, BadForm
		}
	case len(rest) == 1 && rest[0] == 'Z':
	case std == ISO8601WithOffset:
		off, ok := offset(rest)
		if !ok {
			return 0, BadForm
		}
		seconds -= int64(off)
	default:
		return 0, BadForm
	}
	return join(seconds, cutNanos(nanos, precision), precision)
}

func join(seconds int64, nanos int32, precision int) (int64, Result) {
	if precision <= 6 {
		return seconds*1e6 + int64(nanos/1000), OK
	}
	hi, lo := bits.Mul64(uint64(abs(seconds)), 1e9)
	if hi != 0 || lo > math.MaxInt64-1e9 {
		return 0, OutOfRange
	}
	return seconds*1e9 + int64(nanos), OK
}

func abs(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

var cut = [10]int32{1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1}

func cutNanos(n int32, precision int) int32 {
	if precision >= 9 {
		return n
	}
	return n - n%cut[precision]
}

func two(b []byte, i int) (int, bool) {
	x, y := b[i]-'0', b[i+1]-'0'
	return int(x)*10 + int(y), x <= 9 && y <= 9
}

func date10(b []byte) (int32, bool) {
	_ = b[9]
	c, ok1 := two(b, 0)
	y, ok2 := two(b, 2)
	m, ok3 := two(b, 5)
	d, ok4 := two(b, 8)
	if !(ok1 && ok2 && ok3 && ok4) || b[4] != '-' || b[7] != '-' {
		return 0, false
	}
	y += c * 100
	if m < 1 || m > 12 || d < 1 || d > types.DaysInMonth(int64(y), m) {
		return 0, false
	}
	return int32(types.DaysFromCivil(int64(y), m, d)), true
}

// clock parses HH:mm[:ss[.fraction]] and gives back what follows.
func clock(b []byte, needSeconds bool) (sec int, nanos int32, rest []byte, ok bool) {
	if len(b) < 5 || b[2] != ':' {
		return 0, 0, nil, false
	}
	h, ok1 := two(b, 0)
	m, ok2 := two(b, 3)
	if !ok1 || !ok2 || h > 23 || m > 59 {
		return 0, 0, nil, false
	}
	sec = h*3600 + m*60
	if len(b) < 8 || b[5] != ':' {
		return sec, 0, b[5:], !needSeconds
	}
	s, ok3 := two(b, 6)
	if !ok3 || s > 59 {
		return 0, 0, nil, false
	}
	sec += s
	b = b[8:]
	if len(b) == 0 || b[0] != '.' {
		return sec, 0, b, true
	}
	i := 1
	for ; i < len(b) && i <= 9; i++ {
		d := b[i] - '0'
		if d > 9 {
			break
		}
		nanos = nanos*10 + int32(d)
	}
	for k := i; k <= 9; k++ {
		nanos *= 10
	}
	return sec, nanos, b[i:], true
}

// offset parses +HH:mm or +HH:mm:ss into seconds; at most 18 hours.
func offset(b []byte) (int, bool) {
	if len(b) != 6 && len(b) != 9 || b[0] != '+' && b[0] != '-' || b[3] != ':' {
		return 0, false
	}
	h, ok1 := two(b, 1)
	m, ok2 := two(b, 4)
	s, ok3 := 0, true
	if len(b) == 9 {
		if b[6] != ':' {
			return 0, false
		}
		s, ok3 = two(b, 7)
	}
	sec := h*3600 + m*60 + s
	if !ok1 || !ok2 || !ok3 || m > 59 || s > 59 || sec > 18*3600 {
		return 0, false
	}
	if b[0] == '-' {
		sec = -sec
	}
	return sec, true
}

// AppendDate writes days since 1970-01-01 as yyyy-MM-dd.
func AppendDate(dst []byte, days int32) []byte {
	y, m, d := types.CivilFromDays(int64(days))
	if y < 0 {
		dst = append(dst, '-')
		y = -y
	} else if y > 9999 {
		dst = append(dst, '+')
	}
	if y > 9999 {
		dst = appendPadded(dst, uint64(y), 5)
	} else {
		dst = append2(append2(dst, int(y/100)), int(y%100))
	}
	return append2(append(append2(append(dst, '-'), m), '-'), d)
}

func appendPadded(dst []byte, x uint64, width int) []byte {
	var buf [20]byte
	s := strconv.AppendUint(buf[:0], x, 10)
	for range width - len(s) {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}

func append2(dst []byte, x int) []byte { return append(dst, byte('0'+x/10), byte('0'+x%10)) }

// AppendTimeOfDay writes milliseconds of the day as HH:mm:ss with as many
// fraction digits as are needed.
func AppendTimeOfDay(dst []byte, ms int32) []byte {
	return appendClock(dst, int(ms/1000), int64(ms%1000)*1e6)
}

func appendClock(dst []byte, sec int, nanos int64) []byte {
	dst = append2(append(append2(append(append2(dst, sec/3600), ':'), sec/60%60), ':'), sec%60)
	if nanos == 0 {
		return dst
	}
	dst = appendPadded(append(dst, '.'), uint64(nanos), 9)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// AppendTimestamp writes the stored value of a TIMESTAMP or TIMESTAMP_LTZ; an
// LTZ is written in UTC with a Z.
func AppendTimestamp(dst []byte, x int64, std Standard, zoned bool, precision int) []byte {
	unit := int64(1e6)
	if precision > 6 {
		unit = 1e9
	}
	sec := x / unit
	frac := x % unit
	if frac < 0 {
		frac += unit
		sec--
	}
	if precision <= 6 {
		frac *= 1000
	}
	day := sec / 86400
	sod := sec % 86400
	if sod < 0 {
		sod += 86400
		day--
	}
	dst = AppendDate(dst, int32(day))
	if std == SQL {
		dst = append(dst, ' ')
	} else {
		dst = append(dst, 'T')
	}
	dst = appendClock(dst, int(sod), frac)
	if zoned {
		dst = append(dst, 'Z')
	}
	return dst
}
