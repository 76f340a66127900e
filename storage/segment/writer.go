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

// Append writes whole, valid batches of one partition. In a mixed segment the
// partitions must come in rising order; offsets must rise in any. In an own
// segment the batches can be read at once, before they are durable; the caller
// keeps readers below what it committed.
//
// The bytes are copied. Batches that do not parse or do not match their
// checksum, unless they are trusted, are refused and nothing is written.
func (w *Writer) Append(partition uint64, batches []byte, appendTimeMs int64) (Range, error) {
	r := Range{From: w.pos, To: w.pos}
	if err := w.usable(); err != nil {
		return r, err
	}
	if w.opts.Kind == Own && partition != w.opts.Partition {
		return r, fmt.Errorf("appending to segment: %w: partition %d in the segment of %d", ErrOrder, partition, w.opts.Partition)
	}
	if err := w.check(partition, batches); err != nil {
		return r, fmt.Errorf("appending to segment: %w", err)
	}
	for rest := batches; len(rest) > 0; {
		e, n := w.cut(partition, rest, appendTimeMs)
		if err := w.put(&r, e, rest[:n]); err != nil {
			return r, err
		}
		rest = rest[n:]
	}
	return r, w.appended(&r)
}

// AppendPieces is Append for batches that lie in several places: together they
// become one extent.
func (w *Writer) AppendPieces(partition uint64, pieces [][]byte, appendTimeMs int64) (Range, error) {
	r := Range{From: w.pos, To: w.pos}
	if err := w.usable(); err != nil {
		return r, err
	}
	if w.opts.Kind == Own && partition != w.opts.Partition {
		return r, fmt.Errorf("appending to segment: %w: partition %d in the segment of %d", ErrOrder, partition, w.opts.Partition)
	}
	if err := w.check(partition, pieces...); err != nil {
		return r, fmt.Errorf("appending to segment: %w", err)
	}
	e := Extent{Partition: partition, Position: w.pos, AppendTimeMs: appendTimeMs}
	w.table = w.table[:0]
	for _, piece := range pieces {
		for len(piece) > 0 {
			h, err := record.ParseHeader(piece)
			if err != nil {
				return r, err // cannot be: check parsed the same bytes
			}
			w.table = e.include(w.table, &h, piece[:h.Size()])
			piece = piece[h.Size():]
		}
	}
	e.Checksum = record.Checksum(w.table)
	if err := w.put(&r, e, pieces...); err != nil {
		return r, err
	}
	return r, w.appended(&r)
}

// put adds an extent, whose table is in w.table, to what is to be written.
func (w *Writer) put(r *Range, e Extent, pieces ...[]byte) error {
	if err := w.index.add(e); err != nil {
		return w.fail(err) // check saw the same order, so this is a bug
	}
	start := len(w.buf)
	w.buf = append(w.buf, make([]byte, extentHeaderSize)...)
	e.encode(w.buf[start:], w.idSum)
	r.Checksum = record.UpdateChecksum(r.Checksum, w.buf[start:start+extentHeaderSize])
	w.buf = append(w.buf, w.table...)
	for _, piece := range pieces {
		w.buf = append(w.buf, piece...)
	}
	w.pos = e.End()
	if len(w.buf) >= flushBytes && w.opts.Kind == Mixed {
		return w.flushBlocks()
	}
	return nil
}

// appended ends an append.
func (w *Writer) appended(r *Range) error {
	r.To = w.pos
	if w.opts.Kind == Own {
		if err := w.flush(); err != nil {
			return err
		}
		w.publish()
	}
	return nil
}

// check parses and, unless they are trusted, verifies all batches before any of them is
// written.
func (w *Writer) check(partition uint64, pieces ...[]byte) error {
	next := int64(0)
	if w.opts.Kind == Own {
		next = w.opts.BaseOffset
	}
	if n := len(w.index.extents); n > 0 {
		last := &w.index.extents[n-1]
		if partition < last.Partition {
			return fmt.Errorf("%w: partition %d after %d", ErrOrder, partition, last.Partition)
		}
		if partition == last.Partition {
			next = last.LastOffset + 1
		}
	}
	split := record.Split
	if w.opts.Trusted {
		split = record.SplitUnverified
	}
	for _, rest := range pieces {
		for len(rest) > 0 {
			b, after, err := split(rest)
			if err != nil {
				return err
			}
			if b.BaseOffset < next {
				return fmt.Errorf("%w: offset %d of partition %d, expected %d or more", ErrOrder, b.BaseOffset, partition, next)
			}
			next, rest = b.LastOffset()+1, after
		}
	}
	return nil
}

// cut describes the next extent and says how many bytes of batches it takes.
// Its table is left in w.table.
func (w *Writer) cut(partition uint64, batches []byte, appendTimeMs int64) (Extent, int) {
	e := Extent{Partition: partition, Position: w.pos, AppendTimeMs: appendTimeMs}
	w.table = w.table[:0]
	n := 0
	for n < len(batches) {
		h, err := record.ParseHeader(batches[n:])
		if err != nil || (n > 0 && n+h.Size() > w.opts.ExtentBytes) {
			break // err cannot be: check parsed the same bytes
		}
		w.table = e.include(w.table, &h, batches[n:n+h.Size()])
		n += h.Size()
	}
	e.Checksum = record.Checksum(w.table)
	return e, n
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
