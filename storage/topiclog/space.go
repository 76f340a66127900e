package topiclog

import (
	"errors"
	"syscall"
	"time"

	"github.com/millrace/millrace/storage/vfs"
)

// spaceCheckInterval is how often a full disk is looked at again.
const spaceCheckInterval = time.Second

// makeReserve writes the file that is given up when the disk is full. Not being
// able to is no error: it only means that there is no reserve.
func (s *Store) makeReserve() {
	if s.opts.ReserveBytes <= 0 {
		return
	}
	s.reserveMu.Lock()
	defer s.reserveMu.Unlock()
	name := s.path(reserveName)
	if info, err := s.fs.Stat(name); err == nil && info.Size() >= s.opts.ReserveBytes {
		return
	}
	// Taking the last bytes for a reserve would be its own full disk.
	if free, err := s.fs.FreeSpace(s.opts.Dir); err != nil || free < 4*s.opts.ReserveBytes {
		return
	}
	err := func() error {
		f, err := s.fs.Create(name)
		if err != nil {
			return err
		}
		err = vfs.Allocate(f, s.opts.ReserveBytes)
		return errors.Join(err, f.Close())
	}()
	if err != nil {
		s.opts.Logger.Warn("making the reserve file failed", "error", err)
		_ = s.fs.Remove(name)
	}
}

// diskFull notes that there is no space and gives up the reserve.
func (s *Store) diskFull(err error) {
	s.reserveMu.Lock()
	defer s.reserveMu.Unlock()
	if !s.full.Swap(true) {
		s.opts.Logger.Error("the disk is full; appends are refused until there is space", "dir", s.opts.Dir, "error", err)
	}
	if rerr := s.fs.Remove(s.path(reserveName)); rerr != nil && !errors.Is(rerr, vfs.ErrNotExist) {
		s.opts.Logger.Warn("removing the reserve file failed", "error", rerr)
	}
}

// withReserve tries again without the reserve what fails for want of space: a
// store that was killed on a full disk must open on it.
func (s *Store) withReserve(f func() error) error {
	err := f()
	if err != nil && (isFull(err) || errors.Is(err, ErrDiskFull)) {
		s.diskFull(err)
		err = f()
	}
	return err
}

// runSpaceWatch looks for space while the disk is full.
func (s *Store) runSpaceWatch() {
	defer s.workers.Done()
	t := time.NewTicker(spaceCheckInterval)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.CheckSpace()
		}
	}
}

// CheckSpace looks whether a full disk has space again and reports whether
// appends are accepted. The store does so by itself every second.
func (s *Store) CheckSpace() bool {
	if !s.full.Load() {
		return true
	}
	// Room for the reserve and some more, or the end would come and go.
	need := max(s.opts.ReserveBytes, 0) + min(s.opts.CacheBytes, 16<<20)
	free, err := s.fs.FreeSpace(s.opts.Dir)
	if err != nil || free < need {
		// The flushers try all the same: recycling the journal may be all
		// that is missing.
		for _, sh := range s.shards {
			sh.requestFlush()
		}
		return false
	}
	s.makeReserve()
	s.full.Store(false)
	s.opts.Logger.Info("the disk has space again", "dir", s.opts.Dir)
	for _, sh := range s.shards {
		sh.spaceAgain()
	}
	return true
}

// FreeBytes is the space that the file system of the data directory has left.
func (s *Store) FreeBytes() (int64, error) { return s.fs.FreeSpace(s.opts.Dir) }

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
