package vfs

import (
	"io/fs"
	"sync"
	"syscall"
)

// LimitedFS is a filesystem on which only a number of bytes fit.
type LimitedFS struct {
	FS
	b *budget
}

type budget struct {
	mu          sync.Mutex
	limit, used int64
}

// NewLimited wraps a filesystem that fails with ENOSPC once files made or grown
// through it hold more than limit bytes. Removing or truncating a file through
// it gives its bytes back; RemoveAll and replacing by Rename do so too. Second
// names made by Link count once each.
func NewLimited(fsys FS, limit int64) *LimitedFS {
	return &LimitedFS{FS: fsys, b: &budget{limit: limit}}
}

// SetLimit changes the limit, in bytes.
func (l *LimitedFS) SetLimit(limit int64) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.b.limit = limit
}

// Used returns the bytes that count against the limit.
func (l *LimitedFS) Used() int64 {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return l.b.used
}

// grow takes up to want bytes and returns how many there were.
func (b *budget) grow(want int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := max(min(want, b.limit-b.used), 0)
	b.used += got
	return got
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = max(b.used-n, 0)
}

type limitedFile struct {
	File
	b *budget

	// mu keeps size and the file's real size in step, and guards cursor, the
	// place where Read and Write go on.
	mu           sync.Mutex
	size, cursor int64
}

func (l *LimitedFS) sizeOf(name string) int64 {
	info, err := l.FS.Stat(name)
	if err != nil || info.IsDir() {
		return 0
	}
	return info.Size()
}

func (l *LimitedFS) treeSize(name string) int64 {
	info, err := l.FS.Stat(name)
	if err != nil {
		return 0
	}
	if !info.IsDir() {
		return info.Size()
	}
	names, err := l.FS.List(name)
	if err != nil {
		return 0
	}
	var n int64
	for _, base := range names {
		n += l.treeSize(l.FS.Join(name, base))
	}
	return n
}

// Create implements FS.
func (l *LimitedFS) Create(name string) (File, error) {
	old := l.sizeOf(name)
	f, err := l.FS.Create(name)
	if err != nil {
		return nil, err
	}
	l.b.give(old)
	return &limitedFile{File: f, b: l.b}, nil
}

// CreateNew implements FS.
func (l *LimitedFS) CreateNew(name string) (File, error) {
	f, err := l.FS.CreateNew(name)
	if err != nil {
		return nil, err
	}
	return &limitedFile{File: f, b: l.b}, nil
}

// OpenReadWrite implements FS.
func (l *LimitedFS) OpenReadWrite(name string) (File, error) {
	f, err := l.FS.OpenReadWrite(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &limitedFile{File: f, b: l.b, size: info.Size()}, nil
}

// Remove implements FS.
func (l *LimitedFS) Remove(name string) error {
	n := l.sizeOf(name)
	err := l.FS.Remove(name)
	if err == nil {
		l.b.give(n)
	}
	return err
}

// RemoveAll implements FS.
func (l *LimitedFS) RemoveAll(name string) error {
	n := l.treeSize(name)
	err := l.FS.RemoveAll(name)
	if err == nil {
		l.b.give(n)
	}
	return err
}

// Rename implements FS.
func (l *LimitedFS) Rename(oldName, newName string) error {
	n := l.sizeOf(newName)
	err := l.FS.Rename(oldName, newName)
	if err == nil {
		l.b.give(n)
	}
	return err
}

// FreeSpace implements FS.
func (l *LimitedFS) FreeSpace(string) (int64, error) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return max(l.b.limit-l.b.used, 0), nil
}

// writeAt writes what fits; f.mu is held.
func (f *limitedFile) writeAt(p []byte, off int64) (int, error) {
	fits := int64(len(p))
	if want := off + fits - f.size; want > 0 {
		got := f.b.grow(want)
		f.size += got
		fits = max(fits-(want-got), 0)
	}
	n, err := f.File.WriteAt(p[:fits], off)
	if err == nil && n < len(p) {
		err = &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return n, err
}

// SetDontCache implements CacheHinter.
func (f *limitedFile) SetDontCache(on bool) { SetDontCache(f.File, on) }

func (f *limitedFile) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writeAt(p, off)
}

func (f *limitedFile) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.File.ReadAt(p, f.cursor)
	f.cursor += int64(n)
	if n > 0 {
		return n, nil
	}
	return n, err
}

func (f *limitedFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.writeAt(p, f.cursor)
	f.cursor += int64(n)
	return n, err
}

func (f *limitedFile) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := size - f.size; want > 0 {
		if got := f.b.grow(want); got < want {
			f.b.give(got)
			return &fs.PathError{Op: "truncate", Path: f.Name(), Err: syscall.ENOSPC}
		}
	}
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	if size < f.size {
		f.b.give(f.size - size)
	}
	f.size = size
	return nil
}

func (f *limitedFile) Preallocate(offset, length int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := offset + length - f.size; want > 0 {
		if got := f.b.grow(want); got < want {
			f.b.give(got)
			return &fs.PathError{Op: "preallocate", Path: f.Name(), Err: syscall.ENOSPC}
		}
		f.size = offset + length
	}
	return f.File.Preallocate(offset, length)
}
