package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// LocalStore is a Store in a directory of a filesystem:
//
//	<dir>/c<n>/manifest, state files     a complete checkpoint
//	<dir>/e<epoch>/                      where the running epoch writes
//
// A checkpoint is written under the epoch's directory and moved to its name by
// one rename. The epoch's directory is made once, at Open, which first renames
// those of lower epochs: whoever finds its own missing is fenced.
type LocalStore struct {
	fs    vfs.FS
	dir   string
	epoch uint64
}

// NewLocalStore returns a store in dir, which Open makes.
func NewLocalStore(fs vfs.FS, dir string) *LocalStore { return &LocalStore{fs: fs, dir: dir} }

func (s *LocalStore) path(elem ...string) string {
	return s.fs.Join(append([]string{s.dir}, elem...)...)
}

func numbered(name, prefix string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

func epochDir(epoch uint64) string  { return "e" + strconv.FormatUint(epoch, 10) }
func checkpointDir(n uint64) string { return "c" + strconv.FormatUint(n, 10) }

// Open implements Store.
func (s *LocalStore) Open(_ context.Context, epoch uint64) error {
	if err := s.open(epoch); err != nil {
		return fmt.Errorf("opening checkpoints in %s: %w", s.dir, err)
	}
	s.epoch = epoch
	return nil
}

func (s *LocalStore) open(epoch uint64) error {
	if err := vfs.MkdirAllSync(s.fs, s.dir); err != nil {
		return err
	}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if e, ok := numbered(strings.TrimSuffix(name, ".fenced"), "e"); ok && e > epoch {
			return fmt.Errorf("epoch %d, now %d: %w", epoch, e, connector.ErrFenced)
		}
	}
	// The new directory first: it tells every other epoch.
	if err := s.fs.Mkdir(s.path(epochDir(epoch))); err != nil && !errors.Is(err, vfs.ErrExist) {
		return err
	}
	for _, name := range names {
		e, ok := numbered(name, "e")
		if ok && e < epoch {
			if err := s.fs.Rename(s.path(name), s.path(name+".fenced")); err != nil && !errors.Is(err, vfs.ErrNotExist) {
				return err
			}
		}
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	// What lower epochs left is in no complete checkpoint.
	for _, name := range names {
		if e, ok := numbered(strings.TrimSuffix(name, ".fenced"), "e"); ok && e < epoch {
			if err := s.fs.RemoveAll(s.path(epochDir(e) + ".fenced")); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write implements Store.
func (s *LocalStore) Write(ctx context.Context, n uint64, files []File) error {
	if err := s.write(ctx, n, files); err != nil {
		return fmt.Errorf("writing checkpoint %d: %w", n, err)
	}
	return nil
}

func (s *LocalStore) write(ctx context.Context, n uint64, files []File) error {
	from := s.path(epochDir(s.epoch), checkpointDir(n))
	if err := s.fs.RemoveAll(from); err != nil {
		return err
	}
	if err := s.fenced(s.fs.Mkdir(from)); err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.fenced(writeFile(s.fs, s.fs.Join(from, f.Name), f)); err != nil {
			return err
		}
	}
	if err := s.fenced(s.fs.SyncDir(from)); err != nil {
		return err
	}
	if err := s.fenced(s.fs.Rename(from, s.path(checkpointDir(n)))); err != nil {
		return err
	}
	return s.fs.SyncDir(s.dir)
}

// fenced names the reason why the epoch's directory is gone. Invariant 9.
func (s *LocalStore) fenced(err error) error {
	if !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	if ok, serr := vfs.Exists(s.fs, s.path(epochDir(s.epoch))); serr == nil && !ok {
		return fmt.Errorf("epoch %d: %w", s.epoch, connector.ErrFenced)
	}
	return err
}

// writeBytes is the length of the writes of a Body.
const writeBytes = 256 << 10

func writeFile(fs vfs.FS, name string, content File) error {
	f, err := fs.CreateNew(name)
	if err != nil {
		return err
	}
	if content.Body == nil {
		_, err = f.Write(content.Data)
	} else {
		w := bufio.NewWriterSize(f, writeBytes)
		if _, err = content.Body.WriteTo(w); err == nil {
			err = w.Flush()
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// List implements Store.
func (s *LocalStore) List(context.Context) ([]uint64, error) {
	names, err := s.fs.List(s.dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing checkpoints: %w", err)
	}
	var out []uint64
	for _, name := range names {
		if n, ok := numbered(name, "c"); ok {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Read implements Store.
func (s *LocalStore) Read(_ context.Context, n uint64, name string) ([]byte, error) {
	b, err := vfs.ReadFile(s.fs, s.path(checkpointDir(n), name))
	return b, readError(err, n, name)
}

// Stream implements Store.
func (s *LocalStore) Stream(_ context.Context, n uint64, name string) (io.ReadCloser, error) {
	f, err := s.fs.Open(s.path(checkpointDir(n), name))
	if err != nil {
		return nil, readError(err, n, name)
	}
	return f, nil
}

func readError(err error, n uint64, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vfs.ErrNotExist):
		return fmt.Errorf("%w: %s of checkpoint %d", ErrNotExist, name, n)
	}
	return fmt.Errorf("reading checkpoint %d: %w", n, err)
}

// Remove implements Store. The checkpoint loses its name first, so that no
// crash leaves half of one.
func (s *LocalStore) Remove(_ context.Context, n uint64) error {
	gone := s.path(epochDir(s.epoch), "removed-"+checkpointDir(n))
	err := s.fs.Rename(s.path(checkpointDir(n)), gone)
	if errors.Is(err, vfs.ErrNotExist) {
		return s.fenced(nil)
	}
	if err == nil {
		err = s.fs.SyncDir(s.dir)
	}
	if err == nil {
		err = s.fs.RemoveAll(gone)
	}
	if err != nil {
		return fmt.Errorf("removing checkpoint %d: %w", n, err)
	}
	return nil
}
