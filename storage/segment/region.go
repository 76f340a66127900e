package segment

import (
	"fmt"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// ExtentRoom is how many bytes an extent of so many batches with so many bytes
// together takes in a region.
func ExtentRoom(batches, size int) int { return extentHeaderSize + tableEntrySize*batches + size }

// RegionBytes is what a region with so many bytes of extents takes in the file.
func RegionBytes(room int) int { return padTo(room, vfs.DirectAlign) }

func padTo(n, to int) int { return (n + to - 1) / to * to }

func padTo64(n, to int64) int64 { return (n + to - 1) / to * to }

// Region is one append to an own segment, laid out in memory that the caller
// provides and written from there: no byte is copied or summed again. It begins
// at a multiple of vfs.DirectAlign in the file and is filled up with zeros, so
// that the filesystem can write it past the page cache.
//
// What a region holds belongs to the segment after Take; one that is dropped
// never happened, although its bytes may be in the file: Seal cuts them off and
// what is written next takes their place.
type Region struct {
	buf     []byte
	n       int
	at      int64 // position of buf in the file
	extents []Extent
	place   int // of the payload last reserved
	batches int
}

// BeginRegion starts a region behind what the segment has and the regions under
// way. buf begins at a multiple of vfs.DirectAlign in memory and has the size of
// such a multiple. Only own segments have regions.
func (w *Writer) BeginRegion(buf []byte) (*Region, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	if w.opts.Kind != Own || len(buf)%vfs.DirectAlign != 0 {
		return nil, fmt.Errorf("beginning a region: %w: in a %s segment with memory of %d bytes", ErrOrder, w.opts.Kind, len(buf))
	}
	if n := len(w.regions); n > 0 {
		w.regions[n-1].buf = w.regions[n-1].buf[:RegionBytes(w.regions[n-1].n)] // it is as large as it will be
	}
	r := &Region{buf: buf, at: padTo64(w.end(), vfs.DirectAlign)}
	w.regions = append(w.regions, r)
	return r, nil
}

// end is the position behind all regions.
func (w *Writer) end() int64 {
	if n := len(w.regions); n > 0 {
		return w.regions[n-1].End()
	}
	return w.pos
}

// End is the position behind the region as it stands.
func (r *Region) End() int64 { return r.at + int64(RegionBytes(r.n)) }

// Payload is where in buf the batches last reserved are.
func (r *Region) Payload() int { return r.place }

// Last is the last offset of the region; ok is false if it is empty.
func (r *Region) Last() (offset int64, ok bool) {
	if n := len(r.extents); n > 0 {
		return r.extents[n-1].LastOffset, true
	}
	return 0, false
}

// Bytes is the size of the batches in the region.
func (r *Region) Bytes() (n int64) {
	for i := range r.extents {
		n += int64(r.extents[i].Length)
	}
	return n
}

// Room is the size of the region in the file.
func (r *Region) Room() int { return RegionBytes(r.n) }

// Fits says whether an extent with so many batches and bytes fits.
func (r *Region) Fits(batches, size int) bool {
	return r.n+ExtentRoom(batches, size) <= len(r.buf)
}

// Reserve returns the place of the batches of the next extent. They must be
// there, as they are to stay, when Commit is called, before anything else. It
// must fit.
func (r *Region) Reserve(batches, size int) []byte {
	r.place, r.batches = r.n+ExtentRoom(batches, 0), batches
	return r.buf[r.place : r.place+size : r.place+size]
}

// Commit finishes the extent whose batches are in their place. They are trusted
// to be valid, of the partition of the segment and behind what it has.
func (r *Region) Commit(w *Writer, size int, appendTimeMs int64) (Extent, error) {
	e := Extent{Partition: w.opts.Partition, Position: r.at + int64(r.n), AppendTimeMs: appendTimeMs}
	head := r.buf[r.n:r.place]
	table := head[extentHeaderSize:extentHeaderSize]
	for rest := r.buf[r.place : r.place+size]; len(rest) > 0; {
		h, err := record.ParseHeader(rest)
		if err != nil || h.Size() > len(rest) || int(e.Batches) == r.batches {
			return e, fmt.Errorf("laying out an extent: %w: batch %d", record.ErrCorrupt, e.Batches)
		}
		table = e.include(table, &h, rest[:h.Size()])
		rest = rest[h.Size():]
	}
	if int(e.Batches) != r.batches {
		return e, fmt.Errorf("laying out an extent: %w: %d batches, expected %d", record.ErrCorrupt, e.Batches, r.batches)
	}
	e.Checksum = record.Checksum(table)
	e.encode(head, w.idSum)
	r.extents = append(r.extents, e)
	r.n = r.place + size
	return e, nil
}

// WriteRegions writes the regions under way. They are durable after Sync.
func (w *Writer) WriteRegions() error {
	if err := w.usable(); err != nil {
		return err
	}
	for _, r := range w.regions {
		if r.n == 0 {
			continue
		}
		b := r.buf[:RegionBytes(r.n)]
		clear(b[r.n:])
		w.written = max(w.written, r.at+int64(len(b)))
		if _, err := w.file.f.WriteAt(b, r.at); err != nil {
			return w.fail(fmt.Errorf("writing segment: %w", err))
		}
	}
	return nil
}

// TakeRegions makes the regions under way a part of the segment.
func (w *Writer) TakeRegions() error {
	for _, r := range w.regions {
		for _, e := range r.extents {
			if err := w.index.add(e); err != nil {
				return w.fail(err) // the caller keeps the order, so this is a bug
			}
		}
		if r.n > 0 {
			w.pos = r.End()
		}
	}
	w.regions = w.regions[:0]
	w.publish()
	return nil
}

// DropRegions forgets the regions under way.
func (w *Writer) DropRegions() { w.regions = w.regions[:0] }

// ReadExtent reads the batches of an extent that is described elsewhere and
// proves every byte of them; neither the file's headers nor its index are looked
// at. What does not match the description is a *RotError.
func ReadExtent(f vfs.File, path string, e Extent) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	rot := &RotError{Path: path, Partition: e.Partition, From: e.BaseOffset, To: e.LastOffset, Position: e.payload(), Length: int64(e.Length)}
	if e.Position < dataStart || e.End() > st.Size() {
		rot.Err = fmt.Errorf("%w: the file ends at %d", record.ErrChecksum, st.Size())
		return nil, rot
	}
	b := make([]byte, e.Length)
	if err := readFull(f, b, e.payload(), st.Size()); err != nil {
		return nil, err
	}
	if !proven(&e, b) {
		rot.Err = record.ErrChecksum
		return nil, rot
	}
	return b, nil
}

// skipPadding returns the position of the next extent of an own segment: behind
// the zeros that fill up a region, if these are there.
func skipPadding(f vfs.File, m Meta, pos, end int64) (int64, error) {
	next := min(padTo64(pos, vfs.DirectAlign), end)
	if m.Kind != Own || next == pos {
		return pos, nil
	}
	b := make([]byte, next-pos)
	if err := readFull(f, b, pos, end); err != nil {
		return pos, err
	}
	if !isZero(b) {
		return pos, nil
	}
	return next, nil
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
