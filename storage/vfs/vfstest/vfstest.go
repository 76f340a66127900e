package vfstest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/millrace/millrace/storage/vfs"
)

// Run runs the suite. open returns a filesystem and an existing empty directory
// in it, new ones for each call.
func Run(t *testing.T, open func(t *testing.T) (vfs.FS, string)) {
	t.Helper()
	cases := []struct {
		name string
		run  func(t *testing.T, fsys vfs.FS, dir string)
	}{
		{"read and write", readWrite},
		{"create", create},
		{"write at and preallocate", writeAt},
		{"truncate", truncate},
		{"rename", rename},
		{"rename without replacing", renameNoReplace},
		{"exchange", exchange},
		{"link", link},
		{"directories", directories},
		{"removed while open", removedWhileOpen},
		{"missing names", missing},
		{"closed file", closed},
		{"read only", readOnly},
		{"lock", lock},
		{"free space", freeSpace},
		{"helpers", helpers},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fsys, dir := open(t)
			c.run(t, fsys, dir)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func write(t *testing.T, fsys vfs.FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	_, err = f.Write([]byte(content))
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}

func wantContent(t *testing.T, fsys vfs.FS, name, want string) {
	t.Helper()
	got, err := vfs.ReadFile(fsys, name)
	must(t, err)
	if string(got) != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func wantNames(t *testing.T, fsys vfs.FS, dir string, want ...string) {
	t.Helper()
	got, err := fsys.List(dir)
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("%s lists %q, want %q", dir, got, want)
	}
}

func readWrite(t *testing.T, fsys vfs.FS, dir string) {
	name := fsys.Join(dir, "a")
	f, err := fsys.Create(name)
	must(t, err)
	if f.Name() != name {
		t.Errorf("name is %q, want %q", f.Name(), name)
	}
	for _, s := range []string{"abc", "", "defgh"} {
		n, err := f.Write([]byte(s))
		must(t, err)
		if n != len(s) {
			t.Errorf("wrote %d bytes of %q", n, s)
		}
	}
	must(t, f.SyncData())
	var buf [4]byte
	n, err := f.ReadAt(buf[:], 2)
	must(t, err)
	if string(buf[:n]) != "cdef" {
		t.Errorf("read %q at 2, want cdef", buf[:n])
	}
	n, err = f.ReadAt(buf[:], 6)
	wantErr(t, "reading over the end", err, io.EOF)
	if string(buf[:n]) != "gh" {
		t.Errorf("read %q at 6, want gh", buf[:n])
	}
	must(t, f.Close())

	f, err = fsys.Open(name)
	must(t, err)
	all, err := io.ReadAll(f)
	must(t, err)
	if string(all) != "abcdefgh" {
		t.Errorf("read %q", all)
	}
	info, err := f.Stat()
	must(t, err)
	if info.Size() != 8 || info.IsDir() || info.Name() != "a" {
		t.Errorf("stat: size %d, directory %v, name %q", info.Size(), info.IsDir(), info.Name())
	}
	must(t, f.Close())
}

func create(t *testing.T, fsys vfs.FS, dir string) {
	name := fsys.Join(dir, "a")
	f, err := fsys.CreateNew(name)
	must(t, err)
	must(t, f.Close())
	_, err = fsys.CreateNew(name)
	wantErr(t, "creating a taken name", err, vfs.ErrExist)
	write(t, fsys, name, "long content")
	write(t, fsys, name, "short")
	wantContent(t, fsys, name, "short")

	f, err = fsys.OpenReadWrite(name)
	must(t, err)
	_, err = f.Write([]byte("S"))
	must(t, err)
	must(t, f.Close())
	wantContent(t, fsys, name, "Short")
}

func writeAt(t *testing.T, fsys vfs.FS, dir string) {
	name := fsys.Join(dir, "a")
	f, err := fsys.Create(name)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("xyz"), 5000)
	must(t, err)
	got, err := vfs.ReadFile(fsys, name)
	must(t, err)
	if want := append(make([]byte, 5000), "xyz"...); !bytes.Equal(got, want) {
		t.Errorf("a write behind the end gave %d bytes, want 5000 zeros and xyz", len(got))
	}
	must(t, f.Preallocate(4990, 12))
	got, err = vfs.ReadFile(fsys, name)
	must(t, err)
	if want := append(make([]byte, 5002), 'z'); !bytes.Equal(got, want) {
		t.Errorf("preallocating inside did not leave zeros and z")
	}
	must(t, f.Preallocate(4096, 2<<20))
	info, err := f.Stat()
	must(t, err)
	if info.Size() != 4096+2<<20 {
		t.Errorf("size after preallocating is %d, want %d", info.Size(), 4096+2<<20)
	}
}

func truncate(t *testing.T, fsys vfs.FS, dir string) {
	name := fsys.Join(dir, "a")
	write(t, fsys, name, "abcdefgh")
	f, err := fsys.OpenReadWrite(name)
	must(t, err)
	must(t, f.Truncate(3))
	must(t, f.Truncate(6))
	must(t, f.Close())
	wantContent(t, fsys, name, "abc\x00\x00\x00")
}

func rename(t *testing.T, fsys vfs.FS, dir string) {
	a, b := fsys.Join(dir, "a"), fsys.Join(dir, "b")
	write(t, fsys, a, "A")
	write(t, fsys, b, "B")
	must(t, fsys.Rename(a, b))
	must(t, fsys.SyncDir(dir))
	wantNames(t, fsys, dir, "b")
	wantContent(t, fsys, b, "A")

	sub := fsys.Join(dir, "sub")
	must(t, fsys.Mkdir(sub))
	must(t, fsys.Rename(b, fsys.Join(sub, "c")))
	must(t, fsys.Rename(sub, fsys.Join(dir, "moved")))
	wantNames(t, fsys, dir, "moved")
	wantContent(t, fsys, fsys.Join(dir, "moved", "c"), "A")
}

func renameNoReplace(t *testing.T, fsys vfs.FS, dir string) {
	a, b, c := fsys.Join(dir, "a"), fsys.Join(dir, "b"), fsys.Join(dir, "c")
	write(t, fsys, a, "A")
	write(t, fsys, b, "B")
	wantErr(t, "renaming to a taken name", fsys.RenameNoReplace(a, b), vfs.ErrExist)
	wantContent(t, fsys, a, "A")
	wantContent(t, fsys, b, "B")
	must(t, fsys.RenameNoReplace(a, c))
	wantNames(t, fsys, dir, "b", "c")
	wantErr(t, "renaming a missing name", fsys.RenameNoReplace(a, fsys.Join(dir, "d")), vfs.ErrNotExist)
}

func exchange(t *testing.T, fsys vfs.FS, dir string) {
	a, b := fsys.Join(dir, "a"), fsys.Join(dir, "b")
	wantErr(t, "exchanging missing names", fsys.Exchange(a, b), vfs.ErrNotExist)
	must(t, fsys.Mkdir(a))
	wantErr(t, "exchanging with a missing name", fsys.Exchange(a, b), vfs.ErrNotExist)
	must(t, fsys.Mkdir(b))
	write(t, fsys, fsys.Join(a, "x"), "A")
	write(t, fsys, fsys.Join(b, "y"), "B")
	must(t, fsys.Exchange(a, b))
	wantNames(t, fsys, dir, "a", "b")
	wantContent(t, fsys, fsys.Join(b, "x"), "A")
	wantContent(t, fsys, fsys.Join(a, "y"), "B")
}

func link(t *testing.T, fsys vfs.FS, dir string) {
	a, b := fsys.Join(dir, "a"), fsys.Join(dir, "b")
	write(t, fsys, a, "A")
	must(t, fsys.Link(a, b))
	wantErr(t, "linking to a taken name", fsys.Link(a, b), vfs.ErrExist)
	f, err := fsys.OpenReadWrite(b)
	must(t, err)
	_, err = f.WriteAt([]byte("XY"), 0)
	must(t, err)
	must(t, f.Close())
	wantContent(t, fsys, a, "XY")
	must(t, fsys.Remove(a))
	wantContent(t, fsys, b, "XY")
}

func directories(t *testing.T, fsys vfs.FS, dir string) {
	d := fsys.Join(dir, "x")
	must(t, fsys.Mkdir(d))
	wantErr(t, "making a directory twice", fsys.Mkdir(d), vfs.ErrExist)
	wantErr(t, "making a directory without its parent", fsys.Mkdir(fsys.Join(dir, "no", "y")), vfs.ErrNotExist)
	must(t, fsys.MkdirAll(fsys.Join(dir, "p", "q", "r")))
	must(t, fsys.MkdirAll(fsys.Join(dir, "p", "q", "r")))
	write(t, fsys, fsys.Join(dir, "p", "q", "f2"), "")
	write(t, fsys, fsys.Join(dir, "p", "q", "f1"), "")
	wantNames(t, fsys, fsys.Join(dir, "p", "q"), "f1", "f2", "r")
	info, err := fsys.Stat(fsys.Join(dir, "p"))
	must(t, err)
	if !info.IsDir() {
		t.Error("p is no directory")
	}
	if err := fsys.Remove(fsys.Join(dir, "p")); err == nil {
		t.Error("a directory that is not empty was removed")
	}
	must(t, fsys.Remove(d))
	must(t, fsys.RemoveAll(fsys.Join(dir, "p")))
	must(t, fsys.RemoveAll(fsys.Join(dir, "p")))
	wantNames(t, fsys, dir)
}

func removedWhileOpen(t *testing.T, fsys vfs.FS, dir string) {
	name := fsys.Join(dir, "a")
	write(t, fsys, name, "A")
	f, err := fsys.Open(name)
	must(t, err)
	must(t, fsys.Remove(name))
	write(t, fsys, name, "B")
	got, err := io.ReadAll(f)
	must(t, err)
	if string(got) != "A" {
		t.Errorf("the open file reads %q, want the removed content", got)
	}
	must(t, f.Close())
}

func missing(t *testing.T, fsys vfs.FS, dir string) {
	name := fsys.Join(dir, "none")
	_, err := fsys.Open(name)
	wantErr(t, "open", err, vfs.ErrNotExist)
	_, err = fsys.OpenReadWrite(name)
	wantErr(t, "open for writing", err, vfs.ErrNotExist)
	_, err = fsys.Stat(name)
	wantErr(t, "stat", err, vfs.ErrNotExist)
	_, err = fsys.List(name)
	wantErr(t, "list", err, vfs.ErrNotExist)
	wantErr(t, "remove", fsys.Remove(name), vfs.ErrNotExist)
	wantErr(t, "rename", fsys.Rename(name, name+"2"), vfs.ErrNotExist)
	wantErr(t, "sync directory", fsys.SyncDir(name), vfs.ErrNotExist)
	_, err = fsys.Create(fsys.Join(name, "f"))
	wantErr(t, "create under a missing directory", err, vfs.ErrNotExist)
}

func closed(t *testing.T, fsys vfs.FS, dir string) {
	f, err := fsys.Create(fsys.Join(dir, "a"))
	must(t, err)
	must(t, f.Close())
	_, err = f.Write([]byte("x"))
	wantErr(t, "writing", err, vfs.ErrClosed)
	wantErr(t, "syncing", f.Sync(), vfs.ErrClosed)
	wantErr(t, "closing twice", f.Close(), vfs.ErrClosed)
}

func readOnly(t *testing.T, fsys vfs.FS, dir string) {
	name := fsys.Join(dir, "a")
	write(t, fsys, name, "A")
	f, err := fsys.Open(name)
	must(t, err)
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("a file opened for reading was written")
	}
	wantContent(t, fsys, name, "A")
}

func lock(t *testing.T, fsys vfs.FS, dir string) {
	name := fsys.Join(dir, "lock")
	l, err := fsys.Lock(name)
	must(t, err)
	_, err = fsys.Lock(name)
	var locked *vfs.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("locking twice: got error %v, want a LockedError", err)
	}
	if locked.PID != os.Getpid() || locked.Name != name {
		t.Errorf("the lock says %s held by %d, want %s by %d", locked.Name, locked.PID, name, os.Getpid())
	}
	must(t, l.Close())
	l, err = fsys.Lock(name)
	must(t, err)
	must(t, l.Close())
}

func freeSpace(t *testing.T, fsys vfs.FS, dir string) {
	n, err := fsys.FreeSpace(dir)
	must(t, err)
	if n <= 0 {
		t.Errorf("free space is %d", n)
	}
}

func helpers(t *testing.T, fsys vfs.FS, dir string) {
	deep := fsys.Join(dir, "a", "b", "c")
	must(t, vfs.MkdirAllSync(fsys, deep))
	must(t, vfs.MkdirAllSync(fsys, deep))
	name := fsys.Join(deep, "f")
	for _, s := range []string{"one", "two, longer", "3"} {
		must(t, vfs.WriteFileAtomic(fsys, name, []byte(s)))
		wantContent(t, fsys, name, s)
	}
	wantNames(t, fsys, deep, "f")
	if ok, err := vfs.Exists(fsys, name); !ok || err != nil {
		t.Errorf("exists: %v, %v", ok, err)
	}
	if ok, err := vfs.Exists(fsys, name+"x"); ok || err != nil {
		t.Errorf("a missing file exists: %v, %v", ok, err)
	}
}
