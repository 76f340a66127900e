package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// defaultMemoryBytes is a writer's budget when the attempt names none.
const defaultMemoryBytes = 16 << 20

// writer fills the one body of an attempt. It belongs to one goroutine at a time.
type writer struct {
	sink    *Sink
	encoder Encoder
	attempt connector.Attempt
	dir     string
	budget  int64

	body        []byte
	rows, units int64
	err         error // sticky after a failed Seal
	closed      bool
}

var (
	_ connector.Writer     = (*writer)(nil)
	_ connector.RowChecker = (*writer)(nil)
)

func newWriter(s *Sink, enc Encoder, a connector.Attempt, dir string) *writer {
	w := &writer{sink: s, encoder: enc, attempt: a, dir: dir, budget: a.MemoryBytes}
	if w.budget <= 0 {
		w.budget = defaultMemoryBytes
	}
	return w
}

var errClosed = errors.New("writer is closed")

func (w *writer) usable() error {
	if w.closed {
		return errClosed
	}
	return w.err
}

// Check implements connector.RowChecker.
func (w *writer) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	return w.encoder.Check(b, sel, bad)
}

// Buckets implements connector.Writer: there is one.
func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	if err := w.usable(); err != nil {
		return out, err
	}
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	for range n {
		out = append(out, 0)
	}
	return out, nil
}

// Write implements connector.Writer.
func (w *writer) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	if err := w.usable(); err != nil {
		return err
	}
	switch {
	case bucket != 0:
		return fmt.Errorf("bucket %d is not of this writer", bucket)
	case int64(len(w.body)) >= w.budget:
		return connector.ErrFull
	}
	body, rows, units := w.body, w.rows, w.units
	add := func(row int) (err error) {
		var n int64
		body, n, err = w.encoder.Append(body, b, row)
		rows, units = rows+1, units+n
		return err
	}
	if err := sel.Each(b.Len, add); err != nil {
		return err
	}
	w.body, w.rows, w.units = body, rows, units
	return nil
}

// Open implements connector.Writer.
func (w *writer) Open() []connector.Bucket {
	if w.rows == 0 {
		return nil
	}
	return []connector.Bucket{{Rows: w.rows, Bytes: int64(len(w.body))}}
}

// HeldBytes implements connector.Writer.
func (w *writer) HeldBytes() int64 { return int64(cap(w.body)) }

// Seal implements connector.Writer.
func (w *writer) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	err := w.usable()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || len(req) == 0 {
		return nil, err
	}
	as, err := w.seal(req)
	if err != nil {
		w.err = fmt.Errorf("sealing: %w", err)
		return nil, w.err
	}
	return as, nil
}

func (w *writer) seal(req []connector.SealRequest) ([]connector.Artifact, error) {
	r := req[0]
	if len(req) > 1 || r.Bucket != 0 || r.Header.Rows != w.rows || w.rows == 0 {
		return nil, fmt.Errorf("%d buckets, bucket %d of %d rows: there is one, of %d", len(req), r.Bucket, r.Header.Rows, w.rows)
	}
	s := w.sink
	if err := s.staging.Owned(); err != nil {
		return nil, err
	}
	m := Message{ID: r.Header.ID.String(), Rows: w.rows, Units: w.units, Body: w.body}
	bytes, err := writeFile(s.c.FS, s.c.FS.Join(w.dir, m.ID+sealdir.Sealed), &m)
	if err == nil {
		err = s.c.FS.SyncDir(w.dir)
	}
	if err != nil {
		// An attempt whose directory a newer one has renamed is fenced.
		if ok, eerr := w.exists(); eerr == nil && !ok {
			err = fmt.Errorf("%w: %s is gone", connector.ErrFenced, w.dir)
		}
		return nil, err
	}
	w.rows, w.units = 0, 0
	if w.body = w.body[:0]; int64(cap(w.body)) > w.budget {
		w.body = nil
	}
	return []connector.Artifact{{Header: r.Header, Bytes: bytes, Location: s.c.Location,
		Payload: payload{m.Rows, bytes}.encode()}}, nil
}

// Close implements connector.Writer.
func (w *writer) Close() error {
	w.closed, w.body = true, nil
	return nil
}

// exists reports whether the attempt's directory still has its name.
func (w *writer) exists() (bool, error) {
	return vfs.Exists(w.sink.c.FS, w.dir)
}
