package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// FileInfo describes a file; it is the standard library's.
type FileInfo = fs.FileInfo

// Errors that callers branch on. They are the standard library's, so that
// errors.Is works with any implementation.
var (
	// ErrExist says that the name is already taken.
	ErrExist = fs.ErrExist
	// ErrNotExist says that the name is not there.
	ErrNotExist = fs.ErrNotExist
	// ErrClosed says that the file was closed before.
	ErrClosed = fs.ErrClosed
	// ErrNotSupported says that the filesystem lacks the operation.
	ErrNotSupported = errors.ErrUnsupported
)

// LockedError says that another owner holds the lock file.
type LockedError struct {
	// Name is the lock file's path.
	Name string
	// PID is the process that holds it, 0 if the file does not say.
	PID int
}

// Error names the file and the process.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Name)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Name, e.PID)
}

// File is an open file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer

	// Name returns the path that the file was opened with.
	Name() string
	// Stat describes the file.
	Stat() (FileInfo, error)
	// Truncate sets the size in bytes; a larger size is filled with zeros.
	Truncate(size int64) error
	// Preallocate writes length zero bytes at offset, so that a later write
	// there changes neither the size nor the block map and its fdatasync costs
	// one device flush. Whatever stood there is lost. It does not sync.
	Preallocate(offset, length int64) error
	// Sync makes data and metadata durable (fsync).
	Sync() error
	// SyncData makes data durable and, of the metadata, what reading the data
	// back needs, such as a changed size (fdatasync).
	SyncData() error
}

// DirectAlign is the unit, in bytes, of position, length and memory address in
// which reads and writes can bypass the page cache altogether; see CacheHinter.
const DirectAlign = 4096

// CacheHinter is implemented by files that can leave the page cache alone.
type CacheHinter interface {
	// SetDontCache says that what ReadAt and WriteAt move from now on is not
	// worth keeping in the page cache. Where that is not possible it does
	// nothing. Writes of whole DirectAlign blocks from memory that is aligned
	// alike then go to the disk without a copy, and large reads of such blocks
	// come from it likewise. Either takes a second descriptor.
	SetDontCache(on bool)
}

// SetDontCache gives a file the hint if it takes any.
func SetDontCache(f File, on bool) {
	if h, ok := f.(CacheHinter); ok {
		h.SetDontCache(on)
	}
}

// Allocate makes a file take up size bytes of the disk, as cheaply as the
// filesystem can: the content behind the present end is zeros.
func Allocate(f File, size int64) error {
	if a, ok := f.(interface{ Allocate(size int64) error }); ok {
		if err := a.Allocate(size); !errors.Is(err, ErrNotSupported) {
			return err
		}
	}
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return f.Preallocate(info.Size(), size-info.Size())
}

// NewUncached returns a filesystem whose files all have the hint SetDontCache.
func NewUncached(fsys FS) FS { return uncachedFS{fsys} }

type uncachedFS struct{ FS }

func uncached(f File, err error) (File, error) {
	if err == nil {
		SetDontCache(f, true)
	}
	return f, err
}

func (u uncachedFS) Create(name string) (File, error)    { return uncached(u.FS.Create(name)) }
func (u uncachedFS) CreateNew(name string) (File, error) { return uncached(u.FS.CreateNew(name)) }
func (u uncachedFS) Open(name string) (File, error)      { return uncached(u.FS.Open(name)) }
func (u uncachedFS) OpenReadWrite(name string) (File, error) {
	return uncached(u.FS.OpenReadWrite(name))
}

// FS is a filesystem. Errors wrap ErrExist, ErrNotExist or a syscall.Errno
// (ENOSPC, EIO, EROFS) where they apply.
type FS interface {
	// Create makes a new empty file for reading and writing, or empties the
	// one that is there.
	Create(name string) (File, error)
	// CreateNew is Create that fails with ErrExist if the name is taken.
	CreateNew(name string) (File, error)
	// Open opens an existing file for reading only.
	Open(name string) (File, error)
	// OpenReadWrite opens an existing file for reading and writing, keeping
	// its content. The cursor of Read and Write starts at 0.
	OpenReadWrite(name string) (File, error)
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// RemoveAll deletes the name and everything under it; it is no error if
	// the name is not there.
	RemoveAll(name string) error
	// Rename moves a file or a directory, replacing a file of the new name.
	Rename(oldName, newName string) error
	// RenameNoReplace is Rename that fails with ErrExist if the new name is
	// taken, decided atomically. Without support for it in the operating
	// system, files fall back to link and unlink and directories get
	// ErrNotSupported.
	RenameNoReplace(oldName, newName string) error
	// Exchange swaps what two names of one directory mean, atomically, also across
	// a crash; ErrNotExist if one is missing, ErrNotSupported where the system
	// cannot.
	Exchange(a, b string) error
	// Link gives a file a second name; ErrExist if that is taken.
	Link(oldName, newName string) error
	// Mkdir makes one directory; ErrExist if the name is taken, ErrNotExist if
	// the parent is missing.
	Mkdir(dir string) error
	// MkdirAll makes a directory and its missing parents. None of them is
	// durable before SyncDir; see MkdirAllSync.
	MkdirAll(dir string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
	// List returns the sorted base names in a directory.
	List(dir string) ([]string, error)
	// Stat describes a file or directory.
	Stat(name string) (FileInfo, error)
	// Lock takes an exclusive lock on a file, made if missing, and writes the
	// process id into it. It never blocks: *LockedError says who holds it.
	// Closing the result or the end of the process gives the lock back; the
	// file stays.
	Lock(name string) (io.Closer, error)
	// FreeSpace returns the number of bytes that can still be written on the
	// filesystem that holds the path.
	FreeSpace(name string) (int64, error)
	// Join, Dir and Base work like those of path/filepath on the paths of
	// this filesystem.
	Join(elem ...string) string
	Dir(name string) string
	Base(name string) string
}

// ReadFile returns the whole content of a file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	buf := make([]byte, info.Size())
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return buf[:n], nil
	}
	return buf[:n], err
}

// WriteFileAtomic makes name hold exactly data, durably, or leaves it as it
// was: it writes and syncs name + ".tmp", renames it and syncs the directory.
// One caller per name at a time.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	tmp := name + ".tmp"
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		// The half-written file is only garbage; the next attempt empties it.
		_ = fsys.Remove(tmp)
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(fsys.Dir(name))
}

// MkdirAllSync makes a directory with its missing parents and makes each new
// name durable.
func MkdirAllSync(fsys FS, dir string) error {
	var made []string
	for d := dir; ; d = fsys.Dir(d) {
		if _, err := fsys.Stat(d); err == nil {
			break
		} else if !errors.Is(err, ErrNotExist) {
			return err
		}
		made = append(made, d)
		if fsys.Dir(d) == d {
			break
		}
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for i := len(made) - 1; i >= 0; i-- {
		if err := fsys.SyncDir(fsys.Dir(made[i])); err != nil {
			return err
		}
	}
	return nil
}

// Exists says whether the name is there.
func Exists(fsys FS, name string) (bool, error) {
	_, err := fsys.Stat(name)
	if errors.Is(err, ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// osPaths gives the path methods of the host.
type osPaths struct{}

func (osPaths) Join(elem ...string) string { return filepath.Join(elem...) }
func (osPaths) Dir(name string) string     { return filepath.Dir(name) }
func (osPaths) Base(name string) string    { return filepath.Base(name) }
