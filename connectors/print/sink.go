package print

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// Connector is the connector `print`.
type Connector struct {
	stdout, stderr *lockedWriter
	spec           connector.Spec
}

const (
	keyIdentifier = "print-identifier"
	keyStderr     = "standard-error"
)

// New makes the connector over the program's outputs.
func New(stdout, stderr io.Writer) *Connector {
	return &Connector{stdout: &lockedWriter{w: stdout}, stderr: &lockedWriter{w: stderr}, spec: connector.Spec{
		Name:    "print",
		Summary: "Writes each row as a line to standard output.",
		Doc:     "Rows look as in Flink: `+I[1, hello]`, with `-U`, `+U` and `-D` for updates. Lines appear when rows are committed, within about a second.",
		Sink:    true,
		Options: []connector.Option{
			{Key: keyIdentifier, Type: connector.OptString, Doc: "Stands before each line, followed by `> `."},
			{Key: keyStderr, Type: connector.OptBool, Default: "false", Doc: "Write to standard error instead."},
		},
		Changelog: connector.All,
		Passing:   true,
		Guarantee: "At most once: what was sealed when a process died is not printed by the next.",
	}}
}

// lockedWriter writes whole texts, one at a time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) write(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

// OpenSink implements connector.SinkConnector.
func (c *Connector) OpenSink(_ context.Context, t *connector.Table, _ connector.Owner) (connector.Sink, error) {
	s := &sink{out: c.stdout, sealed: map[connector.ArtifactID][]byte{}}
	if t.Options.Bool(keyStderr) {
		s.out = c.stderr
	}
	if id := t.Options.String(keyIdentifier); id != "" {
		s.prefix = id + "> "
	}
	return s, nil
}

// sink keeps the text of what is sealed and not printed yet.
type sink struct {
	out    *lockedWriter
	prefix string

	mu     sync.Mutex
	sealed map[connector.ArtifactID][]byte
}

// rollAge is how long rows wait to be printed.
const rollAge = 200 * time.Millisecond

func (s *sink) MaxEpoch(context.Context, connector.LaneID) (uint64, error) { return 0, nil }

func (s *sink) OpenWriter(_ context.Context, a connector.Attempt) (connector.Writer, error) {
	w := &writer{sink: s, budget: a.MemoryBytes}
	if w.budget <= 0 {
		w.budget = 16 << 20
	}
	return w, nil
}

func (s *sink) Roll() connector.RollPolicy { return connector.RollPolicy{Age: rollAge} }

// Publish prints. An artefact that this sink does not hold was printed before,
// or belonged to a process that is gone.
func (s *sink) Publish(_ context.Context, as []connector.Artifact) []error {
	errs := make([]error, len(as))
	for i, a := range as {
		s.mu.Lock()
		text, ok := s.sealed[a.Header.ID]
		delete(s.sealed, a.Header.ID)
		s.mu.Unlock()
		if !ok {
			continue
		}
		if err := s.out.write(text); err != nil {
			errs[i] = fmt.Errorf("printing: %w", err)
		}
	}
	return errs
}

func (s *sink) Resolve(_ context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]connector.Outcome, len(as))
	for i, a := range as {
		out[i] = connector.Published
		if _, ok := s.sealed[a.Header.ID]; ok {
			out[i] = connector.Sealed
		}
	}
	return out, nil
}

func (s *sink) Discard(_ context.Context, as []connector.Artifact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range as {
		delete(s.sealed, a.Header.ID)
	}
	return nil
}

func (s *sink) Close() error { return nil }

// writer formats rows into its one bucket.
type writer struct {
	sink   *sink
	budget int64
	text   []byte
	rows   int64
	closed bool
}

var errClosed = errors.New("writer is closed")

func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	if w.closed {
		return out, errClosed
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

func (w *writer) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	switch {
	case w.closed:
		return errClosed
	case bucket != 0:
		return fmt.Errorf("bucket %d is not of this writer", bucket)
	case int64(len(w.text)) >= w.budget:
		return connector.ErrFull
	}
	return sel.Each(b.Len, func(i int) error {
		w.row(b, i)
		return nil
	})
}

func (w *writer) row(b *batch.Batch, i int) {
	w.text = append(w.text, w.sink.prefix...)
	w.text = append(w.text, b.KindOf(i).String()...)
	w.text = append(w.text, '[')
	for c := range b.Cols {
		if c > 0 {
			w.text = append(w.text, ", "...)
		}
		w.text = AppendValue(w.text, &b.Cols[c], i)
	}
	w.text = append(w.text, ']', '\n')
	w.rows++
}

func (w *writer) Open() []connector.Bucket {
	if w.rows == 0 {
		return nil
	}
	return []connector.Bucket{{Rows: w.rows, Bytes: int64(len(w.text))}}
}

func (w *writer) HeldBytes() int64 { return int64(cap(w.text)) }

func (w *writer) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	if w.closed {
		return nil, errClosed
	}
	var out []connector.Artifact
	for _, r := range req {
		if r.Bucket != 0 || r.Header.Rows != w.rows || w.rows == 0 {
			return nil, fmt.Errorf("sealing bucket %d of %d rows: it has %d", r.Bucket, r.Header.Rows, w.rows)
		}
		out = append(out, connector.Artifact{Header: r.Header, Bytes: int64(len(w.text)), Location: "print", Payload: []byte{1}})
		w.sink.mu.Lock()
		w.sink.sealed[r.Header.ID] = w.text
		w.sink.mu.Unlock()
		w.text, w.rows = nil, 0
	}
	return out, nil
}

func (w *writer) Close() error {
	w.closed = true
	return nil
}
