package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// small builds a manifest with a snapshot and some batches, closed cleanly.
func small(t *testing.T) *vfs.MemFS {
	mem := vfs.NewMem()
	s := state{values: []uint64{0, 1}}
	l, _ := mustOpen(t, mem, &state{})
	if err := l.Snapshot(s.write); err != nil {
		t.Fatal(err)
	}
	for v := uint64(2); v < 8; v += 2 {
		if err := l.Append(edits(v, 2)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return mem
}

func flip(t *testing.T, fsys vfs.FS, path string, bit int64) {
	t.Helper()
	f, err := fsys.OpenReadWrite(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], bit/8); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << (bit % 8)
	if _, err := f.WriteAt(b[:], bit/8); err != nil {
		t.Fatal(err)
	}
}

func TestEverySingleBitFlipLosesNothing(t *testing.T) {
	mem := small(t)
	for _, name := range []string{currentName, "manifest-000002"} {
		path := dir + "/" + name
		st, err := mem.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for bit := int64(0); bit < st.Size()*8; bit++ {
			fsys := mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
			flip(t, fsys, path, bit)
			var s state
			l, rec, err := Open(fsys, dir, Options{}, s.apply)
			if err != nil {
				t.Fatalf("%s bit %d: %v", name, bit, err)
			}
			checkPrefix(t, fmt.Sprintf("%s bit %d", name, bit), &s, 8, 8)
			if name == currentName && !rec.CurrentRebuilt || name != currentName && (rec.HealedFrames != 1 || !l.ShouldSnapshot()) {
				t.Fatalf("%s bit %d was not noticed: %+v", name, bit, rec)
			}
			l.Close()
		}
	}
}

func TestEveryTruncation(t *testing.T) {
	mem := small(t)
	path := dir + "/manifest-000002"
	st, _ := mem.Stat(path)
	// The snapshot of a file in force was durable; past it, a cut file looks
	// like one whose tail never reached the disk.
	snapshotEnd := snapshotEndOf(t, mem, path)
	for size := int64(0); size < st.Size(); size++ {
		fsys := mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
		f, _ := fsys.OpenReadWrite(path)
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		f.Close()
		var s state
		l, _, err := Open(fsys, dir, Options{}, s.apply)
		var rot *RotError
		switch {
		case errors.As(err, &rot):
			if size >= snapshotEnd {
				t.Fatalf("cut at %d, after the snapshot: %v", size, err)
			}
		case err != nil:
			t.Fatalf("cut at %d: %v", size, err)
		default:
			checkPrefix(t, fmt.Sprintf("cut at %d", size), &s, 2, 8)
			l.Close()
		}
	}
}

func snapshotEndOf(t *testing.T, fsys vfs.FS, path string) int64 {
	t.Helper()
	f, err := fsys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	res, err := replay(f, path, true, func(uint16, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return res.snapshotEnd
}

func TestBothCopiesBadIsRotWithinAndTornAtTheEnd(t *testing.T) {
	mem := small(t)
	path := dir + "/manifest-000002"
	pos := snapshotEndOf(t, mem, path)
	f, _ := mem.Open(path)
	head := make([]byte, frameHeaderSize)
	if _, err := f.ReadAt(head, pos); err != nil {
		t.Fatal(err)
	}
	f.Close()
	h, ok := decodeFrame(head)
	if !ok {
		t.Fatal("no frame after the snapshot")
	}
	flip(t, mem, path, pos*8+5)
	flip(t, mem, path, (pos+h.size()+frameHeaderSize+3)*8)
	var rot *RotError
	_, _, err := Open(mem, dir, Options{}, (&state{}).apply)
	if !errors.As(err, &rot) || rot.Position != pos || rot.Path != path {
		t.Fatalf("got %v, want rot at %d", err, pos)
	}
	// The same damage in the last frame, with no later frame to prove that it
	// had been durable, is a torn tail.
	cut, _ := mem.OpenReadWrite(path)
	if err := cut.Truncate(pos + 2*h.size()); err != nil {
		t.Fatal(err)
	}
	cut.Close()
	var s state
	l, rec, err := Open(mem, dir, Options{}, s.apply)
	if err != nil || rec.TornBytes != 2*h.size() {
		t.Fatalf("%+v, %v", rec, err)
	}
	l.Close()
	checkPrefix(t, "torn", &s, 2, 2)
}

func TestUnknownVersionRefused(t *testing.T) {
	mem := small(t)
	head := make([]byte, fileHeaderSize)
	encodeFileHeader(head, 2)
	binary.BigEndian.PutUint16(head[8:], version+1)
	fixFileHeader(head)
	f, _ := mem.OpenReadWrite(dir + "/manifest-000002")
	f.WriteAt(head, 0)
	f.WriteAt(head, fileHeaderSize)
	f.Close()
	if _, _, err := Open(mem, dir, Options{}, (&state{}).apply); !errors.Is(err, ErrVersion) {
		t.Fatalf("got %v", err)
	}
}

func TestDamagedCurrentAndManifestIsNotAnEmptyState(t *testing.T) {
	for _, current := range []string{"", "manifest-000002 00000000\n"} {
		mem := small(t)
		if err := mem.Remove(dir + "/" + currentName); err != nil {
			t.Fatal(err)
		}
		if current != "" {
			f, _ := mem.Create(dir + "/" + currentName)
			f.Write([]byte(current))
			f.Close()
		}
		flip(t, mem, dir+"/manifest-000002", 3)
		flip(t, mem, dir+"/manifest-000002", fileHeaderSize*8+3)
		if _, _, err := Open(mem, dir, Options{}, (&state{}).apply); !errors.Is(err, ErrMissing) {
			t.Fatalf("CURRENT %q: got %v", current, err)
		}
		if ok, _ := vfs.Exists(mem, dir+"/manifest-000002"); !ok {
			t.Fatal("the damaged manifest was removed")
		}
	}
}

func FuzzReplay(f *testing.F) {
	mem := vfs.NewMem()
	l, _, err := Open(mem, dir, Options{}, (&state{}).apply)
	if err != nil {
		f.Fatal(err)
	}
	l.Append(edits(0, 3)...)
	l.Close()
	good, _ := vfs.ReadFile(mem, dir+"/manifest-000001")
	f.Add(good)
	f.Add(good[:len(good)-7])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		mem := vfs.NewMem()
		file, _ := mem.Create("m")
		file.Write(data)
		res, err := replay(file, "m", true, func(uint16, []byte) error { return nil })
		if err == nil && (res.end > 2*int64(len(data)) || res.snapshotEnd > res.end) {
			t.Fatalf("accepted %+v of %d bytes", res, len(data))
		}
	})
}

// TestHalfTailIsRepaired damages one copy of the last frame, opens, and then
// damages the other: Open wrote both again.
func TestHalfTailIsRepaired(t *testing.T) {
	for second := range 2 {
		mem := vfs.NewMem()
		l, _ := mustOpen(t, mem, &state{})
		if err := l.Append(edits(0, 2)...); err != nil {
			t.Fatal(err)
		}
		size := l.Stats().Bytes
		half := (size - emptyFileSize) / 2
		mem = mem.CrashClone(vfs.CrashOptions{}) // a killed process writes no mark
		l.Close()
		path := dir + "/manifest-000001"
		copies := []int64{emptyFileSize, emptyFileSize + half}
		flip(t, mem, path, (copies[1-second]+frameHeaderSize)*8)
		l, rec := mustOpen(t, mem, &state{})
		if rec.HealedFrames != 1 {
			t.Fatalf("recovery %+v", rec)
		}
		if err := l.Append(edits(2, 1)...); err != nil {
			t.Fatal(err)
		}
		l.Close()
		flip(t, mem, path, (copies[second]+frameHeaderSize)*8)
		var s state
		l, _ = mustOpen(t, mem, &s)
		l.Close()
		checkPrefix(t, "repaired", &s, 3, 3)
	}
}

// fixFileHeader makes the checksum of an altered file header right.
func fixFileHeader(b []byte) {
	binary.BigEndian.PutUint32(b[28:], record.Checksum(b[:28]))
}
