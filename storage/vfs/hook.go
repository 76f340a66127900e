package vfs

import (
	"io"
)

// OpKind is a set of operation kinds; each operation has exactly one.
type OpKind uint32

// The kinds of operations.
const (
	OpCreate OpKind = 1 << iota
	OpOpen
	OpOpenReadWrite
	OpRemove
	OpRename
	OpLink
	OpMkdir
	OpSyncDir
	OpList
	OpStat
	OpLock
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpClose
	OpFreeSpace
)

// OpsMutating are the operations that change the filesystem or make a change
// durable.
const OpsMutating = OpCreate | OpRemove | OpRename | OpLink | OpMkdir | OpSyncDir | OpWrite | OpSync | OpTruncate

// OpsAll are all operations.
const OpsAll OpKind = 1<<32 - 1

// Op is one operation as wrappers see it.
type Op struct {
	Kind OpKind
	// Name is the operation's verb as it stands in a trace: create, create-new,
	// open, open-rw, remove, remove-all, rename, rename-new, link, mkdir,
	// mkdir-all, sync-dir, list, stat, lock, read, read-at, write, write-at,
	// preallocate, sync, sync-data, truncate, close, free-space.
	Name string
	// Path is the file; NewPath the second name of rename and link.
	Path, NewPath string
	// Offset is where read-at, write-at and preallocate act, the size for
	// truncate, else 0.
	Offset int64
	// Size is the number of bytes to read or write.
	Size int64
}

// hook sees every operation of a wrapped filesystem.
type hook interface {
	// before may refuse the operation. For a write, n >= 0 with an error asks
	// to write the first n bytes and then to return the error.
	before(op *Op) (n int64, err error)
	// after sees the outcome, also of refused operations.
	after(op *Op, err error)
}

type hookFS struct {
	FS
	h hook
}

type hookFile struct {
	File
	h hook
}

func (h *hookFS) do(op Op, f func() error) error {
	_, err := h.h.before(&op)
	if err == nil {
		err = f()
	}
	h.h.after(&op, err)
	return err
}

func (h *hookFS) open(op Op, open func(string) (File, error)) (File, error) {
	var f File
	err := h.do(op, func() (err error) {
		f, err = open(op.Path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &hookFile{File: f, h: h.h}, nil
}

func (h *hookFS) Create(name string) (File, error) {
	return h.open(Op{Kind: OpCreate, Name: "create", Path: name}, h.FS.Create)
}

func (h *hookFS) CreateNew(name string) (File, error) {
	return h.open(Op{Kind: OpCreate, Name: "create-new", Path: name}, h.FS.CreateNew)
}

func (h *hookFS) Open(name string) (File, error) {
	return h.open(Op{Kind: OpOpen, Name: "open", Path: name}, h.FS.Open)
}

func (h *hookFS) OpenReadWrite(name string) (File, error) {
	return h.open(Op{Kind: OpOpenReadWrite, Name: "open-rw", Path: name}, h.FS.OpenReadWrite)
}

func (h *hookFS) Remove(name string) error {
	return h.do(Op{Kind: OpRemove, Name: "remove", Path: name}, func() error { return h.FS.Remove(name) })
}

func (h *hookFS) RemoveAll(name string) error {
	return h.do(Op{Kind: OpRemove, Name: "remove-all", Path: name}, func() error { return h.FS.RemoveAll(name) })
}

func (h *hookFS) Rename(oldName, newName string) error {
	return h.do(Op{Kind: OpRename, Name: "rename", Path: oldName, NewPath: newName},
		func() error { return h.FS.Rename(oldName, newName) })
}

func (h *hookFS) RenameNoReplace(oldName, newName string) error {
	return h.do(Op{Kind: OpRename, Name: "rename-new", Path: oldName, NewPath: newName},
		func() error { return h.FS.RenameNoReplace(oldName, newName) })
}

func (h *hookFS) Exchange(a, b string) error {
	return h.do(Op{Kind: OpRename, Name: "exchange", Path: a, NewPath: b}, func() error { return h.FS.Exchange(a, b) })
}

func (h *hookFS) Link(oldName, newName string) error {
	return h.do(Op{Kind: OpLink, Name: "link", Path: oldName, NewPath: newName},
		func() error { return h.FS.Link(oldName, newName) })
}

func (h *hookFS) Mkdir(dir string) error {
	return h.do(Op{Kind: OpMkdir, Name: "mkdir", Path: dir}, func() error { return h.FS.Mkdir(dir) })
}

func (h *hookFS) MkdirAll(dir string) error {
	return h.do(Op{Kind: OpMkdir, Name: "mkdir-all", Path: dir}, func() error { return h.FS.MkdirAll(dir) })
}

func (h *hookFS) SyncDir(dir string) error {
	return h.do(Op{Kind: OpSyncDir, Name: "sync-dir", Path: dir}, func() error { return h.FS.SyncDir(dir) })
}

func (h *hookFS) List(dir string) (names []string, err error) {
	err = h.do(Op{Kind: OpList, Name: "list", Path: dir}, func() (err error) {
		names, err = h.FS.List(dir)
		return err
	})
	return names, err
}

func (h *hookFS) Stat(name string) (info FileInfo, err error) {
	err = h.do(Op{Kind: OpStat, Name: "stat", Path: name}, func() (err error) {
		info, err = h.FS.Stat(name)
		return err
	})
	return info, err
}

func (h *hookFS) Lock(name string) (c io.Closer, err error) {
	err = h.do(Op{Kind: OpLock, Name: "lock", Path: name}, func() (err error) {
		c, err = h.FS.Lock(name)
		return err
	})
	return c, err
}

func (h *hookFS) FreeSpace(name string) (n int64, err error) {
	err = h.do(Op{Kind: OpFreeSpace, Name: "free-space", Path: name}, func() (err error) {
		n, err = h.FS.FreeSpace(name)
		return err
	})
	return n, err
}

func (f *hookFile) do(op Op, act func() error) error {
	op.Path = f.File.Name()
	_, err := f.h.before(&op)
	if err == nil {
		err = act()
	}
	f.h.after(&op, err)
	return err
}

func (f *hookFile) read(op Op, act func() (int, error)) (n int, err error) {
	err = f.do(op, func() (err error) {
		n, err = act()
		return err
	})
	return n, err
}

func (f *hookFile) write(op Op, p []byte, act func([]byte) (int, error)) (n int, err error) {
	op.Path = f.File.Name()
	short, err := f.h.before(&op)
	switch {
	case err == nil:
		n, err = act(p)
	case short > 0:
		var werr error
		n, werr = act(p[:min(short, int64(len(p)))])
		if werr != nil {
			err = werr
		}
	}
	f.h.after(&op, err)
	return n, err
}

func (f *hookFile) Read(p []byte) (int, error) {
	return f.read(Op{Kind: OpRead, Name: "read", Size: int64(len(p))}, func() (int, error) { return f.File.Read(p) })
}

func (f *hookFile) ReadAt(p []byte, off int64) (int, error) {
	return f.read(Op{Kind: OpRead, Name: "read-at", Offset: off, Size: int64(len(p))},
		func() (int, error) { return f.File.ReadAt(p, off) })
}

func (f *hookFile) Write(p []byte) (int, error) {
	return f.write(Op{Kind: OpWrite, Name: "write", Size: int64(len(p))}, p, f.File.Write)
}

func (f *hookFile) WriteAt(p []byte, off int64) (int, error) {
	return f.write(Op{Kind: OpWrite, Name: "write-at", Offset: off, Size: int64(len(p))}, p,
		func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}

func (f *hookFile) Preallocate(offset, length int64) error {
	return f.do(Op{Kind: OpWrite, Name: "preallocate", Offset: offset, Size: length},
		func() error { return f.File.Preallocate(offset, length) })
}

func (f *hookFile) Sync() error { return f.do(Op{Kind: OpSync, Name: "sync"}, f.File.Sync) }

func (f *hookFile) SyncData() error {
	return f.do(Op{Kind: OpSync, Name: "sync-data"}, f.File.SyncData)
}

func (f *hookFile) Truncate(size int64) error {
	return f.do(Op{Kind: OpTruncate, Name: "truncate", Offset: size},
		func() error { return f.File.Truncate(size) })
}

// SetDontCache implements CacheHinter.
func (f *hookFile) SetDontCache(on bool) { SetDontCache(f.File, on) }

func (f *hookFile) Close() error {
	// A refused close still releases the descriptor, as close(2) does.
	op := Op{Kind: OpClose, Name: "close", Path: f.File.Name()}
	_, err := f.h.before(&op)
	if cerr := f.File.Close(); err == nil {
		err = cerr
	}
	f.h.after(&op, err)
	return err
}
