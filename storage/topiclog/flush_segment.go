package topiclog

import (
	"fmt"

	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/vfs"
)

// extentBatch is how many bytes of batches go to the segment in one piece.
const extentBatch = segment.DefaultExtentBytes

// writeSegment writes a mixed segment and makes it durable.
func (sh *shard) writeSegment(parts []flushPart) (*segmentInfo, error) {
	seg := &segmentInfo{id: sh.s.nextSegment.Add(1) - 1, kind: segment.Mixed, shard: sh.number}
	seg.path = sh.s.segmentPath(seg.id)
	if sh.segmentBuf == nil {
		sh.segmentBuf = vfs.NewBuffer(segment.MixedBuffer)
	}
	// The cache's batches were verified when they came, and its memory is trusted as
	// for what own segments get and tail readers see; not where that is being tested.
	w, err := segment.Create(sh.s.segFS, seg.path, segment.Options{Meta: segment.Meta{ID: seg.id, Kind: segment.Mixed, CreatedMs: sh.s.nowMs()}, Extents: len(parts),
		Buffer: sh.segmentBuf, Trusted: !sh.s.opts.PoisonReleased})
	if err != nil {
		return nil, err
	}
	var pieces [][]byte
	for i := range parts {
		if len(parts[i].batches) == 0 {
			continue
		}
		if pieces, err = parts[i].writeTo(w, pieces); err != nil {
			_ = w.Abort()
			return nil, err
		}
	}
	info, err := w.Seal()
	if err != nil {
		_ = w.Abort()
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("closing segment: %w", err)
	}
	seg.minAppendMs, seg.maxAppendMs, seg.sizeBytes = info.MinAppendMs, info.MaxAppendMs, info.Size
	return seg, nil
}

// writeTo writes the batches of one partition, small ones together; the slice is
// for its use and the next call's.
func (f *flushPart) writeTo(w *segment.Writer, pieces [][]byte) ([][]byte, error) {
	f.seg = segPart{id: f.p.id, base: f.batches[0].base, last: f.batches[len(f.batches)-1].last}
	for i := 0; i < len(f.batches); {
		first := &f.batches[i]
		size, timeMs := int(first.size), first.timeMs
		pieces = append(pieces[:0], first.bytes())
		j := i + 1
		for ; size < extentBatch && j < len(f.batches) && size+int(f.batches[j].size) <= extentBatch; j++ {
			pieces = append(pieces, f.batches[j].bytes())
			size += int(f.batches[j].size)
			timeMs = max(timeMs, f.batches[j].timeMs)
		}
		var err error
		if j == i+1 {
			_, err = w.Append(uint64(f.p.id), pieces[0], timeMs)
		} else {
			_, err = w.AppendPieces(uint64(f.p.id), pieces, timeMs)
		}
		if err != nil {
			return pieces, err
		}
		f.seg.bytes += int64(size)
		i = j
	}
	return pieces, nil
}
