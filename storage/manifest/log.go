package manifest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/storage/vfs"
)

// Options tune a Log. The zero value works.
type Options struct {
	// MustExist makes Open fail with ErrMissing rather than start an empty
	// state: for a store that knows it was used before.
	MustExist bool
	// RewriteFactor is how many times its snapshot a file may measure before
	// ShouldSnapshot says so; 0 means 4.
	RewriteFactor int
	// MinRewriteBytes is the size below which it never does; 0 means 1 MiB.
	MinRewriteBytes int64
}

// Recovery says what Open found.
type Recovery struct {
	Created bool   // there was no state
	File    string // base name of the file in force
	Entries int64  // handed to apply
	// TornBytes were cut off: appends that no Sync had confirmed.
	TornBytes int64
	// HealedFrames is how many frames and headers had one damaged copy; nothing
	// was lost. ShouldSnapshot is true then, the rewrite removes the damage.
	HealedFrames int
	// CurrentRebuilt says that CURRENT was missing or damaged.
	CurrentRebuilt bool
}

// Stats are the sizes of a Log.
type Stats struct {
	Generation    uint64
	Bytes         int64 // of the file, with what is not yet written
	SnapshotBytes int64 // of the snapshot in it
	Syncs         int64 // fsyncs since Open
}

// Log is an open manifest.
type Log struct {
	fs   vfs.FS
	dir  string
	opts Options

	mu       sync.Mutex
	wake     *sync.Cond // a sync or a snapshot ended
	f        vfs.File
	gen      uint64
	sequence uint64
	written  int64 // position up to which the file was written
	durable  int64 // position up to which it is known durable
	snapshot int64 // position after the snapshot
	buf      []byte
	payload  []byte
	appended uint64 // batches taken since Open
	synced   uint64 // batches durable since Open
	syncing  bool   // one goroutine is in fsync, without mu
	syncs    int64
	healed   bool
	failed   error
}

// maxBufferBytes is how much is collected before it is written without a sync.
const maxBufferBytes = 1 << 20

// Open reads the state in dir, made if missing, handing each entry of the
// snapshot and of the log to apply in order; payload is only valid during the
// call. An error of apply ends Open. *RotError means that the state is damaged
// beyond its second copies; nothing was changed then.
func Open(fsys vfs.FS, dir string, o Options, apply func(kind uint16, payload []byte) error) (*Log, Recovery, error) {
	if o.RewriteFactor <= 0 {
		o.RewriteFactor = 4
	}
	if o.MinRewriteBytes <= 0 {
		o.MinRewriteBytes = 1 << 20
	}
	l := &Log{fs: fsys, dir: dir, opts: o}
	l.wake = sync.NewCond(&l.mu)
	rec, err := l.open(apply)
	if err != nil {
		if l.f != nil {
			l.f.Close()
		}
		return nil, rec, fmt.Errorf("opening manifest in %s: %w", dir, err)
	}
	return l, rec, nil
}

func (l *Log) open(apply func(uint16, []byte) error) (Recovery, error) {
	var rec Recovery
	if err := vfs.MkdirAllSync(l.fs, l.dir); err != nil {
		return rec, err
	}
	loc, err := locate(l.fs, l.dir)
	if err != nil {
		return rec, err
	}
	if loc.generation == 0 {
		if l.opts.MustExist {
			return rec, ErrMissing
		}
		rec.Created = true
		if err := l.removeStale(loc.stale); err != nil {
			return rec, err
		}
		err := l.switchTo(1, func(func(uint16, []byte) error) error { return nil })
		rec.File = fileName(1)
		return rec, err
	}
	rec.File, rec.CurrentRebuilt = fileName(loc.generation), !loc.current
	path := l.fs.Join(l.dir, rec.File)
	if l.f, err = l.fs.OpenReadWrite(path); err != nil {
		if errors.Is(err, vfs.ErrNotExist) {
			return rec, fmt.Errorf("%w: %s names %s", ErrMissing, currentName, rec.File)
		}
		return rec, err
	}
	res, err := replay(l.f, path, true, func(kind uint16, payload []byte) error {
		rec.Entries++
		return apply(kind, payload)
	})
	if err != nil {
		return rec, err
	}
	if res.generation != loc.generation {
		return rec, &RotError{Path: path, Reason: fmt.Sprintf("file of generation %d", res.generation)}
	}
	rec.HealedFrames = res.healed
	rec.TornBytes = max(res.size-res.end, 0)
	if err := l.settle(res); err != nil {
		return rec, err
	}
	if !loc.current {
		if err := vfs.WriteFileAtomic(l.fs, l.fs.Join(l.dir, currentName), encodeCurrent(loc.generation)); err != nil {
			return rec, fmt.Errorf("writing %s: %w", currentName, err)
		}
	}
	return rec, l.removeStale(loc.stale)
}

// settle takes over a file that was read and makes its tail clean and durable,
// so that what the caller now knows cannot vanish in the next crash.
func (l *Log) settle(res *replayed) error {
	l.gen, l.sequence, l.snapshot = res.generation, res.sequence, res.snapshotEnd
	l.written, l.healed = res.end, res.healed > 0
	if res.halfTail {
		both := appendFrame(nil, res.tail, res.tailPayload)
		if _, err := l.f.WriteAt(both, res.end-int64(len(both))); err != nil {
			return fmt.Errorf("repairing the last frame: %w", err)
		}
	}
	if res.size > res.end {
		if err := l.f.Truncate(res.end); err != nil {
			return fmt.Errorf("cutting the torn tail: %w", err)
		}
	}
	// Frames that were read may still be in the page cache only.
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("syncing after recovery: %w", err)
	}
	l.durable = res.end
	return nil
}

// removeStale removes leftovers of unfinished rewrites, durably, before the file
// in force can grow: see locate.
func (l *Log) removeStale(names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if err := l.fs.Remove(l.fs.Join(l.dir, name)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("removing old manifest: %w", err)
		}
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return fmt.Errorf("removing old manifest: %w", err)
	}
	return nil
}

// Append adds a batch of edits, all or nothing, and returns when it is durable.
// Concurrent calls share one fsync.
func (l *Log) Append(edits ...Edit) error {
	n, err := l.append(edits)
	if err != nil {
		return err
	}
	return l.syncUpTo(n)
}

// AppendNoSync adds a batch of edits, all or nothing, that the next Sync makes
// durable. A crash before may lose it, but never keeps a later batch without it.
func (l *Log) AppendNoSync(edits ...Edit) error {
	_, err := l.append(edits)
	return err
}

func (l *Log) append(edits []Edit) (uint64, error) {
	size := 0
	for i := range edits {
		size += editHeaderSize + len(edits[i].Payload)
	}
	if size > MaxBatchBytes {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, MaxBatchBytes)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return 0, err
	}
	if len(edits) == 0 {
		return l.appended, nil
	}
	l.payload = l.payload[:0]
	for i := range edits {
		l.payload = appendEdit(l.payload, edits[i].Kind, edits[i].Payload)
	}
	l.sequence++
	l.buf = appendFrame(l.buf, frame{kind: frameEdits, generation: l.gen, sequence: l.sequence,
		durable: l.durable, entries: uint32(len(edits))}, l.payload)
	l.appended++
	if len(l.buf) > maxBufferBytes && !l.syncing {
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	return l.appended, nil
}

// Sync makes every batch durable that was appended before the call.
func (l *Log) Sync() error {
	l.mu.Lock()
	n := l.appended
	l.mu.Unlock()
	return l.syncUpTo(n)
}

// syncUpTo waits until batch n is durable. Whoever comes while nobody syncs does
// it for all batches there are; the others wait.
func (l *Log) syncUpTo(n uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.synced < n {
		if err := l.usable(); err != nil {
			return err
		}
		if l.syncing {
			l.wake.Wait()
			continue
		}
		if err := l.flush(); err != nil {
			return err
		}
		f, target, end := l.f, l.appended, l.written
		l.syncing = true
		l.mu.Unlock()
		err := f.SyncData()
		l.mu.Lock()
		l.syncing = false
		l.syncs++
		if err != nil {
			_ = l.fail(fmt.Errorf("syncing manifest: %w", err))
		} else {
			l.synced, l.durable = target, end
		}
		l.wake.Broadcast()
	}
	return nil
}

// flush writes the buffer. mu is held.
func (l *Log) flush() error {
	if len(l.buf) == 0 {
		return nil
	}
	if _, err := l.f.WriteAt(l.buf, l.written); err != nil {
		return l.fail(fmt.Errorf("writing manifest: %w", err))
	}
	l.written += int64(len(l.buf))
	if cap(l.buf) > 4*maxBufferBytes {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	return nil
}

func (l *Log) usable() error {
	if l.failed != nil {
		return fmt.Errorf("%w: %w", ErrFailed, l.failed)
	}
	return nil
}

func (l *Log) fail(err error) error {
	if l.failed == nil {
		l.failed = err
	}
	l.wake.Broadcast()
	return err
}

// ShouldSnapshot reports whether the file has grown so much beyond its snapshot
// that a rewrite pays, or whether a rewrite would remove healed damage.
func (l *Log) ShouldSnapshot() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := l.written + int64(len(l.buf))
	return l.healed || size >= l.opts.MinRewriteBytes && size >= int64(l.opts.RewriteFactor)*l.snapshot
}

// Stats returns the sizes now.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Generation: l.gen, Bytes: l.written + int64(len(l.buf)), SnapshotBytes: l.snapshot, Syncs: l.syncs}
}

// Close makes everything appended durable and closes the file. It writes a mark,
// so that damage found later in any frame is known as rot.
func (l *Log) Close() error {
	err := l.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncing {
		l.wake.Wait()
	}
	if l.f == nil {
		return nil
	}
	if err == nil && l.failed == nil {
		l.sequence++
		l.buf = appendFrame(l.buf, frame{kind: frameMark, generation: l.gen, sequence: l.sequence, durable: l.durable}, nil)
		if err = l.flush(); err == nil {
			err = l.f.SyncData()
		}
	}
	_ = l.fail(errors.New("closed"))
	if cerr := l.f.Close(); err == nil {
		err = cerr
	}
	l.f = nil
	return err
}
