package jobtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// registry is a registry whose sources read given records instead. Names,
// options and what the connectors can do stay.
func (g *given) registry(reg *connector.Registry) (*connector.Registry, error) {
	var cs []connector.Connector
	for _, name := range reg.Names() {
		c, _ := reg.Lookup(name)
		if sc, ok := c.(connector.SourceConnector); ok {
			c = &givenConnector{SourceConnector: sc, given: g}
		}
		cs = append(cs, c)
	}
	return connector.NewRegistry(cs...)
}

type givenConnector struct {
	connector.SourceConnector
	given *given
}

// OpenSource implements connector.SourceConnector.
func (c *givenConnector) OpenSource(_ context.Context, t *connector.Table) (connector.Source, error) {
	s, err := c.open(t)
	if err != nil {
		return nil, err
	}
	c.given.expect(s)
	return s, nil
}

// open opens a table. One without given records is empty.
func (c *givenConnector) open(t *connector.Table) (*givenSource, error) {
	tab := c.given.tables[t.Name]
	s := &givenSource{given: c.given, table: t, topic: t.Name, parts: make([][]givenRecord, 1), options: format.FromValues(t.Options, "")}
	if t.Options.Has(scanrange.KeyTopic) {
		if name := t.Options.String(scanrange.KeyTopic); !strings.Contains(name, ";") {
			s.topic = name // of several, a given row is of none
		}
	}
	name := c.Spec().DefaultFormat
	if t.Options.Has("format") {
		name = t.Options.String("format")
	}
	text := true // the table's format is one of text
	switch name {
	case "json":
		s.format = jsonfmt.Format{}
	case "csv":
		s.format = csvfmt.Format{}
	default: // Parquet, or none: the values are what counts
		text, s.format, s.options = false, jsonfmt.Format{}, format.FromMap(nil)
	}
	policy, err := s.format.Policy(s.options)
	if err != nil {
		return nil, err
	}
	s.policy = policy
	for _, col := range t.Columns {
		if _, err := newMetadata(col, 0, t.Zone); err != nil {
			return nil, fmt.Errorf("table %s, column %s: %w", t.Name, col.Name, err)
		}
	}
	if tab == nil {
		return s, nil
	}
	for _, rec := range tab.records {
		if rec.object && text && s.format != format.Format(jsonfmt.Format{}) {
			return nil, &recordError{rec.line, fmt.Sprintf("table %s has format %s: write its records as texts", t.Name, name)}
		}
		for int(rec.partition) >= len(s.parts) {
			s.parts = append(s.parts, nil)
		}
		s.parts[rec.partition] = append(s.parts[rec.partition], rec)
	}
	return s, nil
}

// recordError is a given record that its table cannot have.
type recordError struct {
	line    int
	message string
}

func (e *recordError) Error() string { return e.message }

// givenSource reads the given records of a table: record i of a partition is
// offset i.
type givenSource struct {
	given   *given
	table   *connector.Table
	topic   string
	format  format.Format
	options format.Options
	policy  format.Policy
	parts   [][]givenRecord
}

var _ connector.DecodePolicy = (*givenSource)(nil)

// Partitions implements connector.Source.
func (s *givenSource) Partitions(context.Context) ([]connector.Partition, error) {
	sum := sha256.Sum256([]byte(s.table.Name))
	out := make([]connector.Partition, len(s.parts))
	for i := range out {
		out[i] = connector.Partition{TopicID: connector.UUID(sum[:16]), Topic: s.topic, ID: int32(i)}
	}
	return out, nil
}

// Start implements connector.Source.
func (s *givenSource) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		out[i] = connector.Position{Partition: p, LeaderEpoch: -1}
	}
	return out, nil
}

// End implements connector.Source.
func (s *givenSource) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i, p := range parts {
		out[i] = s.end(p.ID)
	}
	return out, nil
}

func (s *givenSource) end(partition int32) int64 { return int64(len(s.parts[partition])) }

// Check implements connector.Source.
func (s *givenSource) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	return make([]error, len(saved)), nil
}

// Close implements connector.Source.
func (s *givenSource) Close() error { return nil }

// DecodeErrors implements connector.DecodePolicy by the table's options.
func (s *givenSource) DecodeErrors() (connector.OnError, func(string) bool) {
	return s.policy.DecodeErrors()
}

// Open implements connector.Source.
func (s *givenSource) Open(_ context.Context, splits []connector.Split, columns []int, _ func()) (connector.Reader, error) {
	if columns == nil {
		for i := range s.table.Columns {
			columns = append(columns, i)
		}
	}
	r := &givenReader{s: s, schema: s.table.Schema(columns), a: format.NewAppender()}
	cfg := format.DecoderConfig{Options: s.options}
	for i, col := range s.table.Columns {
		at := slices.Index(columns, i)
		switch {
		case col.Metadata == "":
			cfg.Fields, cfg.Columns = append(cfg.Fields, col.Field), append(cfg.Columns, at)
		case at >= 0:
			m, err := newMetadata(col, at, s.table.Zone)
			if err != nil {
				return nil, err
			}
			r.metadata = append(r.metadata, m)
		}
	}
	for _, sp := range splits {
		r.splits = append(r.splits, givenSplit{sp.Number, sp.From.Partition.ID, sp.From.Offset, min(sp.End, s.end(sp.From.Partition.ID))})
	}
	var err error
	r.decoder, err = s.format.NewDecoder(cfg)
	return r, err
}

type givenSplit struct {
	number, partition int32
	next, end         int64
}

// givenReader reads one split a batch, in turn.
type givenReader struct {
	s        *givenSource
	schema   *batch.Schema
	decoder  format.Decoder
	metadata []metadata
	a        *format.Appender
	splits   []givenSplit
	turn     int
	told     int // splits of which the position was given
}

// Next implements connector.Reader.
func (r *givenReader) Next(_ context.Context, b *batch.Batch, maxRows, _ int) error {
	r.a.Begin(b, r.schema)
	if r.s.given.step > 0 && r.told < len(r.splits) {
		// The step before ended with a stop. A partition holds what is behind it back
		// until it says again how far it is, which one that is quiet now would not do.
		sp := &r.splits[r.told]
		r.told++
		r.a.BeginRun(sp.number, sp.next)
		r.a.EndRun(sp.next, 0)
		r.a.Finish()
		return nil
	}
	for range r.splits {
		sp := &r.splits[r.turn]
		r.turn = (r.turn + 1) % len(r.splits)
		end := min(sp.end, r.s.given.there(r.s.parts[sp.partition]))
		if sp.next >= end {
			continue
		}
		r.a.BeginRun(sp.number, sp.next)
		var logTime int64
		for first := true; sp.next < end && (first || r.a.Rows() < maxRows); first = false {
			rec := &r.s.parts[sp.partition][sp.next]
			logTime = max(logTime, rec.timestamp)
			for range r.decoder.Decode(rec.value, sp.next, r.a) {
				for i := range r.metadata {
					r.metadata[i].append(r.a.Column(r.metadata[i].column), r.s.topic, rec, sp.next)
				}
			}
			sp.next++
		}
		r.a.EndRun(sp.next, logTime)
		r.a.Finish()
		return nil
	}
	r.a.Finish()
	return r.s.given.over(r.s.table.Name, r.splits)
}

func (r *givenReader) split(number int32) *givenSplit {
	for i := range r.splits {
		if r.splits[i].number == number {
			return &r.splits[i]
		}
	}
	return nil
}

// Raw implements connector.Reader.
func (r *givenReader) Raw(number int32, offset int64) (connector.RawRecord, bool) {
	sp := r.split(number)
	if sp == nil || offset < 0 || offset >= sp.end {
		return connector.RawRecord{}, false
	}
	rec := &r.s.parts[sp.partition][offset]
	return connector.RawRecord{Value: rec.value, TimestampMillis: rec.timestamp}, true
}

// LogEnd implements connector.Reader.
func (r *givenReader) LogEnd(number int32) int64 {
	if sp := r.split(number); sp != nil {
		return sp.end
	}
	return 0
}

// Release implements connector.Reader.
func (r *givenReader) Release() {}

// Close implements connector.Reader.
func (r *givenReader) Close() error { return nil }

// metadata fills a metadata column.
type metadata struct {
	column int
	key    string
	wide   bool  // BIGINT for a key that is an INT
	scale  int64 // units of the column in a millisecond
	zone   *time.Location
}

// newMetadata refuses what a given record does not have.
func newMetadata(col connector.Column, at int, zone *time.Location) (metadata, error) {
	m := metadata{column: at, key: col.Metadata, wide: col.Type.Kind == types.BigInt}
	switch col.Metadata {
	case "", "topic", "partition", "offset", "timestamp-type", "leader-epoch", "headers":
	case "timestamp":
		m.scale = max(col.Type.UnitsPerSecond()/1000, 1)
		if col.Type.Kind == types.Timestamp {
			m.zone = zone
		}
	default:
		return m, fmt.Errorf("not_yet: the metadata %q of a given row", col.Metadata)
	}
	return m, nil
}

func (m *metadata) append(v *batch.Vec, topic string, rec *givenRecord, offset int64) {
	switch m.key {
	case "topic":
		format.AppendString(v, topic)
	case "partition":
		m.int(v, rec.partition)
	case "offset":
		format.AppendInt64(v, offset)
	case "timestamp":
		ms := rec.timestamp
		if m.zone != nil {
			_, seconds := time.UnixMilli(ms).In(m.zone).Zone()
			ms += int64(seconds) * 1000
		}
		format.AppendInt64(v, ms*m.scale)
	case "timestamp-type":
		format.AppendString(v, "CreateTime")
	case "leader-epoch":
		m.int(v, 0)
	case "headers":
		for _, h := range rec.headers {
			format.AppendString(v.Children[0], h.key)
			if h.value == nil {
				format.AppendNull(v.Children[1])
			} else {
				format.AppendBytes(v.Children[1], h.value)
			}
		}
		format.CloseList(v)
	}
}

func (m *metadata) int(v *batch.Vec, x int32) {
	if m.wide {
		format.AppendInt64(v, int64(x))
	} else {
		format.AppendInt32(v, x)
	}
}
