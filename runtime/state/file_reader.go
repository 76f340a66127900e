package state

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// CorruptError says where the bytes of a state file do not hold; it is an ErrCorrupt.
type CorruptError struct {
	// Section is the path of the operator whose section was read last; empty: none was.
	Section string
	// Part is the number, from 1, that the part behind those that hold has in it.
	Part int
	// Offset is where the frame begins in the file.
	Offset int64
	// Reason is what does not hold.
	Reason string
}

func (e *CorruptError) Error() string {
	where := "before the first section"
	if e.Section != "" {
		where = fmt.Sprintf("section %q, part %d", e.Section, e.Part)
	}
	return fmt.Sprintf("%v: %s, at byte %d: %s", ErrCorrupt, where, e.Offset, e.Reason)
}

// Unwrap makes it an ErrCorrupt.
func (*CorruptError) Unwrap() error { return ErrCorrupt }

// FileReader reads a state file part by part, and holds no more than one of them.
type FileReader struct {
	r    *bufio.Reader
	size int64
	off  int64 // of the next frame
	hash *xxhash.Digest
	// The section and the number of its parts so far; sections is how many there were.
	section  *Section
	parts    int
	sections int
	buf      []byte
}

// readAhead is how much a FileReader asks its source for at once.
const readAhead = 64 << 10

// NewFileReader reads a file of size bytes.
func NewFileReader(r io.Reader, size int64) *FileReader {
	f := &FileReader{size: size, hash: xxhash.New()}
	f.r = bufio.NewReaderSize(io.TeeReader(r, f.hash), readAhead)
	return f
}

// Hash is xxh64 of the file, after Next has given io.EOF.
func (f *FileReader) Hash() uint64 { return f.hash.Sum64() }

// Next gives the next part and its section, which is the same pointer for all parts of one.
// The part's bytes are good until the next call. At the end of the file it gives io.EOF;
// a *CorruptError: the bytes do not hold.
func (f *FileReader) Next() (*Section, []byte, error) {
	if f.off == 0 {
		if err := f.head(); err != nil {
			return nil, nil, err
		}
	}
	for {
		kind, b, err := f.frame()
		if err != nil {
			return nil, nil, err
		}
		switch kind {
		case frameSection:
			r := NewReader(b)
			s := &Section{Path: r.String(), Kind: r.String(), Fingerprint: r.Uint64()}
			if r.Err() != nil || r.Rest() > 0 {
				return nil, nil, f.corrupt("fields of a section")
			}
			f.section, f.parts = s, 0
			f.sections++
		case framePart:
			if f.section == nil {
				return nil, nil, f.corrupt("a part without a section")
			}
			f.parts++
			return f.section, b, nil
		default:
			r := NewReader(b)
			if n := r.Uvarint(); kind != frameEnd || r.Err() != nil || n != uint64(f.sections) || f.off != f.size {
				return nil, nil, f.corrupt("the end of the file")
			}
			// What is behind is no more of the file than what is missing.
			if _, err := f.r.ReadByte(); !errors.Is(err, io.EOF) {
				return nil, nil, f.corrupt("bytes behind the end")
			}
			return nil, nil, io.EOF
		}
	}
}

func (f *FileReader) head() error {
	var b [fileHead]byte
	if err := f.fill(b[:]); err != nil {
		return err
	}
	if string(b[:len(fileMagic)]) != fileMagic {
		return f.corrupt("no state file")
	}
	if v := binary.BigEndian.Uint16(b[len(fileMagic):]); v != FileVersion {
		return f.corrupt(fmt.Sprintf("version %d", v))
	}
	f.off = int64(fileHead)
	return nil
}

// frame reads the next frame.
func (f *FileReader) frame() (byte, []byte, error) {
	var h [frameHead]byte
	if err := f.fill(h[:]); err != nil {
		return 0, nil, err
	}
	// The length is known to hold before so much memory is asked for.
	if binary.LittleEndian.Uint32(h[frameHead-4:]) != crc32.Checksum(h[:frameHead-4], castagnoli) {
		return 0, nil, f.corrupt("checksum of a frame's head")
	}
	n := binary.BigEndian.Uint64(h[1:])
	if n > uint64(max(f.size-f.off-int64(frameHead+frameTail), 0)) {
		return 0, nil, f.corrupt(fmt.Sprintf("a frame of %d bytes in a file of %d", n, f.size))
	}
	f.buf = slices.Grow(f.buf[:0], int(n)+frameTail)[:int(n)+frameTail]
	if err := f.fill(f.buf); err != nil {
		return 0, nil, err
	}
	b := f.buf[:n]
	if binary.LittleEndian.Uint32(f.buf[n:]) != crc32.Checksum(b, castagnoli) {
		return 0, nil, f.corrupt("checksum")
	}
	f.off += int64(frameHead+frameTail) + int64(n)
	return h[0], b, nil
}

func (f *FileReader) fill(b []byte) error {
	_, err := io.ReadFull(f.r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return f.corrupt("the file is cut off")
	}
	return err
}

// corrupt names the frame that begins at f.off: as far as is known the part behind those
// that were read.
func (f *FileReader) corrupt(reason string) error {
	e := &CorruptError{Offset: f.off, Reason: reason}
	if f.section != nil {
		e.Section, e.Part = f.section.Path, f.parts+1
	}
	return e
}

// ReadFileVersion1 reads a state file of version 1, whole; payloads alias b.
func ReadFileVersion1(b []byte) ([]Section, error) {
	if len(b) < 4 {
		return nil, ErrCorrupt
	}
	body := b[:len(b)-4]
	if binary.LittleEndian.Uint32(b[len(body):]) != crc32.Checksum(body, castagnoli) {
		return nil, fmt.Errorf("%w: checksum", ErrCorrupt)
	}
	r := NewReader(body)
	out := make([]Section, r.Count())
	for i := range out {
		out[i] = Section{Path: r.String(), Kind: r.String(), Fingerprint: r.Uint64(), Payload: r.Bytes()}
	}
	if r.Rest() > 0 {
		return nil, ErrCorrupt
	}
	return out, r.Err()
}
