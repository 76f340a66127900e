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

// blockPool keeps the memory of released blocks: not for the garbage collector to take,
// which new blocks would wake again and again, but until nothing was needed for a while.
type blockPool struct {
	size int // of the blocks that are kept
	most int // how many are kept
	// poison overwrites released memory, so that a reader that kept a slice
	// over its Release fails its checksums rather than reads by luck.
	poison bool

	mu     sync.Mutex
	free   []*block
	needed bool // since the last trim
}

// take returns a block of at least size bytes with one reference.
func (p *blockPool) take(size int) *block {
	if size <= p.size {
		if b := p.kept(); b != nil {
			b.refs.Store(1)
			return b
		}
		size = p.size
	}
	b := &block{buf: vfs.NewBuffer(size), pool: p}
	b.refs.Store(1)
	return b
}

// kept returns a block that was released, nil if there is none.
func (p *blockPool) kept() *block {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needed = true
	n := len(p.free) - 1
	if n < 0 {
		return nil
	}
	b := p.free[n]
	p.free[n], p.free = nil, p.free[:n]
	return b
}

// keep takes a block back.
func (p *blockPool) keep(b *block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < p.most {
		p.free = append(p.free, b)
	}
}

// trim lets the memory go if no block was taken since it was called before.
func (p *blockPool) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.needed {
		p.free = nil
	}
	p.needed = false
}

func (b *block) retain() { b.refs.Add(1) }

func (b *block) release() {
	if b.refs.Add(-1) != 0 {
		return
	}
	if b.pool.poison {
		vfs.Poison(b.buf)
	}
	// Larger ones are rare and must not stay.
	if len(b.buf) == b.pool.size {
		b.pool.keep(b)
	}
}
