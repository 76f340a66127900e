package filesystem

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// minPackBytes and maxPackBytes bound how much text is compressed as one piece. Larger
	// pieces are hardly smaller, and each open file holds one.
	minPackBytes = 16 << 10
	maxPackBytes = 256 << 10
)

// packer compresses pieces of text. Each is whole by itself, a member of gzip or a frame of
// zstd, and a file is a row of them: so a compressor belongs to who writes, not to a file.
type packer struct {
	gzip *gzip.Writer
	zstd *zstd.Encoder
	out  bytes.Buffer
	dst  []byte
}

func newPacker(name string) (*packer, error) {
	if name == packGzip {
		return &packer{gzip: gzip.NewWriter(nil)}, nil
	}
	// Checksums are what damage is found by.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(maxPackBytes), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, fmt.Errorf("making zstd encoder: %w", err)
	}
	return &packer{zstd: e}, nil
}

// pack compresses one piece. The result lives until the next call.
func (p *packer) pack(text []byte) ([]byte, error) {
	if p.zstd != nil {
		p.dst = p.zstd.EncodeAll(text, p.dst[:0])
		return p.dst, nil
	}
	p.out.Reset()
	p.gzip.Reset(&p.out)
	_, err := p.gzip.Write(text)
	if err == nil {
		err = p.gzip.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return p.out.Bytes(), nil
}

// packedFile is the text of an open file that is compressed in pieces.
type packedFile struct {
	sink  *Sink
	spool *spool
	piece int    // bytes
	text  []byte // not compressed yet
	taken int64  // bytes of text that are compressed
}

func newPackedFile(s *Sink, to *spool, budget int64) *packedFile {
	return &packedFile{sink: s, spool: to, piece: int(min(max(budget/512, minPackBytes), maxPackBytes))}
}

// Write takes all of b, or reports an earlier failure.
func (p *packedFile) Write(b []byte) (int, error) {
	if p.text == nil {
		p.text = make([]byte, 0, p.piece)
	}
	p.text = append(p.text, b...)
	if len(p.text) < p.piece {
		return len(b), nil
	}
	return len(b), p.flush()
}

// flush compresses what is held.
func (p *packedFile) flush() error {
	if len(p.text) == 0 {
		return nil
	}
	c, err := p.sink.packer()
	if err != nil {
		return err
	}
	defer p.sink.putPacker(c)
	out, err := c.pack(p.text)
	if err != nil {
		return err
	}
	p.taken += int64(len(p.text))
	if p.text = p.text[:0]; cap(p.text) > 2*p.piece {
		p.text = nil // there was one very long record
	}
	_, err = p.spool.Write(out)
	return err
}

// bytes estimates the length of the file.
func (p *packedFile) bytes() int64 {
	ratio := 0.25 // of text of records, until it is known
	if p.taken > 0 {
		ratio = float64(p.spool.total) / float64(p.taken)
	}
	return p.spool.total + int64(float64(len(p.text))*ratio)
}

func (p *packedFile) held() int64 { return int64(cap(p.text)) }

// packer gives a compressor to one goroutine, which puts it back.
func (s *Sink) packer() (*packer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.packers); n > 0 {
		p := s.packers[n-1]
		s.packers = s.packers[:n-1]
		return p, nil
	}
	return newPacker(s.opts.compression)
}

func (s *Sink) putPacker(p *packer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packers = append(s.packers, p)
}
