package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/storage/vfs"
	"github.com/millrace/millrace/storage/vfs/vfstest"
)

func TestSuite(t *testing.T) {
	t.Run("os", func(t *testing.T) {
		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return vfs.NewOS(), t.TempDir() })
	})
	t.Run("uncached", func(t *testing.T) {
		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return vfs.NewUncached(vfs.NewOS()), t.TempDir() })
	})
	mem := func(t *testing.T) (*vfs.MemFS, string) {
		m := vfs.NewMem()
		if err := m.MkdirAll("data"); err != nil {
			t.Fatal(err)
		}
		return m, "data"
	}
	t.Run("mem", func(t *testing.T) {
		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return mem(t) })
	})
	t.Run("fault", func(t *testing.T) {
		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
			m, dir := mem(t)
			return vfs.NewFault(m, nil), dir
		})
	})
	t.Run("limited", func(t *testing.T) {
		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
			m, dir := mem(t)
			return vfs.NewLimited(m, 64<<20), dir
		})
	})
	t.Run("overlay", func(t *testing.T) {
		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
			m, dir := mem(t)
			return vfs.NewOverlay(m), dir
		})
	})
	t.Run("trace", func(t *testing.T) {
		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
			m, dir := mem(t)
			return vfs.NewTrace(m, &strings.Builder{}, vfs.OpsAll), dir
		})
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes content over the file from offset 0 without syncing.
func put(t *testing.T, fsys vfs.FS, name, content string) vfs.File {
	t.Helper()
	f, err := fsys.OpenReadWrite(name)
	if errors.Is(err, vfs.ErrNotExist) {
		f, err = fsys.Create(name)
	}
	check(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	check(t, err)
	return f
}

// state is "name=content" of each file under the root, in order of names.
func state(t *testing.T, fsys vfs.FS, dir string) string {
	t.Helper()
	var out []string
	names, err := fsys.List(dir)
	check(t, err)
	for _, n := range names {
		p := fsys.Join(dir, n)
		info, err := fsys.Stat(p)
		check(t, err)
		if info.IsDir() {
			out = append(out, n+"/{"+state(t, fsys, p)+"}")
			continue
		}
		b, err := vfs.ReadFile(fsys, p)
		check(t, err)
		out = append(out, n+"="+string(b))
	}
	return strings.Join(out, " ")
}

func TestMemCrash(t *testing.T) {
	m := vfs.NewMem()
	crash := func(want string) {
		t.Helper()
		if got := state(t, m.CrashClone(vfs.CrashOptions{}), "/"); got != want {
			t.Errorf("after a crash: %q, want %q", got, want)
		}
	}
	f := put(t, m, "a", "1")
	check(t, f.Sync())
	crash("") // the name was not synced
	check(t, m.SyncDir("/"))
	crash("a=1")
	_, err := f.WriteAt([]byte("22"), 0)
	check(t, err)
	crash("a=1")
	check(t, f.SyncData())
	crash("a=22")
	check(t, f.Truncate(1))
	crash("a=22")
	check(t, f.Sync())
	crash("a=2")

	check(t, m.Rename("a", "b"))
	crash("a=2")
	check(t, m.SyncDir("/"))
	crash("b=2")
	check(t, m.Remove("b"))
	crash("b=2")
	check(t, m.SyncDir("/"))
	crash("")

	check(t, vfs.WriteFileAtomic(m, "/c", []byte("3")))
	crash("c=3")
	check(t, vfs.MkdirAllSync(m, "/d/e"))
	check(t, m.Rename("/c", "/d/e/c"))
	crash("c=3 d/{e/{}}")
	check(t, m.SyncDir("/d/e"))
	crash("c=3 d/{e/{c=3}}") // both names, as POSIX allows
	check(t, m.SyncDir("/"))
	crash("d/{e/{c=3}}")
}

func TestMemCrashRenameIsAtomic(t *testing.T) {
	// Syncing only the directory that loses the name must not lose the file.
	m := vfs.NewMem()
	check(t, vfs.MkdirAllSync(m, "/from"))
	check(t, vfs.MkdirAllSync(m, "/to"))
	check(t, vfs.WriteFileAtomic(m, "/from/f", []byte("x")))
	check(t, m.Rename("/from/f", "/to/f"))
	check(t, m.SyncDir("/from"))
	if got, want := state(t, m.CrashClone(vfs.CrashOptions{}), "/"), "from/{} to/{f=x}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// And no random choice may either.
	check(t, m.Rename("/to/f", "/from/g"))
	for seed := range uint64(200) {
		o := vfs.CrashOptions{UnsyncedPercent: 50, Rand: rand.New(rand.NewPCG(seed, 1))}
		if got := state(t, m.CrashClone(o), "/"); !strings.Contains(got, "=x") {
			t.Fatalf("seed %d: the file is gone: %q", seed, got)
		}
	}
}

func TestMemCrashKeepsRandomSectors(t *testing.T) {
	m := vfs.NewMem()
	old, fresh := strings.Repeat("o", 8192), strings.Repeat("n", 8192)
	f := put(t, m, "f", old)
	check(t, f.Sync())
	check(t, m.SyncDir("/"))
	put(t, m, "f", fresh)
	mixed := false
	for seed := range uint64(20) {
		o := vfs.CrashOptions{UnsyncedPercent: 50, Rand: rand.New(rand.NewPCG(seed, 1))}
		c := m.CrashClone(o)
		b, err := vfs.ReadFile(c, "f")
		check(t, err)
		for s := 0; s < len(b); s += 512 {
			if sec := string(b[s : s+512]); sec != old[:512] && sec != fresh[:512] {
				t.Fatalf("seed %d: sector %d is torn: %q", seed, s/512, sec)
			}
		}
		mixed = mixed || (strings.Contains(string(b), "o") && strings.Contains(string(b), "n"))
	}
	if !mixed {
		t.Error("no crash kept a part of the write")
	}
	c := m.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
	if b, _ := vfs.ReadFile(c, "f"); string(b) != fresh {
		t.Error("keeping everything lost something")
	}
}

func TestMemCrashCloneIsIndependent(t *testing.T) {
	m := vfs.NewMem()
	f := put(t, m, "f", "synced")
	check(t, f.Sync())
	check(t, m.SyncDir("/"))
	put(t, m, "f", "SYN")
	c := m.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
	put(t, c, "f", "clone!")
	put(t, m, "f", "origin")
	if got, want := state(t, c, "/"), "f=clone!"; got != want {
		t.Errorf("clone %q, want %q", got, want)
	}
	if got, want := state(t, m, "/"), "f=origin"; got != want {
		t.Errorf("original %q, want %q", got, want)
	}
	if got, want := state(t, m.CrashClone(vfs.CrashOptions{}), "/"), "f=synced"; got != want {
		t.Errorf("second crash %q, want %q", got, want)
	}
}

func TestFaultNth(t *testing.T) {
	m := vfs.NewMem()
	nth := &vfs.Nth{Kinds: vfs.OpWrite, Path: "j*", From: 1, Err: syscall.ENOSPC, Short: 2}
	fsys := vfs.NewFault(m, nth)
	other, err := fsys.Create("other")
	check(t, err)
	f, err := fsys.Create("journal")
	check(t, err)
	for i, want := range []error{nil, syscall.ENOSPC, nil} {
		_, err := other.Write([]byte("x"))
		check(t, err)
		n, err := f.Write([]byte("abc"))
		if !errors.Is(err, want) {
			t.Errorf("write %d: error %v, want %v", i, err, want)
		}
		if want != nil && n != 2 {
			t.Errorf("write %d: wrote %d bytes, want 2", i, n)
		}
	}
	if got, want := state(t, m, "/"), "journal=abcababc other=xxx"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if nth.Seen() != 3 || nth.Fired() != 1 {
		t.Errorf("seen %d, fired %d; want 3, 1", nth.Seen(), nth.Fired())
	}
}

func TestTrace(t *testing.T) {
	var log strings.Builder
	fsys := vfs.NewTrace(vfs.NewMem(), &log, 0)
	f, err := fsys.Create("a")
	check(t, err)
	_, err = f.WriteAt([]byte("xyz"), 7)
	check(t, err)
	fsys.Printf("before the sync")
	check(t, f.SyncData())
	check(t, f.Close())
	check(t, fsys.Rename("a", "b"))
	_ = fsys.Remove("a")
	check(t, fsys.SyncDir("."))
	want := `create a
write-at a offset=7 size=3
before the sync
sync-data a
rename a b
remove a: remove a: file does not exist
sync-dir .
`
	if log.String() != want {
		t.Errorf("got\n%swant\n%s", log.String(), want)
	}
}

func TestLimited(t *testing.T) {
	l := vfs.NewLimited(vfs.NewMem(), 10)
	f, err := l.Create("a")
	check(t, err)
	_, err = f.Write([]byte("12345678"))
	check(t, err)
	n, err := f.Write([]byte("90abc"))
	if n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d bytes with error %v, want 2 and ENOSPC", n, err)
	}
	// Overwriting needs no space.
	_, err = f.WriteAt([]byte("over"), 0)
	check(t, err)
	if err := f.Preallocate(5, 10); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("preallocating over the limit: %v, want ENOSPC", err)
	}
	check(t, l.Remove("a"))
	if l.Used() != 0 {
		t.Errorf("used %d after removing", l.Used())
	}
	check(t, vfs.WriteFileAtomic(l, "b", []byte("1234567890")))
	free, err := l.FreeSpace(".")
	check(t, err)
	if free != 0 {
		t.Errorf("free space %d, want 0", free)
	}
}

func TestOverlayLeavesTheBaseAlone(t *testing.T) {
	m := vfs.NewMem()
	check(t, m.MkdirAll("d/sub"))
	for _, n := range []string{"d/a", "d/b", "d/sub/c"} {
		check(t, vfs.WriteFileAtomic(m, n, []byte(n)))
	}
	before := state(t, m, "/")
	o := vfs.NewOverlay(m)
	put(t, o, "d/a", "changed")
	check(t, o.Remove("d/b"))
	check(t, o.Rename("d/sub", "d/moved"))
	check(t, vfs.WriteFileAtomic(o, "d/new", []byte("new")))
	if got, want := state(t, o, "d"), "a=changed moved/{c=d/sub/c} new=new"; got != want {
		t.Errorf("overlay %q, want %q", got, want)
	}
	if after := state(t, m, "/"); after != before {
		t.Errorf("base %q, was %q", after, before)
	}
}

func TestAllocate(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"os": vfs.NewOS(), "mem": vfs.NewMem(), "limited": vfs.NewLimited(vfs.NewMem(), 100_000)} {
		dir := "/"
		if name == "os" {
			dir = t.TempDir()
		}
		f, err := fsys.Create(fsys.Join(dir, "f"))
		check(t, err)
		_, err = f.Write([]byte("abc"))
		check(t, err)
		check(t, vfs.Allocate(f, 50_000))
		check(t, vfs.Allocate(f, 10))
		b, err := vfs.ReadFile(fsys, fsys.Join(dir, "f"))
		check(t, err)
		if len(b) != 50_000 || strings.TrimRight(string(b), "\x00") != "abc" {
			t.Errorf("%s: %d bytes", name, len(b))
		}
		if name == "limited" {
			if err := vfs.Allocate(f, 200_000); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("over the limit: %v", err)
			}
		}
		check(t, f.Close())
	}
}

// Writes with the hint, aligned or not, leave the same bytes, in any order and
// over one another.
func TestDirectWrites(t *testing.T) {
	fsys := vfs.NewUncached(vfs.NewOS())
	name := filepath.Join(t.TempDir(), "f")
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const size = 1 << 20
	want := make([]byte, size)
	if err := f.Preallocate(0, size); err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 256<<10)
	for range 200 {
		for i := range mem {
			mem[i] = byte(rng.Uint32())
		}
		n, off, shift := rng.IntN(len(mem)/2), rng.IntN(size-len(mem)), rng.IntN(8)
		if rng.IntN(3) > 0 {
			n, off, shift = n&^(vfs.DirectAlign-1), off&^(vfs.DirectAlign-1), 0
		}
		p := mem[shift : shift+n]
		if m, err := f.WriteAt(p, int64(off)); err != nil || m != n {
			t.Fatalf("writing %d bytes at %d: %d, %v", n, off, m, err)
		}
		copy(want[off:], p)
		got := make([]byte, n)
		if _, err := f.ReadAt(got, int64(off)); err != nil || !bytes.Equal(got, p) {
			t.Fatalf("reading %d bytes at %d back: %v", n, off, err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := vfs.ReadFile(vfs.NewOS(), name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file differs: %d bytes, %v", len(got), err)
	}
	if _, err := f.WriteAt(mem[:vfs.DirectAlign], 0); err == nil {
		t.Error("writing to a closed file")
	}
}

// Reads with the hint, large and small, aligned or not, over the end or not, give
// what was written, and all of it at once.
func TestDirectReads(t *testing.T) {
	const size = 1<<20 + 1000
	rng := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.NewUncached(vfs.NewOS()).Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem := make([]byte, size+2*vfs.DirectAlign)
	for range 200 {
		n, off, shift := rng.IntN(size), rng.IntN(size), rng.IntN(8)
		if rng.IntN(3) > 0 {
			n, off, shift = n&^(vfs.DirectAlign-1), off&^(vfs.DirectAlign-1), 0
		}
		p := mem[shift : shift+n]
		clear(p)
		m, err := f.ReadAt(p, int64(off))
		if left := min(n, size-off); m != left || (err != nil) != (left < n) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("reading %d bytes at %d of %d: %d, %v", n, off, size, m, err)
		}
		if !bytes.Equal(p[:m], want[off:off+m]) {
			t.Fatalf("reading %d bytes at %d gave others", n, off)
		}
	}
}
