package parquetfmt

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// blockBytes is the unit in which compressed pages are kept.
const blockBytes = 16 << 10

// Pools hold what many files share: compressors, hash tables, page scratch and
// blocks of compressed pages. They are safe for concurrent use and grow to the
// number of concurrent users; idle blocks beyond the bound go to the collector.
type Pools struct {
	maxIdleBlocks int

	mu      sync.Mutex
	blocks  [][]byte
	scratch []*scratch
	inUse   int // blocks handed out
}

// NewPools makes pools that keep at most maxIdleBytes of free blocks; 0 means
// 4 MiB.
func NewPools(maxIdleBytes int) *Pools {
	if maxIdleBytes <= 0 {
		maxIdleBytes = 4 << 20
	}
	return &Pools{maxIdleBlocks: max(maxIdleBytes/blockBytes, 1)}
}

// BlockBytes is the memory of compressed pages that open files hold now.
func (p *Pools) BlockBytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse * blockBytes
}

// scratch is one user's working memory while it cuts a page or shreds a batch.
type scratch struct {
	page  []byte  // levels and values of the page being cut
	comp  []byte  // its compressed form
	codes []int32 // dictionary codes
	table hashTable
	index []int32 // row or child numbers of values
	slots []slots // per nesting depth

	zstd *zstd.Encoder
	gzip *gzip.Writer
	buf  bytes.Buffer
}

func (p *Pools) scratchFor() *scratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.scratch); n > 0 {
		s := p.scratch[n-1]
		p.scratch = p.scratch[:n-1]
		return s
	}
	return new(scratch)
}

func (p *Pools) putScratch(s *scratch) {
	p.mu.Lock()
	p.scratch = append(p.scratch, s)
	p.mu.Unlock()
}

func (p *Pools) block() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse++
	if n := len(p.blocks); n > 0 {
		b := p.blocks[n-1]
		p.blocks = p.blocks[:n-1]
		return b[:0]
	}
	return make([]byte, 0, blockBytes)
}

func (p *Pools) putBlocks(bs [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse -= len(bs)
	for _, b := range bs {
		if len(p.blocks) < p.maxIdleBlocks {
			p.blocks = append(p.blocks, b)
		}
	}
}

// compress returns src in the codec's form. The result aliases the scratch or
// src and lives until the next call.
func (s *scratch) compress(c Compression, src []byte) ([]byte, error) {
	switch c {
	case None:
		return src, nil
	case Snappy:
		if n := s2.MaxEncodedLen(len(src)); cap(s.comp) < n {
			s.comp = make([]byte, n)
		}
		return s2.EncodeSnappy(s.comp[:cap(s.comp)], src), nil
	case Zstd:
		if s.zstd == nil {
			// One page at a time from one goroutine: no concurrency, and a
			// window no larger than a page needs, so that the encoder stays
			// small.
			e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
				zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
			if err != nil {
				return nil, fmt.Errorf("making zstd encoder: %w", err)
			}
			s.zstd = e
		}
		s.comp = s.zstd.EncodeAll(src, s.comp[:0])
		return s.comp, nil
	case Gzip:
		s.buf.Reset()
		if s.gzip == nil {
			s.gzip = gzip.NewWriter(&s.buf)
		} else {
			s.gzip.Reset(&s.buf)
		}
		if _, err := s.gzip.Write(src); err != nil {
			return nil, fmt.Errorf("compressing page: %w", err)
		}
		if err := s.gzip.Close(); err != nil {
			return nil, fmt.Errorf("compressing page: %w", err)
		}
		return s.buf.Bytes(), nil
	}
	return nil, fmt.Errorf("compressing page: unknown codec %d", c)
}
