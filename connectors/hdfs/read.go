package hdfs

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace/millrace/storage/vfs"
)

// reader is a file being read. It is safe for concurrent use; reads queue up.
type reader struct {
	fs   *FS
	name string
	info vfs.FileInfo

	mu     sync.Mutex
	r      *hdfs.FileReader // nil: to be opened anew
	at     int64            // where r reads next
	closed bool
	cursor int64

	// windows are pieces read lately: those who read Parquet ask for a few
	// kilobytes here and there, and each jump costs a connection.
	windows []window
	clock   int64
}

// window is an aligned piece of the file.
type window struct {
	index int64 // offset / windowBytes
	data  []byte
	used  int64 // by the reader's clock
}

const (
	windowBytes = 256 << 10
	// maxWindows bounds what a file that is read keeps: 4 MiB.
	maxWindows = 16
)

func openReader(f *FS, name string) (*reader, error) {
	r := &reader{fs: f, name: name}
	err := f.meta("opening", name, func(c *hdfs.Client) error {
		h, err := c.Open(name)
		if err != nil {
			return err
		}
		if err := readable(h.Stat()); err != nil {
			return err
		}
		r.r, r.info = h, h.Stat()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// readable refuses files whose bytes on the DataNodes are not the file's: the
// library would hand them out as they are.
func readable(info vfs.FileInfo) error {
	m, ok := info.Sys().(proto.Message)
	if !ok {
		return nil
	}
	fields := m.ProtoReflect().Descriptor().Fields()
	for name, what := range map[protoreflect.Name]string{
		"fileEncryptionInfo": "it lies in an encryption zone (not_yet)",
		"ecPolicy":           "it is erasure coded (not_yet)",
	} {
		if f := fields.ByName(name); f != nil && m.ProtoReflect().Has(f) {
			return &Error{Kind: Unsupported, Err: errors.New(what)}
		}
	}
	return nil
}

var errChanged = errors.New("the file was replaced while it was read")

// ReadAt implements io.ReaderAt.
func (r *reader) ReadAt(b []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, vfs.ErrClosed
	}
	if off >= r.info.Size() {
		return 0, io.EOF
	}
	want := b[:min(int64(len(b)), r.info.Size()-off)]
	n := 0
	for n < len(want) {
		at := off + int64(n)
		w := r.find(at / windowBytes)
		if w == nil && len(want)-n >= windowBytes {
			// Large pieces go straight to the caller.
			k, err := r.fetch(want[n:], at)
			if n += k; err != nil {
				return n, err
			}
			break
		}
		if w == nil {
			var err error
			if w, err = r.load(at / windowBytes); err != nil {
				return n, err
			}
		}
		n += copy(want[n:], w.data[at%windowBytes:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) find(index int64) *window {
	r.clock++
	for i := range r.windows {
		if r.windows[i].index == index {
			r.windows[i].used = r.clock
			return &r.windows[i]
		}
	}
	return nil
}

// load reads a window in place of the one that was not used for longest.
func (r *reader) load(index int64) (*window, error) {
	at := 0
	if len(r.windows) < maxWindows {
		at = len(r.windows)
		r.windows = append(r.windows, window{})
	} else {
		for i := range r.windows {
			if r.windows[i].used < r.windows[at].used {
				at = i
			}
		}
	}
	w := &r.windows[at]
	size := int(min(windowBytes, r.info.Size()-index*windowBytes))
	if cap(w.data) < size {
		w.data = make([]byte, size)
	}
	// Until it is filled it is no window.
	w.index, w.data = -1, w.data[:size]
	if _, err := r.fetch(w.data, index*windowBytes); err != nil {
		return nil, err
	}
	w.index, w.used = index, r.clock
	return w, nil
}

// fetch fills b from an offset. The library goes to another replica when one
// fails; when all did, or the NameNode is away, the file is opened anew.
func (r *reader) fetch(b []byte, off int64) (int, error) {
	n := 0
	err := r.fs.again("reading", r.name, func(int) error {
		if r.r == nil {
			if err := r.reopen(); err != nil {
				return err
			}
			r.at = 0
		}
		k, err := r.stream(b[n:], off+int64(n))
		n += k
		if n == len(b) {
			return nil
		}
		_ = r.r.Close() // it failed
		r.r = nil
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%d of %d bytes at %d are there", n, len(b), off)
		}
		return dataError(err)
	})
	return n, err
}

// stream reads on where the last read ended if that is the place. Elsewhere it
// first goes back to the beginning: the library then connects anew, while a jump
// over a few bytes forward would leave it with a wrong place for the next
// replica.
func (r *reader) stream(b []byte, off int64) (int, error) {
	if off != r.at {
		for _, to := range []int64{0, off} {
			if _, err := r.r.Seek(to, io.SeekStart); err != nil {
				return 0, err
			}
		}
	}
	n, err := io.ReadFull(r.r, b)
	r.at = off + int64(n)
	return n, err
}

func (r *reader) reopen() error {
	return r.fs.once(func(c *hdfs.Client) error {
		h, err := c.Open(r.name)
		if err != nil {
			return err
		}
		if i := h.Stat(); i.Size() != r.info.Size() || !i.ModTime().Equal(r.info.ModTime()) {
			return &Error{Op: "reading", Path: r.fs.c.url(r.name), Err: errChanged}
		}
		r.r = h
		return nil
	})
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	n, err := r.ReadAt(b, r.cursor)
	r.cursor += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Name implements vfs.File.
func (r *reader) Name() string { return r.name }

// Stat is what the NameNode said when the file was opened.
func (r *reader) Stat() (vfs.FileInfo, error) { return r.info, nil }

// Close implements vfs.File.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return vfs.ErrClosed
	}
	r.closed, r.windows = true, nil
	if r.r != nil {
		_ = r.r.Close() // a connection that was only read from
		r.r = nil
	}
	return nil
}

func (r *reader) Write([]byte) (int, error)          { return 0, vfs.ErrNotSupported }
func (r *reader) WriteAt([]byte, int64) (int, error) { return 0, vfs.ErrNotSupported }

// Truncate is not possible.
func (r *reader) Truncate(int64) error { return vfs.ErrNotSupported }

// Preallocate is not possible.
func (r *reader) Preallocate(int64, int64) error { return vfs.ErrNotSupported }

// Sync has nothing to do.
func (r *reader) Sync() error { return nil }

// SyncData has nothing to do.
func (r *reader) SyncData() error { return nil }
