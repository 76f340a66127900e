package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// A command can outlive a Millrace that is killed. What keeps the next process from
// running it beside that is a lock on a file, which the command and all that it starts
// inherit and which ends with the last of them: none is left by a crash. A command that
// Millrace sees end gives the lock back, whatever it has left running.
//
// It holds on one machine, for processes that keep the descriptors they are given.

// lockPoll is how often a lock that somebody holds is asked for.
const lockPoll = 50 * time.Millisecond

// CommandsIn names the directory of the locks of commands; without it they lie in the
// system's directory of temporary files. It returns c.
func (c *Connector) CommandsIn(dir string) *Connector {
	c.locks = dir
	return c
}

// commandLock is the path of the lock of this table's command.
func (s *Sink) commandLock() string {
	dir := s.locks
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "millrace-commands")
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%016x.lock", s.owner.Job, xxhash.Sum64String(s.prefix+s.dir)))
}

// takeLock waits for a lock until ctx ends; holder is then what its file says of who
// has it.
func takeLock(ctx context.Context, path string) (lock *os.File, holder string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, "", fmt.Errorf("making the directory of locks: %w", err)
	}
	// Where others may make files, too, a link must not have one of ours emptied.
	lock, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("opening the lock of the command: %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return lock, "", nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			lock.Close()
			return nil, "", fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b, _ := os.ReadFile(path)
			lock.Close()
			return nil, strings.TrimSpace(string(b)), ctx.Err()
		}
	}
}

// nameHolder writes the process group that has the lock, for people.
func nameHolder(lock *os.File, group int) {
	if lock.Truncate(0) == nil {
		_, _ = lock.WriteAt([]byte(strconv.Itoa(group)+"\n"), 0)
	}
}

// giveBack ends the lock for all that inherited it.
func giveBack(lock *os.File) {
	_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN)
	_ = lock.Close()
}
