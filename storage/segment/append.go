package segment

import (
	"fmt"

	"github.com/millrace/millrace/storage/record"
)

// Append writes whole, valid batches of one partition. In a mixed segment the
// partitions must come in rising order; offsets must rise in any. In an own
// segment the batches can be read at once, before they are durable; the caller
// keeps readers below what it committed.
//
// The bytes are copied. Batches that do not parse or do not match their
// checksum, unless they are trusted, are refused and nothing is written.
func (w *Writer) Append(partition uint64, batches []byte, appendTimeMs int64) (Range, error) {
	if len(batches) <= w.opts.ExtentBytes {
		return w.appendExtent(partition, appendTimeMs, batches)
	}
	r := Range{From: w.pos, To: w.pos}
	if err := w.admit(partition); err != nil {
		return r, err
	}
	// All of them before any is written.
	if _, err := w.describe(partition, appendTimeMs, batches); err != nil {
		return r, err
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
	return w.appendExtent(partition, appendTimeMs, pieces...)
}

func (w *Writer) appendExtent(partition uint64, appendTimeMs int64, pieces ...[]byte) (Range, error) {
	r := Range{From: w.pos, To: w.pos}
	if err := w.admit(partition); err != nil {
		return r, err
	}
	e, err := w.describe(partition, appendTimeMs, pieces...)
	if err == nil && e.Batches > 0 {
		err = w.put(&r, e, pieces...)
	}
	if err != nil {
		return r, err
	}
	return r, w.appended(&r)
}

// admit says why an append cannot be.
func (w *Writer) admit(partition uint64) error {
	if err := w.usable(); err != nil {
		return err
	}
	if w.opts.Kind == Own && partition != w.opts.Partition {
		return fmt.Errorf("appending to segment: %w: partition %d in the segment of %d", ErrOrder, partition, w.opts.Partition)
	}
	return nil
}

// put adds an extent, whose table is in w.table, to what is to be written.
func (w *Writer) put(r *Range, e Extent, pieces ...[]byte) error {
	if err := w.index.add(e); err != nil {
		return w.fail(err) // describe saw the same order, so this is a bug
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

// describe parses and, unless they are trusted, verifies batches, and returns the
// extent that they are together; its table is left in w.table. Nothing is written.
func (w *Writer) describe(partition uint64, appendTimeMs int64, pieces ...[]byte) (Extent, error) {
	e := Extent{Partition: partition, Position: w.pos, AppendTimeMs: appendTimeMs}
	w.table = w.table[:0]
	next, err := w.nextOffset(partition)
	if err != nil {
		return e, fmt.Errorf("appending to segment: %w", err)
	}
	for _, rest := range pieces {
		for len(rest) > 0 {
			b, after, err := record.SplitUnverified(rest)
			if err == nil && !w.opts.Trusted {
				err = b.Verify()
			}
			if err == nil && b.BaseOffset < next {
				err = fmt.Errorf("%w: offset %d of partition %d, expected %d or more", ErrOrder, b.BaseOffset, partition, next)
			}
			if err != nil {
				return e, fmt.Errorf("appending to segment: %w", err)
			}
			w.table = e.include(w.table, &b.Header, b.Raw)
			next, rest = b.LastOffset()+1, after
		}
	}
	e.Checksum = record.Checksum(w.table)
	return e, nil
}

// nextOffset is the lowest offset that may come next of a partition.
func (w *Writer) nextOffset(partition uint64) (int64, error) {
	next := int64(0)
	if w.opts.Kind == Own {
		next = w.opts.BaseOffset
	}
	if n := len(w.index.extents); n > 0 {
		last := &w.index.extents[n-1]
		if partition < last.Partition {
			return 0, fmt.Errorf("%w: partition %d after %d", ErrOrder, partition, last.Partition)
		}
		if partition == last.Partition {
			next = last.LastOffset + 1
		}
	}
	return next, nil
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
			break // err cannot be: describe parsed the same bytes
		}
		w.table = e.include(w.table, &h, batches[n:n+h.Size()])
		n += h.Size()
	}
	e.Checksum = record.Checksum(w.table)
	return e, n
}
