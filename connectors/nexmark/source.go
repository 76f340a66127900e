package nexmark

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// source makes the events of one table. Its partition's id is that of the events:
// other columns of them are the same topic.
type source struct {
	table   *connector.Table
	columns []column
	events  int64
	config  Config
	id      connector.UUID
}

func (s *source) Partitions(context.Context) ([]connector.Partition, error) {
	return []connector.Partition{{TopicID: s.id, Topic: s.table.Name}}, nil
}

func (s *source) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		out[i] = connector.Position{Partition: p}
	}
	return out, nil
}

func (s *source) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i := range parts {
		out[i] = s.events
	}
	return out, nil
}

func (s *source) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	out := make([]error, len(saved))
	for i, p := range saved {
		if p.Partition.TopicID != s.id || p.Partition.ID != 0 {
			out[i] = &connector.MismatchError{Position: p, Latest: s.events, Lost: -1, Recreated: true, Reason: "the seed, the rate or the start has changed"}
		} else if p.Offset > s.events {
			out[i] = &connector.MismatchError{Position: p, Latest: s.events, Lost: -1, Reason: "the table has fewer events now"}
		}
	}
	return out, nil
}

func (s *source) Close() error { return nil }

func (s *source) Open(_ context.Context, splits []connector.Split, columns []int, _ func()) (connector.Reader, error) {
	r := &reader{schema: s.table.Schema(columns), generator: NewGenerator(s.config), ends: map[int32]int64{}}
	if columns == nil {
		r.columns = s.columns
	}
	for _, c := range columns {
		r.columns = append(r.columns, s.columns[c])
	}
	for _, sp := range splits {
		if sp.From.Partition.TopicID != s.id {
			return nil, fmt.Errorf("partition %s %d is not of this table", sp.From.Partition.Topic, sp.From.Partition.ID)
		}
		end := min(sp.End, s.events)
		r.splits = append(r.splits, splitState{number: sp.Number, next: sp.From.Offset, end: end})
		r.ends[sp.Number] = end
	}
	return r, nil
}

type splitState struct {
	number    int32
	next, end int64
}

type reader struct {
	schema    *batch.Schema
	columns   []column
	generator *Generator
	splits    []splitState
	ends      map[int32]int64
}

// eventBytes is about what an event takes in columns.
const eventBytes = 250

// Next implements connector.Reader.
func (r *reader) Next(ctx context.Context, b *batch.Batch, maxRows, maxBytes int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for len(r.splits) > 0 && r.splits[0].next >= r.splits[0].end {
		r.splits = r.splits[1:]
	}
	if len(r.splits) == 0 {
		return io.EOF
	}
	s := &r.splits[0]
	n := min(int64(max(min(maxRows, maxBytes/eventBytes), 1)), s.end-s.next)
	b.Reset(r.schema)
	for i := range r.columns {
		b.Cols[i].Reset(r.schema.Fields[i].Type, 0)
	}
	var e Event
	for k := range n {
		r.generator.Event(s.next+k, &e)
		for i := range r.columns {
			r.columns[i].add(&b.Cols[i], &e)
		}
	}
	for i := range r.columns {
		format.Seal(&b.Cols[i])
	}
	b.Len = int(n)
	b.Runs = append(b.Runs[:0], batch.Run{Partition: s.number, Rows: int32(n), BaseOffset: s.next, EndOffset: s.next + n})
	s.next += n
	return nil
}

// Raw implements connector.Reader: there is no record behind an event.
func (r *reader) Raw(int32, int64) (connector.RawRecord, bool) { return connector.RawRecord{}, false }

// LogEnd implements connector.Reader.
func (r *reader) LogEnd(split int32) int64 { return r.ends[split] }

// Release implements connector.Reader.
func (r *reader) Release() {}

// Close implements connector.Reader.
func (r *reader) Close() error {
	r.splits = nil
	return nil
}
