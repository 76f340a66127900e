package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// batchAt builds a batch of n records from the offset on, each saying where it
// belongs; record i has timestamp 1000*offset.
func batchAt(t testing.TB, partition uint64, offset int64, n int, pad int) []byte {
	t.Helper()
	var b record.Builder
	for i := range int64(n) {
		o := offset + i
		value := append(fmt.Appendf(nil, "p%d o%d ", partition, o), bytes.Repeat([]byte("x"), pad)...)
		if err := b.Append(1000*o, nil, value, nil); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	record.Assign(raw, offset, 5)
	return raw
}

// run builds consecutive batches of the given sizes.
func run(t testing.TB, partition uint64, offset int64, pad int, sizes ...int) (raw []byte, next int64) {
	for _, n := range sizes {
		raw = append(raw, batchAt(t, partition, offset, n, pad)...)
		offset += int64(n)
	}
	return raw, offset
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mixed writes a segment of three partitions: 3 with offsets 10 to 29, 8 with
// 0 to 99, 9 with 5 only.
func mixed(t testing.TB, fsys vfs.FS, path string, extentBytes int) Info {
	t.Helper()
	w, err := Create(fsys, path, Options{Meta: Meta{ID: 77, Kind: Mixed, CreatedMs: 1700000000000}, ExtentBytes: extentBytes})
	must(t, err)
	defer w.Close()
	a, _ := run(t, 3, 10, 0, 5, 5, 10)
	b, _ := run(t, 8, 0, 0, 1, 2, 3, 4, 30, 40, 20)
	c, _ := run(t, 9, 5, 0, 1)
	for _, x := range []struct {
		partition uint64
		raw       []byte
		ms        int64
	}{{3, a, 100}, {8, b, 101}, {9, c, 99}} {
		_, err := w.Append(x.partition, x.raw, x.ms)
		must(t, err)
	}
	info, err := w.Seal()
	must(t, err)
	return info
}

// readAll reads a partition from an offset on, skipping what is rotten, extent by
// extent and in runs, which must give the same. It checks that every record says its
// own place.
func readAll(t *testing.T, r *Reader, partition uint64, offset int64) (offsets []int64, rots []*RotError) {
	t.Helper()
	offsets, rots = readBy(t, partition, offset, 16, func(buf []byte, offset int64) ([]byte, error) { return r.ReadAt(buf, partition, offset) })
	inRuns, rotsInRuns := readBy(t, partition, offset, vfs.DirectAlign, func(buf []byte, offset int64) ([]byte, error) {
		pieces, next, err := r.ReadRun(buf, partition, offset, 1<<20)
		all := bytes.Join(pieces, nil)
		if after, _ := behind(all); err == nil && after != next {
			t.Fatalf("the next offset is %d, the batches end at %d", next, after)
		}
		return all, err
	})
	if !slices.Equal(offsets, inRuns) || fmt.Sprint(rots) != fmt.Sprint(rotsInRuns) {
		t.Fatalf("partition %d from %d in runs: %d, %v; want %d, %v", partition, offset, inRuns, rotsInRuns, offsets, rots)
	}
	return offsets, rots
}

func readBy(t *testing.T, partition uint64, offset int64, room int, read func(buf []byte, offset int64) ([]byte, error)) (offsets []int64, rots []*RotError) {
	t.Helper()
	buf := make([]byte, room)
	for {
		got, err := read(buf, offset)
		var short *ShortBufferError
		var rot *RotError
		switch {
		case errors.As(err, &short):
			buf = make([]byte, short.Need)
			continue
		case errors.Is(err, ErrOffset):
			return offsets, rots
		case errors.As(err, &rot):
			if rot.Partition != partition || rot.To < offset || rot.To < rot.From {
				t.Fatalf("at %d of %d: %v", offset, partition, err)
			}
			rots = append(rots, rot)
			offset = rot.To + 1
			continue
		case err != nil:
			t.Fatal(err)
		}
		if len(got) == 0 {
			t.Fatal("nothing without an error")
		}
		for len(got) > 0 {
			var b record.Batch
			b, got, err = record.Split(got)
			must(t, err)
			if b.LeaderEpoch != 5 {
				t.Fatalf("leader epoch %d", b.LeaderEpoch)
			}
			offsets = append(offsets, checkBatch(t, b, partition)...)
			offset = b.LastOffset() + 1
		}
	}
}

func checkBatch(t *testing.T, b record.Batch, partition uint64) (offsets []int64) {
	t.Helper()
	it, err := new(record.Decoder).Records(b)
	must(t, err)
	var r record.Record
	for it.Next(&r) {
		if want := fmt.Sprintf("p%d o%d ", partition, r.Offset); !bytes.HasPrefix(r.Value, []byte(want)) || r.Timestamp != 1000*r.Offset {
			t.Fatalf("offset %d of partition %d holds %q", r.Offset, partition, r.Value)
		}
		offsets = append(offsets, r.Offset)
	}
	must(t, it.Err())
	return offsets
}

func wantOffsets(t *testing.T, what string, got []int64, from, to int64) {
	t.Helper()
	if int64(len(got)) != to-from+1 || got[0] != from || got[len(got)-1] != to {
		t.Fatalf("%s: offsets %v, want %d to %d", what, got, from, to)
	}
}

func TestMixedSegment(t *testing.T) {
	for _, extentBytes := range []int{1, 400, 0} {
		mem := vfs.NewMem()
		info := mixed(t, mem, "s", extentBytes)
		if info.Batches != 11 || !info.Sealed || info.MinAppendMs != 99 || info.MaxAppendMs != 101 {
			t.Fatalf("info %+v", info)
		}
		if want := map[int]int{1: 11, 0: 3}[extentBytes]; want != 0 && info.Extents != want {
			t.Fatalf("%d extents, want %d", info.Extents, want)
		}
		r, err := Open(mem.CrashClone(vfs.CrashOptions{}), "s") // sealed is durable
		must(t, err)
		defer r.Close()
		if again, err := r.Info(); err != nil || again != info || r.Damage() != nil {
			t.Fatalf("%+v, want %+v, %v, %v", again, info, err, r.Damage())
		}
		for _, p := range []struct {
			partition uint64
			from, to  int64
		}{{3, 10, 29}, {8, 0, 99}, {9, 5, 5}} {
			got, rots := readAll(t, r, p.partition, 0)
			wantOffsets(t, "all", got, p.from, p.to)
			if rots != nil {
				t.Fatal(rots)
			}
		}
		for _, p := range []uint64{0, 4, 10} {
			if _, err := r.ReadAt(nil, p, 0); !errors.Is(err, ErrOffset) {
				t.Fatalf("partition %d: %v", p, err)
			}
		}
		if _, err := r.ReadAt(nil, 9, 6); !errors.Is(err, ErrOffset) {
			t.Fatal(err)
		}
		report, err := Scrub(mem, "s", ScrubOptions{})
		if err != nil || len(report.Damage) != 0 || report.Info != info {
			t.Fatalf("%+v, %v", report, err)
		}
	}
}

func TestReadStartsAtTheBatchOfTheOffset(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 0)
	r, err := Open(mem, "s")
	must(t, err)
	defer r.Close()
	buf := make([]byte, 64<<10)
	for offset, want := range map[int64]int64{0: 0, 1: 1, 2: 1, 3: 3, 9: 6, 10: 10, 39: 10, 40: 40, 79: 40, 80: 80, 99: 80} {
		got, err := r.ReadAt(buf, 8, offset)
		must(t, err)
		h, err := record.ParseHeader(got)
		must(t, err)
		if h.BaseOffset != want {
			t.Errorf("offset %d: batch at %d, want %d", offset, h.BaseOffset, want)
		}
	}
}

func TestReadFillsTheBufferOverExtents(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 1) // one batch per extent
	r, err := Open(mem, "s")
	must(t, err)
	defer r.Close()
	x, err := r.Index()
	must(t, err)
	ext := x.Partition(8)
	for n := 1; n <= len(ext); n++ {
		size := 0
		for _, e := range ext[:n] {
			size += int(e.Length)
		}
		for _, more := range []int{0, 1} {
			got, err := r.ReadAt(make([]byte, size+more), 8, 0)
			if err != nil || len(got) != size {
				t.Fatalf("%d bytes in a buffer of %d, %v", len(got), size+more, err)
			}
		}
		var short *ShortBufferError
		if _, err := r.ReadAt(make([]byte, ext[0].Length-1), 8, 0); !errors.As(err, &short) || short.Need != int(ext[0].Length) {
			t.Fatalf("short buffer: %v", err)
		}
	}
}

func TestOffsetForTime(t *testing.T) {
	for _, extentBytes := range []int{1, 0} {
		mem := vfs.NewMem()
		mixed(t, mem, "s", extentBytes)
		r, err := Open(mem, "s")
		must(t, err)
		defer r.Close()
		var d record.Decoder
		for _, c := range []struct{ ts, offset int64 }{{-5, 10}, {0, 10}, {10000, 10}, {10001, 11}, {15000, 15}, {28001, 29}, {29000, 29}} {
			offset, found, err := r.OffsetForTime(3, c.ts, &d)
			if err != nil || offset != c.offset || found != 1000*c.offset {
				t.Errorf("time %d: offset %d at %d, want %d, %v", c.ts, offset, found, c.offset, err)
			}
		}
		if _, _, err := r.OffsetForTime(3, 29001, &d); !errors.Is(err, ErrOffset) {
			t.Errorf("after the last: %v", err)
		}
	}
}

// TestOffsetForTimeOutOfOrder has timestamps that fall: the first offset at or
// after the time counts, not the nearest time.
func TestOffsetForTimeOutOfOrder(t *testing.T) {
	mem := vfs.NewMem()
	w, err := Create(mem, "s", Options{Meta: Meta{ID: 1, Kind: Mixed}, ExtentBytes: 1})
	must(t, err)
	for i, ts := range []int64{50, 10, 40, 90, 20, 95} {
		var b record.Builder
		must(t, b.Append(ts, nil, nil, nil))
		raw, _ := b.Build()
		record.Assign(raw, int64(i), 0)
		_, err := w.Append(4, raw, 0)
		must(t, err)
	}
	_, err = w.Seal()
	must(t, err)
	r := w.Reader()
	for ts, want := range map[int64]int64{0: 0, 20: 0, 50: 0, 51: 3, 90: 3, 91: 5, 95: 5} {
		if got, _, err := r.OffsetForTime(4, ts, new(record.Decoder)); err != nil || got != want {
			t.Errorf("time %d: offset %d, want %d, %v", ts, got, want, err)
		}
	}
	must(t, w.Close())
}

func TestOrderIsEnforced(t *testing.T) {
	mem := vfs.NewMem()
	w, err := Create(mem, "s", Options{Meta: Meta{ID: 1, Kind: Mixed}})
	must(t, err)
	_, err = w.Append(5, batchAt(t, 5, 10, 5, 0), 0)
	must(t, err)
	before := w.End()
	twice := append(batchAt(t, 6, 5, 1, 0), batchAt(t, 6, 5, 1, 0)...)
	bad := batchAt(t, 5, 20, 1, 0)
	bad[len(bad)-1] ^= 1
	for name, c := range map[string]struct {
		partition uint64
		raw       []byte
		want      error
	}{
		"lower partition":        {4, batchAt(t, 4, 0, 1, 0), ErrOrder},
		"same offset":            {5, batchAt(t, 5, 14, 1, 0), ErrOrder},
		"same offset within":     {6, twice, ErrOrder},
		"wrong checksum":         {5, bad, record.ErrChecksum},
		"second batch cut short": {6, append(batchAt(t, 6, 0, 1, 0), 1, 2, 3), record.ErrTruncated},
	} {
		if _, err := w.Append(c.partition, c.raw, 0); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.End() != before {
		t.Fatal("a refused append wrote something")
	}
	_, err = w.Append(5, batchAt(t, 5, 15, 1, 0), 0)
	must(t, err)
	_, err = w.Seal()
	must(t, err)
	if _, err := w.Append(9, batchAt(t, 9, 0, 1, 0), 0); !errors.Is(err, ErrFailed) {
		t.Fatalf("append after seal: %v", err)
	}
	must(t, w.Close())
	if _, err := Create(mem, "s", Options{Meta: Meta{ID: 2, Kind: Mixed}}); !errors.Is(err, vfs.ErrExist) {
		t.Fatalf("overwrote a segment: %v", err)
	}
}

func own(t testing.TB, fsys vfs.FS, path string) *Writer {
	t.Helper()
	w, err := Create(fsys, path, Options{Meta: Meta{ID: 9, Kind: Own, Partition: 42, BaseOffset: 100}, ExtentBytes: 500})
	must(t, err)
	return w
}

func TestOwnSegmentGrowsAndSeals(t *testing.T) {
	mem := vfs.NewMem()
	w := own(t, mem, "s")
	r := w.Reader()
	next := int64(100)
	var raw []byte
	for i := range 10 {
		raw, next = run(t, 42, next, 10, 3, 4, 5)
		rg, err := w.Append(42, raw, int64(i))
		must(t, err)
		if rg.To != w.End() || rg.From >= rg.To {
			t.Fatalf("range %+v, end %d", rg, w.End())
		}
		got, _ := readAll(t, r, 42, 0)
		wantOffsets(t, "while growing", got, 100, next-1)
	}
	if _, err := w.Append(43, raw, 0); !errors.Is(err, ErrOrder) {
		t.Fatal(err)
	}
	info, err := w.Seal()
	must(t, err)
	got, _ := readAll(t, r, 42, 150)
	wantOffsets(t, "after seal", got, 148, next-1)
	must(t, w.Close())
	if _, err := r.ReadAt(make([]byte, 1<<10), 42, 100); !errors.Is(err, vfs.ErrClosed) {
		t.Fatalf("reading after close: %v", err)
	}
	re, err := Open(mem, "s")
	must(t, err)
	defer re.Close()
	if again, _ := re.Info(); again != info {
		t.Fatalf("%+v, want %+v", again, info)
	}
}

func TestFailedWritesAndSyncsAreFinal(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpSync, vfs.OpSyncDir} {
		inj := &vfs.Nth{Kinds: kind, From: 1, Short: 7}
		if kind == vfs.OpSyncDir {
			inj.From = 0
		}
		fsys := vfs.NewFault(vfs.NewMem(), inj)
		w := own(t, fsys, "s")
		var failed error
		next := int64(100)
		for range 3 {
			var raw []byte
			raw, next = run(t, 42, next, 0, 1)
			if _, failed = w.Append(42, raw, 0); failed == nil {
				failed = w.Sync()
			}
			if failed != nil {
				break
			}
		}
		if failed == nil || inj.Fired() != 1 {
			t.Fatalf("kind %d: %v, fired %d", kind, failed, inj.Fired())
		}
		seen := inj.Seen()
		if err := w.Sync(); !errors.Is(err, ErrFailed) {
			t.Fatalf("kind %d: sync after a failure: %v", kind, err)
		}
		if _, err := w.Seal(); !errors.Is(err, ErrFailed) {
			t.Fatalf("kind %d: seal after a failure: %v", kind, err)
		}
		if inj.Seen() != seen {
			t.Fatalf("kind %d: tried again", kind)
		}
		must(t, w.Abort())
	}
}

// TestCrashWhileSealing crashes before each operation of writing a mixed
// segment. Until Seal returned nothing is promised; whatever stands there must
// open as a segment of right records or be refused.
func TestCrashWhileSealing(t *testing.T) {
	mem := vfs.NewMem()
	rng := rand.New(rand.NewPCG(11, 0))
	points := 0
	fsys := vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&vfs.OpsMutating == 0 {
			return nil
		}
		for _, percent := range []int{0, 50, 90, 100} {
			points++
			clone := mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: percent, Rand: rng})
			r, err := Open(clone, "s")
			if err != nil {
				continue
			}
			for _, p := range []uint64{3, 8, 9} {
				readAll(t, r, p, 0) // fails the test if a record is wrong
			}
			r.Close()
		}
		return nil
	}))
	mixed(t, fsys, "s", 400)
	if points < 12 {
		t.Fatalf("%d crash points", points)
	}
}

func TestReadErrorIsNotRot(t *testing.T) {
	mem := vfs.NewMem()
	mixed(t, mem, "s", 0)
	fsys := vfs.NewFault(mem, nil)
	r, err := Open(fsys, "s")
	must(t, err)
	defer r.Close()
	fsys.SetInjector(&vfs.Nth{Kinds: vfs.OpRead})
	var rot *RotError
	if _, err := r.ReadAt(make([]byte, 1<<16), 8, 0); err == nil || errors.As(err, &rot) {
		t.Fatalf("got %v", err)
	}
	got, _ := readAll(t, r, 8, 0)
	wantOffsets(t, "after the error went away", got, 0, 99)
}

func TestOptionsValidate(t *testing.T) {
	for _, o := range []Options{{}, {Meta: Meta{Kind: 3}}, {Meta: Meta{Kind: Mixed, Partition: 1}}, {Meta: Meta{Kind: Own, BaseOffset: -1}}, {Meta: Meta{Kind: Own}, ExtentBytes: -1}} {
		if _, err := Create(vfs.NewMem(), "s", o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
}
