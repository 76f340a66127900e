package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

func renameNoReplace(oldName, newName string) error {
	err := unix.Renameat2(unix.AT_FDCWD, oldName, unix.AT_FDCWD, newName, unix.RENAME_NOREPLACE)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return nil
}

func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if err != nil {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}

func fdatasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// rwfDontCache is RWF_DONTCACHE of Linux 6.14: the page cache is used, but pages
// that the operation brought in leave it when the operation, or the writing
// back, is done. Data that is written once and read elsewhere then neither takes
// fresh memory nor drives out what others read.
const rwfDontCache = 0x80

func preadDontCache(f *os.File, p []byte, off int64) (int, error) {
	for {
		n, err := unix.Preadv2(int(f.Fd()), [][]byte{p}, off, rwfDontCache)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func pwriteDontCache(f *os.File, p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pwritev2(int(f.Fd()), [][]byte{p}, off, rwfDontCache)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Allocate takes up blocks without writing them; see Allocate the function.
func (f *osFile) Allocate(size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return ErrNotSupported
	}
	if err != nil {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return nil
}
