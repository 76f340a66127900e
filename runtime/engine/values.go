package engine

import (
	"context"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// withValues replaces VALUES by sources of literal rows, so that they are read
// like any bounded input: a topic of one partition whose offsets count the rows.
func withValues(job *graph.Job) *graph.Job {
	out := *job
	out.Nodes = append([]*graph.Node(nil), job.Nodes...)
	for i, n := range out.Nodes {
		op, ok := n.Op.(*graph.Values)
		if !ok {
			continue
		}
		v := &values{rows: op.Rows, schema: n.Schema, name: fmt.Sprintf("VALUES %d", n.ID)}
		if job.Zone != nil {
			// Checked by the start; a zone that does not load is refused there.
			v.zone, _ = types.LoadZone(job.Zone.String())
		}
		src := &graph.Source{Table: &connector.Table{Name: v.name}, Connector: v}
		for c, f := range n.Schema.Fields {
			src.Table.Columns = append(src.Table.Columns, connector.Column{Field: f})
			src.Columns = append(src.Columns, c)
		}
		node := *n
		node.Op = src
		out.Nodes[i] = &node
	}
	return &out
}

// values is literal rows as a connector, a source and a reader.
type values struct {
	rows   [][]expr.Expr
	schema *batch.Schema
	name   string
	zone   *types.Zone
}

func (v *values) Spec() *connector.Spec {
	return &connector.Spec{Name: "values", Source: true, Bounded: true}
}

func (v *values) OpenSource(context.Context, *connector.Table) (connector.Source, error) {
	return v, nil
}

// Partitions names the topic by its rows: other rows are other input.
func (v *values) Partitions(context.Context) ([]connector.Partition, error) {
	h := xxhash.New()
	for _, row := range v.rows {
		for _, e := range row {
			fmt.Fprintf(h, "%s\n", e)
		}
	}
	p := connector.Partition{Topic: v.name}
	copy(p.TopicID[:], fmt.Sprintf("%016x", h.Sum64()))
	return []connector.Partition{p}, nil
}

func (v *values) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i := range parts {
		out[i].Partition = parts[i]
	}
	return out, nil
}

func (v *values) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i := range out {
		out[i] = int64(len(v.rows))
	}
	return out, nil
}

func (v *values) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	return make([]error, len(saved)), nil
}

func (v *values) Open(_ context.Context, splits []connector.Split, columns []int, _ func()) (connector.Reader, error) {
	r := &valuesReader{v: v, split: splits[0], columns: columns, ctx: expr.NewContext(v.zone, 0)}
	for _, row := range v.rows {
		exprs := make([]expr.Expr, len(columns))
		for i, c := range columns {
			exprs[i] = row[c]
		}
		p, err := expr.Compile(exprs, &batch.Schema{}, expr.Options{})
		if err != nil {
			return nil, fmt.Errorf("compiling VALUES: %w", err)
		}
		r.progs = append(r.progs, p)
	}
	return r, nil
}

func (v *values) Close() error { return nil }

type valuesReader struct {
	v       *values
	split   connector.Split
	columns []int
	progs   []*expr.Program
	ctx     *expr.Context
}

func (r *valuesReader) Next(ctx context.Context, b *batch.Batch, maxRows, _ int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at := r.split.From.Offset
	n := min(r.split.End-at, int64(maxRows))
	if n <= 0 {
		return io.EOF
	}
	s := &batch.Schema{}
	for _, c := range r.columns {
		s.Fields = append(s.Fields, r.v.schema.Fields[c])
	}
	b.Reset(s)
	for i := range b.Cols {
		b.Cols[i].Reset(s.Fields[i].Type, 0)
	}
	one := &batch.Batch{Schema: &batch.Schema{}, Len: 1}
	for _, p := range r.progs[at : at+n] {
		out := make([]batch.Vec, len(r.columns))
		p.Eval(r.ctx, one, nil, out)
		for i := range out {
			b.Cols[i].Append(&out[i], 0)
		}
	}
	for i := range b.Cols {
		b.Cols[i].PadOffsets()
	}
	b.Len = int(n)
	b.Runs = append(b.Runs, batch.Run{Partition: r.split.Number, Rows: int32(n), BaseOffset: at, EndOffset: at + n})
	r.split.From.Offset += n
	return nil
}

func (r *valuesReader) Raw(int32, int64) (connector.RawRecord, bool) {
	return connector.RawRecord{}, false
}
func (r *valuesReader) LogEnd(int32) int64 { return r.split.End }
func (r *valuesReader) Release()           {}
func (r *valuesReader) Close() error       { return nil }
