package types

import (
	"errors"
	"math"
	"math/bits"
)

// Errors of the parsers of dates and times.
var (
	// ErrTimeSyntax: the text has another shape.
	ErrTimeSyntax = errors.New("not of the expected form")
	// ErrTimeField: a field is out of range, as in 2023-02-29 or 24:00:01.
	ErrTimeField = errors.New("no such date or time")
	// ErrTimeRange: valid, but outside what the type can hold.
	ErrTimeRange = errors.New("outside the range of the type")
)

// Milliseconds and seconds of a day.
const (
	SecondsPerDay = 86_400
	MillisPerDay  = 86_400_000
)

// DaysFromCivil is the number of days from 1970-01-01 to a proleptic
// Gregorian date.
func DaysFromCivil(y int64, m, d int) int64 {
	if m <= 2 {
		y--
	}
	era := FloorDiv(y, 400)
	yoe := y - era*400
	mp := int64(m+9) % 12
	doy := (153*mp+2)/5 + int64(d) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

// CivilFromDays is the inverse of DaysFromCivil.
func CivilFromDays(days int64) (y int64, m, d int) {
	z := days + 719468
	era := FloorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = int(doy - (153*mp+2)/5 + 1)
	m = int(mp) + 3
	if m > 12 {
		m -= 12
	}
	y = yoe + era*400
	if m <= 2 {
		y++
	}
	return y, m, d
}

// DaysInMonth is 28..31.
func DaysInMonth(y int64, m int) int {
	switch m {
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// AddMonths moves a date by months; the day is capped at the month's end.
func AddMonths(days, months int64) int64 {
	y, m, d := CivilFromDays(days)
	total := y*12 + int64(m-1) + months
	y, m = FloorDiv(total, 12), int(FloorMod(total, 12))+1
	return DaysFromCivil(y, m, min(d, DaysInMonth(y, m)))
}

// Civil is a wall clock time taken apart.
type Civil struct {
	Year                             int64
	Month, Day, Hour, Minute, Second int
	Nanos                            int
	Days                             int64 // since 1970-01-01
}

// SplitTimestamp takes a wall clock value apart; units as UnitsPerSecond.
func SplitTimestamp(x, units int64) (c Civil) {
	sec := FloorDiv(x, units)
	c.Nanos = int((x - sec*units) * (1_000_000_000 / units))
	c.Days = FloorDiv(sec, SecondsPerDay)
	s := int(sec - c.Days*SecondsPerDay)
	c.Hour, c.Minute, c.Second = s/3600, s/60%60, s%60
	c.Year, c.Month, c.Day = CivilFromDays(c.Days)
	return c
}

// Valid reports whether the fields are a real date and time.
func (c *Civil) Valid() bool {
	return c.Month >= 1 && c.Month <= 12 && c.Day >= 1 && c.Day <= DaysInMonth(c.Year, c.Month) &&
		c.Hour >= 0 && c.Hour <= 23 && c.Minute >= 0 && c.Minute <= 59 && c.Second >= 0 && c.Second <= 59
}

// Timestamp is the wall clock value of the fields for a type, the fraction
// cut to its precision. Days is ignored.
func (c *Civil) Timestamp(t Type) (int64, error) {
	days := DaysFromCivil(c.Year, c.Month, c.Day)
	sec := days*SecondsPerDay + int64(c.Hour*3600+c.Minute*60+c.Second)
	return TimestampOf(sec, int64(c.Nanos), t)
}

// TimestampOf is the value of a TIMESTAMP type at seconds and nanoseconds
// (0..999999999) since 1970, the fraction cut to the precision.
func TimestampOf(sec, nanos int64, t Type) (int64, error) {
	units := t.UnitsPerSecond()
	hi, lo := bits.Mul64(uint64(abs64(sec)), uint64(units))
	if hi != 0 || lo > math.MaxInt64-uint64(units) {
		return 0, ErrTimeRange
	}
	frac := nanos / (1_000_000_000 / units)
	return TruncateFraction(sec*units+frac, t.Precision, units), nil
}

func abs64(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

// TruncateFraction cuts (towards minus infinity) the fraction digits beyond a
// precision.
func TruncateFraction(x int64, precision int, units int64) int64 {
	full := 6
	if units == 1_000_000_000 {
		full = 9
	}
	if precision >= full {
		return x
	}
	p := Pow10Int64(full - precision)
	return FloorDiv(x, p) * p
}

// ConvertTimestamp changes the precision of a value, cutting digits; an error
// when nanoseconds cannot hold it.
func ConvertTimestamp(x int64, from, to Type) (int64, error) {
	fu, tu := from.UnitsPerSecond(), to.UnitsPerSecond()
	switch {
	case fu < tu:
		if x > math.MaxInt64/1000 || x < math.MinInt64/1000 {
			return 0, ErrTimeRange
		}
		x *= 1000
	case fu > tu:
		x = FloorDiv(x, 1000)
	}
	return TruncateFraction(x, to.Precision, tu), nil
}

// append2 writes two digits.
func append2(dst []byte, n int) []byte {
	return append(dst, byte(n/10)+'0', byte(n%10)+'0')
}

func appendYear(dst []byte, y int64) []byte {
	if y < 0 {
		dst = append(dst, '-')
		y = -y
	}
	return appendPadded(dst, uint64(y), 4)
}

func appendPadded(dst []byte, n uint64, width int) []byte {
	var buf [20]byte
	i := len(buf)
	for n > 0 || len(buf)-i < width {
		i--
		buf[i] = byte(n%10) + '0'
		n /= 10
	}
	return append(dst, buf[i:]...)
}

// AppendDate writes yyyy-MM-dd.
func AppendDate(dst []byte, days int64) []byte {
	y, m, d := CivilFromDays(days)
	dst = append(appendYear(dst, y), '-')
	return append2(append(append2(dst, m), '-'), d)
}

// AppendTime writes HH:mm:ss and, for a precision above 0, a point and so many
// digits; the value is milliseconds of the day.
func AppendTime(dst []byte, millis int32, precision int) []byte {
	s := int(millis / 1000)
	dst = appendHMS(dst, s)
	return appendFraction(dst, int(millis%1000)*1_000_000, precision)
}

func appendHMS(dst []byte, s int) []byte {
	dst = append(append2(dst, s/3600), ':')
	dst = append(append2(dst, s/60%60), ':')
	return append2(dst, s%60)
}

func appendFraction(dst []byte, nanos, precision int) []byte {
	if precision == 0 {
		return dst
	}
	n := len(dst)
	dst = appendPadded(append(dst, '.'), uint64(nanos), 9)
	return dst[:n+1+precision]
}

// AppendTimestamp writes yyyy-MM-dd HH:mm:ss with as many fraction digits as
// the precision says, as CAST to STRING does; sep is ' ' or 'T'.
func AppendTimestamp(dst []byte, x int64, t Type, sep byte) []byte {
	c := SplitTimestamp(x, t.UnitsPerSecond())
	dst = append(appendYear(dst, c.Year), '-')
	dst = append2(append(append2(dst, c.Month), '-'), c.Day)
	dst = appendHMS(append(dst, sep), c.Hour*3600+c.Minute*60+c.Second)
	return appendFraction(dst, c.Nanos, t.Precision)
}

// scanner reads fields of a date or time.
type scanner[T string | []byte] struct {
	s T
	i int
}

// num reads between lo and hi digits; -1 if there are fewer.
func (p *scanner[T]) num(lo, hi int) int {
	n, start := 0, p.i
	for p.i < len(p.s) && p.i-start < hi && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		n = n*10 + int(p.s[p.i]-'0')
		p.i++
	}
	if p.i-start < lo {
		return -1
	}
	return n
}

func (p *scanner[T]) char(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *scanner[T]) done() bool { return p.i == len(p.s) }

func (p *scanner[T]) date(c *Civil) bool {
	y := p.num(4, 4)
	ok := y >= 0 && p.char('-')
	c.Year = int64(y)
	if ok {
		c.Month = p.num(1, 2)
		ok = c.Month >= 0 && p.char('-')
	}
	if ok {
		c.Day = p.num(1, 2)
		ok = c.Day >= 0
	}
	return ok
}

func (p *scanner[T]) time(c *Civil, needSeconds bool) bool {
	c.Hour = p.num(1, 2)
	if c.Hour < 0 || !p.char(':') {
		return false
	}
	c.Minute = p.num(1, 2)
	if c.Minute < 0 {
		return false
	}
	if !p.char(':') {
		return !needSeconds
	}
	c.Second = p.num(1, 2)
	if c.Second < 0 {
		return false
	}
	if p.char('.') {
		n := p.i
		f := p.num(0, 9)
		for k := p.i - n; k < 9; k++ {
			f *= 10
		}
		c.Nanos = f
	}
	return true
}

// ParseTimestamp reads yyyy-M-d[ H:m:s[.f]] (at most 9 fraction digits), the
// form that CAST takes.
func ParseTimestamp[T string | []byte](s T) (Civil, error) {
	p := scanner[T]{s: s}
	var c Civil
	if !p.date(&c) {
		return c, ErrTimeSyntax
	}
	if !p.done() && (!p.char(' ') || !p.time(&c, true)) || !p.done() {
		return c, ErrTimeSyntax
	}
	if !c.Valid() {
		return c, ErrTimeField
	}
	return c, nil
}

// ParseDate reads yyyy-M-d, or a timestamp, whose time is dropped; days since
// 1970.
func ParseDate[T string | []byte](s T) (int32, error) {
	c, err := ParseTimestamp(s)
	if err != nil {
		return 0, err
	}
	return int32(DaysFromCivil(c.Year, c.Month, c.Day)), nil
}

// ParseTime reads H:m[:s[.f]]; milliseconds of the day, cut to the precision.
func ParseTime[T string | []byte](s T, precision int) (int32, error) {
	p := scanner[T]{s: s}
	c := Civil{Month: 1, Day: 1}
	if !p.time(&c, false) || !p.done() {
		return 0, ErrTimeSyntax
	}
	if !c.Valid() {
		return 0, ErrTimeField
	}
	ms := int32(c.Hour*3600+c.Minute*60+c.Second)*1000 + int32(c.Nanos/1_000_000)
	p10 := int32(Pow10Int64(3 - min(precision, 3)))
	return ms / p10 * p10, nil
}

// TimestampForm is a shape of timestamps in text formats.
type TimestampForm uint8

// The forms; see ParseTimestampForm.
const (
	FormSQL           TimestampForm = iota // yyyy-MM-dd HH:mm:ss[.f]
	FormISO                                // yyyy-MM-ddTHH:mm[:ss[.f]]
	FormISOWithOffset                      // FormISO with Z or +HH:mm for LTZ
)

// ParseTimestampForm reads exactly one form, as JSON and CSV do: two digits
// in each field. For an LTZ a zone must follow, 'Z' (or, with
// FormISOWithOffset, an offset too), and the value is UTC; for a TIMESTAMP
// there must be none.
func ParseTimestampForm[T string | []byte](s T, form TimestampForm, t Type) (int64, error) {
	if len(s) < 16 || s[4] != '-' || s[7] != '-' || s[13] != ':' {
		return 0, ErrTimeSyntax
	}
	p := scanner[T]{s: s}
	var c Civil
	sep := byte(' ')
	if form != FormSQL {
		sep = 'T'
	}
	if !p.date(&c) || p.i != 10 || !p.char(sep) || !p.time(&c, form == FormSQL) || p.i < 16 ||
		p.i > 16 && (p.i < 19 || s[16] != ':') || s[p.i-1] == '.' {
		return 0, ErrTimeSyntax
	}
	offset, zone := int64(0), false
	if !p.done() {
		zone = true
		switch {
		case p.char('Z'):
		case form == FormISOWithOffset && (s[p.i] == '+' || s[p.i] == '-'):
			neg := s[p.i] == '-'
			p.i++
			h := p.num(2, 2)
			m := -1
			if h >= 0 && p.char(':') {
				m = p.num(2, 2)
			}
			if m < 0 || h > 18 || m > 59 {
				return 0, ErrTimeSyntax
			}
			offset = int64(h*3600 + m*60)
			if neg {
				offset = -offset
			}
		}
		if !p.done() {
			return 0, ErrTimeSyntax
		}
	}
	if zone != (t.Kind == TimestampLTZ) {
		return 0, ErrTimeSyntax
	}
	if !c.Valid() {
		return 0, ErrTimeField
	}
	x, err := c.Timestamp(t)
	return x - offset*t.UnitsPerSecond(), err
}

// AppendIntervalMonths writes years-months with a sign, e.g. "+1-02".
func AppendIntervalMonths(dst []byte, months int32) []byte {
	m := int64(months)
	sign := byte('+')
	if m < 0 {
		sign, m = '-', -m
	}
	dst = appendPadded(append(dst, sign), uint64(m/12), 1)
	return append2(append(dst, '-'), int(m%12))
}

// AppendIntervalMillis writes days and time with a sign, e.g.
// "+1 02:03:04.005".
func AppendIntervalMillis(dst []byte, ms int64) []byte {
	sign := byte('+')
	u := uint64(ms)
	if ms < 0 {
		sign, u = '-', -u
	}
	dst = appendPadded(append(dst, sign), u/MillisPerDay, 1)
	rest := int(u % MillisPerDay)
	dst = appendHMS(append(dst, ' '), rest/1000)
	return appendFraction(dst, rest%1000*1_000_000, 3)
}
