package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/format/rawfmt"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/record"
)

// deadConnector reads the dead letters of one table in place of a topic: those
// whose record came from the source table's topic.
type deadConnector struct {
	connector.SourceConnector
	dead  *deadTopic
	table string
	scope ledger.Scope
}

func (c *deadConnector) OpenSource(ctx context.Context, t *connector.Table) (connector.Source, error) {
	st, err := c.dead.store.State(c.dead.topic.Partitions[0].ID)
	if err != nil {
		return nil, err
	}
	s := &deadSource{c: c, t: t, end: st.DurableEnd, topics: map[connector.UUID]string{}}
	return s, s.find(ctx, st.Start)
}

type deadSource struct {
	c   *deadConnector
	t   *connector.Table
	end int64
	// topics are those of the table's that have dead letters, by what a replay of
	// each reads.
	topics map[connector.UUID]string
}

// find looks which topics the dead letters came from: a table may read several, by
// a list or by a pattern.
func (s *deadSource) find(ctx context.Context, start int64) error {
	d := s.c.dead
	return readAll(ctx, d.store, d.topic.Partitions[0].ID, start, s.end, func(rec *record.Record) error {
		var v deadValue
		if err := json.Unmarshal(rec.Value, &v); err != nil {
			return fmt.Errorf("topic %s offset %d is no dead letter: %w", d.topic.Name, rec.Offset, err)
		}
		if s.wants(&v) && scanrange.Reads(s.t.Options, v.Topic) {
			s.topics[replaySource(d.topic.ID, v.Topic)] = v.Topic
		}
		return nil
	})
}

// wants tells the dead letters of the job's table that a replay is for.
func (s *deadSource) wants(v *deadValue) bool {
	return v.of(s.c.scope) && v.Table == s.c.table && v.Reason != string(batch.CodeLate)
}

func (s *deadSource) Partitions(context.Context) ([]connector.Partition, error) {
	var out []connector.Partition
	for id := range s.topics {
		out = append(out, connector.Partition{TopicID: id, Topic: s.c.dead.topic.Name})
	}
	slices.SortFunc(out, func(a, b connector.Partition) int { return strings.Compare(s.topics[a.TopicID], s.topics[b.TopicID]) })
	return out, nil
}

func (s *deadSource) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		out[i] = connector.Position{Partition: p, LeaderEpoch: -1}
	}
	return out, nil
}

func (s *deadSource) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i := range parts {
		out[i] = s.end
	}
	return out, nil
}

func (s *deadSource) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	return make([]error, len(saved)), nil
}

func (s *deadSource) Close() error { return nil }

// DecodeErrors implements connector.DecodePolicy: what fails again is a dead
// letter again, whatever the table says, so that nothing is dropped unseen.
func (s *deadSource) DecodeErrors() (connector.OnError, func(string) bool) {
	return format.DeadLetter.DecodeErrors()
}

// replayed are the formats of records.
var replayed = []format.Format{jsonfmt.Format{}, csvfmt.Format{}, rawfmt.Format{}}

func (s *deadSource) Open(ctx context.Context, splits []connector.Split, columns []int, _ func()) (connector.Reader, error) {
	l, err := keyvalue.New(s.t, replayed, false)
	if err != nil {
		return nil, err
	}
	if columns == nil {
		for i := range s.t.Columns {
			columns = append(columns, i)
		}
	}
	r := &deadReader{s: s, ctx: ctx, split: splits[0], next: splits[0].From.Offset, schema: s.t.Schema(columns), one: format.NewAppender(), raw: map[int64]connector.RawRecord{}}
	for k, c := range columns {
		if key := s.t.Columns[c].Metadata; key != "" {
			r.meta = append(r.meta, deadMeta{column: k, key: key})
		}
	}
	r.dec, err = l.NewDecoder(columns)
	return r, err
}

// deadMeta is a metadata column, filled from the record's first coordinates.
type deadMeta struct {
	column int
	key    string
}

// deadReader decodes one entry at a time: dead letters are few.
type deadReader struct {
	s      *deadSource
	ctx    context.Context
	split  connector.Split
	next   int64
	schema *batch.Schema
	dec    *keyvalue.Decoder
	meta   []deadMeta
	one    *format.Appender
	raw    map[int64]connector.RawRecord
}

// scanRecords is how many records of the dead-letter topic one batch covers.
const scanRecords = 512

// errPause ends the scan of one batch.
var errPause = errors.New("enough for one batch")

func (r *deadReader) Next(_ context.Context, b *batch.Batch, maxRows, _ int) error {
	end := min(r.split.End, r.s.end)
	if r.next >= end {
		return io.EOF
	}
	clear(r.raw)
	b.Reset(r.schema)
	for i := range b.Cols {
		b.Cols[i].Reset(r.schema.Fields[i].Type, 0)
	}
	run := batch.Run{Partition: r.split.Number, BaseOffset: r.next}
	b.OffsetDelta, b.RowIndex = []int32{}, []int32{}
	seen := 0
	next := r.next
	d, topic := r.s.c.dead, r.s.topics[r.split.From.Partition.TopicID]
	st, err := d.store.State(d.topic.Partitions[0].ID)
	if err != nil {
		return err
	}
	// What somebody has removed from the topic is not to be replayed.
	err = readAll(r.ctx, d.store, d.topic.Partitions[0].ID, max(r.next, st.Start), end, func(rec *record.Record) error {
		if seen++; seen > scanRecords || b.Len >= maxRows {
			return errPause
		}
		next = rec.Offset + 1
		var v deadValue
		if err := json.Unmarshal(rec.Value, &v); err != nil {
			return fmt.Errorf("topic %s offset %d is no dead letter: %w", d.topic.Name, rec.Offset, err)
		}
		if !r.s.wants(&v) || v.Topic != topic {
			return nil
		}
		return r.entry(b, &run, rec.Offset, &v)
	})
	switch {
	case errors.Is(err, errPause):
	case err != nil:
		return err
	default:
		next = end
	}
	r.next, run.EndOffset, run.Rows = next, next, int32(b.Len)
	run.Notes = int32(len(b.Notes))
	b.Runs = append(b.Runs, run)
	return nil
}

// entry appends the rows that an entry is about.
func (r *deadReader) entry(b *batch.Batch, run *batch.Run, offset int64, v *deadValue) error {
	r.raw[offset] = v.raw()
	var one batch.Batch
	r.one.Begin(&one, r.schema)
	r.one.BeginRun(0, offset)
	r.dec.Begin()
	n := r.dec.Decode(v.Key, v.Value, offset, r.one)
	for range n {
		for _, m := range r.meta {
			if err := m.append(r.one.Column(m.column), v); err != nil {
				return err
			}
		}
	}
	r.one.EndRun(offset+1, 0)
	r.dec.Finish(r.one)
	r.one.Finish()
	if n == 0 {
		for _, note := range one.Notes {
			note.Offset = offset
			b.Notes = append(b.Notes, note)
		}
		return nil
	}
	for i := range n {
		if v.Rows != nil && !containsRow(v.Rows, int32(i)) {
			continue // this row of the record was written at first
		}
		for c := range b.Cols {
			b.Cols[c].Append(&one.Cols[c], i)
		}
		b.OffsetDelta = append(b.OffsetDelta, int32(offset-run.BaseOffset))
		b.RowIndex = append(b.RowIndex, int32(i))
		b.Len++
	}
	return nil
}

func containsRow(rows []int32, i int32) bool {
	for _, r := range rows {
		if r == i {
			return true
		}
	}
	return false
}

func (m deadMeta) append(v *batch.Vec, e *deadValue) error {
	switch m.key {
	case "topic":
		format.AppendString(v, e.Topic)
	case "partition":
		format.AppendInt32(v, e.Partition)
	case "offset":
		format.AppendInt64(v, e.Offset)
	case "timestamp":
		format.AppendInt64(v, e.Timestamp*(v.Type.UnitsPerSecond()/1000))
	case "timestamp-type":
		format.AppendString(v, "CreateTime")
	case "leader-epoch":
		format.AppendNull(v)
	case "headers":
		for _, h := range e.Headers {
			format.AppendString(v.Children[0], h.Key)
			format.AppendBytes(v.Children[1], h.Value)
		}
		format.CloseList(v)
	default:
		return fmt.Errorf("metadata %q cannot be replayed", m.key)
	}
	return nil
}

func (r *deadReader) Raw(_ int32, offset int64) (connector.RawRecord, bool) {
	x, ok := r.raw[offset]
	return x, ok
}

func (r *deadReader) LogEnd(int32) int64 { return r.s.end }
func (r *deadReader) Release()           {}
func (r *deadReader) Close() error       { return nil }
