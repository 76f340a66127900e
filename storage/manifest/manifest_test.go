package manifest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
