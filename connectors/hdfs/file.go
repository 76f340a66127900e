package hdfs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/millrace/millrace/storage/vfs"
)

const (
	// memoryBytes is how much of a file stays in memory before it goes to a
	// local one: owner records, success files and small parts need no disk.
	memoryBytes = 64 << 10
	// copyBytes is how much of a spool is sent in one call.
	copyBytes = 256 << 10
)

// file is a file being written: a local spool until Sync sends it. Methods are
// called by one goroutine at a time.
type file struct {
	fs      *FS
	name    string
	replace bool // the name may be taken; the old file is replaced at once

	memory []byte
	spool  vfs.File // nil: memory is all
	size   int64
	sent   vfs.FileInfo // after Sync
}

func newFile(f *FS, name string, replace bool) *file {
	return &file{fs: f, name: name, replace: replace}
}

var errSent = errors.New("the file is whole and cannot be written any more")

// Write takes bytes into the spool.
func (w *file) Write(b []byte) (int, error) {
	if w.sent != nil {
		return 0, errSent
	}
	if w.spool == nil && len(w.memory)+len(b) <= memoryBytes {
		w.memory = append(w.memory, b...)
		w.size += int64(len(b))
		return len(b), nil
	}
	if w.spool == nil {
		if err := w.openSpool(); err != nil {
			return 0, err
		}
	}
	n, err := w.spool.Write(b)
	w.size += int64(n)
	if err != nil {
		err = fmt.Errorf("writing spool: %w", err)
	}
	return n, err
}

// openSpool makes the local file, which has no name: it goes with the process.
func (w *file) openSpool() error {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	name := w.fs.local.Join(w.fs.c.conf.SpoolDir, "millrace-spool-"+hex.EncodeToString(id[:]))
	f, err := w.fs.local.CreateNew(name)
	if err != nil {
		return fmt.Errorf("making spool (option '%s' names the directory): %w", keySpool, err)
	}
	if err := w.fs.local.Remove(name); err != nil {
		f.Close()
		return fmt.Errorf("making spool: %w", err)
	}
	if _, err := f.Write(w.memory); err != nil {
		f.Close()
		return fmt.Errorf("writing spool: %w", err)
	}
	w.spool, w.memory = f, nil
	return nil
}

// ReadAt reads the spool.
func (w *file) ReadAt(b []byte, off int64) (int, error) {
	if w.spool != nil {
		return w.spool.ReadAt(b, off)
	}
	if off >= int64(len(w.memory)) {
		return 0, io.EOF
	}
	n := copy(b, w.memory[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Sync sends the file and returns nil when it is whole and confirmed. After
// that Name may be another: an upload that failed is tried again under a new
// name, since nobody can close the old one.
func (w *file) Sync() error { return w.SyncContext(w.fs.ctx) }

// SyncContext is Sync that gives up when ctx ends.
func (w *file) SyncContext(ctx context.Context) error {
	if w.sent != nil {
		return nil
	}
	c := w.fs.c
	if w.replace {
		done, err := c.alone(ctx, w.name)
		if err != nil {
			return err
		}
		defer done()
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	name := w.name
	err := c.again(ctx, w.fs.soon, "writing", w.name, func(try int) error {
		name = w.tryName(try)
		info, err := c.upload(ctx, w.fs.soon, name, w.replace, w, w.size)
		if err == nil {
			w.sent = info
		}
		return err
	})
	if err != nil {
		w.sent = nil
		return err
	}
	if w.replace {
		if err := w.fs.Rename(name, w.name); err != nil {
			w.sent = nil
			return err
		}
		return nil
	}
	w.name = name
	return nil
}

// tryName is the name of an upload.
func (w *file) tryName(try int) string {
	if w.replace {
		return path.Join(path.Dir(w.name), "."+path.Base(w.name)+".sending"+strconv.Itoa(try))
	}
	if try == 0 {
		return w.name
	}
	return w.name + "~" + strconv.Itoa(try)
}

// Name implements vfs.File; see Sync.
func (w *file) Name() string { return w.name }

// Stat is, after Sync, what the NameNode said.
func (w *file) Stat() (vfs.FileInfo, error) {
	if w.sent == nil {
		return nil, w.fs.c.explain("looking at", w.name, vfs.ErrNotExist)
	}
	return w.sent, nil
}

// SyncData is Sync.
func (w *file) SyncData() error { return w.Sync() }

// Close drops the spool. A file that was not synced was never there.
func (w *file) Close() error {
	w.memory = nil
	if w.spool != nil {
		err := w.spool.Close()
		w.spool = nil
		return err
	}
	return nil
}

func (w *file) Read([]byte) (int, error)           { return 0, vfs.ErrNotSupported }
func (w *file) WriteAt([]byte, int64) (int, error) { return 0, vfs.ErrNotSupported }

// Truncate is not possible: bytes are written once.
func (w *file) Truncate(int64) error { return vfs.ErrNotSupported }

// Preallocate is not possible.
func (w *file) Preallocate(int64, int64) error { return vfs.ErrNotSupported }

// closePart is the part of the retry time that closing a file may take before the
// bytes are sent again: a NameNode that has not heard of a block from a DataNode that
// was just restarted may not hear of it for hours.
const closePart = 4

// upload writes one whole file under a name that nobody else uses, with a
// client of its own: whatever goes wrong, the client is given up with its
// leases and nobody else is concerned.
func (c *cluster) upload(ctx, soon context.Context, name string, own bool, r io.ReaderAt, size int64) (vfs.FileInfo, error) {
	cl, err := c.dial(soon)
	if err != nil {
		return nil, err
	}
	defer cl.close()
	defer context.AfterFunc(soon, cl.dialer.hurry)()
	w, err := c.createFile(cl, name, own)
	if err != nil {
		if !answered(err) {
			c.demote(cl.dialer.nameNodeAddr())
		}
		return nil, err
	}
	err = send(ctx, cl, w, r, size)
	if err == nil {
		err = complete(ctx, soon, w, c.conf.RetryTimeout/closePart)
	}
	if err == nil {
		err = cl.dialer.dataFailure()
	}
	if err != nil {
		return nil, c.abandon(soon, cl, w, name, err)
	}
	// A nil Close may stand for a short file, e.g. after a quota was hit.
	info, err := cl.Stat(name)
	if err == nil && info.Size() != size {
		err = fmt.Errorf("the file has %d bytes, %d were written", info.Size(), size)
	}
	if err == nil {
		// The directory's policy makes files erasure coded, which the library
		// does not notice: what it wrote nobody can read.
		err = readable(info)
	}
	if err != nil {
		return nil, c.abandon(soon, cl, w, name, err)
	}
	c.promote(cl.dialer.nameNodeAddr())
	return info, nil
}

// createFile makes a file. own: the name is one of Create's, so what a crash
// left there goes.
func (c *cluster) createFile(cl *client, name string, own bool) (*hdfs.FileWriter, error) {
	replication, block, err := c.shape(cl)
	if err != nil {
		return nil, err
	}
	w, err := cl.CreateFile(name, replication, block, fileMode)
	if own && errors.Is(err, vfs.ErrExist) {
		if err := cl.Remove(name); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return nil, err
		}
		w, err = cl.CreateFile(name, replication, block, fileMode)
	}
	return w, err
}

// shape is the replication and block size of new files; what the configuration
// leaves open the NameNode is asked once.
func (c *cluster) shape(cl *client) (replication int, block int64, err error) {
	replication, block = c.conf.Replication, c.conf.BlockBytes
	if replication > 0 && block > 0 {
		return replication, block, nil
	}
	c.defaultsMu.Lock()
	defer c.defaultsMu.Unlock()
	if c.defaults == nil {
		d, err := cl.ServerDefaults()
		if err != nil {
			return 0, 0, err
		}
		c.defaults = &d
	}
	if replication == 0 {
		replication = c.defaults.Replication
	}
	if block == 0 {
		block = c.defaults.BlockSize
	}
	return replication, block, nil
}

func send(ctx context.Context, cl *client, w *hdfs.FileWriter, r io.ReaderAt, size int64) error {
	buf := make([]byte, min(size, copyBytes))
	for off := int64(0); off < size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := buf[:min(int64(len(buf)), size-off)]
		if n, err := r.ReadAt(part, off); err != nil && !(errors.Is(err, io.EOF) && n == len(part)) {
			return fmt.Errorf("reading spool: %w", err)
		}
		if _, err := w.Write(part); err != nil {
			return dataError(err)
		}
		if err := cl.dialer.dataFailure(); err != nil {
			return dataError(err)
		}
		off += int64(len(part))
	}
	return nil
}

// complete closes a file until the NameNode has it whole. Only a nil Close
// confirms the data, and it may be repeated after one error alone.
func complete(ctx, soon context.Context, w io.Closer, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	hurried := soon.Done()
	wait := 5 * time.Millisecond
	for {
		err := w.Close()
		if err == nil || !hdfs.IsErrReplicating(err) {
			return dataError(err)
		}
		if !time.Now().Before(deadline) {
			return &Error{Kind: NoDataNodes, Err: err}
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-hurried:
			t.Stop()
			hurried = nil
			if by := time.Now().Add(hurryTimeout); by.Before(deadline) {
				deadline = by
			}
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
		wait = min(2*wait, 400*time.Millisecond)
	}
}

// dataError marks an error of the transfer that is no answer of the NameNode.
func dataError(err error) error {
	if err == nil || answered(err) {
		return err
	}
	return &Error{Kind: NoDataNodes, Err: err}
}

// abandon ends the library's writer of a file that failed and removes what
// there is of it. The file may get any length meanwhile; nobody uses its name.
func (c *cluster) abandon(soon context.Context, cl *client, w *hdfs.FileWriter, name string, cause error) error {
	cl.dialer.cut(cause)
	_ = w.Close()
	cl.close()
	// What stays is swept with the attempt's directory.
	_ = c.once(soon, func(s *hdfs.Client) error { return s.Remove(name) })
	return c.explain("writing", name, cause)
}
