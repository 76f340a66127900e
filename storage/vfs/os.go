package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// minDirectRead is the size, in bytes, from which on reads bypass the page cache:
// smaller ones gain more from what the kernel reads ahead.
const minDirectRead = 64 << 10

// zeroChunk is what Preallocate writes at a time, in bytes.
const zeroChunk = 1 << 20

type osFS struct{ osPaths }

// NewOS returns the host's filesystem.
func NewOS() FS { return osFS{} }

type osFile struct {
	*os.File
	dontCache atomic.Bool
	direct    directFile // for writing
	directIn  directFile // for reading
}

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f}, nil
}

func (osFS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (osFS) CreateNew(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string) (File, error) { return openOS(name, os.O_RDONLY) }

func (osFS) OpenReadWrite(name string) (File, error) { return openOS(name, os.O_RDWR) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) RemoveAll(name string) error { return os.RemoveAll(name) }

func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (osFS) RenameNoReplace(oldName, newName string) error {
	err := renameNoReplace(oldName, newName)
	if !errors.Is(err, ErrNotSupported) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	info, serr := os.Lstat(oldName)
	if serr != nil {
		return serr
	}
	if info.IsDir() {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: ErrNotSupported}
	}
	if err := os.Link(oldName, newName); err != nil {
		return err
	}
	return os.Remove(oldName)
}

func (osFS) Exchange(a, b string) error {
	err := exchange(a, b)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: ErrNotSupported}
	}
	return err
}

func (osFS) Link(oldName, newName string) error { return os.Link(oldName, newName) }

func (osFS) Mkdir(dir string) error { return os.Mkdir(dir, 0o755) }

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) Stat(name string) (FileInfo, error) { return os.Stat(name) }

func (osFS) FreeSpace(name string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

type osLock struct {
	once sync.Once
	f    *os.File
	err  error
}

// Close gives the lock back by closing the descriptor. The file keeps its name:
// removing it would let a second process lock a new file of the same name while
// a third still waits on the old one.
func (l *osLock) Close() error {
	l.once.Do(func() {
		// An empty file says that nobody owns it.
		_ = l.f.Truncate(0)
		l.err = l.f.Close()
	})
	return l.err
}

func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		pid := readPID(f)
		_ = f.Close()
		return nil, &LockedError{Name: name, PID: pid}
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return &osLock{f: f}, nil
}

func readPID(f *os.File) int {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// SetDontCache implements CacheHinter.
func (f *osFile) SetDontCache(on bool) { f.dontCache.Store(on) }

// Close implements File.
func (f *osFile) Close() error {
	f.direct.close()
	f.directIn.close()
	return f.File.Close()
}

// ReadAt implements File.
func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if f.dontCache.Load() && len(p) >= minDirectRead && isDirect(p, off) {
		m, err := f.directIn.readAt(f.File, p, off)
		if err != nil {
			return m, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
		}
		n = m
	}
	for n < len(p) && f.dontCache.Load() {
		m, err := preadDontCache(f.File, p[n:], off+int64(n))
		switch {
		case unsupported(err):
			f.dontCache.Store(false)
		case err != nil:
			return n, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
		case m == 0:
			return n, io.EOF
		default:
			n += m
		}
	}
	if n == len(p) {
		return n, nil
	}
	m, err := f.File.ReadAt(p[n:], off+int64(n))
	return n + m, err
}

// WriteAt implements File.
func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	n := 0
	if f.dontCache.Load() && isDirect(p, off) {
		m, err := f.direct.writeAt(f.File, p, off)
		if err != nil {
			return m, &fs.PathError{Op: "write", Path: f.Name(), Err: err}
		}
		n = m
	}
	for n < len(p) && f.dontCache.Load() {
		m, err := pwriteDontCache(f.File, p[n:], off+int64(n))
		switch {
		case unsupported(err):
			f.dontCache.Store(false)
		case err != nil:
			return n, &fs.PathError{Op: "write", Path: f.Name(), Err: err}
		default:
			n += m
		}
	}
	if n == len(p) {
		return n, nil
	}
	m, err := f.File.WriteAt(p[n:], off+int64(n))
	return n + m, err
}

// unsupported says that the kernel or the filesystem lacks uncached I/O.
func unsupported(err error) bool {
	return errors.Is(err, ErrNotSupported) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS)
}

func (f *osFile) SyncData() error {
	if err := fdatasync(f.File); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

func (f *osFile) Preallocate(offset, length int64) error {
	zeros := make([]byte, min(length, zeroChunk))
	for length > 0 {
		n := min(length, int64(len(zeros)))
		if _, err := f.WriteAt(zeros[:n], offset); err != nil {
			return err
		}
		offset += n
		length -= n
	}
	return nil
}
