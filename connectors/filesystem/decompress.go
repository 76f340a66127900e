package filesystem

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/storage/vfs"
)

// textBound is the end of the split of a compressed file of size bytes. How long its
// text is cannot be known before it is decompressed, and the end of a split has to be known
// before; so it is more than any text gives, and the last row's run goes up to it. It is
// small enough for the ends of a million files to be added up.
func textBound(size int64) int64 { return size<<16 + maxRecordBytes }

// textInput is the text of a file from a position on.
type textInput interface {
	// Read fills b, but for the last bytes; io.EOF with the end of the text. An error
	// that wraps errDamaged lies in the file, any other may pass.
	Read(b []byte) (int, error)
	close()
}

// plainInput is the text of a file that is not compressed.
type plainInput struct {
	file     vfs.File
	at, size int64
}

func (p *plainInput) Read(b []byte) (int, error) {
	b = b[:min(int64(len(b)), p.size-p.at)]
	n, err := 0, error(nil)
	if len(b) > 0 {
		n, err = p.file.ReadAt(b, p.at)
		if err == io.EOF && n == len(b) {
			err = nil
		}
		p.at += int64(n)
	}
	if err == nil && p.at >= p.size {
		err = io.EOF
	}
	return n, err
}

func (p *plainInput) close() { p.file.Close() }

// errDamaged: the compressed bytes cannot be decompressed, or there are more to come.
var errDamaged = errors.New("it is torn or damaged")

// compressedInput decompresses a file.
type compressedInput struct {
	file  vfs.File
	codec codec
	in    compressedBytes
	out   io.ReadCloser // nil: not begun
	// decompressed is how much text was given, limit how much there may be.
	decompressed, limit int64
}

func newCompressedInput(file vfs.File, size int64, c codec) *compressedInput {
	return &compressedInput{file: file, codec: c, in: compressedBytes{file: file, size: size}, limit: textBound(size)}
}

func (p *compressedInput) Read(b []byte) (n int, err error) {
	if p.out == nil {
		out, err := p.codec.open(&p.in)
		if err != nil {
			return 0, p.fault(err)
		}
		p.out = out
	}
	for n < len(b) && err == nil {
		var k int
		k, err = p.out.Read(b[n:])
		n += k
	}
	p.decompressed += int64(n)
	switch {
	case p.decompressed >= p.limit:
		return n, p.fault(fmt.Errorf("%d bytes are unpacked of %d, which is no text", p.decompressed, p.in.size))
	case err != nil && err != io.EOF:
		return n, p.fault(err)
	}
	return n, err
}

// fault tells bytes that cannot be decompressed from those that could not be read.
func (p *compressedInput) fault(err error) error {
	if p.in.err != nil {
		return p.in.err
	}
	what := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		what = "its end is missing"
	}
	return fmt.Errorf("%w at byte %d of its %d bytes of %s: %s", errDamaged, p.in.taken(), p.in.size, p.codec.name, what)
}

// skip passes over text.
func (p *compressedInput) skip(bytes int64, stop func() error) error {
	scratch := make([]byte, readBytes)
	for bytes > 0 {
		if err := stop(); err != nil {
			return err
		}
		n, err := p.Read(scratch[:min(bytes, int64(len(scratch)))])
		bytes -= int64(n)
		if err != nil && (err != io.EOF || bytes > 0) {
			return err
		}
	}
	return nil
}

// total estimates how long the text is by what was decompressed of it.
func (p *compressedInput) total() int64 {
	taken := p.in.taken()
	if taken == 0 {
		return p.in.size
	}
	return p.decompressed + int64(float64(p.decompressed)/float64(taken)*float64(p.in.size-taken))
}

func (p *compressedInput) close() {
	if p.out != nil {
		p.out.Close()
	}
	p.file.Close()
}

// compressedBytes are the bytes of a file in order. It is an io.ByteReader, so that what
// decompresses takes no more than it needs and taken says where it stands.
type compressedBytes struct {
	file vfs.File
	size int64
	at   int64 // behind buf
	buf  []byte
	used int
	err  error // of the file, not of its end
}

func (p *compressedBytes) taken() int64 { return p.at - int64(len(p.buf)-p.used) }

func (p *compressedBytes) fill() error {
	if p.err != nil {
		return p.err
	}
	n := min(p.size-p.at, chunkBytes)
	if n <= 0 {
		return io.EOF
	}
	if cap(p.buf) == 0 {
		p.buf = make([]byte, 0, chunkBytes)
	}
	p.buf, p.used = p.buf[:n], 0
	got, err := p.file.ReadAt(p.buf, p.at)
	if int64(got) < n {
		p.buf = p.buf[:0]
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF // it was shortened under the reader
		}
		p.err = err
		return err
	}
	p.at += n
	return nil
}

func (p *compressedBytes) Read(b []byte) (int, error) {
	if p.used == len(p.buf) {
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.buf[p.used:])
	p.used += n
	return n, nil
}

func (p *compressedBytes) ReadByte() (byte, error) {
	if p.used == len(p.buf) {
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	b := p.buf[p.used]
	p.used++
	return b, nil
}
