package sqltest

import (
	"context"
	"io"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	rt "github.com/millrace/millrace/runtime/types"
)

// Given is the connector "given": tables of rows that tests put in by INSERT
// and read by SELECT. Rows go to partitions in turn. It always ends.
type Given struct {
	mu     sync.Mutex
	tables map[string]*Rows
	// failing is how many lookups fail.
	failing int
}

// NewGiven returns a connector without rows.
func NewGiven() *Given { return &Given{tables: map[string]*Rows{}} }

// Spec implements connector.Connector.
func (g *Given) Spec() *connector.Spec {
	return &connector.Spec{
		Name: "given", Source: true, Sink: true, Lookup: true, Bounded: true, Changelog: connector.All,
		Options: []connector.Option{
			{Key: "partitions", Type: connector.OptInt, Default: "1", Min: 1, Max: 64},
			{Key: "sink.mode", Type: connector.OptEnum, Enum: []string{"append", "all"}, Default: "all"},
		},
		Metadata: []connector.MetadataColumn{{Key: "partition", Type: "INT NOT NULL"}, {Key: "offset", Type: "BIGINT NOT NULL"}},
	}
}

// Rows returns the store of a table, made on first use.
func (g *Given) Rows(table string) *Rows {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.tables[table]
	if r == nil {
		r = &Rows{}
		g.tables[table] = r
	}
	return r
}

// Clear empties a table.
func (g *Given) Clear(table string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tables, table)
}

// OpenSource implements connector.SourceConnector.
func (g *Given) OpenSource(_ context.Context, t *connector.Table) (connector.Source, error) {
	rows := g.Rows(t.Name)
	rows.mu.Lock()
	defer rows.mu.Unlock()
	s := &givenSource{table: t, parts: int(t.Options.Int("partitions"))}
	if rows.cols != nil {
		s.cols = make([]batch.Vec, len(rows.cols))
		for i := range rows.cols {
			s.cols[i] = *rows.cols[i].Clone()
		}
		s.n = rows.n
	}
	return s, nil
}

// OpenSink implements connector.SinkConnector.
func (g *Given) OpenSink(_ context.Context, t *connector.Table, _ connector.Owner) (connector.Sink, error) {
	return &memSink{rows: g.Rows(t.Name), table: t}, nil
}

// givenSource reads a snapshot of a table. Row i is offset i / parts of
// partition i % parts.
type givenSource struct {
	table *connector.Table
	parts int
	cols  []batch.Vec  // the physical columns
	kinds []batch.Kind // by row; nil: all are new
	n     int
}

func (s *givenSource) topic() (id connector.UUID) {
	copy(id[:], s.table.Name)
	return id
}

// Partitions implements connector.Source.
func (s *givenSource) Partitions(context.Context) ([]connector.Partition, error) {
	out := make([]connector.Partition, s.parts)
	for i := range out {
		out[i] = connector.Partition{TopicID: s.topic(), Topic: s.table.Name, ID: int32(i)}
	}
	return out, nil
}

// Start implements connector.Source.
func (s *givenSource) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i := range out {
		out[i].Partition = parts[i]
	}
	return out, nil
}

func (s *givenSource) end(part int32) int64 {
	return int64((s.n - int(part) + s.parts - 1) / s.parts)
}

// End implements connector.Source.
func (s *givenSource) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i := range out {
		out[i] = s.end(parts[i].ID)
	}
	return out, nil
}

// Check implements connector.Source.
func (s *givenSource) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	return make([]error, len(saved)), nil
}

// Open implements connector.Source.
func (s *givenSource) Open(_ context.Context, splits []connector.Split, columns []int, _ func()) (connector.Reader, error) {
	r := &givenReader{s: s, columns: columns, splits: splits, schema: s.table.Schema(columns)}
	for _, sp := range splits {
		r.next = append(r.next, sp.From.Offset)
	}
	return r, nil
}

// Close implements connector.Source.
func (s *givenSource) Close() error { return nil }

type givenReader struct {
	s       *givenSource
	columns []int
	schema  *batch.Schema
	splits  []connector.Split
	next    []int64
	turn    int
}

// Next implements connector.Reader: one split a batch, in turn.
func (r *givenReader) Next(_ context.Context, b *batch.Batch, maxRows, _ int) error {
	b.Reset(r.schema)
	for range r.splits {
		i := r.turn
		r.turn = (r.turn + 1) % len(r.splits)
		sp := r.splits[i]
		part := sp.From.Partition.ID
		end := min(sp.End, r.s.end(part))
		if r.next[i] >= end {
			continue
		}
		n := min(int(end-r.next[i]), max(maxRows, 1))
		sel := make(batch.Sel, n)
		for k := range sel {
			sel[k] = int32((int(r.next[i])+k)*r.s.parts + int(part))
		}
		r.fill(b, sel, part, r.next[i])
		b.Len = n
		if r.s.kinds != nil {
			b.Kinds = append(b.Kinds[:0], r.s.kinds[sel[0]:int(sel[0])+n]...) // there is one partition
		}
		b.Runs = append(b.Runs, batch.Run{Partition: sp.Number, Rows: int32(n), BaseOffset: r.next[i], EndOffset: r.next[i] + int64(n)})
		r.next[i] += int64(n)
		return nil
	}
	return io.EOF
}

// fill copies the rows of sel; metadata columns are computed.
func (r *givenReader) fill(b *batch.Batch, sel batch.Sel, part int32, first int64) {
	physical := map[int]int{}
	for i, c := range r.s.table.Columns {
		if c.Metadata == "" {
			physical[i] = len(physical)
		}
	}
	for k, at := range r.columns {
		c := &r.s.table.Columns[at]
		v := &b.Cols[k]
		switch c.Metadata {
		case "":
			v.Take(&r.s.cols[physical[at]], sel)
			v.Type = c.Type
		case "partition":
			v.Reset(c.Type, len(sel))
			for i := range sel {
				v.SetInt64(i, int64(part))
			}
		case "offset":
			v.Reset(c.Type, len(sel))
			for i := range sel {
				v.SetInt64(i, first+int64(i))
			}
		}
	}
}

// Raw implements connector.Reader; given rows have no record.
func (r *givenReader) Raw(int32, int64) (connector.RawRecord, bool) {
	return connector.RawRecord{Value: []byte("{}")}, true
}

// LogEnd implements connector.Reader.
func (r *givenReader) LogEnd(split int32) int64 {
	for i := range r.splits {
		if r.splits[i].Number == split {
			return r.s.end(r.splits[i].From.Partition.ID)
		}
	}
	return 0
}

// Release implements connector.Reader.
func (r *givenReader) Release() {}

// Close implements connector.Reader.
func (r *givenReader) Close() error { return nil }

// Rows are rows in memory.
type Rows struct {
	mu     sync.Mutex
	schema *batch.Schema
	cols   []batch.Vec
	kinds  []batch.Kind
	n      int
	parts  parts
}

// Len is the number of rows.
func (r *Rows) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// Text is each row as text: values joined by '|', with '|', line ends and
// backslashes escaped. TIMESTAMP_LTZ is written in zone. Of rows that changed it
// is what is left in the end; a row taken back that never came stands with "-".
func (r *Rows) Text(zone *rt.Zone) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.lines(zone)
	gone := map[string]int{}
	for i, k := range r.kinds {
		if k == batch.UpdateBefore || k == batch.Delete {
			gone[out[i]]++
		}
	}
	if len(gone) == 0 {
		return out
	}
	var left []string
	for i, k := range r.kinds {
		switch {
		case k == batch.UpdateBefore || k == batch.Delete:
		case gone[out[i]] > 0:
			gone[out[i]]--
		default:
			left = append(left, out[i])
		}
	}
	for line, n := range gone {
		for range n {
			left = append(left, "-"+line)
		}
	}
	return left
}

func (r *Rows) lines(zone *rt.Zone) []string {
	out := make([]string, r.n)
	for i := range out {
		var line []byte
		for k := range r.cols {
			if k > 0 {
				line = append(line, '|')
			}
			line = appendEscaped(line, batch.AppendText(nil, &r.cols[k], i, zone))
		}
		out[i] = string(line)
	}
	return out
}

func appendEscaped(dst, s []byte) []byte {
	for _, c := range s {
		switch c {
		case '|', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// append adds the selected rows of a batch.
func (r *Rows) append(b *batch.Batch, sel batch.Sel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cols == nil {
		r.schema = b.Schema
		r.cols = make([]batch.Vec, len(b.Schema.Fields))
		for i := range r.cols {
			r.cols[i].Reset(b.Schema.Fields[i].Type, 0)
		}
	}
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	for k := range r.cols {
		for i := range n {
			row := i
			if sel != nil {
				row = int(sel[i])
			}
			r.cols[k].Append(&b.Cols[k], row)
		}
	}
	for i := range n {
		kind := batch.Insert
		switch {
		case b.Kinds == nil:
		case sel != nil:
			kind = b.Kinds[sel[i]]
		default:
			kind = b.Kinds[i]
		}
		r.kinds = append(r.kinds, kind)
	}
	r.n += n
}
