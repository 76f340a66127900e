package state

import (
	"fmt"
	"io"
)

// Payload is the saved state of an operator in parts, each of which Load of the operator
// takes by itself, one after the other. What is in a part need not be in memory.
type Payload struct {
	parts    []payloadPart
	releases []func()
}

type payloadPart struct {
	pieces []piece
	size   int64
	later  bool // size is not of all pieces
}

// piece has one of these.
type piece struct {
	bytes  []byte
	write  func(w io.Writer, buf []byte) ([]byte, error)
	encode func(dst []byte) []byte
}

// Cut begins the next part.
func (p *Payload) Cut() { p.parts = append(p.parts, payloadPart{}) }

// Append adds bytes, which must not change, to the part that was begun last.
func (p *Payload) Append(b []byte) { p.add(int64(len(b)), piece{bytes: b}) }

// AppendStored adds size bytes that lie elsewhere; write writes them, from any goroutine
// and as often as it is called. It may use buf, and gives back what it has grown to.
func (p *Payload) AppendStored(size int64, write func(w io.Writer, buf []byte) ([]byte, error)) {
	p.add(size, piece{write: write})
}

// AppendLater adds what encode appends when the part is written, from any goroutine and as
// often as it is called. The length of the part is not known before.
func (p *Payload) AppendLater(encode func(dst []byte) []byte) {
	p.add(0, piece{encode: encode})
	p.parts[len(p.parts)-1].later = true
}

func (p *Payload) add(size int64, x piece) {
	if len(p.parts) == 0 {
		p.Cut()
	}
	last := &p.parts[len(p.parts)-1]
	last.pieces = append(last.pieces, x)
	last.size += size
}

// OnRelease has f called by Release.
func (p *Payload) OnRelease(f func()) { p.releases = append(p.releases, f) }

// Release says that the payload is not read any more.
func (p *Payload) Release() {
	for _, f := range p.releases {
		f()
	}
	p.releases = nil
}

// Parts is the number of parts.
func (p *Payload) Parts() int { return len(p.parts) }

// PartBytes is the length of a part, -1 if it is known only when the part is written.
func (p *Payload) PartBytes(i int) int64 {
	if p.parts[i].later {
		return -1
	}
	return p.parts[i].size
}

// WritePart writes a part. It may use buf, and gives back what it has grown to.
func (p *Payload) WritePart(w io.Writer, i int, buf []byte) ([]byte, error) {
	n := counted{w: w}
	for _, x := range p.parts[i].pieces {
		var err error
		switch {
		case x.write != nil:
			buf, err = x.write(&n, buf)
		case x.encode != nil:
			buf = x.encode(buf[:0])
			_, err = n.Write(buf)
		default:
			_, err = n.Write(x.bytes)
		}
		if err != nil {
			return buf, err
		}
	}
	if !p.parts[i].later && n.n != p.parts[i].size {
		return buf, fmt.Errorf("BUG: a part of %d bytes of saved state has %d", p.parts[i].size, n.n)
	}
	return buf, nil
}

// counted counts what goes through it.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
