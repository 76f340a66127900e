package topiclog

import (
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/storage/segment"
	"github.com/millrace/millrace/storage/vfs"
)

// Lease is what Fetch returns: raw record batches that stay valid until
// Release.
type Lease struct {
	Partition PartitionID
	// Chunks are whole batches in order, one or more in each; empty if there
	// was nothing to read. They must not be changed.
	Chunks [][]byte
	// Bytes is the size of all chunks.
	Bytes int
	// NextOffset is where reading goes on. It may be behind the offset asked for
	// although there are no chunks: what lay between was compacted away.
	NextOffset int64
	// The partition's bounds when the lease was made; see PartitionState.
	Start, HighWatermark, DurableEnd, StableEnd int64
	// ReadEnd is up to where such a fetch could read then.
	ReadEnd int64
	// Aborted are the transactions with records in the lease that a reader of
	// committed records skips; only for CommittedRaw, in the order of their ends.
	Aborted []AbortedTransaction

	released atomic.Bool
	blocks   []*block
	bufs     []*readBuffer
	inOrder  bool // it goes on where the one before of the partition ended
}

// Release gives the memory back; the chunks are invalid after it. It may be
// called from any goroutine, more than once.
func (l *Lease) Release() {
	if l == nil || l.released.Swap(true) {
		return
	}
	for _, b := range l.blocks {
		b.release()
	}
	for _, b := range l.bufs {
		b.release()
	}
	l.blocks, l.bufs, l.Chunks = nil, nil, nil
}

// readBuffer is memory for reading from segments and for copies. The last reference
// gives it back.
type readBuffer struct {
	b    []byte
	refs atomic.Int32
	pool *bufferPool
}

func (r *readBuffer) retain() *readBuffer {
	r.refs.Add(1)
	return r
}

func (r *readBuffer) release() {
	if r.refs.Add(-1) == 0 {
		r.pool.put(r)
	}
}

// Sizes of pooled read buffers: what runs of powers of two between these take.
const (
	minBufferBits = 12
	maxBufferBits = 22
)

// bufferSize is the size of a pooled buffer, in bytes: a power of two, and from
// 64 KiB on what reading that many bytes of batches takes. Memory of that size begins
// at a page.
func bufferSize(bits int) int {
	if bits < 16 {
		return 1 << bits
	}
	return segment.RunBuffer(1 << bits)
}

// bufferPool keeps read buffers by size.
type bufferPool struct {
	pools  [maxBufferBits - minBufferBits + 1]sync.Pool
	poison bool
}

// sizeClass is the smallest class of pooled buffers that has room for n bytes; ok is
// false if none has.
func sizeClass(n int) (class, size int, ok bool) {
	for bits := minBufferBits; bits <= maxBufferBits; bits++ {
		if size := bufferSize(bits); n <= size {
			return bits - minBufferBits, size, true
		}
	}
	return 0, n, false
}

// pooledSize is the size of the buffer that take gives for n bytes.
func pooledSize(n int) int {
	_, size, _ := sizeClass(n)
	return size
}

// take returns a buffer with one reference.
func (p *bufferPool) take(n int) *readBuffer {
	class, size, ok := sizeClass(n)
	if ok {
		if b, ok := p.pools[class].Get().(*readBuffer); ok {
			return b.retain()
		}
	}
	b := &readBuffer{b: vfs.NewBuffer(size), pool: p}
	return b.retain()
}

func (p *bufferPool) put(r *readBuffer) {
	if p.poison {
		vfs.Poison(r.b)
	}
	if class, size, ok := sizeClass(len(r.b)); ok && size == len(r.b) {
		p.pools[class].Put(r)
	}
}
