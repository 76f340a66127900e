package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/rowset"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// resultConnector is the sink of queries and previews: rows go to the caller
// as JSON objects. Sealed rows are in memory, for one process and one query.
type resultConnector struct {
	// safe writes numbers that JSON readers may round as strings.
	safe bool
	// emit gets the rows of a table, in order; calls do not overlap.
	mu   sync.Mutex
	emit func(table string, fields []types.Field, rows []rowset.Change) error
}

// Spec declares the sink.
func (c *resultConnector) Spec() *connector.Spec {
	return &connector.Spec{Name: "result", Summary: "The rows of a query, for whoever asked.", Sink: true,
		Changelog: connector.All, Guarantee: "In memory: for one query."}
}

func (c *resultConnector) OpenSink(_ context.Context, t *connector.Table, _ connector.Owner) (connector.Sink, error) {
	fields := make([]types.Field, len(t.Columns))
	for i, col := range t.Columns {
		fields[i] = col.Field
	}
	options := map[string]string{"json.timestamp-format.standard": "SQL", "json.encode.decimal-as-plain-number": "true"}
	enc, err := jsonfmt.NewEncoder(format.EncoderConfig{Fields: fields, Options: format.FromMap(options)})
	if err != nil {
		return nil, fmt.Errorf("encoding results: %w", err)
	}
	if c.safe {
		enc.SafeNumbers()
	}
	return &resultSink{c: c, table: t.Name, fields: fields, enc: enc, sealed: map[string][]rowset.Change{}}, nil
}

// resultRollBytes keeps results flowing: what is open longer waits.
const resultRollBytes = 128 << 10

type resultSink struct {
	c      *resultConnector
	table  string
	fields []types.Field
	enc    format.Encoder

	mu     sync.Mutex
	sealed map[string][]rowset.Change
}

func (s *resultSink) MaxEpoch(context.Context, connector.LaneID) (uint64, error) { return 0, nil }
func (s *resultSink) Roll() connector.RollPolicy                                 { return connector.RollPolicy{Bytes: resultRollBytes} }
func (s *resultSink) Close() error                                               { return nil }

func (s *resultSink) OpenWriter(context.Context, connector.Attempt) (connector.Writer, error) {
	return &resultWriter{sink: s}, nil
}

func (s *resultSink) Publish(_ context.Context, as []connector.Artifact) []error {
	errs := make([]error, len(as))
	for i := range as {
		id := as[i].Header.ID.String()
		s.mu.Lock()
		rows := s.sealed[id]
		delete(s.sealed, id)
		s.mu.Unlock()
		s.c.mu.Lock()
		errs[i] = s.c.emit(s.table, s.fields, rows)
		s.c.mu.Unlock()
	}
	return errs
}

func (s *resultSink) Resolve(_ context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range as {
		out[i] = connector.Published
		if _, ok := s.sealed[as[i].Header.ID.String()]; ok {
			out[i] = connector.Sealed
		}
	}
	return out, nil
}

func (s *resultSink) Discard(_ context.Context, as []connector.Artifact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range as {
		delete(s.sealed, as[i].Header.ID.String())
	}
	return nil
}

// resultWriter has one bucket.
type resultWriter struct {
	sink  *resultSink
	rows  []rowset.Change
	bytes int64
}

func (w *resultWriter) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	for range n {
		out = append(out, 0)
	}
	return out, nil
}

func (w *resultWriter) Write(b *batch.Batch, sel batch.Sel, _ connector.BucketID) error {
	if sel == nil {
		for i := range b.Len {
			if err := w.row(b, i); err != nil {
				return err
			}
		}
		return nil
	}
	for _, i := range sel {
		if err := w.row(b, int(i)); err != nil {
			return err
		}
	}
	return nil
}

func (w *resultWriter) row(b *batch.Batch, i int) error {
	row, err := w.sink.enc.AppendRow(nil, b, i)
	if err != nil {
		return fmt.Errorf("writing row %d of the result: %w", len(w.rows), err)
	}
	w.rows = append(w.rows, rowset.Change{Kind: b.KindOf(i), Row: row})
	w.bytes += int64(len(row))
	return nil
}

func (w *resultWriter) Open() []connector.Bucket {
	if len(w.rows) == 0 {
		return nil
	}
	return []connector.Bucket{{Rows: int64(len(w.rows)), Bytes: w.bytes}}
}

func (w *resultWriter) HeldBytes() int64 { return w.bytes }

func (w *resultWriter) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	out := make([]connector.Artifact, 0, len(req))
	for _, r := range req {
		w.sink.mu.Lock()
		w.sink.sealed[r.Header.ID.String()] = w.rows
		w.sink.mu.Unlock()
		out = append(out, connector.Artifact{Header: r.Header, Bytes: w.bytes, Location: "result of " + w.sink.table})
		w.rows, w.bytes = nil, 0
	}
	return out, nil
}

func (w *resultWriter) Close() error { w.rows = nil; return nil }

// resultColumns are the columns for control.QueryResult.
func resultColumns(fields []types.Field) []control.Column {
	cols := make([]control.Column, len(fields))
	for i, f := range fields {
		cols[i] = control.Column{Name: f.Name, Type: f.Type.String()}
	}
	return cols
}

// changeColumn names the column that says what becomes of a row, where rows change.
func changeColumn(fields []types.Field) string {
	name := "op"
	for slices.ContainsFunc(fields, func(f types.Field) bool { return f.Name == name }) {
		name = "_" + name
	}
	return name
}

// withChange is a row behind what becomes of it.
func withChange(column string, c rowset.Change) json.RawMessage {
	out := make([]byte, 0, len(c.Row)+len(column)+8)
	out = append(append(out, `{"`...), column...)
	out = append(append(out, `":"`...), c.Kind.String()...)
	if len(c.Row) > 2 {
		return append(append(out, `",`...), c.Row[1:]...)
	}
	return append(out, `"}`...)
}
