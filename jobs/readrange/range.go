package readrange

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

type boundKind uint8

const (
	boundStart  boundKind = iota // the earliest record
	boundEnd                     // the end as it is now
	boundNever                   // no end
	boundOffset                  // N is an offset
	boundFirst                   // N records after the other bound
	boundLast                    // N records before the end
	boundTime                    // Time
)

type bound struct {
	kind boundKind
	n    int64
	time time.Time
}

// Range is a parsed range. The zero value is everything there is now.
type Range struct {
	from, to bound
	text     string
}

// All is everything there is now: "start:end".
func All() Range {
	return Range{from: bound{kind: boundStart}, to: bound{kind: boundEnd}, text: "start:end"}
}

// String is the text that the range was parsed from.
func (r Range) String() string { return r.text }

// Endless reports whether the range has no end.
func (r Range) Endless() bool { return r.to.kind == boundNever }

// Error says why a range cannot be parsed.
type Error struct{ Text, Reason string }

func (e *Error) Error() string {
	return fmt.Sprintf("range %q: %s; write start:end, +n, -n, o1:o2 or @t1:t2", e.Text, e.Reason)
}

// Parse reads a range; relative times count from now.
func Parse(text string, now time.Time) (Range, error) {
	r := All()
	r.text = text
	s := strings.TrimSpace(text)
	fail := func(reason string, args ...any) (Range, error) {
		return Range{}, &Error{Text: text, Reason: fmt.Sprintf(reason, args...)}
	}
	switch {
	case s == "":
		r.text = "start:end"
		return r, nil
	case s[0] == '@':
		from, to, both := splitTimes(s[1:])
		t, err := ParseTime(from, now)
		if err != nil {
			return fail("%v", err)
		}
		r.from = bound{kind: boundTime, time: t}
		if !both || to == "end" || to == "" {
			return r, nil
		}
		if r.to.time, err = ParseTime(to, now); err != nil {
			return fail("%v", err)
		}
		r.to.kind = boundTime
		if r.to.time.Before(t) {
			return fail("it ends before it starts")
		}
		return r, nil
	case s == "start":
		r.to.kind = boundNever
		return r, nil
	case s == "end":
		r.from.kind, r.to.kind = boundEnd, boundNever
		return r, nil
	case s[0] == '+' || s[0] == '-':
		n, err := strconv.ParseInt(s[1:], 10, 64)
		if err != nil || n < 0 {
			return fail("%q is not a count", s[1:])
		}
		if s[0] == '+' {
			r.to = bound{kind: boundFirst, n: n}
		} else {
			r.from = bound{kind: boundLast, n: n}
		}
		return r, nil
	}
	from, to, both := strings.Cut(s, ":")
	if !both {
		return fail("%q is no range", s)
	}
	var err error
	if from != "" && from != "start" {
		if r.from.n, err = strconv.ParseInt(from, 10, 64); err != nil || r.from.n < 0 {
			return fail("%q is no offset", from)
		}
		r.from.kind = boundOffset
	}
	switch {
	case to == "" || to == "end":
	case to[0] == '+':
		if r.to.n, err = strconv.ParseInt(to[1:], 10, 64); err != nil || r.to.n < 0 {
			return fail("%q is not a count", to)
		}
		r.to.kind = boundFirst
	default:
		if r.to.n, err = strconv.ParseInt(to, 10, 64); err != nil || r.to.n < 0 {
			return fail("%q is no offset", to)
		}
		r.to.kind = boundOffset
		if r.from.kind == boundOffset && r.to.n < r.from.n {
			return fail("it ends before it starts")
		}
	}
	return r, nil
}

// splitTimes cuts "t1:t2"; times hold colons themselves, so the cut is the
// first one where both sides look like times or one side is empty.
func splitTimes(s string) (from, to string, both bool) {
	for i := range len(s) {
		if s[i] != ':' {
			continue
		}
		from, to = s[:i], s[i+1:]
		if looksLikeTime(from) && (to == "" || to == "end" || looksLikeTime(to)) {
			return from, to, true
		}
	}
	return s, "", false
}

func looksLikeTime(s string) bool {
	_, err := ParseTime(s, time.Time{})
	return err == nil
}

// layouts of absolute times, longest first; without a zone they are UTC.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
}

// ParseTime reads one point in time of the grammar.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if s == "now" {
		return now, nil
	}
	if strings.HasPrefix(s, "-") {
		if d, err := relative(s[1:]); err == nil {
			return now.Add(-d), nil
		}
	}
	for _, l := range layouts {
		if t, err := time.ParseInLocation(l, s, time.UTC); err == nil {
			return t, nil
		}
	}
	// Short numbers are years or typing errors, not instants.
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil && len(s) >= 9 {
		return time.UnixMilli(ms).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time such as 2026-07-21T06:00:00Z, 2026-07-21 or -48h", s)
}

func relative(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(s)
}

// Log is what a range is resolved against: one partition.
type Log interface {
	// Bounds are the earliest offset and the one after the latest record.
	Bounds() (earliest, end int64, err error)
	// OffsetForTime is the first offset whose record's timestamp is at or
	// after t, the end when there is none.
	OffsetForTime(t time.Time) (int64, error)
}

// Never is the To of a range without an end.
const Never int64 = 1<<63 - 1

// Resolve gives the offsets from (included) to to (excluded) of a partition,
// within its present bounds; to is Never for a range without an end.
func (r Range) Resolve(l Log) (from, to int64, err error) {
	earliest, end, err := l.Bounds()
	if err != nil {
		return 0, 0, err
	}
	clamp := func(o int64) int64 { return min(max(o, earliest), end) }
	switch r.from.kind {
	case boundStart:
		from = earliest
	case boundEnd:
		from = end
	case boundOffset:
		from = clamp(r.from.n)
	case boundLast:
		from = clamp(end - r.from.n)
	case boundTime:
		if from, err = l.OffsetForTime(r.from.time); err != nil {
			return 0, 0, err
		}
		from = clamp(from)
	}
	switch r.to.kind {
	case boundEnd:
		to = end
	case boundNever:
		to = Never
	case boundOffset:
		to = clamp(r.to.n)
	case boundFirst:
		// A huge count is the end, not an overflow.
		if r.to.n > end-from {
			to = end
		} else {
			to = from + r.to.n
		}
	case boundTime:
		if to, err = l.OffsetForTime(r.to.time); err != nil {
			return 0, 0, err
		}
		to = clamp(to)
	}
	return from, max(from, to), nil
}
