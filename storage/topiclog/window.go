package topiclog

import (
	"errors"

	"github.com/millrace/millrace/storage/segment"
)

// window is what one read of a segment gave, or a part of it. It holds one reference of
// its buffer.
type window struct {
	seg    *segmentInfo
	buf    *readBuffer
	chunks [][]byte // parts of buf, every byte verified
	bytes  int      // of the chunks
	next   int64    // the offset behind them
}

// split leaves at most maxBytes, but one chunk at least, and returns the rest; ok is
// false if there is none.
func (w *window) split(maxBytes int) (rest window, ok bool) {
	n, bytes := 1, len(w.chunks[0])
	for ; n < len(w.chunks) && bytes+len(w.chunks[n]) <= maxBytes; n++ {
		bytes += len(w.chunks[n])
	}
	if n == len(w.chunks) {
		return rest, false
	}
	rest = window{seg: w.seg, buf: w.buf.retain(), chunks: w.chunks[n:], bytes: w.bytes - bytes, next: w.next}
	w.chunks, w.bytes, w.next = w.chunks[:n:n], bytes, lastOffset(w.chunks[n-1])+1
	return rest, true
}

// readSegment adds batches of a segment to the lease: what was read ahead, or from the
// disk.
func (s *Store) readSegment(l *Lease, r *segRef, p *partition, offset int64, maxBytes int) error {
	w, ahead := s.ahead.take(p.id, offset, r.seg, maxBytes)
	if !ahead {
		// What is not in the write cache comes from the disk: readers of it wait here
		// for each other, and the disk's queue stays short for appends.
		s.cold <- struct{}{}
		var err error
		w, err = s.readWindow(r, p.id, offset, maxBytes)
		<-s.cold
		if err != nil {
			return err
		}
	}
	l.inOrder = p.coldNext.Swap(w.next) == offset || ahead
	l.bufs = append(l.bufs, w.buf)
	l.Chunks = append(l.Chunks, w.chunks...)
	l.Bytes += w.bytes
	l.NextOffset = w.next
	return nil
}

// readOn adds what the segments behind have of the bytes that were asked for, so that
// the answer does not end with every segment. Whatever goes wrong is for the next
// Fetch, which begins there.
func (s *Store) readOn(l *Lease, p *partition, maxBytes int) {
	for l.Bytes < maxBytes && l.NextOffset < l.ReadEnd {
		offset, left := l.NextOffset, maxBytes-l.Bytes
		p.shard.mu.Lock()
		i := p.findSegment(offset)
		if i == len(p.segs) || p.dead.Load() || p.nextDamage(offset) >= 0 {
			p.shard.mu.Unlock()
			return // the write cache has it, or nothing does; or the reader has to meet damage
		}
		r := p.segs[i]
		p.shard.mu.Unlock()
		if !s.fits(&r, p.id, offset, left) {
			return
		}
		more := Lease{NextOffset: offset}
		if s.readSegment(&more, &r, p, offset, left) != nil {
			return
		}
		more.cutAt(min(r.last+1, l.ReadEnd))
		if len(more.Chunks) == 0 {
			more.Release()
			return
		}
		l.inOrder = more.inOrder
		l.bufs = append(l.bufs, more.bufs...)
		l.Chunks = append(l.Chunks, more.Chunks...)
		l.Bytes += more.Bytes
		l.NextOffset = more.NextOffset
	}
}

func (s *Store) segmentReader(r *segRef) *segment.Reader {
	return s.segc.Reader(r.seg.path, segment.Meta{ID: r.seg.id, Kind: r.seg.kind})
}

// fits says that the extent of an offset has at most so many bytes.
func (s *Store) fits(r *segRef, id PartitionID, offset int64, bytes int) bool {
	x, err := s.segmentReader(r).Index()
	if err != nil {
		return false
	}
	e, ok := x.Find(uint64(id), offset)
	return ok && int(e.Length) <= bytes
}

// readWindow reads batches from the disk.
func (s *Store) readWindow(r *segRef, id PartitionID, offset int64, maxBytes int) (window, error) {
	reader := s.segmentReader(r)
	w := window{seg: r.seg, buf: s.bufs.take(segment.RunBuffer(int(min(int64(maxBytes), r.bytes))))}
	var err error
	w.chunks, w.next, err = reader.ReadRun(w.buf.b, uint64(id), offset, maxBytes)
	var short *segment.ShortBufferError
	if errors.As(err, &short) {
		w.buf.release()
		w.buf = s.bufs.take(short.Need)
		w.chunks, w.next, err = reader.ReadRun(w.buf.b, uint64(id), offset, maxBytes)
	}
	if err != nil {
		w.buf.release()
		return window{}, err
	}
	for _, c := range w.chunks {
		w.bytes += len(c)
	}
	return w, nil
}
