package topiclog

import (
	"sync"
	"time"

	"github.com/millrace/millrace/storage/segment"
)

// Reading ahead: who reads old records in sequence finds the next piece in memory,
// read from the disk while it took the one before. Segments are read past the page
// cache, where the kernel would do this.
const (
	// minAhead is the smallest Fetch that is worth it, maxAhead how much is read for
	// a larger one than that, in bytes.
	minAhead = 64 << 10
	maxAhead = 4 << 20
	// aheadFetches is how many Fetches a piece serves if there is room: larger reads
	// cost the kernel and the disk less.
	aheadFetches = 2
	// aheadIdle is how long a piece is kept for a reader that does not come.
	aheadIdle = 5 * time.Second
)

// aheadKey says where a piece begins.
type aheadKey struct {
	id     PartitionID
	offset int64
}

// aheadCache keeps what was read ahead. A full one takes nothing more until pieces
// were taken or were idle for long: to throw out what a reader is about to ask for
// would double the reads. Invariant 8.
type aheadCache struct {
	max int64

	mu      sync.Mutex
	pieces  map[aheadKey]*aheadPiece
	bytes   int64 // of the pieces' buffers
	closed  bool
	sweeper *time.Timer // runs while there are pieces
	reads   sync.WaitGroup
}

// aheadPiece is a window that is read or was read. Window and failed belong to the
// reading until done is closed.
type aheadPiece struct {
	window
	size  int64 // of its buffer
	since time.Time
	// maxBytes is how much is read.
	maxBytes int
	failed   bool
	done     chan struct{}
}

func newAheadCache(maxBytes int64) *aheadCache {
	return &aheadCache{max: maxBytes, pieces: map[aheadKey]*aheadPiece{}}
}

// take takes out the piece that begins at an offset; a reading under way is waited
// for. It is false if there is none of this segment. The window has at most maxBytes,
// but for its first chunk; the rest of the piece stays.
func (a *aheadCache) take(id PartitionID, offset int64, seg *segmentInfo, maxBytes int) (window, bool) {
	key := aheadKey{id, offset}
	a.mu.Lock()
	e := a.pieces[key]
	a.remove(key)
	a.mu.Unlock()
	if e == nil {
		return window{}, false
	}
	<-e.done
	if e.failed {
		return window{}, false
	}
	if e.seg != seg {
		e.drop() // the segment was replaced meanwhile
		return window{}, false
	}
	if rest, ok := e.split(maxBytes); ok {
		a.keep(aheadKey{id, e.next}, rest)
	}
	return e.window, true
}

// keep puts a window in whose reader has not come yet.
func (a *aheadCache) keep(key aheadKey, w window) {
	e := &aheadPiece{window: w, size: int64(len(w.buf.b)), since: time.Now(), done: make(chan struct{})}
	close(e.done)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.pieces[key] != nil || a.bytes+e.size > a.max {
		e.drop()
		return
	}
	a.insert(key, e)
}

// drop gives the memory of a piece back that was read and taken out.
func (e *aheadPiece) drop() {
	if !e.failed {
		e.buf.release()
	}
}

// remove takes a piece out, if it is there; mu is held.
func (a *aheadCache) remove(key aheadKey) {
	if e := a.pieces[key]; e != nil {
		delete(a.pieces, key)
		a.bytes -= e.size
	}
}

// begin makes room for a piece and returns it, nil if it is there already or cannot
// be.
func (a *aheadCache) begin(key aheadKey, size int64) *aheadPiece {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.pieces[key] != nil || a.bytes+size > a.max {
		return nil
	}
	e := &aheadPiece{size: size, since: time.Now(), done: make(chan struct{})}
	a.insert(key, e)
	a.reads.Add(1)
	return e
}

// insert puts a piece in; mu is held.
func (a *aheadCache) insert(key aheadKey, e *aheadPiece) {
	a.pieces[key] = e
	a.bytes += e.size
	if a.sweeper == nil {
		a.sweeper = time.AfterFunc(aheadIdle, a.sweep)
	}
}

// sweep drops what nobody came for.
func (a *aheadCache) sweep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, e := range a.pieces {
		select {
		case <-e.done:
			if a.closed || time.Since(e.since) >= aheadIdle {
				a.remove(key)
				e.drop()
			}
		default:
		}
	}
	if a.sweeper = nil; len(a.pieces) > 0 && !a.closed {
		a.sweeper = time.AfterFunc(aheadIdle, a.sweep)
	}
}

// close waits for what is being read and drops everything.
func (a *aheadCache) close() {
	a.mu.Lock()
	a.closed = true
	if a.sweeper != nil {
		a.sweeper.Stop()
	}
	a.mu.Unlock()
	a.reads.Wait()
	a.sweep()
}

// readAhead begins to read what a Fetch of the partition will ask for next.
func (s *Store) readAhead(p *partition, offset int64, maxBytes int) {
	if maxBytes < minAhead {
		return
	}
	p.shard.mu.Lock()
	i := p.findSegment(offset)
	if i == len(p.segs) || p.segs[i].base > offset || p.dead.Load() {
		p.shard.mu.Unlock()
		return // the write cache has it, or nothing does
	}
	r := p.segs[i]
	p.shard.mu.Unlock()
	maxBytes = min(maxBytes, maxAhead)
	e := s.beginAhead(p, &r, offset, min(aheadFetches*maxBytes, maxAhead))
	if e == nil {
		e = s.beginAhead(p, &r, offset, maxBytes)
	}
	if e == nil {
		return
	}
	go func() {
		defer s.ahead.reads.Done()
		defer close(e.done)
		select {
		case s.cold <- struct{}{}:
		case <-s.stop:
			e.failed = true
			return
		}
		defer func() { <-s.cold }()
		var err error
		// The Fetch that comes for it meets an error itself, and says so.
		e.window, err = s.readWindow(&r, p.id, offset, e.maxBytes)
		e.failed = err != nil
	}()
}

// beginAhead makes room for a piece of at most so many bytes of batches.
func (s *Store) beginAhead(p *partition, r *segRef, offset int64, maxBytes int) *aheadPiece {
	size := pooledSize(segment.RunBuffer(int(min(int64(maxBytes), r.bytes))))
	e := s.ahead.begin(aheadKey{p.id, offset}, int64(size))
	if e != nil {
		e.maxBytes = maxBytes
	}
	return e
}
