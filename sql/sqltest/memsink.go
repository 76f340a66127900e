package sqltest

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// Collect is a sink connector that keeps rows in memory, by table name: where
// the rows of a query go.
type Collect struct {
	mu     sync.Mutex
	tables map[string]*Rows
}

// NewCollect returns an empty one.
func NewCollect() *Collect { return &Collect{tables: map[string]*Rows{}} }

// Spec implements connector.Connector.
func (c *Collect) Spec() *connector.Spec {
	return &connector.Spec{Name: "collect", Sink: true, Changelog: connector.All}
}

// Rows are the published rows of a table.
func (c *Collect) Rows(table string) *Rows {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.tables[table]
	if r == nil {
		r = &Rows{}
		c.tables[table] = r
	}
	return r
}

// Clear forgets all rows.
func (c *Collect) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.tables)
}

// OpenSink implements connector.SinkConnector.
func (c *Collect) OpenSink(_ context.Context, t *connector.Table, _ connector.Owner) (connector.Sink, error) {
	return &memSink{rows: c.Rows(t.Name), table: t}, nil
}

// memSink seals rows into numbered parts and publishes them by number. What is
// sealed and published lies with the table's rows, so that it outlives the sink
// as files do.
type memSink struct {
	table *connector.Table
	rows  *Rows
}

// parts are the sealed parts of a table.
type parts struct {
	mu        sync.Mutex
	sealed    map[uint64]*Rows
	published map[string]bool
	next      uint64
}

// MaxEpoch implements connector.Sink.
func (s *memSink) MaxEpoch(context.Context, connector.LaneID) (uint64, error) { return 0, nil }

// OpenWriter implements connector.Sink.
func (s *memSink) OpenWriter(context.Context, connector.Attempt) (connector.Writer, error) {
	return &memWriter{s: s, open: &Rows{}}, nil
}

// Roll implements connector.Sink.
func (s *memSink) Roll() connector.RollPolicy { return connector.RollPolicy{} }

// Close implements connector.Sink.
func (s *memSink) Close() error { return nil }

// Publish implements connector.Committer.
func (s *memSink) Publish(_ context.Context, as []connector.Artifact) []error {
	p := &s.rows.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range as {
		id := a.Header.ID.String()
		part := p.sealed[binary.BigEndian.Uint64(a.Payload)]
		if p.published[id] || part == nil {
			continue
		}
		if p.published == nil {
			p.published = map[string]bool{}
		}
		p.published[id] = true
		if part.n > 0 {
			b := &batch.Batch{Schema: part.schema, Cols: part.cols, Kinds: part.kinds, Len: part.n}
			s.rows.append(b, nil)
		}
	}
	return make([]error, len(as))
}

// Resolve implements connector.Committer.
func (s *memSink) Resolve(_ context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	p := &s.rows.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]connector.Outcome, len(as))
	for i, a := range as {
		switch {
		case p.published[a.Header.ID.String()]:
			out[i] = connector.Published
		case p.sealed[binary.BigEndian.Uint64(a.Payload)] != nil:
			out[i] = connector.Sealed
		default:
			out[i] = connector.Absent
		}
	}
	return out, nil
}

// Discard implements connector.Committer.
func (s *memSink) Discard(_ context.Context, as []connector.Artifact) error {
	p := &s.rows.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range as {
		if !p.published[a.Header.ID.String()] {
			delete(p.sealed, binary.BigEndian.Uint64(a.Payload))
		}
	}
	return nil
}

// memWriter has one bucket.
type memWriter struct {
	s    *memSink
	open *Rows
}

// Buckets implements connector.Writer.
func (w *memWriter) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
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
func (w *memWriter) Write(b *batch.Batch, sel batch.Sel, _ connector.BucketID) error {
	w.open.append(b, sel)
	return nil
}

// Open implements connector.Writer.
func (w *memWriter) Open() []connector.Bucket {
	if w.open.n == 0 {
		return nil
	}
	return []connector.Bucket{{Rows: int64(w.open.n), Bytes: int64(w.open.n)}}
}

// HeldBytes implements connector.Writer.
func (w *memWriter) HeldBytes() int64 { return 0 }

// Seal implements connector.Writer.
func (w *memWriter) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	p := &w.s.rows.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]connector.Artifact, len(req))
	for i, r := range req {
		if p.sealed == nil {
			p.sealed = map[uint64]*Rows{}
		}
		p.next++
		p.sealed[p.next] = w.open
		w.open = &Rows{}
		out[i] = connector.Artifact{Header: r.Header, Location: w.s.table.Name, Payload: binary.BigEndian.AppendUint64(nil, p.next)}
	}
	return out, nil
}

// Close implements connector.Writer.
func (w *memWriter) Close() error { return nil }
