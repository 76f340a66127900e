package types

import "strings"

// parsed collects fields; -1 is absent.
type parsed struct {
	year                                           int64
	month, day, doy, hour, hour12, minute, sec, pm int
	nanos                                          int
	hasYear, bc                                    bool
	// checks are fields that the date must have; it does not come from them.
	checks [4]int
}

// checkedFields are the letters of parsed.checks.
const checkedFields = "ewWF"

// Parse reads a whole text; absent fields are those of 1970-01-01 00:00:00.
// With lenient, a field of two letters also takes one digit where no digit
// field follows directly, as java.text.SimpleDateFormat does.
func (p *TimePattern) Parse(s string, lenient bool) (Civil, error) {
	f := parsed{month: -1, day: -1, doy: -1, hour: -1, hour12: -1, minute: -1, sec: -1, pm: -1, checks: [4]int{-1, -1, -1, -1}}
	rest, ok := f.items(p.items, s, lenient)
	if !ok || rest != "" {
		return Civil{}, ErrTimeSyntax
	}
	return f.civil()
}

func (f *parsed) items(items []patternItem, s string, lenient bool) (string, bool) {
	for i := range items {
		it := &items[i]
		switch it.letter {
		case 0:
			if !strings.HasPrefix(s, it.text) {
				return s, false
			}
			s = s[len(it.text):]
		case '[':
			save := *f
			if rest, ok := f.items(it.optional, s, lenient); ok {
				s = rest
			} else {
				*f = save
			}
		default:
			next := i+1 < len(items) && isDigitField(&items[i+1])
			var ok bool
			if s, ok = f.field(it, s, lenient && !next, next); !ok {
				return s, false
			}
		}
	}
	return s, true
}

func isDigitField(it *patternItem) bool {
	switch it.letter {
	case 0, '[', 'E', 'a':
		return false
	case 'M', 'L', 'e', 'c':
		return it.count <= 2
	case 'G':
		return false
	}
	return true
}

func (f *parsed) field(it *patternItem, s string, lenient, adjacent bool) (string, bool) {
	switch {
	case (it.letter == 'M' || it.letter == 'L') && it.count > 2:
		return parseName(s, monthNames[:], it.count == 3, &f.month, 1)
	case it.letter == 'E':
		var ignored int
		return parseName(s, dayNames[:], it.count <= 3, &ignored, 0)
	case (it.letter == 'e' || it.letter == 'c') && it.count > 2:
		rest, ok := parseName(s, dayNames[:], it.count == 3, &f.checks[0], 1)
		f.checks[0] = f.checks[0]%7 + 1 // from Sunday
		return rest, ok
	case it.letter == 'G':
		return f.era(s, it.count)
	case it.letter == 'a':
		if len(s) < 2 || (s[0] != 'A' && s[0] != 'P') || s[1] != 'M' {
			return s, false
		}
		f.pm = int(s[0]&1) ^ 1 // 'A' is odd, 'P' even
		return s[2:], true
	case it.letter == 'S':
		n, rest, ok := digits(s, it.count, it.count)
		for k := it.count; k < 9; k++ {
			n *= 10
		}
		f.nanos = int(n)
		return rest, ok
	}
	lo, hi := it.count, it.count
	if it.letter == 'y' || it.letter == 'u' {
		if it.count == 1 && !adjacent {
			hi = 9
		}
		if lenient {
			lo = 1
		}
	} else if it.count == 1 && !adjacent || lenient {
		lo, hi = 1, max(2, it.count)
	}
	n, rest, ok := digits(s, lo, hi)
	if !ok {
		return s, false
	}
	f.set(it, n)
	return rest, true
}

func digits(s string, lo, hi int) (int64, string, bool) {
	n, i := int64(0), 0
	for i < len(s) && i < hi && s[i] >= '0' && s[i] <= '9' {
		n = n*10 + int64(s[i]-'0')
		i++
	}
	return n, s[i:], i >= lo
}

func parseName(s string, names []string, short bool, to *int, base int) (string, bool) {
	for i, n := range names {
		if short {
			n = n[:3]
		}
		if strings.HasPrefix(s, n) {
			*to = i + base
			return s[len(n):], true
		}
	}
	return s, false
}

func (f *parsed) set(it *patternItem, n int64) {
	x := int(n)
	switch it.letter {
	case 'y', 'u':
		if it.count == 2 {
			n += 2000
		}
		f.year, f.hasYear = n, true
	case 'M', 'L':
		f.month = x
	case 'd':
		f.day = x
	case 'D':
		f.doy = x
	case 'H':
		f.hour = x
	case 'k':
		f.hour = x % 24
		if x > 24 || x == 0 {
			f.hour = 99
		}
	case 'K':
		f.hour12 = x
		if x > 11 {
			f.hour12 = 99
		}
	case 'h':
		f.hour12 = x % 12
		if x > 12 || x == 0 {
			f.hour12 = 99
		}
	case 'm':
		f.minute = x
	case 's':
		f.sec = x
	case 'e', 'c':
		f.checks[0] = x
	case 'w', 'W', 'F':
		f.checks[strings.IndexByte(checkedFields, it.letter)] = x
	}
}

// era reads AD or BC as appendEra writes them.
func (f *parsed) era(s string, count int) (string, bool) {
	for year := int64(0); year <= 1; year++ {
		if rest, ok := strings.CutPrefix(s, string(appendEra(nil, year, count))); ok {
			f.bc = year == 0
			return rest, true
		}
	}
	return s, false
}

func (f *parsed) civil() (Civil, error) {
	or := func(n, def int) int {
		if n < 0 {
			return def
		}
		return n
	}
	c := Civil{Year: 1970, Month: or(f.month, 1), Day: or(f.day, 1), Hour: or(f.hour, 0), Minute: or(f.minute, 0),
		Second: or(f.sec, 0), Nanos: f.nanos}
	if f.hasYear {
		c.Year = f.year
	}
	if f.bc {
		c.Year = 1 - c.Year
	}
	if f.hour < 0 && f.hour12 >= 0 {
		c.Hour = f.hour12
		if f.pm == 1 && f.hour12 < 12 {
			c.Hour += 12
		}
	}
	if f.doy > 0 && f.month < 0 && f.day < 0 {
		y, m, d := CivilFromDays(DaysFromCivil(c.Year, 1, 1) + int64(f.doy) - 1)
		if y != c.Year {
			return c, ErrTimeField
		}
		c.Month, c.Day = m, d
	}
	if !c.Valid() {
		return c, ErrTimeField
	}
	c.Days = DaysFromCivil(c.Year, c.Month, c.Day)
	for i, n := range f.checks {
		if n >= 0 && n != fieldOf(checkedFields[i], &c) {
			return c, ErrTimeField
		}
	}
	return c, nil
}
