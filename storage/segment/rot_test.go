package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

func content(t testing.TB, fsys vfs.FS, path string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(fsys, path)
	must(t, err)
	return b
}

func replaced(t testing.TB, data []byte) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	f, err := mem.Create("s")
	must(t, err)
	_, err = f.Write(data)
	must(t, err)
	must(t, f.Close())
	return mem
}

// place is where a batch stands in a file.
type place struct {
	partition  uint64
	from, to   int64
	start, end int64
}

// places finds all batches of an undamaged segment.
func places(t *testing.T, fsys vfs.FS) []place {
	t.Helper()
	r, err := Open(fsys, "s")
	must(t, err)
	defer r.Close()
	x, err := r.Index()
	must(t, err)
	data := content(t, fsys, "s")
	var out []place
	for _, e := range x.Extents() {
		for at := e.payload(); at < e.End(); {
			h, err := record.ParseHeader(data[at:])
			must(t, err)
			out = append(out, place{e.Partition, h.BaseOffset, h.LastOffset(), at, at + int64(h.Size())})
			at += int64(h.Size())
		}
	}
	return out
}

// checkFlip opens a segment with one changed byte and checks that at most the
// batch that was hit is lost, that it is named, and that scrub finds the damage.
func checkFlip(t *testing.T, fsys vfs.FS, what string, at int64, all []place) {
	t.Helper()
	var hit *place
	for i := range all {
		if at >= all[i].start && at < all[i].end {
			hit = &all[i]
		}
	}
	r, err := Open(fsys, "s")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer r.Close()
	want := map[uint64]int{}
	seen := map[uint64]bool{}
	for i := range all {
		seen[all[i].partition] = true
		if &all[i] != hit {
			want[all[i].partition] += int(all[i].to - all[i].from + 1)
		}
	}
	for p := range seen {
		got, rots := readAll(t, r, p, 0)
		if len(got) != want[p] {
			t.Fatalf("%s: partition %d has %d records, want %d", what, p, len(got), want[p])
		}
		if hit == nil || hit.partition != p {
			if rots != nil {
				t.Fatalf("%s: %v", what, rots)
			}
			continue
		}
		if len(rots) != 1 || rots[0].From != hit.from || rots[0].To != hit.to || rots[0].Position != hit.start || rots[0].Length != hit.end-hit.start {
			t.Fatalf("%s: %v, want %+v", what, rots, *hit)
		}
	}
	report, err := Scrub(fsys, "s", ScrubOptions{})
	must(t, err)
	lost := 0
	for _, d := range report.Damage {
		if d.Lost {
			lost++
			if hit == nil || d.Partition != hit.partition || d.From != hit.from || d.To != hit.to {
				t.Fatalf("%s: scrub says %v", what, d)
			}
		}
	}
	if len(report.Damage) == 0 || (hit != nil) != (lost == 1) || lost > 1 {
		t.Fatalf("%s: scrub found %v", what, report.Damage)
	}
}

func TestEverySingleBitFlipOfASealedSegment(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 400)
	data := content(t, mem, "s")
	all := places(t, mem)
	step := 1
	if testing.Short() {
		step = 13
	}
	for bit := 0; bit < len(data)*8; bit += step {
		data[bit/8] ^= 1 << (bit % 8)
		checkFlip(t, replaced(t, data), fmt.Sprintf("bit %d (byte %d of %d)", bit, bit/8, len(data)), int64(bit/8), all)
		data[bit/8] ^= 1 << (bit % 8)
	}
}

// TestEverySingleBitFlipOfAGrowingSegment has no footer to help.
func TestEverySingleBitFlipOfAGrowingSegment(t *testing.T) {
	mem := vfs.NewMem()
	w := own(t, mem, "s")
	next := int64(100)
	for range 3 {
		var raw []byte
		raw, next = run(t, 42, next, 0, 2, 1, 3, 2)
		_, err := w.Append(42, raw, 7)
		must(t, err)
	}
	must(t, w.Close())
	data := content(t, mem, "s")
	all := places(t, mem)
	for bit := 0; bit < len(data)*8; bit++ {
		data[bit/8] ^= 1 << (bit % 8)
		fsys := replaced(t, data)
		what := fmt.Sprintf("bit %d (byte %d of %d)", bit, bit/8, len(data))
		checkGrowing(t, fsys, what, int64(bit/8), all)
		data[bit/8] ^= 1 << (bit % 8)
	}
}

// checkGrowing is checkFlip without the scrub, whose judgement of a header needs
// a footer.
func checkGrowing(t *testing.T, fsys vfs.FS, what string, at int64, all []place) {
	t.Helper()
	r, err := Open(fsys, "s")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer r.Close()
	got, rots := readAll(t, r, 42, 0)
	want, hit := 0, (*place)(nil)
	for i := range all {
		if at >= all[i].start && at < all[i].end {
			hit = &all[i]
			continue
		}
		want += int(all[i].to - all[i].from + 1)
	}
	if len(got) != want || (hit != nil) != (len(rots) == 1) {
		t.Fatalf("%s: %d records of %d, %v", what, len(got), want, rots)
	}
	if hit != nil && (rots[0].From != hit.from || rots[0].To != hit.to) {
		t.Fatalf("%s: %v, want %+v", what, rots[0], *hit)
	}
}

func TestEveryTruncationOfASealedSegment(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 400)
	data := content(t, mem, "s")
	all := places(t, mem)
	for size := 0; size < len(data); size++ {
		fsys := replaced(t, data[:size])
		r, err := Open(fsys, "s")
		if err != nil {
			if size >= dataStart {
				t.Fatalf("cut to %d: %v", size, err)
			}
			continue
		}
		if !errors.Is(r.Damage(), ErrNoFooter) {
			t.Fatalf("cut to %d: damage %v", size, r.Damage())
		}
		// Whole extents are all there.
		x, _ := r.Index()
		n := 0
		for _, p := range []uint64{3, 8, 9} {
			got, rots := readAll(t, r, p, 0)
			n += len(got)
			if rots != nil {
				t.Fatalf("cut to %d: %v", size, rots)
			}
		}
		want := 0
		for _, e := range x.Extents() {
			for _, p := range all {
				if p.start >= e.Position && p.end <= e.End() {
					want += int(p.to - p.from + 1)
				}
			}
		}
		if n != want {
			t.Fatalf("cut to %d: %d records of %d", size, n, want)
		}
		r.Close()
	}
}

// TestEmbeddedSegmentIsNotTaken stores a segment as the value of a record, and
// damages the outer footer and an extent header, so that the search for extents
// runs over the inner one.
func TestEmbeddedSegmentIsNotTaken(t *testing.T) {
	inner := vfs.NewMem()
	mixed(t, inner, "s", 0)
	var b record.Builder
	must(t, b.Append(0, nil, content(t, inner, "s"), nil))
	raw, err := b.Build()
	must(t, err)
	mem := vfs.NewMem()
	w, err := Create(mem, "s", Options{Meta: Meta{ID: 77, Kind: Mixed}, ExtentBytes: 1})
	must(t, err)
	_, err = w.Append(3, raw, 0)
	must(t, err)
	_, err = w.Append(8, batchAt(t, 8, 500, 2, 0), 0)
	must(t, err)
	_, err = w.Seal()
	must(t, err)
	must(t, w.Close())
	data := content(t, mem, "s")
	data[dataStart+5] ^= 1             // the first extent header
	data[len(data)-trailerSize-3] ^= 1 // the footer
	r, err := Open(replaced(t, data), "s")
	must(t, err)
	defer r.Close()
	x, err := r.Index()
	must(t, err)
	if e := x.Extents(); len(e) != 1 || e[0].Partition != 8 || e[0].BaseOffset != 500 {
		t.Fatalf("extents %+v", e)
	}
	report, err := Scrub(replaced(t, data), "s", ScrubOptions{})
	must(t, err)
	if len(report.Damage) != 2 || report.Damage[0].Part != "unknown bytes" || report.Damage[1].Part != "footer" {
		t.Fatalf("damage %v", report.Damage)
	}
}

func TestZeroedSectorsAreNamed(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 0)
	data := content(t, mem, "s")
	all := places(t, mem)
	for start := int64(0); start+64 <= int64(len(data)); start += 64 {
		broken := bytes.Clone(data)
		clear(broken[start : start+64])
		r, err := Open(replaced(t, broken), "s")
		must(t, err)
		for _, p := range []uint64{3, 8, 9} {
			got, rots := readAll(t, r, p, 0)
			want := 0
			for _, x := range all {
				if x.partition == p {
					want += int(x.to - x.from + 1)
				}
			}
			lost := 0
			for _, rot := range rots {
				lost += int(rot.To - rot.From + 1)
			}
			if len(got)+lost != want {
				t.Fatalf("zeros at %d: partition %d has %d records and %d named as lost, want %d", start, p, len(got), lost, want)
			}
		}
		r.Close()
	}
}

func TestUnknownVersionsAreRefused(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 0)
	data := content(t, mem, "s")
	for name, at := range map[string]int{"header": 0, "trailer": len(data) - trailerSize} {
		broken := bytes.Clone(data)
		b := broken[at:]
		binary.BigEndian.PutUint16(b[8:], version+1)
		binary.BigEndian.PutUint32(b[60:], record.Checksum(b[:60]))
		if _, err := Open(replaced(t, broken), "s"); !errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(replaced(t, bytes.Repeat([]byte("no segment "), 100)), "s"); !errors.Is(err, ErrNotSegment) {
		t.Errorf("another file: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	mem := vfs.NewMem()
	mixed(f, mem, "s", 400)
	f.Add(content(f, mem, "s"))
	w := own(f, mem, "o")
	raw, _ := run(f, 42, 100, 0, 2, 3)
	_, err := w.Append(42, raw, 0)
	must(f, err)
	must(f, w.Close())
	f.Add(content(f, mem, "o"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := replaced(t, data)
		r, err := Open(fsys, "s")
		if err != nil {
			return
		}
		defer r.Close()
		x, err := r.Index()
		must(t, err)
		buf := make([]byte, len(data))
		for _, e := range x.Extents() {
			if e.End() > int64(len(data)) {
				t.Fatalf("extent up to %d in %d bytes", e.End(), len(data))
			}
			got, err := r.ReadAt(buf, e.Partition, e.BaseOffset)
			if err == nil && len(got) == 0 {
				t.Fatal("nothing without an error")
			}
			_, _, _ = r.OffsetForTime(e.Partition, e.MaxTimestamp, &record.Decoder{MaxUnpackedBytes: 1 << 20})
		}
		_, err = Scrub(fsys, "s", ScrubOptions{})
		must(t, err)
	})
}
