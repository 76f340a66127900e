package types

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestCivilAgainstTimePackage(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := 0; i < 20000; i++ {
		days := int64(r.IntN(4_000_000) - 2_000_000)
		want := time.Unix(days*SecondsPerDay, 0).UTC()
		y, m, d := CivilFromDays(days)
		if int(y) != want.Year() || m != int(want.Month()) || d != want.Day() {
			t.Fatalf("day %d: %d-%d-%d, want %s", days, y, m, d, want)
		}
		if back := DaysFromCivil(y, m, d); back != days {
			t.Fatalf("day %d comes back as %d", days, back)
		}
	}
}

func TestParseTimestampForms(t *testing.T) {
	ts, ltz := NewTimestamp(3), NewTimestampLTZ(3)
	const at8 = 1714550400000000 // 2024-05-01 08:00:00 as if UTC
	type want struct {
		t, l int64 // 0: refused
	}
	for _, c := range []struct {
		text string
		form TimestampForm
		want want
	}{
		{"2024-05-01 08:00:00", FormSQL, want{at8, 0}}, {"2024-05-01T08:00:00", FormSQL, want{}}, {"2024-05-01 08:00:00Z", FormSQL, want{0, at8}},
		{"2024-05-01 8:00:00", FormSQL, want{}}, {"2024-05-01 08:00", FormSQL, want{}}, {"2024-05-01 08:00:00.5", FormSQL, want{at8 + 500000, 0}},
		{"2024-05-01T08:00:00", FormISO, want{at8, 0}}, {"2024-05-01T08:00", FormISO, want{at8, 0}}, {"2024-05-01T08:00:00Z", FormISO, want{0, at8}},
		{"2024-05-01T08:00Z", FormISO, want{0, at8}}, {"2024-05-01T08:00:00+08:00", FormISO, want{}}, {"2024-05-01 08:00:00", FormISO, want{}},
		{"2024-05-01T08:00:00+08:00", FormISOWithOffset, want{0, at8 - 8*3600*1000000}}, {"2024-05-01T08:00:00Z", FormISOWithOffset, want{0, at8}},
		{"2024-05-01T08:00:00", FormISOWithOffset, want{at8, 0}}, {"2023-02-29 00:00:00", FormSQL, want{}}, {"2024-05-01 24:00:00", FormSQL, want{}},
		{"2024-05-01 23:59:59.9999", FormSQL, want{at8 + 57599999000, 0}}, {"2024-05-01 08:00:00.", FormSQL, want{}}, {"2024-5-01 08:00:00", FormSQL, want{}},
		{"2024-05-01 08:00:00.1234567890", FormSQL, want{}},
	} {
		got, err := ParseTimestampForm(c.text, c.form, ts)
		if (err == nil) != (c.want.t != 0) || err == nil && got != c.want.t {
			t.Errorf("%q form %d as TIMESTAMP: %d %v, want %d", c.text, c.form, got, err, c.want.t)
		}
		got, err = ParseTimestampForm(c.text, c.form, ltz)
		if (err == nil) != (c.want.l != 0) || err == nil && got != c.want.l {
			t.Errorf("%q form %d as TIMESTAMP_LTZ: %d %v, want %d", c.text, c.form, got, err, c.want.l)
		}
	}
}

func TestFractionIsCutAlsoBefore1970(t *testing.T) {
	c, err := ParseTimestamp("1969-12-31 23:59:59.9999995")
	if err != nil {
		t.Fatal(err)
	}
	x, err := c.Timestamp(NewTimestamp(6))
	if err != nil || x != -1 {
		t.Errorf("1969-12-31 23:59:59.9999995 as TIMESTAMP(6) is %d us, want -1", x)
	}
	if x, _ = c.Timestamp(NewTimestamp(9)); x != -500 {
		t.Errorf("as TIMESTAMP(9) it is %d ns, want -500", x)
	}
	if x, _ = ConvertTimestamp(-1, NewTimestamp(6), NewTimestamp(3)); x != -1000 {
		t.Errorf("-1 us to TIMESTAMP(3) is %d us, want -1000", x)
	}
}

func TestZoneAgainstTimePackage(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, name := range []string{"Asia/Shanghai", "America/New_York", "Europe/London", "Australia/Lord_Howe", "GMT+08:00", "UTC", "Asia/Kolkata"} {
		z, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < 3000; i++ {
			sec := r.Int64N(4_000_000_000) - 2_000_000_000
			_, off := time.Unix(sec, 0).In(z.Location()).Zone()
			if got := z.ToLocal(sec, 1) - sec; got != int64(off) {
				t.Fatalf("%s at %d: offset %d, want %d", name, sec, got, off)
			}
			local := z.ToLocal(sec, 1)
			if back := z.ToLocal(z.ToInstant(local, 1), 1); back != local {
				t.Fatalf("%s: local %d comes back as %d", name, local, back)
			}
		}
	}
}

func TestGapAndOverlapAsJavaTime(t *testing.T) {
	z, err := LoadZone("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	sec := func(s string) int64 {
		c, err := ParseTimestamp(s)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := c.Timestamp(NewTimestamp(0))
		return x / 1_000_000
	}
	// java.time: LocalDateTime.atZone moves a gap forward, takes the earlier
	// offset in an overlap.
	for _, c := range []struct{ local, utc string }{
		{"2024-03-10 02:30:00", "2024-03-10 07:30:00"}, {"2024-11-03 01:30:00", "2024-11-03 05:30:00"}, {"2024-03-10 01:59:59", "2024-03-10 06:59:59"},
		{"2024-03-10 03:00:00", "2024-03-10 07:00:00"}, {"2024-11-03 02:00:00", "2024-11-03 07:00:00"}, {"2024-07-01 00:00:00", "2024-07-01 04:00:00"},
	} {
		if got := z.ToInstant(sec(c.local), 1); got != sec(c.utc) {
			t.Errorf("%s is %s UTC, want %s", c.local, time.Unix(got, 0).UTC(), c.utc)
		}
	}
}

func TestZoneNames(t *testing.T) {
	for _, bad := range []string{"PST", "EST", "CST", "Local", "", "Mars/Olympus", "GMT+19:00", "+8:7", "utc+x"} {
		if _, err := LoadZone(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	for name, want := range map[string]int64{"GMT+08:00": 28800, "GMT-3": -10800, "UTC+05:30": 19800, "+0530": 19800, "-08:00": -28800} {
		z, err := LoadZone(name)
		if err != nil || z.OffsetAt(0) != want {
			t.Errorf("%s: %v %v", name, z, err)
		}
	}
}

func TestTimePatterns(t *testing.T) {
	c := SplitTimestamp(1714566896789012, 1_000_000) // 2024-05-01 12:34:56.789012, a Wednesday
	for pattern, want := range map[string]string{
		"yyyy-MM-dd HH:mm:ss": "2024-05-01 12:34:56", "yyyyMMddHH": "2024050112", "yy/M/d": "24/5/1", "hh:mm a": "12:34 PM", "K:m": "0:34", "k": "12",
		"EEE, dd MMM yyyy": "Wed, 01 May 2024", "EEEE MMMM": "Wednesday May", "SSS": "789", "SSSSSS": "789012", "D": "122", "DDD": "122", "'T'''": "T'", "yyyy''": "2024'", "u": "2024", "Q": "2", "HH[:mm]": "12:34",
	} {
		p, err := CompileTimePattern(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if got := string(p.Append(nil, &c)); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	for pattern, at := range map[string]int{"YYYY-MM": 0, "yyyy-MM-dd z": 11, "yyyy 'x": 5, "b": 0, "yyyy]": 4, "[yyyy": 0, "HHH": 0} {
		_, err := CompileTimePattern(pattern)
		pe, ok := err.(*PatternError)
		if !ok || pe.Offset != at {
			t.Errorf("%s: %v, want a mistake at %d", pattern, err, at)
		}
	}
}

func TestTimePatternParse(t *testing.T) {
	for _, c := range []struct {
		pattern, text, want string
		lenient             bool
	}{
		{"yyyyMMdd", "20240501", "2024-05-01 00:00:00", false}, {"yyyyMMddHHmmss", "20240501080910", "2024-05-01 08:09:10", false}, {"dd/MM/yyyy", "1/5/2024", "", false},
		{"dd/MM/yyyy", "1/5/2024", "2024-05-01 00:00:00", true}, {"d MMM yyyy", "1 May 2024", "2024-05-01 00:00:00", false}, {"yyyy-MM-dd", "2023-02-29", "", false},
		{"yyyy-MM-dd", "2024-05-01x", "", false}, {"hh:mm a", "12:30 AM", "1970-01-01 00:30:00", false}, {"hh:mm a", "12:30 PM", "1970-01-01 12:30:00", false}, {"hh:mm a", "01:30 PM", "1970-01-01 13:30:00", false},
		{"yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-05-01T08:09:10.123", "2024-05-01 08:09:10", false}, {"yyyy-MM-dd[ HH:mm]", "2024-05-01", "2024-05-01 00:00:00", false}, {"yyyy-MM-dd[ HH:mm]", "2024-05-01 08:09", "2024-05-01 08:09:00", false},
		{"HH:mm", "24:00", "", false}, {"yy", "24", "2024-01-01 00:00:00", false}, {"yyyy DDD", "2024 060", "2024-02-29 00:00:00", false},
	} {
		p, err := CompileTimePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if f, err := p.Parse(c.text, c.lenient); err == nil {
			x, _ := f.Timestamp(NewTimestamp(0))
			got = string(AppendTimestamp(nil, x, NewTimestamp(0), ' '))
		}
		if got != c.want {
			t.Errorf("%q by %s: %q, want %q", c.text, c.pattern, got, c.want)
		}
	}
}
