package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// loaded is what a file says of itself.
type loaded struct {
	meta    Meta
	index   *Index
	size    int64
	dataEnd int64 // position after the last extent
	sealed  bool  // the trailer was readable
	// damage says why the index was rebuilt: nil, ErrNoFooter or ErrFooter.
	damage error
}

// load reads the index from the footer, or from the extent headers if there is
// no readable footer. It fails on reading errors, unknown versions and files
// that are no segments.
func load(f vfs.File, path string) (*loaded, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading segment: %w", err)
	}
	size := st.Size()
	l := &loaded{size: size}
	meta, headErr, err := loadMeta(f, size)
	if err != nil {
		return nil, err
	}
	if errors.Is(headErr, ErrVersion) {
		return nil, fmt.Errorf("opening %s: %w", path, headErr)
	}
	tail := make([]byte, trailerSize)
	if size >= dataStart+trailerSize {
		if err := readFull(f, tail, size-trailerSize, size); err != nil {
			return nil, err
		}
	}
	t, tailErr := decodeTrailer(tail, size)
	if errors.Is(tailErr, ErrVersion) {
		return nil, fmt.Errorf("opening %s: %w", path, tailErr)
	}
	l.sealed = tailErr == nil || errors.Is(tailErr, ErrFooter)
	if tailErr == nil {
		x, m, err := loadFooter(f, t, size)
		switch {
		case err == nil:
			l.meta, l.index, l.dataEnd = m, x, t.footer
			return l, nil
		case !errors.Is(err, ErrFooter):
			return nil, err
		}
		tailErr = err
	}
	if headErr != nil {
		return nil, fmt.Errorf("opening %s: %w: neither header nor footer is readable", path, ErrNotSegment)
	}
	l.meta, l.damage = meta, tailErr
	end := size
	if l.sealed && t.footer != 0 && t.footer <= size {
		end = t.footer
	}
	l.index, l.dataEnd, err = rebuild(f, meta, end)
	return l, err
}

// loadMeta reads the file header or, if that is damaged, the copy behind it.
// headErr says that neither is good, or that the version is unknown.
func loadMeta(f vfs.File, size int64) (m Meta, headErr, err error) {
	head := make([]byte, dataStart)
	if err := readFull(f, head, 0, size); err != nil {
		return m, nil, err
	}
	m, headErr = decodeMeta(head)
	if errors.Is(headErr, ErrNotSegment) {
		m, headErr = decodeMeta(head[fileHeaderSize:])
	}
	return m, headErr, nil
}

// loadFooter reads and checks the footer. Damage gives ErrFooter.
func loadFooter(f vfs.File, t trailer, size int64) (*Index, Meta, error) {
	buf := make([]byte, size-trailerSize-t.footer)
	if err := readFull(f, buf, t.footer, size); err != nil {
		return nil, Meta{}, err
	}
	if got := record.Checksum(buf); got != t.checksum {
		return nil, Meta{}, fmt.Errorf("%w: checksum is %08x, want %08x", ErrFooter, got, t.checksum)
	}
	meta, err := decodeMeta(buf[len(buf)-fileHeaderSize:])
	if err != nil || meta.ID != t.id {
		return nil, meta, fmt.Errorf("%w: file header copy", ErrFooter)
	}
	x := &Index{extents: make([]Extent, 0, t.extents), maxTimes: make([]int64, 0, t.extents)}
	for i := 0; i < int(t.extents); i++ {
		e, ok := decodeExtent(buf[i*extentHeaderSize:], t.id)
		if !ok || e.Position < dataStart || e.End() > t.footer {
			return nil, meta, fmt.Errorf("%w: entry %d", ErrFooter, i)
		}
		if err := x.add(e); err != nil {
			return nil, meta, fmt.Errorf("%w: entry %d: %w", ErrFooter, i, err)
		}
	}
	return x, meta, nil
}

// rebuild walks the extent headers up to the position end. Where one is not
// readable it works the extent out from its table, or searches for the next
// header: headers name their own position and their checksum includes the
// segment's id, so nothing inside a batch passes for one. It returns the
// position after the last extent whose bytes are all there.
func rebuild(f vfs.File, m Meta, end int64) (*Index, int64, error) {
	x := &Index{}
	head := make([]byte, extentHeaderSize)
	pos, dataEnd := int64(dataStart), int64(dataStart)
	for pos+extentHeaderSize <= end {
		if err := readFull(f, head, pos, end); err != nil {
			return nil, 0, err
		}
		e, ok := decodeExtent(head, m.ID)
		ok = ok && e.Position == pos && e.End() <= end
		if !ok && m.Kind == Own {
			next, err := skipPadding(f, m, pos, end)
			if err != nil {
				return nil, 0, err
			}
			if next > pos {
				pos = next
				continue
			}
			if e, ok, err = salvage(f, m, pos, end); err != nil {
				return nil, 0, err
			}
			if n := len(x.extents); ok && n > 0 {
				e.AppendTimeMs = x.extents[n-1].AppendTimeMs // its own is lost
			}
		}
		if ok && x.add(e) == nil {
			pos, dataEnd = e.End(), e.End()
			continue
		}
		next, err := nextExtent(f, m.ID, pos+1, end)
		if err != nil {
			return nil, 0, err
		}
		if next < 0 {
			break
		}
		pos = next
	}
	return x, dataEnd, nil
}

// salvage works out an extent at pos whose header is damaged: the number of
// batches is the one for which every batch matches its entry in the table. Only
// in own segments, where the partition is known without the header.
func salvage(f vfs.File, m Meta, pos, end int64) (Extent, bool, error) {
	buf := make([]byte, min(end-pos, 1<<20))
	if err := readFull(f, buf, pos, end); err != nil {
		return Extent{}, false, err
	}
	table := buf[extentHeaderSize:]
	for n := 1; tableEntrySize*n+record.PrefixSize <= len(table); n++ {
		first := table[tableEntrySize*n:]
		if record.Checksum(first[:record.PrefixSize]) != binary.BigEndian.Uint32(table[4:]) {
			continue
		}
		e := Extent{Partition: m.Partition, Position: pos, Batches: uint32(n)}
		e.Checksum = record.Checksum(table[:tableEntrySize*n])
		ok, err := salvageBatches(f, &e, table, end)
		if ok || err != nil {
			return e, ok, err
		}
	}
	return Extent{}, false, nil
}

// salvageBatches fills in e from its batches if they all match the table.
func salvageBatches(f vfs.File, e *Extent, table []byte, end int64) (bool, error) {
	head := make([]byte, record.HeaderSize)
	at := e.payload()
	for i := 0; i < int(e.Batches); i++ {
		if at+record.HeaderSize > end {
			return false, nil
		}
		if err := readFull(f, head, at, end); err != nil {
			return false, err
		}
		h, err := record.ParseHeader(head)
		size, sum := tableEntry(table, i)
		if err != nil || h.Size() != size || record.Checksum(head[:record.PrefixSize]) != sum || at+int64(size) > end {
			return false, nil
		}
		if i == 0 {
			e.BaseOffset, e.MaxTimestamp = h.BaseOffset, h.MaxTimestamp
		}
		e.LastOffset = h.LastOffset()
		e.MaxTimestamp = max(e.MaxTimestamp, h.MaxTimestamp)
		at += int64(size)
	}
	e.Length = uint32(at - e.payload())
	return true, nil
}

// nextExtent is the position of the first valid extent header at or after pos,
// or -1.
func nextExtent(f vfs.File, id uint64, pos, end int64) (int64, error) {
	buf := make([]byte, 256<<10)
	for pos+extentHeaderSize <= end {
		n := min(int64(len(buf)), end-pos)
		if err := readFull(f, buf[:n], pos, end); err != nil {
			return 0, err
		}
		for at := 0; ; at++ {
			i := bytes.Index(buf[at:n], []byte(extentMagic))
			if i < 0 {
				break
			}
			at += i
			e, ok := decodeExtent(buf[at:n], id)
			if ok && e.Position == pos+int64(at) && e.End() <= end {
				return e.Position, nil
			}
		}
		// Overlap, so that a header on the border is seen whole.
		pos += max(n-extentHeaderSize+1, 1)
	}
	return -1, nil
}

// readFull reads len(b) bytes at pos of a file known to have size bytes.
func readFull(f vfs.File, b []byte, pos, size int64) error {
	if pos+int64(len(b)) > size {
		return fmt.Errorf("%w: file of %d bytes", ErrNotSegment, size)
	}
	n, err := f.ReadAt(b, pos)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading segment at %d: %w", pos, err)
}
