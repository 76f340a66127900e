package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/millrace/millrace/storage/vfs"
)

// Defaults, in bytes.
const (
	// DefaultFileBytes is the size of the first files. Small: a new store must
	// be ready within milliseconds.
	DefaultFileBytes = 4 << 20
	// DefaultMaxBytes bounds the files of one shard together.
	DefaultMaxBytes = 256 << 20
	// maxFileBytes is where files stop to double as the journal grows.
	maxFileBytes = 32 << 20
)

// Options say where a journal is and how large it may become.
type Options struct {
	FS vfs.FS
	// Dir exists and is durable.
	Dir string
	// Store and Shard name the owner; files of another are refused.
	Store [16]byte
	Shard uint32
	// FileBytes is the size of the first files, a multiple of Align; 0 means
	// DefaultFileBytes.
	FileBytes int64
	// MaxBytes bounds all files together, except that one group may always be
	// written when nothing else is in use; 0 means DefaultMaxBytes.
	MaxBytes int64
	Logger   *slog.Logger
}

// Validate fills in the defaults and names the field that is wrong.
func (o *Options) Validate() error {
	if o.FileBytes == 0 {
		o.FileBytes = DefaultFileBytes
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.FS == nil:
		return errors.New("journal options: FS is missing")
	case o.FileBytes%Align != 0 || o.FileBytes < 4*Align:
		return fmt.Errorf("journal options: FileBytes is %d", o.FileBytes)
	case o.MaxBytes < 2*o.FileBytes:
		return fmt.Errorf("journal options: MaxBytes is %d, less than two files of %d", o.MaxBytes, o.FileBytes)
	}
	return nil
}

// file is one journal file. Its fields are guarded by Journal.mu, except that
// only the writing goroutine uses the current file's end.
type file struct {
	f      vfs.File
	path   string
	number uint64
	size   int64
	end    int64  // where the next group goes
	last   uint64 // sequence of the last group in it, 0 for none
	dirty  bool   // written since its last sync
}

// Journal appends groups. Open makes one.
type Journal struct {
	opts  Options
	salt  uint32
	epoch uint32

	next    uint64 // sequence of the next group
	durable uint64 // of the last group that is known to be durable
	failed  error
	zeros   []byte

	mu      sync.Mutex
	current *file
	used    []*file // older than current, oldest first
	free    []*file
	bytes   int64  // of all files
	number  uint64 // of the next file made
	growing bool
	growErr error
	grown   sync.Cond // growing became false
	closed  bool
}

// Open continues a journal after Recover: all files that Recover found are taken
// over. epoch must be higher than in any group written before; it must be
// durable elsewhere. through is the sequence up to which nothing of the journal
// is needed any more.
func Open(o Options, rec *Recovered, epoch uint32, through uint64) (*Journal, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	j := &Journal{opts: o, salt: salt(o.Store, o.Shard), epoch: epoch, number: 1}
	j.grown.L = &j.mu
	last := through
	if rec != nil {
		for _, rf := range rec.files {
			if rf.useless {
				if err := o.FS.Remove(rf.path); err != nil {
					j.closeFiles()
					return nil, fmt.Errorf("removing unfinished journal file: %w", err)
				}
				continue
			}
			f, err := j.adopt(rf)
			if err != nil {
				j.closeFiles()
				return nil, err
			}
			jf := &file{f: f, path: rf.path, number: rf.number, size: rf.size, end: Align, last: rf.last}
			j.bytes += jf.size
			j.number = max(j.number, jf.number+1)
			// A file with anything that is still needed is full: the space
			// behind its last group may hold a torn group that must not be
			// built upon.
			if jf.last > through {
				j.used = append(j.used, jf)
			} else {
				j.free = append(j.free, jf)
			}
		}
		last = max(last, rec.Last)
	}
	j.next, j.durable = last+1, last
	for len(j.free) < 2 && j.bytes+o.FileBytes <= o.MaxBytes {
		f, err := j.create(o.FileBytes)
		if err != nil {
			if len(j.free) > 0 {
				break // one is enough to start with
			}
			j.closeFiles()
			return nil, err
		}
		j.free = append(j.free, f)
	}
	return j, nil
}

// adopt opens a file that was found and makes its content durable: what Recover
// read may have been only in the page cache, left by a process that was killed
// before its fdatasync, and will be taken for durable from now on.
func (j *Journal) adopt(rf foundFile) (vfs.File, error) {
	f, err := j.opts.FS.OpenReadWrite(rf.path)
	if err != nil {
		return nil, fmt.Errorf("opening journal file: %w", err)
	}
	vfs.SetDontCache(f, true) // it is read again only after a restart
	if rf.headerLost {
		var b [fileHeaderSize]byte
		h := fileHeader{store: j.opts.Store, shard: j.opts.Shard, number: rf.number, size: rf.size}
		h.encode(b[:])
		_, err = f.WriteAt(b[:], 0)
	}
	if err == nil {
		err = f.SyncData()
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("opening journal file: %w", err)
	}
	return f, nil
}

// create makes a zero-filled durable file. Zero-filled and not only allocated:
// an fdatasync after a write into an allocated but unwritten extent has to
// commit the extent tree, which takes ten times as long.
func (j *Journal) create(size int64) (*file, error) {
	j.mu.Lock()
	number := j.number
	j.number++
	j.mu.Unlock()
	path := j.opts.FS.Join(j.opts.Dir, fmt.Sprintf("%02d-%06d.mrj", j.opts.Shard, number))
	f, err := j.opts.FS.Create(path)
	if err != nil {
		return nil, fmt.Errorf("creating journal file: %w", err)
	}
	vfs.SetDontCache(f, true)
	err = f.Preallocate(0, size)
	if err == nil {
		h := fileHeader{store: j.opts.Store, shard: j.opts.Shard, number: number, size: size}
		var b [fileHeaderSize]byte
		h.encode(b[:])
		_, err = f.WriteAt(b[:], 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.opts.FS.SyncDir(j.opts.Dir)
	}
	if err != nil {
		_ = f.Close()
		_ = j.opts.FS.Remove(path)
		return nil, fmt.Errorf("creating journal file: %w", err)
	}
	j.mu.Lock()
	j.bytes += size
	j.mu.Unlock()
	return &file{f: f, path: path, number: number, size: size, end: Align}, nil
}

// Next is the sequence of the next group.
func (j *Journal) Next() uint64 { return j.next }

// Durable is the sequence of the last durable group.
func (j *Journal) Durable() uint64 { return j.durable }

// Write appends a finished group. It returns ErrFull, having written nothing, if
// there is no place and the journal may not grow before Recycle; any other
// error is final.
func (j *Journal) Write(group []byte) error {
	if j.failed != nil {
		return fmt.Errorf("%w: %w", ErrFailed, j.failed)
	}
	if err := j.place(int64(len(group))); err != nil {
		return err
	}
	f := j.current
	if _, err := f.f.WriteAt(group, f.end); err != nil {
		j.failed = err
		return fmt.Errorf("writing journal: %w", err)
	}
	j.mu.Lock()
	f.end += int64(len(group))
	f.last = sequenceOf(group)
	f.dirty = true
	j.mu.Unlock()
	j.next = f.last + 1
	return nil
}

// place makes current a file with so much space left.
func (j *Journal) place(need int64) error {
	if c := j.current; c != nil && c.end+need <= c.size {
		return nil
	}
	// A file that is left must be durable before the next one is written, or a
	// later Sync would say too much.
	if c := j.current; c != nil && c.dirty {
		if err := j.syncFile(c); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		if j.closed {
			return vfs.ErrClosed
		}
		for i, f := range j.free {
			if Align+need <= f.size {
				j.free = append(j.free[:i], j.free[i+1:]...)
				if j.current != nil {
					j.used = append(j.used, j.current)
				}
				j.current = f
				if len(j.free) == 0 {
					j.growLocked(0)
				}
				return nil
			}
		}
		if !j.growing && !j.growLocked(need) {
			return ErrFull
		}
		for j.growing {
			j.grown.Wait()
		}
		if err := j.growErr; err != nil {
			j.growErr = nil
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
}

// growLocked starts to make one more file in the background and says whether it
// may. need is the group that must fit, 0 to make one ahead.
func (j *Journal) growLocked(need int64) bool {
	size := min(max(j.opts.FileBytes, j.bytes/4/Align*Align), maxFileBytes)
	size = max(size, Align+need)
	if j.growing || j.closed {
		return false
	}
	if j.bytes+size > j.opts.MaxBytes {
		// A group larger than every file gets a file of its own once nothing
		// else can be waited for.
		if need == 0 || len(j.used) > 0 {
			return false
		}
		j.dropFreeLocked()
	}
	j.growing = true
	go func() {
		f, err := j.create(size)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.growing = false
		switch {
		case err != nil:
			j.growErr = err
			j.opts.Logger.Warn("the journal cannot grow", "shard", j.opts.Shard, "error", err)
		case j.closed:
			_ = f.f.Close()
		default:
			j.free = append(j.free, f)
		}
		j.grown.Broadcast()
	}()
	return true
}

// dropFreeLocked deletes the free files, which were all too small.
func (j *Journal) dropFreeLocked() {
	for _, f := range j.free {
		_ = f.f.Close()
		_ = j.opts.FS.Remove(f.path)
		j.bytes -= f.size
	}
	j.free = nil
}

func (j *Journal) syncFile(f *file) error {
	if err := f.f.SyncData(); err != nil {
		// After a failed fsync the kernel may have dropped the dirty pages and
		// a second one would succeed without them.
		j.failed = err
		return fmt.Errorf("syncing journal: %w", err)
	}
	j.mu.Lock()
	f.dirty = false
	j.mu.Unlock()
	return nil
}

// Sync makes everything written durable.
func (j *Journal) Sync() error {
	if j.failed != nil {
		return fmt.Errorf("%w: %w", ErrFailed, j.failed)
	}
	if c := j.current; c != nil && c.dirty {
		if err := j.syncFile(c); err != nil {
			return err
		}
	}
	j.durable = j.next - 1
	return nil
}

// Recycle says that nothing up to the sequence is needed any more, durably so.
func (j *Journal) Recycle(through uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := j.used[:0]
	for _, f := range j.used {
		if f.last > through {
			kept = append(kept, f)
			continue
		}
		f.end = Align
		j.free = append(j.free, f)
	}
	j.used = kept
}

// Bytes returns the size of all files and of those that are not free.
func (j *Journal) Bytes() (total, used int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range j.used {
		used += f.end
	}
	if j.current != nil {
		used += j.current.end
	}
	return j.bytes, used
}

// Full says whether the next group of the given size would find no place.
func (j *Journal) Full(need int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c := j.current; c != nil && c.end+need <= c.size {
		return false
	}
	for _, f := range j.free {
		if Align+need <= f.size {
			return false
		}
	}
	return j.bytes+j.opts.FileBytes > j.opts.MaxBytes
}

func (j *Journal) closeFiles() error {
	var first error
	for _, f := range append(append(j.used, j.free...), j.current) {
		if f == nil {
			continue
		}
		if err := f.f.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Close closes the files. It does not sync.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	for j.growing {
		j.grown.Wait()
	}
	return j.closeFiles()
}
