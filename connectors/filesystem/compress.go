package filesystem

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// minPieceBytes and maxPieceBytes bound how much text is compressed as one piece. Larger
	// pieces are hardly smaller, and each open file holds one.
	minPieceBytes = 16 << 10
	maxPieceBytes = 256 << 10
)

// compressor compresses pieces of text. Each is whole by itself, a member of gzip or a frame of
// zstd, and a file is a row of them: so a compressor belongs to who writes, not to a file.
type compressor struct {
	gzip *gzip.Writer
	zstd *zstd.Encoder
	out  bytes.Buffer
	dst  []byte
}

func newCompressor(name string) (*compressor, error) {
	if name == compressionGzip {
		return &compressor{gzip: gzip.NewWriter(nil)}, nil
	}
	// Checksums are what damage is found by.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(maxPieceBytes), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, fmt.Errorf("making zstd encoder: %w", err)
	}
	return &compressor{zstd: e}, nil
}

// compress compresses one piece. The result lives until the next call.
func (p *compressor) compress(text []byte) ([]byte, error) {
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

// compressedFile is the text of an open file that is compressed in pieces.
type compressedFile struct {
	sink  *Sink
	spool *spool
	// pieceBytes is from how much text on a piece is compressed.
	pieceBytes int
	text       []byte // not compressed yet
	taken      int64  // bytes of text that are compressed
}

func newCompressedFile(s *Sink, to *spool, budget int64) *compressedFile {
	return &compressedFile{sink: s, spool: to, pieceBytes: int(min(max(budget/512, minPieceBytes), maxPieceBytes))}
}

// Write takes all of b, or reports an earlier failure.
func (p *compressedFile) Write(b []byte) (int, error) {
	if p.text == nil {
		p.text = make([]byte, 0, p.pieceBytes)
	}
	p.text = append(p.text, b...)
	if len(p.text) < p.pieceBytes {
		return len(b), nil
	}
	return len(b), p.flush()
}

// flush compresses what is held.
func (p *compressedFile) flush() error {
	if len(p.text) == 0 {
		return nil
	}
	c, err := p.sink.compressor()
	if err != nil {
		return err
	}
	defer p.sink.putCompressor(c)
	out, err := c.compress(p.text)
	if err != nil {
		return err
	}
	p.taken += int64(len(p.text))
	if p.text = p.text[:0]; cap(p.text) > 2*p.pieceBytes {
		p.text = nil // there was one very long record
	}
	_, err = p.spool.Write(out)
	return err
}

// bytes estimates the length of the file.
func (p *compressedFile) bytes() int64 {
	ratio := 0.25 // of text of records, until it is known
	if p.taken > 0 {
		ratio = float64(p.spool.total) / float64(p.taken)
	}
	return p.spool.total + int64(float64(len(p.text))*ratio)
}

func (p *compressedFile) held() int64 { return int64(cap(p.text)) }

// compressor gives a compressor to one goroutine, which puts it back.
func (s *Sink) compressor() (*compressor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.compressors); n > 0 {
		p := s.compressors[n-1]
		s.compressors = s.compressors[:n-1]
		return p, nil
	}
	return newCompressor(s.opts.compression)
}

func (s *Sink) putCompressor(p *compressor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compressors = append(s.compressors, p)
}
