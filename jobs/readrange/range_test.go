package readrange

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 7, 21, 12, 0, 0, 0, time.UTC)

// minuteLog has offsets 10..20, offset o written at 11:00 + o minutes.
type minuteLog struct{}

func (minuteLog) Bounds() (int64, int64, error) { return 10, 20, nil }

func (minuteLog) OffsetForTime(t time.Time) (int64, error) {
	start := time.Date(2026, 7, 21, 11, 0, 0, 0, time.UTC)
	for o := int64(10); o < 20; o++ {
		if !start.Add(time.Duration(o) * time.Minute).Before(t) {
			return o, nil
		}
	}
	return 20, nil
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		text     string
		from, to int64
	}{
		{"", 10, 20},
		{"start:end", 10, 20},
		{":end", 10, 20},
		{":", 10, 20},
		{"start", 10, Never},
		{"end", 20, Never},
		{"+3", 10, 13},
		{"+300", 10, 20},
		{"+9223372036854775807", 10, 20},
		{"-3", 17, 20},
		{"-300", 10, 20},
		{"12:15", 12, 15},
		{"12:", 12, 20},
		{"12:+2", 12, 14},
		{":15", 10, 15},
		{"0:100", 10, 20},
		{"15:15", 15, 15},
		{"@2026-07-21T11:12:00Z:2026-07-21T11:15:00Z", 12, 15},
		{"@2026-07-21T13:12:00+02:00:2026-07-21T11:15:00Z", 12, 15},
		{"@2026-07-21 11:12:30:end", 13, 20},
		{"@2026-07-21T11:12", 12, 20},
		{"@2026-07-20:2026-07-21", 10, 10},
		{"@2026-07-21:2026-07-22", 10, 20},
		{"@-45m:-43m", 15, 17},
		{"@-1d", 10, 20},
		{"@-45m:now", 15, 20},
		{"@1784632320000", 12, 20},
	} {
		r, err := Parse(c.text, now)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		from, to, err := r.Resolve(minuteLog{})
		if err != nil || from != c.from || to != c.to {
			t.Errorf("%q = %d..%d (%v), want %d..%d", c.text, from, to, err, c.from, c.to)
		}
		if r.Endless() != (c.to == Never) {
			t.Errorf("%q: Endless = %v", c.text, r.Endless())
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"5":            "is no range",
		"a:b":          "is no offset",
		"+x":           "is not a count",
		"--3":          "is not a count",
		"7:3":          "ends before it starts",
		"-5:7":         "is not a count",
		"@yesterday":   "is no time",
		"@now:-1h":     "ends before it starts",
		"@2026-13-01":  "is no time",
		"3:+x":         "is not a count",
		"start:middle": "is no offset",
	} {
		_, err := Parse(text, now)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %v, want %q", text, err, reason)
		}
	}
}
