package jobtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/jobs/rowset"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/types"
)

// collector is the sink of every table: it keeps the published rows.
type collector struct {
	mu     sync.Mutex
	tables map[string]*collected
}

// collected is the rows of a table, as JSON objects: where they change, those that
// the changes leave.
type collected struct {
	fields []types.Field
	rows   rowset.Set
	sealed map[string][]rowset.Change
}

// Spec implements connector.Connector.
func (c *collector) Spec() *connector.Spec {
	return &connector.Spec{Name: "collected", Summary: "The rows of a test.", Sink: true, Changelog: connector.All}
}

// OpenSink implements connector.SinkConnector.
func (c *collector) OpenSink(_ context.Context, t *connector.Table, _ connector.Owner) (connector.Sink, error) {
	fields := t.Schema(nil).Fields
	enc, err := newEncoder(fields)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	tab := c.tables[t.Name]
	if tab == nil {
		tab = &collected{fields: fields, sealed: map[string][]rowset.Change{}}
		c.tables[t.Name] = tab
	}
	return &collectSink{c, tab, t.Name, enc}, nil
}

// newEncoder writes rows in the form in which they are compared.
func newEncoder(fields []types.Field) (format.Encoder, error) {
	return jsonfmt.NewEncoder(format.EncoderConfig{Fields: fields,
		Options: format.FromMap(map[string]string{"json.timestamp-format.standard": "SQL", "json.encode.decimal-as-plain-number": "true",
			"json.map-null-key.mode": "LITERAL"})})
}

type collectSink struct {
	c    *collector
	t    *collected
	name string
	enc  format.Encoder
}

func (s *collectSink) MaxEpoch(context.Context, connector.LaneID) (uint64, error) { return 0, nil }
func (s *collectSink) Roll() connector.RollPolicy                                 { return connector.RollPolicy{} }
func (s *collectSink) Close() error                                               { return nil }

func (s *collectSink) OpenWriter(context.Context, connector.Attempt) (connector.Writer, error) {
	return &collectWriter{s: s}, nil
}

func (s *collectSink) Publish(_ context.Context, as []connector.Artifact) []error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for i := range as {
		id := as[i].Header.ID.String()
		s.t.rows.Apply(s.t.sealed[id]...)
		delete(s.t.sealed, id)
	}
	return make([]error, len(as))
}

func (s *collectSink) Resolve(_ context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	out := make([]connector.Outcome, len(as))
	for i := range as {
		out[i] = connector.Published
		if _, ok := s.t.sealed[as[i].Header.ID.String()]; ok {
			out[i] = connector.Sealed
		}
	}
	return out, nil
}

func (s *collectSink) Discard(_ context.Context, as []connector.Artifact) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for i := range as {
		delete(s.t.sealed, as[i].Header.ID.String())
	}
	return nil
}

// collectWriter has one bucket.
type collectWriter struct {
	s     *collectSink
	rows  []rowset.Change
	bytes int64
}

func (w *collectWriter) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	return append(out, make([]connector.BucketID, n)...), nil
}

func (w *collectWriter) Write(b *batch.Batch, sel batch.Sel, _ connector.BucketID) error {
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	for k := range n {
		i := k
		if sel != nil {
			i = int(sel[k])
		}
		row, err := w.s.enc.AppendRow(nil, b, i)
		if err != nil {
			return fmt.Errorf("table %s: %w", w.s.name, err)
		}
		w.rows = append(w.rows, rowset.Change{Kind: b.KindOf(i), Row: row})
		w.bytes += int64(len(row))
	}
	return nil
}

func (w *collectWriter) Open() []connector.Bucket {
	if len(w.rows) == 0 {
		return nil
	}
	return []connector.Bucket{{Rows: int64(len(w.rows)), Bytes: w.bytes}}
}

func (w *collectWriter) HeldBytes() int64 { return w.bytes }

func (w *collectWriter) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	w.s.c.mu.Lock()
	defer w.s.c.mu.Unlock()
	out := make([]connector.Artifact, 0, len(req))
	for _, r := range req {
		w.s.t.sealed[r.Header.ID.String()] = w.rows
		out = append(out, connector.Artifact{Header: r.Header, Bytes: w.bytes, Location: "rows of " + w.s.name})
		w.rows, w.bytes = nil, 0
	}
	return out, nil
}

func (w *collectWriter) Close() error { w.rows = nil; return nil }

// deadRow is a row that died.
type deadRow struct {
	// table is the output's name; tables are the sink tables that it is for.
	table                   string
	tables                  []string
	reason, column, message string
	topic                   string
	partition               int32
	offset                  int64
}

// deadLetters keeps what dies. Tests are too small for a lane to start again
// from anywhere but the beginning, so nothing of it is ever asked for.
type deadLetters struct {
	mu   sync.Mutex
	rows []deadRow
	// behind are the sink tables behind each exchange, by its name.
	behind map[string][]string
}

var _ lane.DeadLetters = (*deadLetters)(nil)

func (d *deadLetters) Write(_ context.Context, entries []lane.DeadEntry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		row := deadRow{table: e.TableName, tables: d.behind[e.TableName], reason: string(e.Reason), column: e.Column, message: e.Message,
			topic: e.Topic, partition: e.Partition, offset: e.Offset}
		if row.tables == nil {
			row.tables = []string{e.TableName}
		}
		for range max(len(e.Rows), 1) {
			d.rows = append(d.rows, row)
		}
	}
	return nil
}

func (d *deadLetters) Durable(context.Context, connector.UUID, connector.UUID, map[int32]int64) ([]lane.DeadRecord, error) {
	return nil, nil
}

// behindExchanges are the sink tables behind each exchange of a graph, by the
// name that the engine gives the exchange as an output.
func behindExchanges(job *graph.Job) map[string][]string {
	tables := make([][]string, len(job.Nodes)) // behind each node
	for i := len(job.Nodes) - 1; i >= 0; i-- {
		n := job.Nodes[i]
		if s, ok := n.Op.(*graph.Sink); ok {
			tables[i] = append(tables[i], s.Table.Name)
		}
		slices.Sort(tables[i])
		tables[i] = slices.Compact(tables[i])
		for _, in := range n.Inputs {
			tables[in] = append(tables[in], tables[i]...)
		}
	}
	out := map[string][]string{}
	for _, n := range job.Nodes {
		for at, in := range n.Inputs {
			if _, ok := job.Nodes[in].Op.(*graph.Exchange); !ok {
				continue
			}
			name := "exchange " + n.Path
			if label := graph.InputLabel(n.Op, at); label != "" {
				name += "[" + label + "]"
			}
			out[name] = tables[in]
		}
	}
	return out
}

// all are the rows in an order that does not depend on the run.
func (d *deadLetters) all() []deadRow {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(d.rows)
	slices.SortFunc(out, func(a, b deadRow) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition),
			cmp.Compare(a.offset, b.offset), cmp.Compare(a.reason, b.reason), cmp.Compare(a.column, b.column))
	})
	return out
}
