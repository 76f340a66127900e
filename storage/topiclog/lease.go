package topiclog

import (
	"sync"
	"sync/atomic"
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
	buf      *readBuffer
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
	if l.buf != nil {
		l.buf.pool.put(l.buf)
	}
	l.blocks, l.buf, l.Chunks = nil, nil, nil
}

// readBuffer is memory for reading from segments and for copies.
type readBuffer struct {
	b    []byte
	pool *bufferPool
}

// Sizes of pooled read buffers: powers of two between these.
const (
	minBufferBits = 12
	maxBufferBits = 22
)

// bufferPool keeps read buffers by size.
type bufferPool struct {
	pools  [maxBufferBits - minBufferBits + 1]sync.Pool
	poison bool
}

func (p *bufferPool) take(n int) *readBuffer {
	for bits := minBufferBits; bits <= maxBufferBits; bits++ {
		if n > 1<<bits {
			continue
		}
		if b, ok := p.pools[bits-minBufferBits].Get().(*readBuffer); ok {
			return b
		}
		return &readBuffer{b: make([]byte, 1<<bits), pool: p}
	}
	return &readBuffer{b: make([]byte, n), pool: p}
}

func (p *bufferPool) put(r *readBuffer) {
	if p.poison {
		for i := range r.b {
			r.b[i] = 0xdb
		}
	}
	for bits := minBufferBits; bits <= maxBufferBits; bits++ {
		if len(r.b) == 1<<bits {
			p.pools[bits-minBufferBits].Put(r)
			return
		}
	}
}
