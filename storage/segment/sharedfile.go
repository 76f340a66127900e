package segment

import (
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/storage/vfs"
)

// sharedFile closes a file when its last user lets go of it.
type sharedFile struct {
	f    vfs.File
	refs atomic.Int64
}

// newSharedFile starts with one user.
func newSharedFile(f vfs.File) *sharedFile {
	s := &sharedFile{f: f}
	s.refs.Store(1)
	return s
}

// retain adds a user; false if the file was closed already.
func (s *sharedFile) retain() bool {
	for {
		n := s.refs.Load()
		if n <= 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// acquire is retain for readers.
func (s *sharedFile) acquire() (*sharedFile, error) {
	if !s.retain() {
		return nil, fmt.Errorf("reading segment: %w", vfs.ErrClosed)
	}
	return s, nil
}

// release takes a user away; a second Close of the same user does nothing.
func (s *sharedFile) release() error {
	switch n := s.refs.Add(-1); {
	case n == 0:
		return s.f.Close()
	case n < 0:
		s.refs.Add(1)
	}
	return nil
}
