package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/state"
)

// Files are those of a checkpoint for Store.Write: a body for each of the manifest's state
// files, in their order, then the manifest. Lengths and hashes of the bodies come into
// the manifest while they are written, so that they are read once.
func Files(m *Manifest, bodies []Body) []File {
	var files []File
	for i := range m.Stages {
		for k := range m.Stages[i].Blobs {
			x := &m.Stages[i].Blobs[k]
			files = append(files, File{Name: x.Name, Body: &measured{bodies[len(files)], x}})
		}
	}
	return append(files, File{Name: ManifestFile, Body: lastFile{m}})
}

// measured notes what is written of a body.
type measured struct {
	Body
	blob *Blob
}

func (b *measured) WriteTo(w io.Writer) (int64, error) {
	h := xxhash.New()
	n, err := b.Body.WriteTo(io.MultiWriter(w, h))
	b.blob.Bytes, b.blob.Hash = n, h.Sum64()
	return n, err
}

// lastFile is the manifest as it is when its turn comes.
type lastFile struct{ m *Manifest }

func (f lastFile) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(f.m.Encode())
	return int64(n), err
}

func (lastFile) Release() {}

// DamagedError says that a state file is not there, cannot be read or does not hold: its
// checkpoint cannot be restored.
type DamagedError struct {
	// File is its name.
	File string
	Err  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("state file %s: %v", e.File, e.Err) }

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// Candidate is a checkpoint whose manifest holds, while it is restored.
type Candidate struct {
	*Manifest
	s   Store
	ctx context.Context
}

// ReadState calls take with the parts of a state file, one after the other: each with its
// section, which is the same pointer for all of its parts. The bytes are good during the
// call. Where it gives a *DamagedError, what was taken is worth nothing; an error of take is
// given as it is.
func (c *Candidate) ReadState(x *Blob, take func(s *state.Section, part []byte) error) error {
	damaged := func(err error) error { return &DamagedError{x.Name, err} }
	if c.Version == 1 {
		sections, err := c.readVersion1(x)
		if err != nil {
			return damaged(err)
		}
		for i := range sections {
			if err := take(&sections[i], sections[i].Payload); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := c.s.Stream(c.ctx, c.Number, x.Name)
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	r := state.NewFileReader(f, x.Bytes)
	for {
		s, part, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && r.Hash() != x.Hash:
			return damaged(fmt.Errorf("%w: it is not the one that the manifest names", state.ErrCorrupt))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return damaged(err)
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := take(s, part); err != nil {
			return err
		}
	}
}

func (c *Candidate) readVersion1(x *Blob) ([]state.Section, error) {
	b, err := c.s.Read(c.ctx, c.Number, x.Name)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != x.Bytes || uint64(crc32.Checksum(b, castagnoli)) != x.Hash {
		return nil, fmt.Errorf("%w: it is not the one that the manifest names", state.ErrCorrupt)
	}
	return state.ReadFileVersion1(b)
}
