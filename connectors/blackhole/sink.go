package blackhole

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// Connector is the connector `blackhole`.
type Connector struct{ spec connector.Spec }

// New makes the connector.
func New() *Connector {
	return &Connector{spec: connector.Spec{
		Name:      "blackhole",
		Summary:   "Takes every row and keeps none.",
		Doc:       "For measuring and trying out: rows are counted in the ledger and dropped.",
		Sink:      true,
		Changelog: connector.All,
		Passing:   true,
		Guarantee: "Exactly once, trivially: nothing is ever visible.",
	}}
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

// OpenSink implements connector.SinkConnector.
func (c *Connector) OpenSink(context.Context, *connector.Table, connector.Owner) (connector.Sink, error) {
	return sink{}, nil
}

// rollAge is how long rows are counted before the position moves.
const rollAge = time.Second

type sink struct{}

func (sink) MaxEpoch(context.Context, connector.LaneID) (uint64, error) { return 0, nil }

func (sink) OpenWriter(context.Context, connector.Attempt) (connector.Writer, error) {
	return &writer{}, nil
}

func (sink) Roll() connector.RollPolicy { return connector.RollPolicy{Age: rollAge} }

func (sink) Publish(_ context.Context, as []connector.Artifact) []error {
	return make([]error, len(as))
}

func (sink) Resolve(_ context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	for i := range out {
		out[i] = connector.Published
	}
	return out, nil
}

func (sink) Discard(context.Context, []connector.Artifact) error { return nil }

func (sink) Close() error { return nil }

// writer counts the rows of its one bucket.
type writer struct {
	rows   int64
	closed bool
}

var errClosed = errors.New("writer is closed")

func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	if w.closed {
		return out, errClosed
	}
	for range count(b, sel) {
		out = append(out, 0)
	}
	return out, nil
}

func count(b *batch.Batch, sel batch.Sel) int {
	if sel != nil {
		return len(sel)
	}
	return b.Len
}

func (w *writer) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	if w.closed {
		return errClosed
	}
	if bucket != 0 {
		return fmt.Errorf("bucket %d is not of this writer", bucket)
	}
	w.rows += int64(count(b, sel))
	return nil
}

func (w *writer) Open() []connector.Bucket {
	if w.rows == 0 {
		return nil
	}
	return []connector.Bucket{{Rows: w.rows}}
}

func (w *writer) HeldBytes() int64 { return 0 }

func (w *writer) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	if w.closed {
		return nil, errClosed
	}
	var out []connector.Artifact
	for _, r := range req {
		if r.Bucket != 0 || r.Header.Rows != w.rows || w.rows == 0 {
			return nil, fmt.Errorf("sealing bucket %d of %d rows: it has %d", r.Bucket, r.Header.Rows, w.rows)
		}
		w.rows = 0
		out = append(out, connector.Artifact{Header: r.Header, Location: "blackhole", Payload: []byte{1}})
	}
	return out, nil
}

func (w *writer) Close() error {
	w.closed = true
	return nil
}
