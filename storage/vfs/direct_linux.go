package vfs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// directFile is a second descriptor of a file, open with O_DIRECT: what goes
// through it moves between the caller's memory and the disk, which costs a third of
// the CPU time of a copy through the page cache. It is opened with the first
// operation that can use it, for reading or for writing. The zero value is ready.
type directFile struct {
	mu      sync.Mutex
	f       *os.File
	refused bool // by the filesystem, or the file was closed
}

// isDirect says whether an operation can bypass the page cache.
func isDirect(p []byte, off int64) bool {
	return len(p) > 0 && len(p)%DirectAlign == 0 && off%DirectAlign == 0 &&
		uintptr(unsafe.Pointer(unsafe.SliceData(p)))%DirectAlign == 0
}

// open returns the descriptor, nil if there can be none.
func (d *directFile) open(of *os.File, flag int) *os.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.f == nil && !d.refused {
		// By descriptor: the name may mean another file by now.
		f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", of.Fd()), flag|syscall.O_DIRECT|syscall.O_CLOEXEC, 0)
		d.f, d.refused = f, err != nil
	}
	return d.f
}

// writeAt writes what can be written without the page cache and returns how
// much that was; the rest, perhaps all, is for an ordinary write.
func (d *directFile) writeAt(of *os.File, p []byte, off int64) (int, error) {
	return transfer(d.open(of, os.O_WRONLY), unix.Pwrite, p, off)
}

// readAt reads what can be read without the page cache and returns how much that
// was; the rest, or the end of the file, is for an ordinary read.
func (d *directFile) readAt(of *os.File, p []byte, off int64) (int, error) {
	return transfer(d.open(of, os.O_RDONLY), unix.Pread, p, off)
}

// transfer moves what can be moved by a descriptor that bypasses the page cache,
// nothing if there is none.
func transfer(f *os.File, move func(fd int, p []byte, off int64) (int, error), p []byte, off int64) (int, error) {
	n := 0
	for f != nil && n < len(p) {
		m, err := move(int(f.Fd()), p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case errors.Is(err, unix.EINVAL):
			// The filesystem wants other bounds, or the disk was full in the
			// middle of a block: the ordinary operation will tell.
			return n, nil
		case err != nil:
			return n, err
		}
		n += max(m, 0)
		if m == 0 || n%DirectAlign != 0 {
			break
		}
	}
	return n, nil
}

func (d *directFile) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = true
	if d.f != nil {
		// Nothing is buffered behind it; syncing tells of errors.
		_ = d.f.Close()
		d.f = nil
	}
}
