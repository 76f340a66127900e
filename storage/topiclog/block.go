package topiclog

import (
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/storage/vfs"
)

// blockBytes is the usual size of a block, ownBlockBytes that of one for own
// segments.
const (
	blockBytes    = 1 << 20
	ownBlockBytes = 4 << 20
)

// block is a piece of the write cache's memory in which journal groups are laid
// out. The cache holds one reference until all of the block's batches are in
// segments; every lease that reads from it holds one. The last one gives the
// memory back.
type block struct {
	buf  []byte
	refs atomic.Int32
	pool *blockPool
}

// blockPool keeps the memory of released blocks.
type blockPool struct {
	pool sync.Pool
	size int // of the blocks that are kept
	// poison overwrites released memory, so that a reader that kept a slice
	// over its Release fails its checksums rather than reads by luck.
	poison bool
}

// take returns a block of at least size bytes with one reference.
func (p *blockPool) take(size int) *block {
	if size <= p.size {
		if b, ok := p.pool.Get().(*block); ok {
			b.refs.Store(1)
			return b
		}
		size = p.size
	}
	b := &block{buf: vfs.NewBuffer(size), pool: p}
	b.refs.Store(1)
	return b
}

func (b *block) retain() { b.refs.Add(1) }

func (b *block) release() {
	if b.refs.Add(-1) != 0 {
		return
	}
	if b.pool.poison {
		for i := range b.buf {
			b.buf[i] = 0xdb
		}
	}
	// Larger ones are rare and must not stay.
	if len(b.buf) == b.pool.size {
		b.pool.pool.Put(b)
	}
}
