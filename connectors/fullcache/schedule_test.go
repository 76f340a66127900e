package fullcache

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05Z07:00", s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestSchedules: when a table is read again, after readings that take a while and come
// late, as Flink's triggers have it.
func TestSchedules(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	daily := func(s string, zone *time.Location) *Daily {
		d, err := parseDaily(s)
		if err != nil {
			t.Fatal(err)
		}
		return d.in(zone)
	}
	for name, c := range map[string]struct {
		o Options
		// loads begin and end; due is when the next one is due after each.
		loads [][2]string
		due   []string
	}{
		"delay": {Options{Interval: time.Minute}, [][2]string{{"2026-03-01T10:00:00Z", "2026-03-01T10:00:20Z"}, {"2026-03-01T10:05:00Z", "2026-03-01T10:05:01Z"}},
			[]string{"2026-03-01T10:01:20Z", "2026-03-01T10:06:01Z"}},
		"rate": {Options{Interval: time.Minute, FixedRate: true}, [][2]string{{"2026-03-01T10:00:00Z", "2026-03-01T10:00:20Z"}, {"2026-03-01T10:01:00Z", "2026-03-01T10:01:20Z"}, {"2026-03-01T10:04:30Z", "2026-03-01T10:04:31Z"}},
			[]string{"2026-03-01T10:01:00Z", "2026-03-01T10:02:00Z", "2026-03-01T10:05:00Z"}},
		"daily": {Options{Daily: daily("10:15", nil), Days: 1}, [][2]string{{"2026-03-01T10:00:00Z", "2026-03-01T10:00:20Z"}, {"2026-03-01T10:15:00Z", "2026-03-01T10:16:00Z"}, {"2026-03-04T09:00:00Z", "2026-03-04T09:00:00Z"}},
			[]string{"2026-03-01T10:15:00Z", "2026-03-02T10:15:00Z", "2026-03-04T10:15:00Z"}},
		"passed today": {Options{Daily: daily("10:15:30+01:00", paris), Days: 1}, [][2]string{{"2026-03-01T09:15:30Z", "2026-03-01T09:15:31Z"}}, []string{"2026-03-02T09:15:30Z"}},
		// The first one comes at the next such time, the others each third day.
		"third day": {Options{Daily: daily("23:30", nil), Days: 3}, [][2]string{{"2026-02-27T00:00:00Z", "2026-02-27T00:00:01Z"}, {"2026-02-28T08:00:00Z", "2026-02-28T08:00:01Z"}, {"2026-03-10T00:00:00Z", "2026-03-10T00:00:01Z"}},
			[]string{"2026-02-27T23:30:00Z", "2026-03-02T23:30:00Z", "2026-03-11T23:30:00Z"}},
		// The clocks of Paris were put on at 2026-03-29T01:00:00Z.
		"clock": {Options{Daily: daily("04:00", paris), Days: 1}, [][2]string{{"2026-03-27T12:00:00Z", "2026-03-27T12:00:00Z"}, {"2026-03-28T03:00:00Z", "2026-03-28T03:00:00Z"}},
			[]string{"2026-03-28T03:00:00Z", "2026-03-29T02:00:00Z"}},
	} {
		var last time.Time
		var have []string
		for _, l := range c.loads {
			last = c.o.due(last, instant(t, l[0]), instant(t, l[1]))
			have = append(have, last.UTC().Format("2006-01-02T15:04:05Z07:00"))
		}
		if !slices.Equal(have, c.due) {
			t.Errorf("%s: due at %v, want %v", name, have, c.due)
		}
	}
	if due := (&Options{}).due(time.Time{}, time.Unix(1, 0), time.Unix(2, 0)); !due.IsZero() {
		t.Errorf("without an interval it is due at %v", due)
	}
}

func TestScheduleOptions(t *testing.T) {
	spec := &connector.Spec{Name: "t", Options: SpecOptions(), Validate: Validate}
	for _, c := range []struct {
		with map[string]string
		bad  string
		want Options
	}{
		{map[string]string{KeyInterval: "5 min"}, "", Options{Interval: 5 * time.Minute}},
		{map[string]string{KeyInterval: "5 min", KeyMode: "FIXED_RATE"}, "", Options{Interval: 5 * time.Minute, FixedRate: true}},
		{map[string]string{KeyStrategy: "TIMED", KeyTime: "10:15:30.5"}, "", Options{Daily: &Daily{SinceMidnight: 10*time.Hour + 15*time.Minute + 30*time.Second + 500*time.Millisecond, Zone: time.UTC}, Days: 1}},
		{map[string]string{KeyStrategy: "TIMED", KeyTime: "10:15", KeyDays: "7"}, "", Options{Daily: &Daily{SinceMidnight: 10*time.Hour + 15*time.Minute, Zone: time.UTC}, Days: 7}},
		{map[string]string{KeyMode: "FIXED_RATE"}, KeyMode, Options{}},
		{map[string]string{KeyStrategy: "TIMED"}, KeyStrategy, Options{}},
		{map[string]string{KeyStrategy: "TIMED", KeyTime: "25:00"}, KeyTime, Options{}},
		{map[string]string{KeyStrategy: "TIMED", KeyTime: "9:00"}, KeyTime, Options{}},
		{map[string]string{KeyStrategy: "TIMED", KeyTime: "10:15 Z"}, KeyTime, Options{}},
		{map[string]string{KeyStrategy: "TIMED", KeyTime: "10:15", KeyDays: "0"}, KeyDays, Options{}},
		{map[string]string{KeyStrategy: "TIMED", KeyTime: "10:15", KeyInterval: "1 h"}, KeyInterval, Options{}},
		{map[string]string{KeyTime: "10:15"}, KeyTime, Options{}},
		{map[string]string{KeyDays: "2"}, KeyDays, Options{}},
	} {
		c.with["connector"] = "t"
		v, errs := spec.Resolve(c.with)
		bad := ""
		if len(errs) > 0 {
			bad = errs[0].Key
		}
		if bad != c.bad {
			t.Errorf("%v: option %q is refused, want %q (%v)", c.with, bad, c.bad, errs)
			continue
		}
		if bad != "" {
			continue
		}
		have := Options{}.From(&connector.Table{Options: v, Zone: time.UTC})
		if have.Interval != c.want.Interval || have.FixedRate != c.want.FixedRate || have.Days != c.want.Days || (have.Daily == nil) != (c.want.Daily == nil) ||
			have.Daily != nil && *have.Daily != *c.want.Daily {
			t.Errorf("%v: %+v %+v", c.with, have, have.Daily)
		}
	}
	if d, err := parseDaily("10:15:30+07:00"); err != nil || d.in(time.UTC).Zone.String() != "" {
		t.Errorf("an offset of its own: %+v, %v", d, err)
	}
}
