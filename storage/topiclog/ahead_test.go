package topiclog

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/storage/record"
)

// readAheadOf puts a piece of chunks of one batch each into a cache.
func readAheadOf(t *testing.T, a *aheadCache, pool *bufferPool, key aheadKey, seg *segmentInfo, size int64, chunks ...[]byte) {
	t.Helper()
	e := a.begin(key, size)
	if e == nil {
		t.Fatalf("no room for %d bytes at %v", size, key)
	}
	e.window = window{seg: seg, buf: pool.take(1), chunks: chunks}
	for _, c := range chunks {
		e.bytes += len(c)
	}
	e.next = lastOffset(chunks[len(chunks)-1]) + 1
	close(e.done)
	a.reads.Done()
}

func aheadBatch(t *testing.T, offset int64) []byte {
	t.Helper()
	var b record.Builder
	if err := b.Append(1, nil, []byte("value"), nil); err != nil {
		t.Fatal(err)
	}
	raw, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	record.Assign(raw, offset, 0)
	return append([]byte(nil), raw...)
}

// A piece is taken once, by who asks for its offset of the same segment, and gives
// at most what was asked for.
func TestAheadPieces(t *testing.T) {
	a, pool, seg := newAheadCache(1<<20), &bufferPool{}, &segmentInfo{}
	one, two := aheadBatch(t, 10), aheadBatch(t, 11)
	at := aheadKey{1, 10}
	readAheadOf(t, a, pool, at, seg, 100, one, two)
	if a.begin(at, 1) != nil {
		t.Error("read twice")
	}
	if _, ok := a.take(1, 11, seg, 1000); ok {
		t.Error("taken by another offset")
	}
	w, ok := a.take(1, 10, seg, len(one)+len(two)-1)
	if !ok || len(w.chunks) != 1 || w.bytes != len(one) || w.next != 11 {
		t.Fatalf("%v: %d chunks of %d bytes up to %d, want the first up to 11", ok, len(w.chunks), w.bytes, w.next)
	}
	if _, ok := a.take(1, 10, seg, 1000); ok {
		t.Error("taken twice")
	}
	rest, ok := a.take(1, 11, seg, 1)
	if !ok || len(rest.chunks) != 1 || !bytes.Equal(rest.chunks[0], two) || rest.bytes != len(two) || rest.next != 12 || a.bytes != 0 {
		t.Fatalf("%v: the rest is %d bytes up to %d, want %d up to 12; %d bytes are left", ok, rest.bytes, rest.next, len(two), a.bytes)
	}
	// The memory is of both parts, and used again after the last.
	if w.buf != rest.buf || w.buf.refs.Load() != 2 {
		t.Errorf("%d references of the buffer, want 2", w.buf.refs.Load())
	}
	w.buf.release()
	rest.buf.release()
	if n := rest.buf.refs.Load(); n != 0 {
		t.Errorf("%d references of the buffer after both were given back", n)
	}
	readAheadOf(t, a, pool, at, seg, 100, one)
	if _, ok := a.take(1, 10, &segmentInfo{}, 1000); ok {
		t.Error("taken although another segment has the offset now")
	}
	e := a.begin(at, 100)
	e.failed = true
	close(e.done)
	a.reads.Done()
	if _, ok := a.take(1, 10, seg, 1000); ok {
		t.Error("taken although reading failed")
	}
	a.close()
}

// A full cache takes nothing more, until its pieces were idle for long.
func TestAheadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, pool, seg := newAheadCache(250), &bufferPool{}, &segmentInfo{}
		for i := range int64(2) {
			readAheadOf(t, a, pool, aheadKey{1, i}, seg, 100, aheadBatch(t, i))
		}
		if a.begin(aheadKey{1, 2}, 100) != nil {
			t.Error("more than the bound")
		}
		<-time.After(2 * aheadIdle)
		synctest.Wait()
		if len(a.pieces) != 0 || a.bytes != 0 {
			t.Errorf("%d pieces, %d bytes after nobody came", len(a.pieces), a.bytes)
		}
		readAheadOf(t, a, pool, aheadKey{1, 2}, seg, 100, aheadBatch(t, 2))
		a.close()
		if len(a.pieces) != 0 || a.begin(aheadKey{1, 3}, 1) != nil {
			t.Errorf("%d pieces after the end", len(a.pieces))
		}
	})
}
