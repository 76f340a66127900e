package logictest

import (
	"context"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// batches bounds the rows of a batch that a table gives: the engine's own bound is
// not one of a job.
type batches struct {
	connector.SourceConnector
	rows int
}

// OpenSource implements connector.SourceConnector.
func (c batches) OpenSource(ctx context.Context, t *connector.Table) (connector.Source, error) {
	s, err := c.SourceConnector.OpenSource(ctx, t)
	if err != nil {
		return nil, err
	}
	return batchSource{s, c.rows}, nil
}

type batchSource struct {
	connector.Source
	rows int
}

// Open implements connector.Source.
func (s batchSource) Open(ctx context.Context, splits []connector.Split, columns []int, wake func()) (connector.Reader, error) {
	r, err := s.Source.Open(ctx, splits, columns, wake)
	if err != nil {
		return nil, err
	}
	return batchReader{r, s.rows}, nil
}

type batchReader struct {
	connector.Reader
	rows int
}

// Next implements connector.Reader.
func (r batchReader) Next(ctx context.Context, b *batch.Batch, maxRows, maxBytes int) error {
	return r.Reader.Next(ctx, b, min(maxRows, r.rows), maxBytes)
}
