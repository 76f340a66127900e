package segment

import (
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// DefaultExtentBytes is the size above which an extent is cut: the unit of
// reading and of the index.
const DefaultExtentBytes = 64 << 10

// flushBytes is how much a mixed writer collects before it writes.
const flushBytes = 1 << 20

// MixedBuffer is the size of a mixed writer's memory, in bytes: room for what triggers
// a write and some batches more.
const MixedBuffer = flushBytes + flushBytes/2

// Options say what is written. Meta.ID must never have been used before.
type Options struct {
	Meta
	// ExtentBytes cuts extents; a larger single batch is an extent alone.
	// 0 means DefaultExtentBytes.
	ExtentBytes int
	// Extents is about how many there will be, if that is known: their index gets its
	// memory at once.
	Extents int
	// Buffer is memory for collecting writes, MixedBuffer bytes from vfs.NewBuffer, for
	// one Writer after another; nil: a mixed segment's Writer has its own.
	Buffer []byte
	// Trusted says that the batches come from memory where they were verified: their
	// checksums are not computed again. Readers do, always.
	Trusted bool
}

// Validate names the field that is wrong.
func (o *Options) Validate() error {
	switch {
	case o.Kind != Mixed && o.Kind != Own:
		return fmt.Errorf("segment options: Kind is %s", o.Kind)
	case o.Kind == Mixed && (o.Partition != 0 || o.BaseOffset != 0):
		return fmt.Errorf("segment options: Partition and BaseOffset belong to own segments")
	case o.BaseOffset < 0:
		return fmt.Errorf("segment options: BaseOffset is %d", o.BaseOffset)
	case o.ExtentBytes < 0:
		return fmt.Errorf("segment options: ExtentBytes is %d", o.ExtentBytes)
	case o.Extents < 0:
		return fmt.Errorf("segment options: Extents is %d", o.Extents)
	}
	return nil
}

// Range is a piece of a segment that one Append wrote: what a commit record
// names.
type Range struct {
	From, To int64 // positions in the file, bytes; To is excluded
	// Checksum covers the headers of the extents in the range and, through
	// them, every byte of it.
	Checksum uint32
}

// Info sums up a segment.
type Info struct {
	Meta
	Size                     int64 // of the file, bytes
	DataEnd                  int64 // position after the last extent
	Extents                  int
	Batches                  int64
	Payload                  int64 // bytes of raw batches
	MinAppendMs, MaxAppendMs int64
	Sealed                   bool
}

// Writer writes one segment. Its methods belong to one goroutine, except Reader
// and the readers it gave out.
type Writer struct {
	fs     vfs.FS
	path   string
	opts   Options
	idSum  uint32 // idChecksum of the segment
	file   *sharedFile
	index  Index // private; published below after each Append
	live   atomic.Pointer[Index]
	buf    []byte // not yet written, belongs at position pos-len(buf)
	pos    int64  // logical end of the extents
	size   int64  // of the file once sealed
	table  []byte
	named  bool // the directory was synced
	sealed bool
	failed error
	// regions are those under way; written is how far regions reached, also
	// those that were dropped.
	regions []*Region
	written int64
}

// Create makes a new segment file. It is durable, name included, after the
// first Sync or Seal.
func Create(fsys vfs.FS, path string, o Options) (*Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f, err := fsys.CreateNew(path)
	if err != nil {
		return nil, fmt.Errorf("creating segment: %w", err)
	}
	w := newWriter(fsys, path, f, o)
	if o.Kind == Mixed {
		if o.Buffer == nil {
			o.Buffer = make([]byte, MixedBuffer) // at a page, as vfs.DirectAlign asks
		}
		w.buf = o.Buffer[:0]
	}
	w.buf = append(w.buf, make([]byte, dataStart)...)
	w.opts.Meta.encode(w.buf)
	w.opts.Meta.encode(w.buf[fileHeaderSize:])
	w.pos = dataStart
	if o.Kind == Own {
		if err := w.flush(); err != nil {
			return nil, w.abandon(err)
		}
	}
	return w, nil
}

func newWriter(fsys vfs.FS, path string, f vfs.File, o Options) *Writer {
	if o.ExtentBytes == 0 {
		o.ExtentBytes = DefaultExtentBytes
	}
	w := &Writer{fs: fsys, path: path, opts: o, idSum: idChecksum(o.ID), file: newSharedFile(f)}
	w.index.extents = make([]Extent, 0, o.Extents)
	w.live.Store(&Index{})
	return w
}

func (w *Writer) abandon(err error) error {
	w.file.release()
	return err
}

// Sync makes everything appended durable, the file's name included.
func (w *Writer) Sync() error {
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	return w.sync()
}

func (w *Writer) sync() error {
	if err := w.file.f.SyncData(); err != nil {
		return w.fail(fmt.Errorf("syncing segment: %w", err))
	}
	if !w.named {
		if err := w.fs.SyncDir(w.fs.Dir(w.path)); err != nil {
			return w.fail(fmt.Errorf("syncing segment directory: %w", err))
		}
		w.named = true
	}
	return nil
}

// Seal writes the footer and makes the whole file durable. Readers of the
// Writer go on working until Close.
func (w *Writer) Seal() (Info, error) {
	if err := w.usable(); err != nil {
		return Info{}, err
	}
	start := len(w.buf)
	for i := range w.index.extents {
		n := len(w.buf)
		w.buf = append(w.buf, make([]byte, extentHeaderSize)...)
		w.index.extents[i].encode(w.buf[n:], w.idSum)
	}
	n := len(w.buf)
	w.buf = append(w.buf, make([]byte, fileHeaderSize+trailerSize)...)
	w.opts.Meta.encode(w.buf[n:])
	t := trailer{
		id:       w.opts.ID,
		footer:   w.pos,
		extents:  uint32(len(w.index.extents)),
		checksum: record.Checksum(w.buf[start : n+fileHeaderSize]),
	}
	t.encode(w.buf[n+fileHeaderSize:])
	w.size = w.pos + int64(len(w.buf)-start)
	if err := w.flushAt(w.size); err != nil {
		return Info{}, err
	}
	// The trailer is found at the end of the file.
	if w.written > w.size {
		if err := w.file.f.Truncate(w.size); err != nil {
			return Info{}, w.fail(fmt.Errorf("cutting segment: %w", err))
		}
	}
	if err := w.sync(); err != nil {
		return Info{}, err
	}
	w.publish()
	w.sealed = true
	return w.Info(), nil
}

// Close closes the file; readers that are reading finish first. It does not
// make anything durable and does not seal.
func (w *Writer) Close() error {
	if w.failed == nil {
		w.failed = fmt.Errorf("%w: closed", ErrFailed)
	}
	return w.file.release()
}

// Abort closes the file and removes it.
func (w *Writer) Abort() error {
	w.Close()
	if err := w.fs.Remove(w.path); err != nil {
		return fmt.Errorf("removing segment: %w", err)
	}
	return nil
}

// Reader reads what was appended, without opening the file again, until Close.
// In a mixed segment that is nothing before Seal.
func (w *Writer) Reader() *Reader { return &Reader{src: w, path: w.path, meta: w.opts.Meta} }

// End is the position after the last extent: To of the last Range.
func (w *Writer) End() int64 { return w.pos }

// Info sums up what was appended so far.
func (w *Writer) Info() Info {
	return summarize(w.opts.Meta, &w.index, max(w.size, w.pos), w.pos, w.sealed)
}

// acquire and current make the Writer a source for its readers.
func (w *Writer) acquire() (*sharedFile, error) { return w.file.acquire() }

func (w *Writer) current() (*Index, error) { return w.live.Load(), nil }

func (w *Writer) publish() {
	x := w.index
	w.live.Store(&x)
}

func (w *Writer) flush() error { return w.flushAt(w.pos) }

// flushBlocks writes the whole blocks in the buffer of a mixed segment, which
// begins at a block of the file, and keeps the rest: so the filesystem can write
// them past the page cache.
func (w *Writer) flushBlocks() error {
	n := len(w.buf) &^ (vfs.DirectAlign - 1)
	if _, err := w.file.f.WriteAt(w.buf[:n], w.pos-int64(len(w.buf))); err != nil {
		return w.fail(fmt.Errorf("writing segment: %w", err))
	}
	w.buf = w.buf[:copy(w.buf, w.buf[n:])]
	return nil
}

// flushAt writes the buffer so that it ends at the position end.
func (w *Writer) flushAt(end int64) error {
	if len(w.buf) == 0 {
		return nil
	}
	if _, err := w.file.f.WriteAt(w.buf, end-int64(len(w.buf))); err != nil {
		return w.fail(fmt.Errorf("writing segment: %w", err))
	}
	w.buf = w.buf[:0]
	return nil
}

func (w *Writer) usable() error {
	if w.failed != nil {
		return fmt.Errorf("%w: %w", ErrFailed, w.failed)
	}
	if w.sealed {
		return fmt.Errorf("%w: already sealed", ErrFailed)
	}
	return nil
}

// fail keeps the first error. Invariant 5: after a failed write or sync nothing
// more is tried on the same file, what it holds is unknown.
func (w *Writer) fail(err error) error {
	if w.failed == nil {
		w.failed = err
	}
	return err
}

func summarize(m Meta, x *Index, size, dataEnd int64, sealed bool) Info {
	in := Info{Meta: m, Size: size, DataEnd: dataEnd, Extents: len(x.extents), Sealed: sealed}
	for i := range x.extents {
		e := &x.extents[i]
		in.Batches += int64(e.Batches)
		in.Payload += int64(e.Length)
		if i == 0 {
			in.MinAppendMs, in.MaxAppendMs = e.AppendTimeMs, e.AppendTimeMs
		}
		in.MinAppendMs = min(in.MinAppendMs, e.AppendTimeMs)
		in.MaxAppendMs = max(in.MaxAppendMs, e.AppendTimeMs)
	}
	return in
}
