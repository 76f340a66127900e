package manifest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

const (
	currentName = "CURRENT"
	filePrefix  = "manifest-"
)

func fileName(generation uint64) string { return fmt.Sprintf("%s%06d", filePrefix, generation) }

// parseFileName is the reverse of fileName.
func parseFileName(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, filePrefix)
	if !ok {
		return 0, false
	}
	g, err := strconv.ParseUint(digits, 10, 64)
	return g, err == nil && fileName(g) == name
}

// encodeCurrent is the content of CURRENT: one line that people can read.
func encodeCurrent(generation uint64) []byte {
	name := fileName(generation)
	return fmt.Appendf(nil, "%s %08x\n", name, record.Checksum([]byte(name)))
}

// decodeCurrent is the reverse of encodeCurrent; ok is false if damaged.
func decodeCurrent(b []byte) (generation uint64, ok bool) {
	name, _, _ := strings.Cut(string(b), " ")
	g, ok := parseFileName(name)
	return g, ok && string(b) == string(encodeCurrent(g))
}

// located is what a directory says about the file in force.
type located struct {
	generation uint64   // 0 if there is none yet
	current    bool     // CURRENT names it
	stale      []string // other files of this package, to be removed
}

// locate finds the manifest in force: the one CURRENT names or, if CURRENT is
// missing or damaged, the newest whose snapshot is whole. The newest is right: a
// new file only becomes whole just before CURRENT is switched to it, and one
// that CURRENT was not switched to is removed before the older one grows again.
func locate(fsys vfs.FS, dir string) (located, error) {
	var l located
	names, err := fsys.List(dir)
	if err != nil {
		return l, fmt.Errorf("listing manifest directory: %w", err)
	}
	var generations []uint64
	for _, name := range names {
		if g, ok := parseFileName(name); ok {
			generations = append(generations, g)
		} else if name == currentName+".tmp" {
			l.stale = append(l.stale, name)
		}
	}
	b, err := vfs.ReadFile(fsys, fsys.Join(dir, currentName))
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return l, fmt.Errorf("reading %s: %w", currentName, err)
	}
	if l.generation, l.current = decodeCurrent(b); !l.current {
		if l.generation, err = newestWhole(fsys, dir, generations, len(b) > 0); err != nil {
			return l, err
		}
	}
	for _, g := range generations {
		if g != l.generation {
			l.stale = append(l.stale, fileName(g))
		}
	}
	return l, nil
}

// newestWhole returns the highest generation with a whole snapshot, and 0 if no
// manifest ever came into force. Files that cannot be judged are an error then:
// an empty state must not take the place of a damaged one.
func newestWhole(fsys vfs.FS, dir string, generations []uint64, hadCurrent bool) (uint64, error) {
	best := uint64(0)
	var worst error
	for _, g := range generations {
		whole, err := isWhole(fsys, dir, g)
		switch {
		case err != nil:
			worst = err
		case whole && g > best:
			best = g
		}
	}
	if best > 0 {
		return best, nil
	}
	if hadCurrent {
		return 0, fmt.Errorf("%w: %s is damaged and no manifest is whole: %w", ErrMissing, currentName, orNone(worst))
	}
	for _, g := range generations {
		// All that may stand there without CURRENT and not whole is the first
		// file, when the very first Open was cut short.
		st, err := fsys.Stat(fsys.Join(dir, fileName(g)))
		if err != nil {
			return 0, fmt.Errorf("reading manifest: %w", err)
		}
		if g != 1 || st.Size() > emptyFileSize {
			return 0, fmt.Errorf("%w: %s is missing and %s is not whole: %w", ErrMissing, currentName, fileName(g), orNone(worst))
		}
	}
	return 0, nil
}

func orNone(err error) error {
	if err == nil {
		return errors.New("no damage found in what is there")
	}
	return err
}

func isWhole(fsys vfs.FS, dir string, generation uint64) (bool, error) {
	path := fsys.Join(dir, fileName(generation))
	f, err := fsys.Open(path)
	if err != nil {
		return false, fmt.Errorf("opening manifest: %w", err)
	}
	defer f.Close()
	res, err := replay(f, path, false, func(uint16, []byte) error { return nil })
	if err != nil {
		return false, err
	}
	return res.snapshotEnd > 0, nil
}
