package state

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Payload is saved state whose parts need not all be in memory.
type Payload struct {
	parts    []payloadPart
	size     int64
	releases []func()
}

type payloadPart struct {
	bytes []byte
	read  func(buf []byte) ([]byte, error)
}

// Append adds bytes, which must not change.
func (p *Payload) Append(b []byte) {
	p.parts = append(p.parts, payloadPart{bytes: b})
	p.size += int64(len(b))
}

// AppendStored adds a part of size bytes that lies elsewhere; read fills buf with it,
// growing it as needed, from any goroutine.
func (p *Payload) AppendStored(size int64, read func(buf []byte) ([]byte, error)) {
	p.parts = append(p.parts, payloadPart{read: read})
	p.size += size
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

// Len is the number of bytes.
func (p *Payload) Len() int64 { return p.size }

// WriteTo writes all of it, one part after the other.
func (p *Payload) WriteTo(w io.Writer) (int64, error) {
	var n int64
	var buf []byte
	for i := range p.parts {
		b := p.parts[i].bytes
		if p.parts[i].read != nil {
			var err error
			if buf, err = p.parts[i].read(buf); err != nil {
				return n, err
			}
			b = buf
		}
		k, err := w.Write(b)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Sections is the saved state of one subtask as AppendSections writes it, without
// all of it in memory.
type Sections struct{ list []Section }

// NewSections takes sections; those with a Body have that for Payload.
func NewSections(list []Section) *Sections { return &Sections{list: list} }

func (s *Section) head(dst []byte) []byte {
	dst = AppendBytes(dst, s.Path)
	dst = AppendBytes(dst, s.Kind)
	dst = binary.BigEndian.AppendUint64(dst, s.Fingerprint)
	return binary.AppendUvarint(dst, uint64(s.size()))
}

func (s *Section) size() int64 {
	if s.Body != nil {
		return s.Body.Len()
	}
	return int64(len(s.Payload))
}

// Len is the number of bytes.
func (s *Sections) Len() int64 {
	n := int64(len(binary.AppendUvarint(nil, uint64(len(s.list)))) + 4)
	for i := range s.list {
		n += int64(len(s.list[i].head(nil))) + s.list[i].size()
	}
	return n
}

// summed adds up what goes through it.
type summed struct {
	w   io.Writer
	n   int64
	crc uint32
}

func (s *summed) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.n += int64(n)
	s.crc = crc32.Update(s.crc, castagnoli, b[:n])
	return n, err
}

// WriteTo writes the sections and the checksum behind them. It may be called several
// times.
func (s *Sections) WriteTo(w io.Writer) (int64, error) {
	sum := &summed{w: w}
	if _, err := sum.Write(binary.AppendUvarint(nil, uint64(len(s.list)))); err != nil {
		return sum.n, err
	}
	for i := range s.list {
		x := &s.list[i]
		if _, err := sum.Write(x.head(nil)); err != nil {
			return sum.n, err
		}
		if x.Body == nil {
			if _, err := sum.Write(x.Payload); err != nil {
				return sum.n, err
			}
			continue
		}
		if _, err := x.Body.WriteTo(sum); err != nil {
			return sum.n, err
		}
	}
	n, err := w.Write(binary.LittleEndian.AppendUint32(nil, sum.crc))
	return sum.n + int64(n), err
}

// Release lets go of what the sections hold on disk.
func (s *Sections) Release() {
	for i := range s.list {
		if s.list[i].Body != nil {
			s.list[i].Body.Release()
		}
	}
}
