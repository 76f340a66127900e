package manifest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

const dir = "meta"

// state is a caller's state for tests: a list of what was applied, in order. A
// snapshot of it is the list, as entries of kind 1; edits are kind 2.
type state struct {
	values []uint64
}

func (s *state) apply(kind uint16, payload []byte) error {
	if (kind != 1 && kind != 2) || len(payload) < 8 {
		return fmt.Errorf("unexpected entry of kind %d, %d bytes", kind, len(payload))
	}
	s.values = append(s.values, binary.BigEndian.Uint64(payload))
	return nil
}

func (s *state) write(emit func(uint16, []byte) error) error {
	for _, v := range s.values {
		if err := emit(1, value(v)); err != nil {
			return err
		}
	}
	return nil
}

// value is v with a filler whose length depends on it.
func value(v uint64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, v), bytes.Repeat([]byte{byte(v)}, int(v%37))...)
}

func edits(from, n uint64) []Edit {
	var out []Edit
	for v := from; v < from+n; v++ {
		out = append(out, Edit{Kind: 2, Payload: value(v)})
	}
	return out
}

func mustOpen(t *testing.T, fsys vfs.FS, s *state) (*Log, Recovery) {
	t.Helper()
	l, rec, err := Open(fsys, dir, Options{}, s.apply)
	if err != nil {
		t.Fatal(err)
	}
	return l, rec
}

// checkPrefix fails unless the state is 0, 1, 2... up to a count in [least, most].
func checkPrefix(t *testing.T, what string, s *state, least, most uint64) {
	t.Helper()
	for i, v := range s.values {
		if v != uint64(i) {
			t.Fatalf("%s: entry %d is %d", what, i, v)
		}
	}
	if n := uint64(len(s.values)); n < least || n > most {
		t.Fatalf("%s: %d entries survived, want %d to %d", what, n, least, most)
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	mem := vfs.NewMem()
	var s state
	l, rec := mustOpen(t, mem, &s)
	if !rec.Created {
		t.Fatal("not created")
	}
	if err := l.Append(edits(0, 3)...); err != nil {
		t.Fatal(err)
	}
	if err := l.AppendNoSync(edits(3, 1)...); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(edits(9, 1)...); !errors.Is(err, ErrFailed) {
		t.Fatalf("append after close: %v", err)
	}
	s = state{}
	l, rec = mustOpen(t, mem, &s)
	defer l.Close()
	checkPrefix(t, "reopened", &s, 4, 4)
	if rec.Created || rec.Entries != 4 || rec.TornBytes != 0 || rec.HealedFrames != 0 || rec.CurrentRebuilt {
		t.Fatalf("recovery %+v", rec)
	}
}

func TestMustExist(t *testing.T) {
	_, _, err := Open(vfs.NewMem(), dir, Options{MustExist: true}, (&state{}).apply)
	if !errors.Is(err, ErrMissing) {
		t.Fatalf("got %v", err)
	}
}

func TestApplyErrorEndsOpen(t *testing.T) {
	mem := vfs.NewMem()
	l, _ := mustOpen(t, mem, &state{})
	if err := l.Append(edits(0, 1)...); err != nil {
		t.Fatal(err)
	}
	l.Close()
	want := errors.New("refused")
	if _, _, err := Open(mem, dir, Options{}, func(uint16, []byte) error { return want }); !errors.Is(err, want) {
		t.Fatalf("got %v", err)
	}
}

func TestSnapshotRewrites(t *testing.T) {
	mem := vfs.NewMem()
	var s state
	l, _, err := Open(mem, dir, Options{MinRewriteBytes: 1 << 10}, s.apply)
	if err != nil {
		t.Fatal(err)
	}
	for v := uint64(0); !l.ShouldSnapshot(); v++ {
		if v > 1000 {
			t.Fatal("never asked for a snapshot")
		}
		if err := l.Append(Edit{Kind: 2, Payload: value(0)}); err != nil {
			t.Fatal(err)
		}
	}
	s.values = []uint64{0, 1, 2} // much smaller than the log
	before := l.Stats()
	if err := l.Snapshot(s.write); err != nil {
		t.Fatal(err)
	}
	after := l.Stats()
	if after.Bytes >= before.Bytes || after.Generation != before.Generation+1 || l.ShouldSnapshot() {
		t.Fatalf("before %+v, after %+v", before, after)
	}
	if err := l.Append(edits(3, 2)...); err != nil {
		t.Fatal(err)
	}
	l.Close()
	names, err := mem.List(dir)
	if err != nil || strings.Join(names, " ") != "CURRENT manifest-000002" {
		t.Fatalf("directory holds %v, %v", names, err)
	}
	s = state{}
	l, rec := mustOpen(t, mem, &s)
	defer l.Close()
	checkPrefix(t, "after snapshot", &s, 5, 5)
	if rec.File != "manifest-000002" {
		t.Fatalf("recovery %+v", rec)
	}
}

func TestSnapshotInSeveralFrames(t *testing.T) {
	mem := vfs.NewMem()
	l, _ := mustOpen(t, mem, &state{})
	big := bytes.Repeat([]byte("x"), 100<<10)
	err := l.Snapshot(func(emit func(uint16, []byte) error) error {
		for range 20 {
			if err := emit(7, big); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	n := 0
	l, _, err = Open(mem, dir, Options{}, func(kind uint16, payload []byte) error {
		if kind != 7 || !bytes.Equal(payload, big) {
			return errors.New("different")
		}
		n++
		return nil
	})
	if err != nil || n != 20 {
		t.Fatalf("%d entries, %v", n, err)
	}
	l.Close()
}

func TestSnapshotFailureKeepsOldFile(t *testing.T) {
	mem := vfs.NewMem()
	var s state
	l, _ := mustOpen(t, mem, &s)
	if err := l.Append(edits(0, 2)...); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	if err := l.Snapshot(func(func(uint16, []byte) error) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	if err := l.Append(edits(2, 2)...); err != nil {
		t.Fatal(err)
	}
	l.Close()
	l, _ = mustOpen(t, mem, &s)
	defer l.Close()
	checkPrefix(t, "after failed snapshot", &s, 4, 4)
}

func TestTooLarge(t *testing.T) {
	l, _ := mustOpen(t, vfs.NewMem(), &state{})
	defer l.Close()
	if err := l.Append(Edit{Payload: make([]byte, MaxBatchBytes)}); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	if err := l.Append(edits(0, 1)...); err != nil {
		t.Fatalf("refusing a batch must not harm the log: %v", err)
	}
}

func TestConcurrentAppendsShareSyncs(t *testing.T) {
	mem := vfs.NewMem()
	l, _ := mustOpen(t, mem, &state{})
	var wg sync.WaitGroup
	const goroutines, each = 16, 50
	for range goroutines {
		wg.Go(func() {
			for i := range each {
				if err := l.Append(Edit{Kind: 2, Payload: value(uint64(i))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	clone := mem.CrashClone(vfs.CrashOptions{})
	l.Close()
	n := 0
	l, _, err := Open(clone, dir, Options{}, func(uint16, []byte) error { n++; return nil })
	if err != nil || n != goroutines*each {
		t.Fatalf("%d entries survive, %v", n, err)
	}
	l.Close()
}

// workload appends, syncs and rewrites; it tells acked and appended after each
// step and stops at the first error.
func workload(fsys vfs.FS, acked, appended *uint64) error {
	var s state
	l, _, err := Open(fsys, dir, Options{}, s.apply)
	if err != nil {
		return err
	}
	for step := range uint64(24) {
		batch := edits(*appended, 1+step%3)
		*appended += uint64(len(batch))
		if err := l.AppendNoSync(batch...); err != nil {
			return err
		}
		for _, e := range batch {
			_ = s.apply(e.Kind, e.Payload)
		}
		switch {
		case step%7 == 6:
			if err := l.Snapshot(s.write); err != nil {
				return err
			}
			*acked = *appended
		case step%2 == 1:
			if err := l.Sync(); err != nil {
				return err
			}
			*acked = *appended
		}
	}
	if err := l.Close(); err != nil {
		return err
	}
	*acked = *appended
	return nil
}

// reopen checks that a crashed filesystem opens with a prefix, that it can be
// written on, and that it holds both afterwards.
func reopen(t *testing.T, what string, fsys *vfs.MemFS, acked, appended uint64) {
	t.Helper()
	var s state
	l, _, err := Open(fsys, dir, Options{}, s.apply)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	checkPrefix(t, what, &s, acked, appended)
	n := uint64(len(s.values))
	if err := l.Append(edits(n, 2)...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	again := fsys.CrashClone(vfs.CrashOptions{}) // what Open read must be durable now
	l.Close()
	s = state{}
	l, _, err = Open(again, dir, Options{MustExist: true}, s.apply)
	if err != nil {
		t.Fatalf("%s, second time: %v", what, err)
	}
	l.Close()
	checkPrefix(t, what+", second time", &s, n+2, n+2)
}

func TestCrashAtEveryOperation(t *testing.T) {
	seed := uint64(20240607)
	rng := rand.New(rand.NewPCG(seed, 1))
	mem := vfs.NewMem()
	var acked, appended uint64
	points := 0
	fsys := vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&vfs.OpsMutating == 0 {
			return nil
		}
		points++
		for _, percent := range []int{0, 20, 50, 80, 100} {
			clone := mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: percent, Rand: rng})
			what := fmt.Sprintf("seed %d, crash before operation %d (%s %s), %d%% unsynced kept", seed, points, op.Name, op.Path, percent)
			reopen(t, what, clone, acked, appended)
		}
		return nil
	}))
	if err := workload(fsys, &acked, &appended); err != nil {
		t.Fatal(err)
	}
	if points < 40 {
		t.Fatalf("only %d crash points", points)
	}
}

func TestFailEveryOperation(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, short := range []int64{0, 13} {
		for i := int64(0); ; i++ {
			mem := vfs.NewMem()
			inj := &vfs.Nth{Kinds: vfs.OpsMutating, From: i, Short: short}
			var acked, appended uint64
			err := workload(vfs.NewFault(mem, inj), &acked, &appended)
			if inj.Fired() == 0 {
				if i < 40 {
					t.Fatalf("only %d operations", i)
				}
				break
			}
			// A failed removal of an old file is no error; all else is.
			what := fmt.Sprintf("operation %d fails (%v)", i, err)
			for _, percent := range []int{0, 50, 100} {
				reopen(t, what, mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: percent, Rand: rng}), acked, appended)
			}
		}
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	inj := &vfs.Nth{Kinds: vfs.OpSync, Path: "manifest-*", From: 1}
	l, _, err := Open(vfs.NewFault(vfs.NewMem(), inj), dir, Options{}, (&state{}).apply)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(edits(0, 1)...); err == nil {
		t.Fatal("append succeeded without its sync")
	}
	for range 2 {
		if err := l.Append(edits(0, 1)...); !errors.Is(err, ErrFailed) {
			t.Fatalf("got %v", err)
		}
	}
	if err := l.Snapshot((&state{}).write); !errors.Is(err, ErrFailed) {
		t.Fatalf("got %v", err)
	}
	if inj.Seen() != 2 {
		t.Fatalf("%d syncs of the file, the failed one was tried again", inj.Seen())
	}
}

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

// TestGolden holds the format still: the bytes in testdata were made from
// docs/format/manifest.md by a program that shares no code with this package.
func TestGolden(t *testing.T) {
	mem := vfs.NewMem()
	l, _ := mustOpen(t, mem, &state{})
	if err := l.Snapshot(func(emit func(uint16, []byte) error) error { return emit(1, []byte("snapshot")) }); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Edit{Kind: 2, Payload: []byte("one")}, Edit{Kind: 3}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{currentName, "manifest-000002"} {
		got, err := vfs.ReadFile(mem, dir+"/"+name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
		if err != nil {
			t.Fatal(err)
		}
		if hex.Dump(got) != string(want) {
			t.Errorf("%s changed:\n%s", name, hex.Dump(got))
		}
	}
}

// TestGoldenReads reads a directory made of the golden bytes.
func TestGoldenReads(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.Mkdir(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{currentName, "manifest-000002"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
		if err != nil {
			t.Fatal(err)
		}
		f, _ := mem.Create(dir + "/" + name)
		f.Write(undump(t, string(text)))
		f.Close()
	}
	var got []string
	l, _, err := Open(mem, dir, Options{MustExist: true}, func(kind uint16, payload []byte) error {
		got = append(got, fmt.Sprintf("%d:%s", kind, payload))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if want := "1:snapshot 2:one 3:"; strings.Join(got, " ") != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func undump(t *testing.T, text string) []byte {
	t.Helper()
	var out []byte
	for line := range strings.Lines(text) {
		if len(line) < 60 {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line[9:59], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

func TestThirtyThousandEntriesInOneGroup(t *testing.T) {
	inj := &vfs.Nth{Kinds: vfs.OpSync, Path: "manifest-*", From: 1 << 60}
	fsys := vfs.NewFault(vfs.NewOS(), inj)
	path := filepath.Join(t.TempDir(), "meta")
	l, _, err := Open(fsys, path, Options{}, (&state{}).apply)
	if err != nil {
		t.Fatal(err)
	}
	before := inj.Seen()
	start := time.Now()
	for v := uint64(0); v < 30000; v++ {
		if err := l.AppendNoSync(Edit{Kind: 2, Payload: value(v)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	t.Logf("30,000 batches appended in %v", time.Since(start))
	if n := inj.Seen() - before; n != 1 {
		t.Fatalf("%d syncs, want 1", n)
	}
	l.Close()
	var s state
	start = time.Now()
	l, _, err = Open(fsys, path, Options{}, s.apply)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("read back in %v", time.Since(start))
	l.Close()
	checkPrefix(t, "reopened", &s, 30000, 30000)
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

// TestWhatOpenReadIsDurable kills the process, not the machine, with edits in
// the page cache only; the state that the next Open hands out must survive a
// power cut right after.
func TestWhatOpenReadIsDurable(t *testing.T) {
	mem := vfs.NewMem()
	l, _ := mustOpen(t, mem, &state{})
	n := uint64(0)
	for l.Stats().Bytes < 3*maxBufferBytes {
		if err := l.AppendNoSync(edits(n, 1000)...); err != nil {
			t.Fatal(err)
		}
		n += 1000
	}
	var s state // l is left as a killed process leaves it
	l, _ = mustOpen(t, mem, &s)
	read := uint64(len(s.values))
	if read == 0 {
		t.Fatal("nothing was written without a sync")
	}
	clone := mem.CrashClone(vfs.CrashOptions{})
	l.Close()
	s = state{}
	l, _ = mustOpen(t, clone, &s)
	l.Close()
	checkPrefix(t, "after the power cut", &s, read, read)
}

// TestUnfinishedRewriteCannotComeBack has a rewrite cut short between the whole
// new file and CURRENT. The old file grows on; if CURRENT is then damaged, the
// unfinished rewrite must not be taken for the newest state.
func TestUnfinishedRewriteCannotComeBack(t *testing.T) {
	mem := vfs.NewMem()
	var crashed *vfs.MemFS
	fsys := vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind == vfs.OpRename && crashed == nil {
			if ok, _ := vfs.Exists(mem, dir+"/manifest-000002"); ok {
				crashed = mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
			}
		}
		return nil
	}))
	var s state
	l, _ := mustOpen(t, fsys, &s)
	if err := l.Append(edits(0, 2)...); err != nil {
		t.Fatal(err)
	}
	s.values = []uint64{0, 1}
	if err := l.Snapshot(s.write); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if crashed == nil {
		t.Fatal("no rename seen")
	}
	s = state{}
	l, rec := mustOpen(t, crashed, &s)
	if rec.File != "manifest-000001" {
		t.Fatalf("recovery %+v", rec)
	}
	if err := l.Append(edits(2, 3)...); err != nil {
		t.Fatal(err)
	}
	again := crashed.CrashClone(vfs.CrashOptions{})
	l.Close()
	flip(t, again, dir+"/"+currentName, 9)
	s = state{}
	l, rec = mustOpen(t, again, &s)
	l.Close()
	checkPrefix(t, "with CURRENT damaged", &s, 5, 5)
	if !rec.CurrentRebuilt {
		t.Fatalf("recovery %+v", rec)
	}
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
