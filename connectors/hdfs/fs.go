package hdfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/colinmarc/hdfs/v2"

	"github.com/millrace/millrace/storage/vfs"
)

const (
	dirMode  = 0o755
	fileMode = 0o644
	// madeFile marks a directory of Mkdir as taken: mkdirs does not say whether
	// it was there, creating a file does.
	madeFile = ".made"
)

// FS is one cluster as a filesystem of whole files. It is safe for concurrent
// use.
type FS struct {
	c     *cluster
	ctx   context.Context // ends with Close
	stop  context.CancelCauseFunc
	soon  context.Context // ends with Hurry
	hurry context.CancelFunc
	local vfs.FS // for spools
}

var _ vfs.FS = (*FS)(nil)

// Open makes a filesystem of a cluster. It connects on first use. Files that
// are being written lie on the local filesystem until they are whole.
func Open(conf Config, local vfs.FS) *FS { return view(newCluster(conf), local) }

// view is a filesystem of its own over a cluster that is shared.
func view(c *cluster, local vfs.FS) *FS {
	f := &FS{c: c, local: local}
	f.ctx, f.stop = context.WithCancelCause(context.Background())
	f.soon, f.hurry = context.WithCancel(context.Background())
	return f
}

// Hurry makes operations, those under way included, no longer be tried again, and
// connections that say nothing be given up after 5 s instead of 'hdfs.rpc-timeout':
// somebody waits for the filesystem to be let go. What the cluster serves goes on.
func (f *FS) Hurry() { f.hurry() }

func (f *FS) again(op, name string, g func(try int) error) error {
	return f.c.again(f.ctx, f.soon, op, name, g)
}

func (f *FS) once(g func(*hdfs.Client) error) error { return f.c.once(f.soon, g) }

// meta is again for calls that can be repeated as they are.
func (f *FS) meta(op, name string, g func(*hdfs.Client) error) error {
	return f.again(op, name, func(int) error { return f.once(g) })
}

// Close ends operations that are being tried again and gives connections back.
func (f *FS) Close() error {
	f.stop(errClosed)
	f.c.close()
	return nil
}

// Create makes a file that replaces the one of that name when it is synced.
func (f *FS) Create(name string) (vfs.File, error) { return newFile(f, name, true), nil }

// CreateNew makes a file that gets the name when it is synced; vfs.ErrExist and
// vfs.ErrNotExist come from there.
func (f *FS) CreateNew(name string) (vfs.File, error) { return newFile(f, name, false), nil }

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) { return openReader(f, name) }

// OpenReadWrite is not possible: a file is written once.
func (f *FS) OpenReadWrite(name string) (vfs.File, error) {
	return nil, f.c.explain("opening for writing", name, vfs.ErrNotSupported)
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error { return f.remove("removing", name, (*hdfs.Client).Remove) }

// RemoveAll implements vfs.FS.
func (f *FS) RemoveAll(name string) error {
	return f.remove("removing", name, (*hdfs.Client).RemoveAll)
}

func (f *FS) remove(op, name string, do func(*hdfs.Client, string) error) error {
	return f.again(op, name, func(try int) error {
		err := f.once(func(c *hdfs.Client) error { return do(c, name) })
		if try > 0 && errors.Is(err, fs.ErrNotExist) {
			// The answer of an earlier try was lost.
			return nil
		}
		return err
	})
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldName, newName string) error { return f.rename(oldName, newName, true) }

// Exchange implements vfs.FS: the NameNode has no such call.
func (f *FS) Exchange(_, _ string) error { return vfs.ErrNotSupported }

// RenameNoReplace looks before it renames. The server itself refuses to replace
// a directory that is not empty; it would replace a file. So of two callers who
// give different files one name at the same moment, one would lose its file:
// names of files must say what is in them.
func (f *FS) RenameNoReplace(oldName, newName string) error {
	return f.rename(oldName, newName, false)
}

func (f *FS) rename(oldName, newName string, replace bool) error {
	unknown := false
	return f.again("renaming", oldName, func(int) error {
		err := f.once(func(c *hdfs.Client) error {
			if unknown {
				// Invariant 3: the last try may have been carried out.
				done, err := renamed(c, oldName, newName)
				if done || err != nil {
					return err
				}
			}
			if !replace {
				_, err := c.Stat(newName)
				if err == nil {
					return &fs.PathError{Op: "rename", Path: newName, Err: fs.ErrExist}
				}
				if !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return c.Rename(oldName, newName)
		})
		unknown = unknown || err != nil && !answered(err)
		return notEmpty(err, replace)
	})
}

// renamed reports whether a rename has happened: the old name is gone and the
// new one there.
func renamed(c *hdfs.Client, oldName, newName string) (bool, error) {
	_, err := c.Stat(oldName)
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	_, err = c.Stat(newName)
	return err == nil, err
}

// notEmpty translates the refusal to replace a directory.
func notEmpty(err error, replace bool) error {
	var remote hdfs.Error
	if !replace && errors.As(err, &remote) && remote.Method() == "rename2" && remote.Exception() == "java.io.IOException" {
		// The look before found nothing: whatever is there came since.
		return &fs.PathError{Op: "rename", Path: text(err), Err: fs.ErrExist}
	}
	return err
}

// Link is not possible.
func (f *FS) Link(oldName, _ string) error {
	return f.c.explain("linking", oldName, vfs.ErrNotSupported)
}

// Mkdir makes a directory that is the caller's alone. It is not tried again
// when the outcome is unknown: the directory that is there then may be another's.
func (f *FS) Mkdir(dir string) error {
	err := f.refusedAgain("making", dir, func(c *client) error { return c.Mkdir(dir, dirMode) })
	if err != nil {
		return err
	}
	return f.refusedAgain("making", dir, func(c *client) error {
		w, err := f.c.createFile(c, path.Join(dir, madeFile), false)
		if err != nil {
			return err
		}
		return complete(f.ctx, f.soon, w, f.c.conf.RetryTimeout)
	})
}

// refusedAgain tries do again only while the cluster refuses it, as in safe
// mode: then nothing has happened for certain.
func (f *FS) refusedAgain(op, name string, do func(*client) error) error {
	var unknown error
	err := f.again(op, name, func(int) error {
		cl, err := f.c.take(f.soon)
		if err != nil {
			// No request was sent.
			return err
		}
		defer context.AfterFunc(f.soon, cl.dialer.hurry)()
		err = f.c.with(cl, do)
		if err != nil && !answered(err) {
			unknown = f.c.explain(op, name, err)
			return nil
		}
		return err
	})
	if err == nil {
		err = unknown
	}
	return err
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string) error {
	return f.meta("making", dir, func(c *hdfs.Client) error { return c.MkdirAll(dir, dirMode) })
}

// SyncDir does nothing: a NameNode answers when its edit log is synced.
func (f *FS) SyncDir(string) error { return nil }

// List implements vfs.FS.
func (f *FS) List(dir string) ([]string, error) {
	infos, err := f.ListInfo(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(infos))
	for _, i := range infos {
		names = append(names, i.Name())
	}
	return names, nil
}

// ListInfo is List with what Stat says of each name, in one go.
func (f *FS) ListInfo(dir string) ([]vfs.FileInfo, error) {
	var out []vfs.FileInfo
	err := f.meta("listing", dir, func(c *hdfs.Client) error {
		r, err := c.Open(dir)
		if err != nil {
			return err
		}
		if !r.Stat().IsDir() {
			return &fs.PathError{Op: "list", Path: dir, Err: syscall.ENOTDIR}
		}
		infos, err := r.Readdir(0)
		if err != nil {
			return err
		}
		out = infos
		return nil
	})
	slices.SortFunc(out, func(a, b vfs.FileInfo) int {
		if a.Name() < b.Name() {
			return -1
		}
		return 1
	})
	return out, err
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (vfs.FileInfo, error) {
	var info vfs.FileInfo
	err := f.meta("looking at", name, func(c *hdfs.Client) (err error) {
		info, err = c.Stat(name)
		return err
	})
	return info, err
}

// Lock is not possible.
func (f *FS) Lock(name string) (io.Closer, error) {
	return nil, f.c.explain("locking", name, vfs.ErrNotSupported)
}

// FreeSpace implements vfs.FS for the whole cluster, without regard to quotas.
func (f *FS) FreeSpace(name string) (int64, error) {
	var free int64
	err := f.meta("looking at", name, func(c *hdfs.Client) error {
		s, err := c.StatFs()
		free = int64(s.Remaining)
		return err
	})
	return free, err
}

// Join implements vfs.FS.
func (f *FS) Join(elem ...string) string { return path.Join(elem...) }

// Dir implements vfs.FS.
func (f *FS) Dir(name string) string { return path.Dir(name) }

// Base implements vfs.FS.
func (f *FS) Base(name string) string { return path.Base(name) }
