package types

import (
	"fmt"
	"strings"
)

// TimePattern is a compiled Java date pattern (java.time.DateTimeFormatter),
// in English: letters G y u M L d D E e c w W F a H k K h m s S Q, 'quoted text',
// optional parts in [ ]. Weeks begin on Sunday, and the first of a year is the
// one with 1 January, as in the United States. Letters for zones are refused, as
// a TIMESTAMP has none, and Y, the week's year, which is nearly always a mistake
// for y.
//
// It is immutable.
type TimePattern struct {
	items []patternItem
	src   string
}

// patternItem is a field (letter, count) or literal text. An optional part is
// an item of letter '[' with its items inside.
type patternItem struct {
	letter   byte // 0 for a literal
	count    int
	text     string
	optional []patternItem
}

// PatternError is a mistake in a pattern.
type PatternError struct {
	Offset int // byte position in the pattern
	Msg    string
}

// Error implements error.
func (e *PatternError) Error() string { return e.Msg }

// CompileTimePattern reads a pattern; its errors are *PatternError.
func CompileTimePattern(src string) (*TimePattern, error) {
	items, end, err := compileItems(src, 0, false)
	if err != nil {
		return nil, err
	}
	if end < len(src) {
		return nil, &PatternError{Offset: end, Msg: "] without ["}
	}
	return &TimePattern{items: items, src: src}, nil
}

func compileItems(src string, i int, inside bool) ([]patternItem, int, error) {
	var items []patternItem
	lit := func(s string) {
		if n := len(items); n > 0 && items[n-1].letter == 0 {
			items[n-1].text += s
			return
		}
		items = append(items, patternItem{text: s})
	}
	for i < len(src) {
		c := src[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := 1
			for i+n < len(src) && src[i+n] == c {
				n++
			}
			if err := checkField(c, n, i); err != nil {
				return nil, 0, err
			}
			items = append(items, patternItem{letter: c, count: n})
			i += n
		case c == '\'':
			s, n := quotedText(src[i:])
			if n < 0 {
				return nil, 0, &PatternError{Offset: i, Msg: "open quote"}
			}
			lit(s)
			i += n
		case c == '[':
			sub, end, err := compileItems(src, i+1, true)
			if err != nil {
				return nil, 0, err
			}
			if end >= len(src) {
				return nil, 0, &PatternError{Offset: i, Msg: "[ without ]"}
			}
			items = append(items, patternItem{letter: '[', optional: sub})
			i = end + 1
		case c == ']':
			return items, i, nil
		case c == '{' || c == '}' || c == '#':
			return nil, 0, &PatternError{Offset: i, Msg: fmt.Sprintf("%q is reserved; quote it", c)}
		default:
			lit(src[i : i+1])
			i++
		}
	}
	return items, i, nil
}

// quotedText reads 'text' with ” for a quote; ” alone is a quote.
func quotedText(s string) (string, int) {
	if len(s) > 1 && s[1] == '\'' {
		return "'", 2
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] == '\'' {
			if i+1 < len(s) && s[i+1] == '\'' {
				i++
			} else {
				return b.String(), i + 1
			}
		}
		b.WriteByte(s[i])
	}
	return "", -1
}

func checkField(c byte, n, at int) error {
	limit := 0
	switch c {
	case 'y', 'u', 'S':
		limit = 9
	case 'G':
		limit = 5
	case 'M', 'L', 'E', 'e':
		limit = 4
	case 'c':
		if n == 2 {
			return &PatternError{Offset: at, Msg: `"cc" has no meaning; write c or ccc`}
		}
		limit = 4
	case 'd', 'H', 'k', 'K', 'h', 'm', 's', 'Q', 'w':
		limit = 2
	case 'D':
		limit = 3
	case 'a', 'W', 'F':
		limit = 1
	case 'Y':
		return &PatternError{Offset: at, Msg: fmt.Sprintf("%q is the year of the week; use y", strings.Repeat(string(c), n))}
	case 'z', 'Z', 'X', 'x', 'V', 'O':
		return &PatternError{Offset: at, Msg: fmt.Sprintf("%q is a time zone, which the value does not have", strings.Repeat(string(c), n))}
	default:
		return &PatternError{Offset: at, Msg: fmt.Sprintf("unknown pattern letter %q", c)}
	}
	if n > limit {
		return &PatternError{Offset: at, Msg: fmt.Sprintf("%q: at most %d letters", strings.Repeat(string(c), n), limit)}
	}
	return nil
}

// String is the pattern as written.
func (p *TimePattern) String() string { return p.src }

var monthNames = [...]string{"January", "February", "March", "April", "May", "June", "July", "August",
	"September", "October", "November", "December"}

var dayNames = [...]string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// isoWeekday is 1 (Monday) to 7.
func isoWeekday(days int64) int { return int(FloorMod(days+3, 7)) + 1 }

// sundayWeekday is 1 (Sunday) to 7.
func sundayWeekday(days int64) int { return int(FloorMod(days+4, 7)) + 1 }

// sundayWeeks counts the weeks, from Sunday, that day n of a month or year lies
// in or behind; 1 for the first.
func sundayWeeks(days int64, n int) int {
	first := sundayWeekday(days - int64(n) + 1)
	return (n+first-2)/7 + 1
}

// weekOfYear counts from the week with 1 January, which is the first of its year
// also in its days of December.
func weekOfYear(c *Civil) int {
	if days := DaysFromCivil(c.Year+1, 1, 1); c.Days > days-int64(sundayWeekday(days)) {
		return 1
	}
	return sundayWeeks(c.Days, fieldOf('D', c))
}

// Append writes a wall clock time; c.Days must be set.
func (p *TimePattern) Append(dst []byte, c *Civil) []byte { return appendItems(dst, p.items, c) }

func appendItems(dst []byte, items []patternItem, c *Civil) []byte {
	for i := range items {
		it := &items[i]
		switch it.letter {
		case 0:
			dst = append(dst, it.text...)
		case '[':
			dst = appendItems(dst, it.optional, c)
		case 'y', 'u':
			dst = appendPatternYear(dst, c.Year, it)
		case 'M', 'L':
			dst = appendName(dst, c.Month, it.count, monthNames[:], c.Month-1)
		case 'E':
			w := isoWeekday(c.Days) - 1
			dst = appendName(dst, 0, max(it.count, 3), dayNames[:], w)
		case 'e', 'c':
			dst = appendName(dst, sundayWeekday(c.Days), it.count, dayNames[:], isoWeekday(c.Days)-1)
		case 'G':
			dst = appendEra(dst, c.Year, it.count)
		case 'a':
			if c.Hour < 12 {
				dst = append(dst, "AM"...)
			} else {
				dst = append(dst, "PM"...)
			}
		case 'S':
			var buf [9]byte
			b := appendPadded(buf[:0], uint64(c.Nanos), 9)
			dst = append(dst, b[:it.count]...)
		default:
			dst = appendPadded(dst, uint64(fieldOf(it.letter, c)), it.count)
		}
	}
	return dst
}

func appendPatternYear(dst []byte, y int64, it *patternItem) []byte {
	if it.letter == 'y' && y <= 0 {
		y = 1 - y // year of the era
	}
	if it.count == 2 {
		return append2(dst, int(FloorMod(y, 100)))
	}
	if y < 0 {
		dst, y = append(dst, '-'), -y
	} else if it.count >= 4 && y >= int64(Pow10(it.count).Lo) {
		dst = append(dst, '+') // as Java marks a year wider than its pattern
	}
	return appendPadded(dst, uint64(y), it.count)
}

// appendEra writes AD or BC, the whole words or one letter, by the count.
func appendEra(dst []byte, year int64, count int) []byte {
	short, long := "AD", "Anno Domini"
	if year <= 0 {
		short, long = "BC", "Before Christ"
	}
	switch count {
	case 4:
		return append(dst, long...)
	case 5:
		return append(dst, short[0])
	}
	return append(dst, short...)
}

func appendName(dst []byte, n, count int, names []string, i int) []byte {
	switch count {
	case 1, 2:
		return appendPadded(dst, uint64(n), count)
	case 3:
		return append(dst, names[i][:3]...)
	}
	return append(dst, names[i]...)
}

func fieldOf(letter byte, c *Civil) int {
	switch letter {
	case 'd':
		return c.Day
	case 'D':
		return int(c.Days-DaysFromCivil(c.Year, 1, 1)) + 1
	case 'H':
		return c.Hour
	case 'k':
		if c.Hour == 0 {
			return 24
		}
		return c.Hour
	case 'K':
		return c.Hour % 12
	case 'h':
		if h := c.Hour % 12; h != 0 {
			return h
		}
		return 12
	case 'm':
		return c.Minute
	case 's':
		return c.Second
	case 'Q':
		return (c.Month-1)/3 + 1
	case 'e':
		return sundayWeekday(c.Days)
	case 'w':
		return weekOfYear(c)
	case 'W':
		return sundayWeeks(c.Days, c.Day)
	case 'F':
		return (c.Day-1)%7 + 1
	}
	return 0
}

// Granularity is the span in seconds within which all times (of one UTC
// offset) have the same text; 0 if the text shows fractions of a second.
func (p *TimePattern) Granularity() int64 { return granularity(p.items) }

func granularity(items []patternItem) int64 {
	g := int64(SecondsPerDay)
	for i := range items {
		switch items[i].letter {
		case 'S':
			return 0
		case 's':
			g = min(g, 1)
		case 'm':
			g = min(g, 60)
		case 'H', 'h', 'K', 'k', 'a':
			g = min(g, 3600)
		case '[':
			g = min(g, granularity(items[i].optional))
		}
		if g == 0 {
			return 0
		}
	}
	return g
}
