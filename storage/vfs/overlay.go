package vfs

import (
	"errors"
	"io"
	"slices"
	"sync"
	"syscall"
)

// OverlayFS shows a filesystem that it never changes: what is written goes to
// memory. It lets a program do on a directory what it would do, and see the
// outcome, without doing it.
type OverlayFS struct {
	base  FS
	upper *MemFS

	mu     sync.Mutex
	hidden map[string]bool // names of the base that were removed or replaced
}

// NewOverlay returns an overlay over a filesystem. Changes of the base while it
// is in use are not seen in files that were changed here. Locks are taken in
// memory only.
func NewOverlay(base FS) *OverlayFS {
	return &OverlayFS{base: base, upper: NewMem(), hidden: map[string]bool{}}
}

// overlayFile is a file of the base, opened for writing, that becomes a copy at
// the first change.
type overlayFile struct {
	o    *OverlayFS
	name string

	mu     sync.Mutex
	f      File
	copied bool
	cursor int64
}

// Join implements FS.
func (o *OverlayFS) Join(elem ...string) string { return o.base.Join(elem...) }

// Dir implements FS.
func (o *OverlayFS) Dir(name string) string { return o.base.Dir(name) }

// Base implements FS.
func (o *OverlayFS) Base(name string) string { return o.base.Base(name) }

// inUpper says whether the name is in memory; inBase whether the base's is seen.
func (o *OverlayFS) inUpper(name string) bool {
	_, err := o.upper.Stat(name)
	return err == nil
}

func (o *OverlayFS) isHidden(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hidden[name]
}

func (o *OverlayFS) inBase(name string) bool {
	if o.isHidden(name) {
		return false
	}
	_, err := o.base.Stat(name)
	return err == nil
}

// hide makes a name of the base, and all under it, disappear.
func (o *OverlayFS) hide(name string) {
	if info, err := o.base.Stat(name); err == nil && info.IsDir() {
		names, _ := o.base.List(name)
		for _, n := range names {
			o.hide(o.base.Join(name, n))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hidden[name] = true
}

// parents makes the directory of a name in memory if the overlay has it.
func (o *OverlayFS) parents(op, name string) error {
	dir := o.Dir(name)
	info, err := o.Stat(dir)
	if err != nil {
		return pathErr(op, name, ErrNotExist)
	}
	if info.IsDir() {
		return o.upper.MkdirAll(dir)
	}
	return nil
}

// copyUp brings a name of the base, and all under it, into memory.
func (o *OverlayFS) copyUp(name string) error {
	info, err := o.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		names, err := o.List(name)
		if err != nil {
			return err
		}
		if err := o.upper.MkdirAll(name); err != nil {
			return err
		}
		for _, n := range names {
			if err := o.copyUp(o.Join(name, n)); err != nil {
				return err
			}
		}
		return nil
	}
	if o.inUpper(name) {
		return nil
	}
	f, err := o.copyFile(name)
	if err != nil {
		return err
	}
	return f.Close()
}

func (o *OverlayFS) copyFile(name string) (File, error) {
	src, err := o.base.Open(name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if err := o.parents("open", name); err != nil {
		return nil, err
	}
	dst, err := o.upper.Create(name)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(dst, src); err != nil {
		_ = dst.Close()
		return nil, err
	}
	return dst, nil
}

// Create implements FS.
func (o *OverlayFS) Create(name string) (File, error) {
	if info, err := o.Stat(name); err == nil && info.IsDir() {
		return nil, pathErr("create", name, syscall.EISDIR)
	}
	if err := o.parents("create", name); err != nil {
		return nil, err
	}
	o.hide(name)
	return o.upper.Create(name)
}

// CreateNew implements FS.
func (o *OverlayFS) CreateNew(name string) (File, error) {
	if _, err := o.Stat(name); err == nil {
		return nil, pathErr("create", name, ErrExist)
	}
	return o.Create(name)
}

// Open implements FS.
func (o *OverlayFS) Open(name string) (File, error) {
	if o.inUpper(name) || o.isHidden(name) {
		return o.upper.Open(name)
	}
	return o.base.Open(name)
}

// OpenReadWrite implements FS.
func (o *OverlayFS) OpenReadWrite(name string) (File, error) {
	if o.inUpper(name) || o.isHidden(name) {
		return o.upper.OpenReadWrite(name)
	}
	f, err := o.base.Open(name)
	if err != nil {
		return nil, err
	}
	return &overlayFile{o: o, name: name, f: f}, nil
}

// Remove implements FS.
func (o *OverlayFS) Remove(name string) error {
	info, err := o.Stat(name)
	if err != nil {
		return pathErr("remove", name, ErrNotExist)
	}
	if info.IsDir() {
		if names, err := o.List(name); err != nil || len(names) > 0 {
			return pathErr("remove", name, errors.Join(syscall.ENOTEMPTY, err))
		}
	}
	return o.RemoveAll(name)
}

// RemoveAll implements FS.
func (o *OverlayFS) RemoveAll(name string) error {
	o.hide(name)
	return o.upper.RemoveAll(name)
}

func (o *OverlayFS) move(oldName, newName string, move func(string, string) error) error {
	if err := o.copyUp(oldName); err != nil {
		return err
	}
	if err := o.parents("rename", newName); err != nil {
		return err
	}
	if err := move(oldName, newName); err != nil {
		return err
	}
	o.hide(oldName)
	o.hide(newName)
	return nil
}

// Rename implements FS.
func (o *OverlayFS) Rename(oldName, newName string) error {
	return o.move(oldName, newName, o.upper.Rename)
}

// RenameNoReplace implements FS.
func (o *OverlayFS) RenameNoReplace(oldName, newName string) error {
	if _, err := o.Stat(oldName); err != nil {
		return pathErr("rename", oldName, ErrNotExist)
	}
	if _, err := o.Stat(newName); err == nil {
		return pathErr("rename", newName, ErrExist)
	}
	return o.move(oldName, newName, o.upper.RenameNoReplace)
}

// Exchange implements FS.
func (o *OverlayFS) Exchange(a, b string) error {
	for _, name := range []string{a, b} {
		if err := o.copyUp(name); err != nil {
			return err
		}
	}
	return o.upper.Exchange(a, b)
}

// Link implements FS.
func (o *OverlayFS) Link(oldName, newName string) error {
	if _, err := o.Stat(newName); err == nil {
		return pathErr("link", newName, ErrExist)
	}
	if err := o.copyUp(oldName); err != nil {
		return err
	}
	if err := o.parents("link", newName); err != nil {
		return err
	}
	return o.upper.Link(oldName, newName)
}

// Mkdir implements FS.
func (o *OverlayFS) Mkdir(dir string) error {
	if _, err := o.Stat(dir); err == nil {
		return pathErr("mkdir", dir, ErrExist)
	}
	if err := o.parents("mkdir", dir); err != nil {
		return err
	}
	return o.upper.Mkdir(dir)
}

// MkdirAll implements FS.
func (o *OverlayFS) MkdirAll(dir string) error { return o.upper.MkdirAll(dir) }

// SyncDir implements FS; memory needs none.
func (o *OverlayFS) SyncDir(dir string) error {
	_, err := o.Stat(dir)
	return err
}

// List implements FS.
func (o *OverlayFS) List(dir string) ([]string, error) {
	names, uerr := o.upper.List(dir)
	var berr error
	if o.inBase(dir) {
		var below []string
		below, berr = o.base.List(dir)
		for _, n := range below {
			if !o.isHidden(o.Join(dir, n)) {
				names = append(names, n)
			}
		}
	} else if uerr != nil {
		return nil, uerr
	}
	if berr != nil {
		return nil, berr
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Stat implements FS.
func (o *OverlayFS) Stat(name string) (FileInfo, error) {
	info, err := o.upper.Stat(name)
	if err == nil || o.isHidden(name) {
		return info, err
	}
	return o.base.Stat(name)
}

// Lock implements FS.
func (o *OverlayFS) Lock(name string) (io.Closer, error) {
	if err := o.parents("lock", name); err != nil {
		return nil, err
	}
	return o.upper.Lock(name)
}

// FreeSpace implements FS.
func (o *OverlayFS) FreeSpace(name string) (int64, error) { return o.upper.FreeSpace(name) }

// change makes the file a copy in memory; f.mu is held.
func (f *overlayFile) change() error {
	if f.copied {
		return nil
	}
	c, err := f.o.copyFile(f.name)
	if err != nil {
		return err
	}
	_ = f.f.Close()
	f.f, f.copied = c, true
	return nil
}

func (f *overlayFile) Name() string { return f.name }

func (f *overlayFile) Stat() (FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Stat()
}

func (f *overlayFile) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.f.ReadAt(p, f.cursor)
	f.cursor += int64(n)
	if n > 0 {
		return n, nil
	}
	return n, err
}

func (f *overlayFile) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.ReadAt(p, off)
}

func (f *overlayFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.change(); err != nil {
		return 0, err
	}
	n, err := f.f.WriteAt(p, f.cursor)
	f.cursor += int64(n)
	return n, err
}

func (f *overlayFile) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.change(); err != nil {
		return 0, err
	}
	return f.f.WriteAt(p, off)
}

func (f *overlayFile) Preallocate(offset, length int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.change(); err != nil {
		return err
	}
	return f.f.Preallocate(offset, length)
}

func (f *overlayFile) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if info, err := f.f.Stat(); err != nil || info.Size() == size {
		return err
	}
	if err := f.change(); err != nil {
		return err
	}
	return f.f.Truncate(size)
}

func (f *overlayFile) Sync() error { return nil }

func (f *overlayFile) SyncData() error { return nil }

func (f *overlayFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Close()
}
