package segment

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/vfs"
)

// Damage is one bad range of a segment file.
type Damage struct {
	// Part is what was hit: "file header", "extent header", "batch table",
	// "batch", "padding", "footer" or "unknown bytes".
	Part     string
	Position int64 // in the file, bytes
	Length   int64 // bytes
	// Lost says that records cannot be read. Otherwise a second copy of what
	// was hit is good. Partition, From and To then name the offsets lost.
	Lost      bool
	Partition uint64
	From, To  int64
	Err       error
}

// String is one line for people.
func (d Damage) String() string {
	s := fmt.Sprintf("%s at bytes %d to %d: %v", d.Part, d.Position, d.Position+d.Length, d.Err)
	if d.Lost {
		return fmt.Sprintf("%s (partition %d, offsets %d to %d lost)", s, d.Partition, d.From, d.To)
	}
	return s + " (nothing lost)"
}

// Report is what a scrub found.
type Report struct {
	Info
	Damage []Damage // in file order
}

// ScrubOptions limit a scrub.
type ScrubOptions struct {
	// Throttle is called before n bytes are read; it may wait, and an error
	// from it ends the scrub.
	Throttle func(n int) error
}

// Scrub reads every byte of a segment and says what is damaged. It changes
// nothing. The error is about reading, not about damage. A growing own segment
// is scrubbed up to its last whole extent.
func Scrub(fsys vfs.FS, path string, o ScrubOptions) (Report, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("scrubbing segment: %w", err)
	}
	defer f.Close()
	l, err := load(f, path)
	if err != nil {
		return Report{}, fmt.Errorf("scrubbing segment: %w", err)
	}
	s := &scrubber{f: f, path: path, l: l, throttle: o.Throttle}
	if err := s.run(); err != nil {
		return Report{}, fmt.Errorf("scrubbing segment: %w", err)
	}
	return Report{Info: summarize(l.meta, l.index, l.size, l.dataEnd, l.sealed), Damage: s.damage}, nil
}

type scrubber struct {
	f        vfs.File
	path     string
	l        *loaded
	throttle func(int) error
	damage   []Damage
	buf      []byte
}

func (s *scrubber) add(d Damage) { s.damage = append(s.damage, d) }

func (s *scrubber) run() error {
	if err := s.fileHeader(); err != nil {
		return err
	}
	// The extents lie in the file in the order of the index.
	pos := int64(dataStart)
	for i := range s.l.index.extents {
		e := &s.l.index.extents[i]
		if err := s.between(pos, e.Position, i); err != nil {
			return err
		}
		if err := s.extent(e); err != nil {
			return err
		}
		pos = e.End()
	}
	switch d := s.l.damage; {
	case d == nil:
		if err := s.between(pos, s.l.dataEnd, len(s.l.index.extents)); err != nil {
			return err
		}
	case errors.Is(d, ErrFooter):
		s.add(Damage{Part: "footer", Position: s.l.dataEnd, Length: s.l.size - s.l.dataEnd, Err: d})
	case s.l.size > pos:
		// No footer: what stands behind the last extent is either a footer
		// whose trailer is damaged or an append that did not finish.
		s.add(Damage{Part: "footer", Position: pos, Length: s.l.size - pos, Err: d})
	}
	return nil
}

// read fills the buffer with n bytes at pos.
func (s *scrubber) read(pos int64, n int) ([]byte, error) {
	if s.throttle != nil {
		if err := s.throttle(n); err != nil {
			return nil, err
		}
	}
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	b := s.buf[:n]
	return b, readFull(s.f, b, pos, s.l.size)
}

func (s *scrubber) fileHeader() error {
	b, err := s.read(0, dataStart)
	if err != nil {
		return err
	}
	var want [fileHeaderSize]byte
	s.l.meta.encode(want[:])
	for at := 0; at < dataStart; at += fileHeaderSize {
		if !bytes.Equal(b[at:at+fileHeaderSize], want[:]) {
			s.add(Damage{Part: "file header", Position: int64(at), Length: fileHeaderSize, Err: record.ErrChecksum})
		}
	}
	return nil
}

// between looks at what stands before an extent or the footer: in an own segment
// zeros up to where a region begins, else nothing.
func (s *scrubber) between(from, to int64, next int) error {
	if from == to {
		return nil
	}
	if s.l.meta.Kind != Own || to != padTo64(from, vfs.DirectAlign) {
		s.gap(from, to, next)
		return nil
	}
	b, err := s.read(from, int(to-from))
	if err == nil && !isZero(b) {
		s.add(Damage{Part: "padding", Position: from, Length: to - from, Err: record.ErrChecksum})
	}
	return err
}

// gap reports bytes between extents: extents that neither footer nor header
// names any more.
func (s *scrubber) gap(from, to int64, next int) {
	d := Damage{Part: "unknown bytes", Position: from, Length: to - from, Lost: true, Err: ErrFooter}
	x := s.l.index.extents
	d.Partition, d.From = s.l.meta.Partition, s.l.meta.BaseOffset
	if next > 0 {
		d.Partition, d.From = x[next-1].Partition, x[next-1].LastOffset+1
	}
	d.To = d.From
	if next < len(x) && x[next].Partition == d.Partition && x[next].BaseOffset > d.From {
		d.To = x[next].BaseOffset - 1
	}
	s.add(d)
}

func (s *scrubber) extent(e *Extent) error {
	head := int(e.payload() - e.Position)
	b, err := s.read(e.Position, head+int(e.Length))
	if err != nil {
		return err
	}
	var want [extentHeaderSize]byte
	e.encode(want[:], idChecksum(s.l.meta.ID))
	if !bytes.Equal(b[:extentHeaderSize], want[:]) {
		s.add(Damage{Part: "extent header", Position: e.Position, Length: extentHeaderSize, Err: record.ErrChecksum})
	}
	table, payload := b[extentHeaderSize:head], b[head:]
	tableOK := record.Checksum(table) == e.Checksum
	ok := proven(e, payload)
	switch {
	case ok && !tableOK:
		s.add(Damage{Part: "batch table", Position: e.table(), Length: int64(len(table)), Err: record.ErrChecksum})
	case !ok && !tableOK:
		s.add(Damage{Part: "batch", Position: e.table(), Length: e.End() - e.table(), Lost: true,
			Partition: e.Partition, From: e.BaseOffset, To: e.LastOffset, Err: record.ErrChecksum})
	case !ok:
		for _, p := range spans(e, payload, table) {
			if p.err != nil {
				s.add(Damage{Part: "batch", Position: e.payload() + int64(p.start), Length: int64(p.end - p.start),
					Lost: true, Partition: e.Partition, From: p.from, To: p.to, Err: p.err})
			}
		}
	}
	return nil
}
