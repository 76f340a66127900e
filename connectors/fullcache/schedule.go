package fullcache

import (
	"fmt"
	"time"
)

// Daily is a time of the day.
type Daily struct {
	// SinceMidnight is the time that a clock shows.
	SinceMidnight time.Duration
	// Zone is the clock's; nil: UTC.
	Zone *time.Location
}

// parseDaily reads a time of the day in the form of ISO 8601, with an offset or
// without one, in which case it has no zone.
func parseDaily(s string) (*Daily, error) {
	for _, layout := range []string{"15:04:05Z07:00", "15:04Z07:00", "15:04:05", "15:04"} {
		t, err := time.Parse(layout, s)
		if err != nil || len(s) < 5 || s[2] != ':' { // Go takes an hour of one digit
			continue
		}
		h, m, sec := t.Clock()
		d := &Daily{SinceMidnight: time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec)*time.Second + time.Duration(t.Nanosecond())}
		if layout[len(layout)-1] == '0' {
			_, offset := t.Zone()
			d.Zone = time.FixedZone("", offset)
		}
		return d, nil
	}
	return nil, fmt.Errorf("%q is no time of the day: 10:15, 10:15:30, 10:15:30Z or 10:15:30+07:00", s)
}

// in is the time in a zone, unless it has one of its own.
func (d *Daily) in(zone *time.Location) *Daily {
	if d.Zone != nil {
		return d
	}
	return &Daily{SinceMidnight: d.SinceMidnight, Zone: zone}
}

// on is the time on a day of the calendar, so that the clock shows the same where it is
// changed.
func (d *Daily) on(year int, month time.Month, day int) time.Time {
	s := int(d.SinceMidnight / time.Second)
	return time.Date(year, month, day, s/3600, s/60%60, s%60, int(d.SinceMidnight%time.Second), d.zone())
}

func (d *Daily) zone() *time.Location {
	if d.Zone == nil {
		return time.UTC
	}
	return d.Zone
}

// due is when a table is to be loaded again that was loaded from began to ended; last is
// when this load was due, zero for the first one. Zero: never.
func (o *Options) due(last, began, ended time.Time) time.Time {
	switch {
	case o.Daily != nil:
		return o.dueDay(last, began)
	case o.Interval <= 0:
		return time.Time{}
	case !o.FixedRate:
		return ended.Add(o.Interval)
	case last.IsZero():
		return began.Add(o.Interval)
	}
	return last.Add((began.Sub(last)/o.Interval + 1) * o.Interval)
}

// dueDay counts from when the load was due, so that no reading moves the days.
func (o *Options) dueDay(last, began time.Time) time.Time {
	step, from := o.Days, last
	if last.IsZero() {
		step, from = 1, began
	}
	y, m, day := from.In(o.Daily.zone()).Date()
	if last.IsZero() {
		day-- // today's may be still to come
	}
	for {
		day += step
		if at := o.Daily.on(y, m, day); at.After(began) {
			return at
		}
	}
}
