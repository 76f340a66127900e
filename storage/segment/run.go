package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// RunBuffer is the size of a buffer in which ReadRun finds room for about so many
// bytes of batches, unless the batches are tiny: what lies between the extents of a
// run is read with them, and the ends are those of whole blocks.
func RunBuffer(maxBytes int) int {
	return padTo(maxBytes+maxBytes/16, vfs.DirectAlign) + 2*vfs.DirectAlign
}

// ReadRun is ReadAt by one read of the file: consecutive extents of the partition, as
// many as have at most maxBytes of batches and fit into dst with what lies between
// them, but at least one. Each of the pieces returned has the batches of one extent,
// every byte verified; the pieces are parts of dst. NextOffset is the one behind them.
//
// If dst begins at a multiple of vfs.DirectAlign in memory, the file's cache hint has
// the bytes come without a copy. *ShortBufferError says the size that dst must have;
// other errors are those of ReadAt.
func (r *Reader) ReadRun(dst []byte, partition uint64, offset int64, maxBytes int) (pieces [][]byte, nextOffset int64, err error) {
	x, err := r.src.current()
	if err != nil {
		return nil, 0, err
	}
	i := x.find(partition, offset)
	if i < 0 {
		return nil, 0, fmt.Errorf("%w: %d of partition %d in %s", ErrOffset, offset, partition, r.path)
	}
	shared, err := r.src.acquire()
	if err != nil {
		return nil, 0, err
	}
	// The file was only read: closing it has nothing to say.
	defer func() { _ = shared.release() }()
	dst = dst[:len(dst)/vfs.DirectAlign*vfs.DirectAlign]
	run := x.run(i, maxBytes, len(dst))
	start, size := runBlocks(run)
	if size > len(dst) {
		return nil, 0, &ShortBufferError{Need: size}
	}
	b, err := r.readRun(shared.f, dst[:size], start, run)
	if err != nil && len(run) > 1 {
		// A place that cannot be read must not cost what lies before it.
		run = run[:1]
		_, size = runBlocks(run)
		b, err = r.readRun(shared.f, dst[:size], start, run)
	}
	if err != nil {
		return nil, 0, err
	}
	for k := range run {
		e := &run[k]
		at := int(e.payload() - start)
		payload := b[at : at+int(e.Length) : at+int(e.Length)]
		skip, n, whole, err := r.check(shared.f, e, payload, max(offset, e.BaseOffset))
		if err != nil && k == 0 {
			return nil, 0, err
		}
		if err != nil {
			break // what was read is good; the next call meets the error itself
		}
		pieces = append(pieces, payload[skip:n:n])
		if nextOffset = e.LastOffset + 1; whole {
			continue
		}
		if nextOffset, err = behind(payload[skip:n]); err != nil {
			return nil, 0, err
		}
		break
	}
	return pieces, nextOffset, nil
}

// run returns extent i and those behind it that a run may have.
func (x *Index) run(i, maxBytes, room int) []Extent {
	first := &x.extents[i]
	bytes, end := int(first.Length), i+1
	for ; end < len(x.extents); end++ {
		e := &x.extents[end]
		bytes += int(e.Length)
		// Compaction and regions that were given up may leave anything in between.
		if e.Partition != first.Partition || bytes > maxBytes || e.Position < x.extents[end-1].End() {
			break
		}
		if _, size := runBlocks(x.extents[i : end+1]); size > room {
			break
		}
	}
	return x.extents[i:end:end]
}

// runBlocks are the blocks of the file that have the batches of a run: where they
// begin, and their size in bytes.
func runBlocks(run []Extent) (start int64, size int) {
	start = run[0].payload() / vfs.DirectAlign * vfs.DirectAlign
	return start, int(padTo64(run[len(run)-1].End(), vfs.DirectAlign) - start)
}

// readRun reads the blocks of a run. The last one may end with the file.
func (r *Reader) readRun(f vfs.File, b []byte, start int64, run []Extent) ([]byte, error) {
	need := int(run[len(run)-1].End() - start)
	n, err := f.ReadAt(b, start)
	if n >= need {
		return b[:n], nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("reading %s at %d: %w", r.path, start, err)
}

// behind is the offset behind batches that were verified.
func behind(batches []byte) (next int64, err error) {
	for len(batches) > 0 {
		h, err := record.ParseHeader(batches)
		if err != nil {
			return 0, err // cannot be, it was just parsed
		}
		next, batches = h.LastOffset()+1, batches[h.Size():]
	}
	return next, nil
}
