package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/storage/vfs"
)

// diskRates are what the disk does by itself, in MB/s: bytes in sequence with one
// fdatasync at the end, and with one for each 512 KiB, past the page cache, into a
// file that has its blocks.
type diskRates struct{ once, each float64 }

// diskFileBytes is the size of the file that is written over and over.
const diskFileBytes = 64 << 20

func (b *bench) measureDisk() (r diskRates, err error) {
	if b.diskBytes <= 0 {
		return r, nil
	}
	chunk := make([]byte, 512<<10)
	for i := range chunk {
		chunk[i] = byte(i * 31)
	}
	if r.once, err = b.writeOnce(chunk); err != nil {
		return r, fmt.Errorf("measuring the disk: %w", err)
	}
	if r.each, err = b.writeEach(chunk); err != nil {
		return r, fmt.Errorf("measuring the disk: %w", err)
	}
	return r, nil
}

func (b *bench) writeOnce(chunk []byte) (float64, error) {
	path := filepath.Join(b.dir, "disk")
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer os.Remove(path)
	defer f.Close()
	start := time.Now()
	for range b.diskBytes / int64(len(chunk)) {
		if _, err := f.Write(chunk); err != nil {
			return 0, err
		}
	}
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return 0, err
	}
	return perSecond(b.diskBytes, time.Since(start)), nil
}

func (b *bench) writeEach(chunk []byte) (rate float64, err error) {
	path := filepath.Join(b.dir, "disk")
	f, err := vfs.NewUncached(vfs.NewOS()).Create(path)
	if err != nil {
		return 0, err
	}
	defer os.Remove(path)
	defer f.Close()
	// The second round overwrites what the first has written, as a journal does.
	for range 2 {
		start := time.Now()
		for at := int64(0); at < b.diskBytes; at += int64(len(chunk)) {
			if _, err := f.WriteAt(chunk, at%diskFileBytes); err != nil {
				return 0, err
			}
			if err := f.SyncData(); err != nil {
				return 0, err
			}
		}
		rate = perSecond(b.diskBytes, time.Since(start))
	}
	return rate, nil
}

// perSecond is 10^6 bytes per second.
func perSecond(bytes int64, d time.Duration) float64 { return float64(bytes) / 1e6 / d.Seconds() }
