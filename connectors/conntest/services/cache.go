package services

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// CacheDir is where artefacts are kept between runs, outside the repository.
func CacheDir() (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache of artefacts: %w", err)
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "millrace"), nil
}

// lockPoll is how often a waiting process looks whether another has ended its
// fetch: flock has no way to wait with a context.
const lockPoll = 100 * time.Millisecond

// Cached returns the directory of the artefact name as pins describe it, and
// fills it with fill on first use. Other pins are another directory. Several
// processes may call it at once; one fills. A fill that fails leaves
// nothing behind.
func Cached(ctx context.Context, name, pins string, fill func(ctx context.Context, dir string) error) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making the cache of artefacts: %w", err)
	}
	sum := sha256.Sum256([]byte(pins))
	dir := filepath.Join(cache, name+"-"+hex.EncodeToString(sum[:6]))
	complete := filepath.Join(dir, ".complete")
	if _, err := os.Stat(complete); err == nil {
		return dir, nil
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(complete); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("clearing a fetch of %s that was cut short: %w", name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the directory of %s: %w", name, err)
	}
	if err := fill(ctx, dir); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("fetching %s (nothing was tested; with a network, run it again: what was fetched once is kept in %s): %w", name, cache, err)
	}
	if err := os.WriteFile(complete, []byte(pins), 0o644); err != nil {
		return "", fmt.Errorf("completing %s: %w", name, err)
	}
	return dir, nil
}

// lock takes the lock file path, which stays where it is.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of an artefact: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if err := pause(ctx, lockPoll); err != nil {
			f.Close()
			return nil, fmt.Errorf("waiting for another process that fetches %s: %w", filepath.Base(path), err)
		}
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
