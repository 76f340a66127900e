package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// source gives a Reader its file and its index: a file opened for it alone, a
// Cache, or a growing Writer.
type source interface {
	// acquire returns the open file with one more user; release it after use.
	acquire() (*sharedFile, error)
	current() (*Index, error)
}

// Reader reads batches of one segment. It is safe for concurrent use.
type Reader struct {
	src    source
	path   string
	meta   Meta
	closer *sharedFile // if the Reader owns the file
}

// fixed is the source of a Reader that owns its file.
type fixed struct {
	file *sharedFile
	l    *loaded
}

func (s *fixed) acquire() (*sharedFile, error) { return s.file.acquire() }

func (s *fixed) current() (*Index, error) { return s.l.index, nil }

// Open opens one segment and keeps its file and index until Close. A segment
// without a readable footer is opened with an index rebuilt from its extents;
// Damage then says why. Stores with many segments use a Cache.
func Open(fsys vfs.FS, path string) (*Reader, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening segment: %w", err)
	}
	l, err := load(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	s := &fixed{file: newSharedFile(f), l: l}
	return &Reader{src: s, path: path, meta: l.meta, closer: s.file}, nil
}

// Close lets go of the file of a Reader from Open; reads under way finish. For
// other Readers it does nothing.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	c := r.closer
	r.closer = nil
	return c.release()
}

// Damage says why the index had to be rebuilt, wrapping ErrNoFooter or
// ErrFooter; nil if the footer was good or the Reader is not from Open.
func (r *Reader) Damage() error {
	if s, ok := r.src.(*fixed); ok {
		return s.l.damage
	}
	return nil
}

// Info sums up the segment. Size, DataEnd and Sealed are only known to Readers
// from Open.
func (r *Reader) Info() (Info, error) {
	x, err := r.src.current()
	if err != nil {
		return Info{}, err
	}
	if s, ok := r.src.(*fixed); ok {
		return summarize(s.l.meta, x, s.l.size, s.l.dataEnd, s.l.sealed), nil
	}
	return summarize(r.meta, x, 0, 0, false), nil
}

// Index returns the extents as they are now.
func (r *Reader) Index() (*Index, error) { return r.src.current() }

// ReadAt reads batches of a partition into dst: first the one that holds the
// offset (or, if compaction left none there, the next one), then as many of the
// following as fit. The result is a part of dst: raw batches, nothing between
// them, each byte verified. It is never empty without an error.
//
// dst has to take the whole first extent; *ShortBufferError says its size.
// ErrOffset means that the segment has nothing at or after the offset. Where a
// batch is damaged the result ends before it; a *RotError comes back if it is
// the very batch asked for, and reading goes on at its To+1.
func (r *Reader) ReadAt(dst []byte, partition uint64, offset int64) ([]byte, error) {
	x, err := r.src.current()
	if err != nil {
		return nil, err
	}
	i := x.find(partition, offset)
	if i < 0 {
		return nil, fmt.Errorf("%w: %d of partition %d in %s", ErrOffset, offset, partition, r.path)
	}
	if need := int(x.extents[i].Length); need > len(dst) {
		return nil, &ShortBufferError{Need: need}
	}
	shared, err := r.src.acquire()
	if err != nil {
		return nil, err
	}
	// The file was only read: closing it has nothing to say.
	defer func() { _ = shared.release() }()
	f := shared.f
	skip, n, whole, err := r.readFirst(f, &x.extents[i], dst, offset)
	if err != nil {
		return nil, err
	}
	for i++; whole && i < len(x.extents) && x.extents[i].Partition == partition; i++ {
		e := &x.extents[i]
		if int(e.Length) > len(dst)-n {
			break
		}
		_, more, all, err := r.readFirst(f, e, dst[n:], e.BaseOffset)
		if err != nil {
			break // what was read is good; the next call meets the error itself
		}
		n, whole = n+more, all
	}
	return dst[skip:n], nil
}

// readFirst reads one extent into dst and returns where the batch with the
// offset begins and where the good batches after it end; whole says that this
// is the end of the extent.
func (r *Reader) readFirst(f vfs.File, e *Extent, dst []byte, offset int64) (skip, n int, whole bool, err error) {
	payload := dst[:e.Length]
	if err := r.read(f, payload, e.payload()); err != nil {
		return 0, 0, false, err
	}
	return r.check(f, e, payload, offset)
}

// check proves the payload of an extent; what it returns is as with readFirst.
func (r *Reader) check(f vfs.File, e *Extent, payload []byte, offset int64) (skip, n int, whole bool, err error) {
	if proven(e, payload) {
		for {
			h, err := record.ParseHeader(payload[skip:])
			if err != nil {
				return 0, 0, false, err // cannot be, it was just parsed
			}
			if h.LastOffset() >= offset {
				return skip, len(payload), true, nil
			}
			skip += h.Size()
		}
	}
	parts, err := r.examine(f, e, payload)
	if err != nil {
		return 0, 0, false, err
	}
	i := 0
	for i < len(parts)-1 && parts[i].to < offset {
		i++
	}
	if parts[i].err != nil {
		return 0, 0, false, parts[i].rot(r.path, e)
	}
	skip, n = parts[i].start, parts[i].end
	for i++; i < len(parts) && parts[i].err == nil; i++ {
		n = parts[i].end
	}
	return skip, n, i == len(parts), nil
}

func (r *Reader) examine(f vfs.File, e *Extent, payload []byte) ([]span, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading segment: %w", err)
	}
	return examine(f, e, payload, st.Size())
}

func (r *Reader) read(f vfs.File, b []byte, pos int64) error {
	n, err := f.ReadAt(b, pos)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading %s at %d: %w", r.path, pos, err)
}

// OffsetForTime returns the first offset of the partition whose record has a
// timestamp of at least timestampMs, and that timestamp. ErrOffset means there
// is none. Damaged batches that could hold it give a *RotError.
func (r *Reader) OffsetForTime(partition uint64, timestampMs int64, d *record.Decoder) (offset, foundMs int64, err error) {
	x, err := r.src.current()
	if err != nil {
		return 0, 0, err
	}
	e, ok := x.FindTime(partition, timestampMs)
	if !ok {
		return 0, 0, fmt.Errorf("%w: nothing at or after time %d for partition %d in %s", ErrOffset, timestampMs, partition, r.path)
	}
	buf := make([]byte, e.Length)
	for at := e.BaseOffset; at <= e.LastOffset; {
		got, err := r.ReadAt(buf, partition, at)
		if err != nil {
			return 0, 0, err
		}
		for len(got) > 0 {
			b, rest, err := record.SplitUnverified(got)
			if err != nil {
				return 0, 0, err
			}
			got, at = rest, b.LastOffset()+1
			if b.MaxTimestamp < timestampMs {
				continue
			}
			if offset, foundMs, ok, err = firstAt(b, timestampMs, d); ok || err != nil {
				return offset, foundMs, err
			}
		}
	}
	return 0, 0, fmt.Errorf("%w: no record at or after time %d in extent at offset %d of partition %d", record.ErrCorrupt, timestampMs, e.BaseOffset, partition)
}

func firstAt(b record.Batch, timestampMs int64, d *record.Decoder) (offset, foundMs int64, ok bool, err error) {
	it, err := d.Records(b)
	if err != nil {
		return 0, 0, false, err
	}
	var rec record.Record
	for it.Next(&rec) {
		if rec.Timestamp >= timestampMs {
			return rec.Offset, rec.Timestamp, true, nil
		}
	}
	return 0, 0, false, it.Err()
}
