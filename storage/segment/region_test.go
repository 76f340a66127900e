package segment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// memory is what a region is laid out in, with something of before in it.
func memory(size int) []byte { return bytes.Repeat([]byte{0xaa}, RegionBytes(size)) }

// extentOf lays one extent out in a region.
func extentOf(t testing.TB, w *Writer, r *Region, raw []byte, ms int64) Extent {
	t.Helper()
	n := 0
	for rest := raw; len(rest) > 0; n++ {
		h, err := record.ParseHeader(rest)
		must(t, err)
		rest = rest[h.Size():]
	}
	if !r.Fits(n, len(raw)) {
		t.Fatalf("%d batches of %d bytes do not fit", n, len(raw))
	}
	copy(r.Reserve(n, len(raw)), raw)
	e, err := r.Commit(w, len(raw), ms)
	must(t, err)
	return e
}

// regions makes an own segment with the offsets from 100 to 131: two regions, the
// first of two extents and the second after one that was dropped, and an append.
func regions(t testing.TB, fsys vfs.FS, path string) *Writer {
	t.Helper()
	w, err := Create(fsys, path, Options{Meta: Meta{ID: 9, Kind: Own, Partition: 42, BaseOffset: 100}})
	must(t, err)
	a, next := run(t, 42, 100, 0, 2, 1)
	b, next := run(t, 42, next, 0, 5)
	c, next := run(t, 42, next, 0, 3, 1)
	d, _ := run(t, 42, next, 0, 20)
	r, err := w.BeginRegion(memory(4096))
	must(t, err)
	extentOf(t, w, r, a, 1)
	extentOf(t, w, r, b, 2)
	must(t, w.WriteRegions())
	must(t, w.TakeRegions())
	// What is dropped is larger than what takes its place.
	r, err = w.BeginRegion(memory(60_000))
	must(t, err)
	lost, _ := run(t, 42, 108, 5000, 2, 2)
	extentOf(t, w, r, lost, 3)
	must(t, w.WriteRegions())
	w.DropRegions()
	r, err = w.BeginRegion(memory(4096))
	must(t, err)
	if e := extentOf(t, w, r, c, 4); e.Position != 2*vfs.DirectAlign {
		t.Fatalf("the second region is at %d", e.Position)
	}
	must(t, w.WriteRegions())
	must(t, w.TakeRegions())
	must(t, w.Sync())
	_, err = w.Append(42, d, 5)
	must(t, err)
	return w
}

func TestRegions(t *testing.T) {
	mem := vfs.NewMem()
	w := regions(t, mem, "s")
	got, _ := readAll(t, w.Reader(), 42, 0)
	wantOffsets(t, "growing", got, 100, 131)
	info, err := w.Seal()
	must(t, err)
	if info.Batches != 6 || info.MinAppendMs != 1 || info.MaxAppendMs != 5 {
		t.Errorf("%+v", info)
	}
	must(t, w.Close())
	r, err := Open(mem.CrashClone(vfs.CrashOptions{}), "s")
	must(t, err)
	defer r.Close()
	if err := r.Damage(); err != nil {
		t.Errorf("what was dropped stands behind the trailer: %v", err)
	}
	got, _ = readAll(t, r, 42, 0)
	wantOffsets(t, "sealed", got, 100, 131)
	if again, _ := r.Info(); again != info {
		t.Errorf("%+v, want %+v", again, info)
	}
	rep, err := Scrub(mem, "s", ScrubOptions{})
	must(t, err)
	if len(rep.Damage) > 0 {
		t.Errorf("scrub: %v", rep.Damage)
	}
}

func TestRegionsAreForOwnSegments(t *testing.T) {
	w, err := Create(vfs.NewMem(), "s", Options{Meta: Meta{ID: 1, Kind: Mixed}})
	must(t, err)
	if _, err := w.BeginRegion(memory(4096)); !errors.Is(err, ErrOrder) {
		t.Errorf("in a mixed segment: %v", err)
	}
	w = own(t, vfs.NewMem(), "s")
	if _, err := w.BeginRegion(make([]byte, 5000)); !errors.Is(err, ErrOrder) {
		t.Errorf("with memory of 5000 bytes: %v", err)
	}
	r, err := w.BeginRegion(memory(4096))
	must(t, err)
	raw, _ := run(t, 42, 100, 0, 1)
	copy(r.Reserve(2, len(raw)), raw)
	if _, err := r.Commit(w, len(raw), 0); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("one batch where two were announced: %v", err)
	}
}

// An extent that is described elsewhere is read without the help of the file, and
// only if every byte is right.
func TestReadExtent(t *testing.T) {
	mem := vfs.NewMem()
	w := own(t, mem, "s")
	r, err := w.BeginRegion(memory(4096))
	must(t, err)
	raw, _ := run(t, 42, 100, 0, 2, 1)
	e := extentOf(t, w, r, raw, 1)
	must(t, w.WriteRegions())
	must(t, w.Close())
	data := content(t, mem, "s")
	read := func(data []byte) ([]byte, error) {
		f, err := replaced(t, data).Open("s")
		must(t, err)
		defer f.Close()
		return ReadExtent(f, "s", e)
	}
	for bit := range len(data) * 8 {
		if bit > 4096 && bit < 4096*8 {
			continue // zeros before the region
		}
		data[bit/8] ^= 1 << (bit % 8)
		got, err := read(data)
		var rot *RotError
		switch at := int64(bit / 8); {
		case at < e.payload() || at >= e.End():
			if err != nil || !bytes.Equal(got, raw) {
				t.Fatalf("bit %d, which is not of the batches: %v", bit, err)
			}
		case !errors.As(err, &rot) || rot.From != 100 || rot.To != 102:
			t.Fatalf("bit %d of the batches: %v", bit, err)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	var rot *RotError
	if _, err := read(data[:e.End()-1]); !errors.As(err, &rot) {
		t.Errorf("a short file: %v", err)
	}
}

// TestBitFlipsOfRegions flips bits with and without a footer; of long runs of zeros
// a few.
func TestBitFlipsOfRegions(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		mem := vfs.NewMem()
		w := regions(t, mem, "s")
		if sealed {
			_, err := w.Seal()
			must(t, err)
		} else {
			must(t, w.file.f.Truncate(w.End())) // what was dropped is not there after a crash
		}
		must(t, w.Close())
		data := content(t, mem, "s")
		all := places(t, mem)
		for bit := range len(data) * 8 {
			at := bit / 8
			if isZero(data[max(0, at-16):min(len(data), at+16)]) && bit%2048 != 0 {
				continue
			}
			data[at] ^= 1 << (bit % 8)
			what := fmt.Sprintf("sealed %v, bit %d (byte %d of %d)", sealed, bit, at, len(data))
			if sealed {
				checkFlip(t, replaced(t, data), what, int64(at), all)
			} else {
				checkGrowing(t, replaced(t, data), what, int64(at), all)
			}
			data[at] ^= 1 << (bit % 8)
		}
	}
}

func TestGoldenRegions(t *testing.T) {
	mem := vfs.NewMem()
	w, err := Create(mem, "regions", Options{Meta: Meta{ID: 79, Kind: Own, Partition: 42, BaseOffset: 100, CreatedMs: 1700000000002}})
	must(t, err)
	for _, at := range []int64{100, 102} {
		r, err := w.BeginRegion(memory(4096))
		must(t, err)
		extentOf(t, w, r, single(t, at, 1000, "a"), 1700000000003)
		extentOf(t, w, r, single(t, at+1, 1000, "b"), 1700000000003)
		must(t, w.WriteRegions())
		must(t, w.TakeRegions())
	}
	_, err = w.Seal()
	must(t, err)
	must(t, w.Close())
	want := golden(t, "regions")
	if got := content(t, mem, "regions"); !bytes.Equal(got, want) {
		t.Errorf("got\n%swant\n%s", hex.Dump(got), hex.Dump(want))
	}
	r, err := Open(replaced(t, want), "s")
	must(t, err)
	defer r.Close()
	got, err := r.ReadAt(make([]byte, 1000), 42, 103)
	if err != nil || !bytes.Equal(got, single(t, 103, 1000, "b")) {
		t.Fatalf("%x, %v", got, err)
	}
}
