package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// sampleFile has a section of two parts, one of them stored elsewhere, and one of an empty
// part.
func sampleFile() *Sections {
	p := new(Payload)
	p.Append(bytes.Repeat([]byte("abc"), 50))
	p.Cut()
	p.AppendStored(6, func(w io.Writer, buf []byte) ([]byte, error) {
		_, err := io.WriteString(w, "stored")
		return buf, err
	})
	return NewSections([]Section{{Path: "hourly/window", Kind: "WindowAggregate", Fingerprint: 7, Body: p},
		{Path: "hourly/sort", Kind: "Sort", Fingerprint: 1 << 63}})
}

// readFile gives the parts of a state file as text.
func readFile(b []byte) (string, error) {
	var out []string
	r := NewFileReader(bytes.NewReader(b), int64(len(b)))
	for {
		s, part, err := r.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(out, "\n"), nil
		}
		if err != nil {
			return strings.Join(out, "\n"), err
		}
		out = append(out, fmt.Sprintf("%s %s %d %q", s.Path, s.Kind, s.Fingerprint, part))
	}
}

// TestGoldenStateFiles reads bytes made from the format's page by a program that shares no
// code with the package.
func TestGoldenStateFiles(t *testing.T) {
	abc := strings.Repeat("abc", 50)
	b, err := os.ReadFile("testdata/state-v2.bin")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("hourly/window WindowAggregate 7 %q\nhourly/window WindowAggregate 7 %q\nhourly/sort Sort 9223372036854775808 %q", abc, "stored", "")
	if got, err := readFile(b); got != want || err != nil {
		t.Fatalf("version 2: %s, %v", got, err)
	}
	var out bytes.Buffer
	for range 2 {
		out.Reset()
		if n, err := sampleFile().WriteTo(&out); err != nil || n != int64(len(b)) || !bytes.Equal(out.Bytes(), b) {
			t.Fatalf("the layout has changed without a new version: %d bytes, %v\n%q", n, err, out.Bytes())
		}
	}
	if b, err = os.ReadFile("testdata/state-v1.bin"); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFileVersion1(b)
	if err != nil || len(got) != 2 || got[0].Path != "hourly/window" || got[0].Kind != "WindowAggregate" || string(got[0].Payload) != abc ||
		got[0].Fingerprint != 7 || got[1].Path != "hourly/sort" || got[1].Fingerprint != 1<<63 || len(got[1].Payload) != 0 {
		t.Fatalf("version 1: %+v, %v", got, err)
	}
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if _, err := ReadFileVersion1(bad); err == nil {
			t.Fatalf("version 1: a flipped bit in byte %d was not seen", i)
		}
	}
}

// TestStateFilesRefuseDamage: of bits, of the end, and by the place where it is.
func TestStateFilesRefuseDamage(t *testing.T) {
	var out bytes.Buffer
	if _, err := sampleFile().WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		var e *CorruptError
		if _, err := readFile(bad); !errors.As(err, &e) || !errors.Is(err, ErrCorrupt) {
			t.Fatalf("a flipped bit in byte %d: %v", i, err)
		}
		if _, err := readFile(b[:i]); !errors.As(err, &e) {
			t.Fatalf("cut at byte %d: %v", i, err)
		}
	}
	if _, err := readFile(append(bytes.Clone(b), 0)); err == nil {
		t.Error("a byte behind the end was not seen")
	}
	at := bytes.Index(b, []byte("stored"))
	bad := bytes.Clone(b)
	bad[at]++
	got, err := readFile(bad)
	want := fmt.Sprintf(`corrupt saved state: section "hourly/window", part 2, at byte %d: checksum`, at-frameHead)
	if err == nil || err.Error() != want || strings.Count(got, "\n") != 0 {
		t.Errorf("%v, want %s", err, want)
	}
	// A length that does not hold asks for no memory.
	bad = bytes.Clone(b)
	bad[at-frameHead+1] = 0x7f
	if _, err := readFile(bad); err == nil || !strings.Contains(err.Error(), "frame's head") {
		t.Errorf("another length: %v", err)
	}
	huge := append(bytes.Clone(b[:fileHead]), appendFrameHead(nil, framePart, 1<<40)...)
	if _, err := readFile(huge); err == nil || !strings.Contains(err.Error(), "1099511627776 bytes") {
		t.Errorf("a frame longer than the file: %v", err)
	}
}

// TestPartsThatChangeTheirLength are a fault of whoever appended them.
func TestPartsThatChangeTheirLength(t *testing.T) {
	p := new(Payload)
	p.AppendStored(3, func(w io.Writer, buf []byte) ([]byte, error) {
		_, err := io.WriteString(w, "four")
		return buf, err
	})
	if _, err := NewSections([]Section{{Body: p}}).WriteTo(io.Discard); err == nil || !strings.HasPrefix(err.Error(), "BUG") {
		t.Errorf("got %v", err)
	}
}

// TestPartsEncodedWhenWritten: their length is not known before, and they may stand among
// bytes and what is stored.
func TestPartsEncodedWhenWritten(t *testing.T) {
	word := "before"
	p := new(Payload)
	p.Append([]byte("a "))
	p.AppendLater(func(dst []byte) []byte { return append(dst, word...) })
	p.AppendStored(7, func(w io.Writer, buf []byte) ([]byte, error) {
		_, err := io.WriteString(w, " stored")
		return buf, err
	})
	p.Cut()
	p.AppendLater(func(dst []byte) []byte { return dst })
	p.Cut()
	p.Append([]byte("known"))
	for i, want := range []int64{-1, -1, 5} {
		if p.PartBytes(i) != want {
			t.Errorf("part %d has %d bytes, want %d", i, p.PartBytes(i), want)
		}
	}
	word = "later"
	s := NewSections([]Section{{Path: "p", Kind: "K", Fingerprint: 1, Body: p}})
	want := "p K 1 \"a later stored\"\np K 1 \"\"\np K 1 \"known\""
	for range 2 {
		var out bytes.Buffer
		if _, err := s.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if got, err := readFile(out.Bytes()); got != want || err != nil {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// FuzzFileReader: no bytes make it panic, or give a part that is longer than they are.
func FuzzFileReader(f *testing.F) {
	var out bytes.Buffer
	if _, err := sampleFile().WriteTo(&out); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add(out.Bytes()[:fileHead])
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewFileReader(bytes.NewReader(b), int64(len(b)))
		for {
			_, part, err := r.Next()
			if err != nil {
				return
			}
			if len(part) > len(b) {
				t.Fatalf("a part of %d bytes in %d", len(part), len(b))
			}
		}
	})
}
