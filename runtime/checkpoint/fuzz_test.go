package checkpoint

import "testing"

// FuzzDecode: no bytes make Decode panic, and what it accepts it writes again as
// it was.
func FuzzDecode(f *testing.F) {
	f.Add(sample().Encode())
	f.Add((&Manifest{}).Encode())
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		if again, err := Decode(m.Encode()); err != nil || again.Number != m.Number {
			t.Fatalf("written again: %v", err)
		}
	})
}
