package output

import (
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(1, "row"), "1 row"},
		{Count(0, "row"), "0 rows"},
		{Count(int64(20000), "record"), "20,000 records"},
		{Thousands(999), "999"},
		{Thousands(-1234567), "-1,234,567"},
		{Thousands(-100), "-100"},
		{Wait(-time.Second), "0s"},
		{Wait(8400 * time.Millisecond), "8s"},
		{Wait(90 * time.Second), "90s"},
		{Wait(30 * time.Minute), "30m"},
		{Wait(2*time.Hour + 10*time.Minute), "2h"},
		{Size(1023), "1023 B"},
		{Size(1536), "1.5 KiB"},
		{Size(5 << 30), "5.0 GiB"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
