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
	closed bool
	cursor int64
}

func openReader(f *FS, name string) (*reader, error) {
	r := &reader{fs: f, name: name}
	err := f.c.meta(f.ctx, "opening", name, func(c *hdfs.Client) error {
		h, err := c.Open(name)
		if err != nil {
			return err
		}
		if err := readable(h.Stat()); err != nil {
			return &Error{Op: "opening", Path: f.c.url(name), Kind: Unsupported, Err: err}
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
			return errors.New(what)
		}
	}
	return nil
}

var errChanged = errors.New("the file was replaced while it was read")

// ReadAt implements io.ReaderAt. The library goes to another replica when one
// fails; when all did, or the NameNode is away, the file is opened anew.
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
	err := r.fs.c.again(r.fs.ctx, "reading", r.name, func(int) error {
		if r.r == nil {
			if err := r.reopen(); err != nil {
				return err
			}
		}
		k, err := r.r.ReadAt(want[n:], off+int64(n))
		n += k
		if n == len(want) {
			return nil
		}
		_ = r.r.Close() // it failed
		r.r = nil
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("%d of %d bytes at %d are there", n, len(want), off)
		}
		return dataError(err)
	})
	if err != nil {
		return n, err
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) reopen() error {
	return r.fs.c.once(func(c *hdfs.Client) error {
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
	r.closed = true
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
