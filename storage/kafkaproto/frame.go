package kafkaproto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/storage/authn"
)

// apiProduce may have large requests; all others are bounded more tightly.
const apiProduce int16 = 0

// minFrame is an API key, a version and a correlation id.
const minFrame = 8

// errOversized says that a request promises more bytes than are accepted.
var errOversized = errors.New("request too large")

// limits bound a frame.
type limits struct{ produce, control int }

// frame is a request's length and first fields.
type frame struct {
	size        int
	key         int16
	version     int16
	correlation int32
	head        [minFrame]byte
}

// readFrame reads a request's length and fixed fields and checks the length. It
// reads nothing of what follows.
func readFrame(src io.Reader, l limits) (frame, error) {
	var f frame
	var size [4]byte
	if _, err := io.ReadFull(src, size[:]); err != nil {
		return f, err
	}
	n := int32(binary.BigEndian.Uint32(size[:]))
	if n < minFrame {
		return f, fmt.Errorf("%w: length %d", errMalformed, n)
	}
	if int(n) > max(l.produce, l.control) {
		return f, fmt.Errorf("%w: %d bytes", errOversized, n)
	}
	if _, err := io.ReadFull(src, f.head[:]); err != nil {
		return f, noEOF(err)
	}
	f.size = int(n)
	f.key = int16(binary.BigEndian.Uint16(f.head[0:]))
	f.version = int16(binary.BigEndian.Uint16(f.head[2:]))
	f.correlation = int32(binary.BigEndian.Uint32(f.head[4:]))
	if f.key != apiProduce && f.size > l.control {
		return f, fmt.Errorf("%w: %d bytes for API key %d, at most %d", errOversized, n, f.key, l.control)
	}
	return f, nil
}

// readToken reads a bare message of a login.
func readToken(src io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(src, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > authn.MaxMessage {
		return nil, fmt.Errorf("%w: a login's message of %d bytes", errOversized, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(src, b); err != nil {
		return nil, noEOF(err)
	}
	return b, nil
}

// readBody reads the rest of a frame into buf, which grows as bytes arrive: a
// length alone costs no memory.
func readBody(src io.Reader, f frame, buf []byte) ([]byte, error) {
	const step = 256 << 10
	buf = append(buf[:0], f.head[:]...)
	for len(buf) < f.size {
		have := len(buf)
		want := min(f.size, max(have+step, 2*have))
		if want > cap(buf) {
			grown := make([]byte, have, want)
			copy(grown, buf)
			buf = grown
		}
		buf = buf[:want]
		if _, err := io.ReadFull(src, buf[have:]); err != nil {
			return nil, noEOF(err)
		}
	}
	return buf, nil
}

// noEOF makes an end within a request an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseHeader takes the header off a request: version 1, or 2 with tags if the
// request is flexible. The client id of both is a string with a 2-byte length.
func parseHeader(b []byte, flexible bool) (clientID string, body []byte, err error) {
	r := reader{b: b[minFrame:]}
	clientID = r.string()
	r.flexible = flexible
	r.tags()
	if r.bad {
		return "", nil, fmt.Errorf("%w: header", errMalformed)
	}
	return clientID, r.b, nil
}
