package nexmark

import (
	"context"
	"io"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/numbered"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// source makes the events of one table. Its partition's id is that of the events:
// other columns of them are the same topic.
type source struct {
	numbered.Source
	table   *connector.Table
	columns []column
	config  Config
}

func (s *source) Open(_ context.Context, splits []connector.Split, columns []int, _ func()) (connector.Reader, error) {
	r := &reader{schema: s.table.Schema(columns), generator: NewGenerator(s.config)}
	if columns == nil {
		r.columns = s.columns
	}
	for _, c := range columns {
		r.columns = append(r.columns, s.columns[c])
	}
	var err error
	if r.splits, err = s.Splits(splits); err != nil {
		return nil, err
	}
	return r, nil
}

type reader struct {
	schema    *batch.Schema
	columns   []column
	generator *Generator
	splits    *numbered.Splits
}

// eventBytes is about what an event takes in columns.
const eventBytes = 250

// Next implements connector.Reader.
func (r *reader) Next(ctx context.Context, b *batch.Batch, maxRows, maxBytes int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := r.splits.Current()
	if s == nil {
		return io.EOF
	}
	n := min(int64(max(min(maxRows, maxBytes/eventBytes), 1)), s.End-s.Next)
	b.Reset(r.schema)
	for i := range r.columns {
		b.Cols[i].Reset(r.schema.Fields[i].Type, 0)
	}
	var e Event
	for k := range n {
		r.generator.Event(s.Next+k, &e)
		for i := range r.columns {
			r.columns[i].add(&b.Cols[i], &e)
		}
	}
	for i := range r.columns {
		format.Seal(&b.Cols[i])
	}
	b.Len = int(n)
	b.Runs = append(b.Runs[:0], batch.Run{Partition: s.Number, Rows: int32(n), BaseOffset: s.Next, EndOffset: s.Next + n})
	s.Next += n
	return nil
}

// Raw implements connector.Reader: there is no record behind an event.
func (r *reader) Raw(int32, int64) (connector.RawRecord, bool) { return connector.RawRecord{}, false }

// LogEnd implements connector.Reader.
func (r *reader) LogEnd(split int32) int64 { return r.splits.End(split) }

// Release implements connector.Reader.
func (r *reader) Release() {}

// Close implements connector.Reader.
func (r *reader) Close() error {
	r.splits.Clear()
	return nil
}
