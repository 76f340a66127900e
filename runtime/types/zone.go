package types

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zone rules are part of the binary, never the host's choice
)

// Zone is a time zone with a cached offset, so that converting a column costs
// no search per row. A Zone is for one goroutine; Clone gives another.
type Zone struct {
	loc  *time.Location
	name string
	// lo <= t < hi (seconds UTC) have this offset.
	lo, hi, offset int64
}

// UTC returns the zone UTC.
func UTC() *Zone { return &Zone{loc: time.UTC, name: "UTC"} }

// LoadZone resolves an IANA name, "UTC" or "GMT+08:00" (also "UTC+8",
// "+08:00"). Abbreviations such as PST, which mean several zones, and the
// host's "Local" are refused.
func LoadZone(name string) (*Zone, error) {
	if name == "UTC" || name == "GMT" || name == "Z" {
		return &Zone{loc: time.UTC, name: name}, nil
	}
	if sec, ok := fixedOffset(name); ok {
		return &Zone{loc: time.FixedZone(name, sec), name: name}, nil
	}
	switch name {
	case "", "Local":
		return nil, fmt.Errorf("unknown time zone %q", name)
	case "EST", "MST", "HST", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT":
		return nil, fmt.Errorf("time zone %q is ambiguous: use a name such as America/New_York or GMT-05:00", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		if len(name) <= 4 && name == strings.ToUpper(name) {
			return nil, fmt.Errorf("time zone %q is ambiguous: use a name such as America/Los_Angeles or GMT-08:00", name)
		}
		return nil, fmt.Errorf("unknown time zone %q", name)
	}
	return &Zone{loc: loc, name: name}, nil
}

// fixedOffset reads [GMT|UTC|UT](+|-)h[h][:mm[:ss]] or (+|-)hhmm, at most 18 hours.
func fixedOffset(s string) (int, bool) {
	for _, p := range []string{"GMT", "UTC", "UT"} {
		if strings.HasPrefix(s, p) {
			s = s[len(p):]
			break
		}
	}
	if len(s) < 2 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	neg, s := s[0] == '-', s[1:]
	var parts []string
	if len(s) == 4 && !strings.Contains(s, ":") {
		parts = []string{s[:2], s[2:]}
	} else {
		parts = strings.Split(s, ":")
	}
	if len(parts) > 3 || len(parts[0]) > 2 {
		return 0, false
	}
	sec, unit := 0, 3600
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || p[0] == '+' || i > 0 && (len(p) != 2 || n > 59) {
			return 0, false
		}
		sec += n * unit
		unit /= 60
	}
	if sec > 18*3600 {
		return 0, false
	}
	if neg {
		sec = -sec
	}
	return sec, true
}

// String is the name the zone was loaded by.
func (z *Zone) String() string { return z.name }

// Location is the zone as the standard library has it.
func (z *Zone) Location() *time.Location { return z.loc }

// Clone returns the zone for another goroutine.
func (z *Zone) Clone() *Zone { c := *z; return &c }

// OffsetAt is the offset in seconds east of UTC at an instant.
func (z *Zone) OffsetAt(sec int64) int64 {
	if sec >= z.lo && sec < z.hi {
		return z.offset
	}
	t := time.Unix(sec, 0).In(z.loc)
	_, off := t.Zone()
	start, end := t.ZoneBounds()
	z.lo, z.hi, z.offset = -1<<62, 1<<62, int64(off)
	if !start.IsZero() {
		z.lo = start.Unix()
	}
	if !end.IsZero() {
		z.hi = end.Unix()
	}
	return z.offset
}

// ToLocal converts an instant to the zone's wall clock, both in units per
// second as Type.UnitsPerSecond.
func (z *Zone) ToLocal(instant, units int64) int64 {
	return instant + z.OffsetAt(FloorDiv(instant, units))*units
}

// ToInstant converts a wall clock time to the instant. As java.time does: in
// a gap the time moves forward by the gap, in an overlap the earlier offset
// (the later one in force before the change) counts.
func (z *Zone) ToInstant(local, units int64) int64 {
	sec := FloorDiv(local, units)
	// The offset in force a day before, by which the local time is read first.
	before := z.OffsetAt(sec - 86400)
	inst := sec - before
	if off := z.OffsetAt(inst); off == before {
		return local - before*units
	}
	// A change lies between. In the overlap the earlier offset would have
	// matched above; here the later offset holds, or the time is in a gap.
	after := z.OffsetAt(sec + 86400)
	if z.OffsetAt(sec-after) == after {
		return local - after*units
	}
	return local - before*units
}

// ToLaterInstant is ToInstant but for an overlap, in which the later of the two
// instants counts, as java.text.SimpleDateFormat has it.
func (z *Zone) ToLaterInstant(local, units int64) int64 {
	x := z.ToInstant(local, units)
	// Behind an overlap the offset is smaller, and the same wall clock comes again.
	sec := FloorDiv(x, units)
	before, after := z.OffsetAt(sec), z.OffsetAt(sec+86400)
	if again := x + (before-after)*units; before > after && z.OffsetAt(FloorDiv(again, units)) == after {
		return again
	}
	return x
}

// FloorDiv is a / b rounded to minus infinity, b > 0.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// FloorMod is a - FloorDiv(a, b)*b, in 0..b-1, b > 0.
func FloorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}
