package control

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxFrame bounds a frame, so that a broken stream cannot ask for the heap.
const maxFrame = 256 << 20

// frameWriter writes frames; the bufio.Writer keeps the first error. It is
// safe for concurrent use, so that a ticker can flush a slow stream.
type frameWriter struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func newFrameWriter(w io.Writer) *frameWriter {
	return &frameWriter{w: bufio.NewWriterSize(w, 64<<10)}
}

// write adds a frame made of parts.
func (f *frameWriter) write(parts ...[]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	var n [binary.MaxVarintLen64]byte
	_, err := f.w.Write(n[:binary.PutUvarint(n[:], uint64(length))])
	for _, p := range parts {
		_, err = f.w.Write(p)
	}
	return err
}

func (f *frameWriter) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.w.Flush()
}

// trailer ends a stream: what an empty frame is followed by.
type trailer struct {
	Error  *Error          `json:"error"`
	Result json.RawMessage `json:"result,omitempty"`
}

func (f *frameWriter) close(t trailer) error {
	if err := f.write(); err != nil {
		return err
	}
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := f.write(b); err != nil {
		return err
	}
	return f.flush()
}

// errBroken is returned for a stream that ends before its trailer.
var errBroken = errors.New("the connection to the owner broke off")

type frameReader struct {
	r   *bufio.Reader
	buf []byte
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10)}
}

// next is the next frame, valid until the following call; nil is the end,
// after which trailer has the stream's outcome.
func (f *frameReader) next() ([]byte, error) {
	n, err := binary.ReadUvarint(f.r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	if n > maxFrame {
		return nil, fmt.Errorf("%w: a frame of %d bytes", errBroken, n)
	}
	if n == 0 {
		return nil, nil
	}
	if uint64(cap(f.buf)) < n {
		f.buf = make([]byte, n)
	}
	f.buf = f.buf[:n]
	if _, err := io.ReadFull(f.r, f.buf); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	return f.buf, nil
}

func (f *frameReader) trailer() (trailer, error) {
	var t trailer
	b, err := f.next()
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("%w: %w", errBroken, err)
	}
	return t, nil
}

// Records travel as: flags, partition, offset, timestamp, key, value, headers;
// numbers as varints, bytes with their length.
const (
	hasKey = 1 << iota
	hasValue
	anyPartition
)

func appendRecord(b []byte, r *Record) []byte {
	var flags byte
	if r.Key != nil {
		flags |= hasKey
	}
	if r.Value != nil {
		flags |= hasValue
	}
	if r.AnyPartition {
		flags |= anyPartition
	}
	b = append(b, flags)
	b = binary.AppendVarint(b, int64(r.Partition))
	b = binary.AppendVarint(b, r.Offset)
	b = binary.AppendVarint(b, r.TimestampMillis)
	b = appendBytes(b, r.Key)
	b = appendBytes(b, r.Value)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendBytes(b, []byte(h.Key))
		b = appendBytes(b, h.Value)
	}
	return b
}

func appendBytes(b, x []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(x))), x...)
}

// decoder reads the parts of a frame; the first fault sticks.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	x := d.b[:n:n]
	d.b = d.b[n:]
	return x
}

// decodeRecord reads a record; it aliases b.
func decodeRecord(b []byte, r *Record) error {
	if len(b) == 0 {
		return errBroken
	}
	flags := b[0]
	d := decoder{b: b[1:]}
	r.Partition = int32(d.varint())
	r.Offset = d.varint()
	r.TimestampMillis = d.varint()
	r.Key, r.Value = d.bytes(), d.bytes()
	if flags&hasKey == 0 {
		r.Key = nil
	}
	if flags&hasValue == 0 {
		r.Value = nil
	}
	r.AnyPartition = flags&anyPartition != 0
	r.Headers = r.Headers[:0]
	for range min(d.uvarint(), uint64(len(d.b))) {
		k := string(d.bytes())
		r.Headers = append(r.Headers, Header{Key: k, Value: d.bytes()})
	}
	if d.bad || len(d.b) != 0 {
		return fmt.Errorf("%w: a malformed record", errBroken)
	}
	return nil
}
