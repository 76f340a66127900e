package spill

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/storage/vfs"
)

// ErrCorrupt is a block whose bytes are not those that were written.
var ErrCorrupt = errors.New("spilled state has changed on disk")

// Error says that state cannot be moved to disk or back. The disk is full or broken:
// what is in the checkpoints holds.
type Error struct {
	// Op is what was done: "writing", "reading".
	Op string
	// Path is the file or directory.
	Path string
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s spilled state in %s: %v", e.Op, e.Path, e.Err)
}

// Unwrap gives the cause, a syscall.Errno as a rule.
func (e *Error) Unwrap() error { return e.Err }

// Store is a directory for the spilled state of one task. It touches the disk with
// the first Writer.
type Store struct {
	fs  vfs.FS
	dir string

	mu     sync.Mutex
	next   int
	files  map[*file]struct{}
	closed bool
	bytes  atomic.Int64
	total  atomic.Int64
}

// file holds the blocks of the runs of one Writer.
type file struct {
	vfs.File
	name string
	size int64
	refs int // runs, and 1 while it is written
}

// New returns a store in dir, which it makes when it is needed.
func New(fs vfs.FS, dir string) *Store { return &Store{fs: fs, dir: dir, files: map[*file]struct{}{}} }

// Bytes is what is on disk now, Written what was written since the beginning.
func (s *Store) Bytes() int64   { return s.bytes.Load() }
func (s *Store) Written() int64 { return s.total.Load() }

// create opens a file for a Writer.
func (s *Store) create() (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &Error{"writing", s.dir, vfs.ErrClosed}
	}
	if s.next == 0 {
		err := s.fs.RemoveAll(s.dir)
		if err == nil {
			err = s.fs.MkdirAll(s.dir)
		}
		if err != nil {
			return nil, &Error{"writing", s.dir, err}
		}
	}
	s.next++
	f := &file{name: s.fs.Join(s.dir, strconv.Itoa(s.next)), refs: 1}
	var err error
	if f.File, err = s.fs.Create(f.name); err != nil {
		return nil, &Error{"writing", f.name, err}
	}
	s.files[f] = struct{}{}
	return f, nil
}

// release drops a reference; with the last one the file goes. That is no error for
// anybody: the directory goes as a whole at the end.
func (s *Store) release(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.refs--; f.refs > 0 {
		return
	}
	if _, open := s.files[f]; !open {
		return
	}
	delete(s.files, f)
	_ = f.Close()
	_ = s.fs.Remove(f.name)
	s.bytes.Add(-f.size)
}

func (s *Store) retain(f *file) {
	s.mu.Lock()
	f.refs++
	s.mu.Unlock()
}

// Close removes everything. Runs cannot be read any more.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for f := range s.files {
		_ = f.Close()
		s.bytes.Add(-f.size)
	}
	clear(s.files)
	if s.next == 0 {
		return nil
	}
	if err := s.fs.RemoveAll(s.dir); err != nil {
		return &Error{"removing", s.dir, err}
	}
	return nil
}
