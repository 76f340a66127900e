package state

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FileVersion is the version of state files that are written.
const FileVersion = 2

const (
	fileMagic = "MRSF"
	fileHead  = len(fileMagic) + 2
	// frameHead is kind, length and their checksum; frameTail the checksum of the rest.
	frameHead = 1 + 8 + 4
	frameTail = 4
)

// Kinds of frames.
const (
	frameSection = 1 + iota
	framePart
	frameEnd
)

// Sections is the saved state of one subtask as a state file has it, without all of it in
// memory.
type Sections struct{ list []Section }

// NewSections takes the sections of a subtask.
func NewSections(list []Section) *Sections { return &Sections{list: list} }

// WriteTo writes the file, and reads what is on disk once. It may be called several times.
func (s *Sections) WriteTo(w io.Writer) (int64, error) {
	f := fileWriter{to: counted{w: w}}
	err := f.bytes(binary.BigEndian.AppendUint16([]byte(fileMagic), FileVersion))
	for i := 0; i < len(s.list) && err == nil; i++ {
		err = f.section(&s.list[i])
	}
	if err == nil {
		end := binary.AppendUvarint(nil, uint64(len(s.list)))
		err = f.frame(frameEnd, int64(len(end)), func() error { return f.bytes(end) })
	}
	return f.to.n, err
}

// Release lets go of what the sections hold on disk.
func (s *Sections) Release() {
	for i := range s.list {
		if s.list[i].Body != nil {
			s.list[i].Body.Release()
		}
	}
}

// fileWriter writes the frames of a state file.
type fileWriter struct {
	to  counted
	crc uint32 // of the frame's bytes so far
	buf []byte
	// part is one whose length was not known before it was written.
	part bytes.Buffer
}

// Write adds to the frame.
func (f *fileWriter) Write(b []byte) (int, error) {
	n, err := f.to.Write(b)
	f.crc = crc32.Update(f.crc, castagnoli, b[:n])
	return n, err
}

func (f *fileWriter) bytes(b []byte) error {
	_, err := f.Write(b)
	return err
}

// frame writes one around what write writes: n bytes.
func (f *fileWriter) frame(kind byte, n int64, write func() error) error {
	if err := f.bytes(appendFrameHead(nil, kind, n)); err != nil {
		return err
	}
	f.crc = 0
	if err := write(); err != nil {
		return err
	}
	return f.bytes(binary.LittleEndian.AppendUint32(nil, f.crc))
}

func appendFrameHead(dst []byte, kind byte, n int64) []byte {
	from := len(dst)
	dst = binary.BigEndian.AppendUint64(append(dst, kind), uint64(n))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

func (f *fileWriter) section(s *Section) error {
	head := AppendBytes(AppendBytes(nil, s.Path), s.Kind)
	head = binary.BigEndian.AppendUint64(head, s.Fingerprint)
	if err := f.frame(frameSection, int64(len(head)), func() error { return f.bytes(head) }); err != nil {
		return err
	}
	if s.Body == nil {
		return f.frame(framePart, int64(len(s.Payload)), func() error { return f.bytes(s.Payload) })
	}
	for i := range s.Body.Parts() {
		if err := f.bodyPart(s.Body, i); err != nil {
			return err
		}
	}
	return nil
}

func (f *fileWriter) bodyPart(p *Payload, i int) error {
	write := func(to io.Writer) (err error) {
		f.buf, err = p.WritePart(to, i, f.buf)
		return err
	}
	n := p.PartBytes(i)
	if n >= 0 {
		return f.frame(framePart, n, func() error { return write(f) })
	}
	f.part.Reset()
	if err := write(&f.part); err != nil {
		return err
	}
	return f.frame(framePart, int64(f.part.Len()), func() error { return f.bytes(f.part.Bytes()) })
}
