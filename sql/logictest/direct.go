package logictest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// Direct evaluates a job in one goroutine, node by node. It has no ledger and
// no state on disk; keyed operators are evaluated once all their input is
// there, over accumulators.
type Direct struct{}

// Run implements Executor.
func (Direct) Run(ctx context.Context, job *graph.Job, o RunOptions) (*Outcome, error) {
	zone, err := rt.LoadZone(job.Zone.String())
	if err != nil {
		return nil, fmt.Errorf("session zone: %w", err)
	}
	r := &run{ctx: ctx, job: job, o: o, ec: expr.NewContext(zone, 1), sinks: map[graph.NodeID]*sinkRun{},
		inputs: map[graph.NodeID]*collected{}, out: &Outcome{}, lookups: map[graph.NodeID]connector.Lookup{}}
	defer r.closeLookups()
	if err := r.openLookups(); err != nil {
		return r.out, err
	}
	r.ec.Now = 1_700_000_000_000_000
	if r.o.BatchRows <= 0 {
		r.o.BatchRows = 1000
	}
	for _, n := range job.Nodes {
		var err error
		switch op := n.Op.(type) {
		case *graph.Source:
			err = r.source(n, op)
		case *graph.Values:
			err = r.values(n, op)
		case *graph.Sink:
			err = r.finishSink(n)
		default:
			if graph.Stateful(n.Op) {
				err = r.keyed(n)
			}
		}
		if err != nil {
			return r.out, err
		}
	}
	return r.out, nil
}

type run struct {
	ctx    context.Context
	job    *graph.Job
	o      RunOptions
	ec     *expr.Context
	sinks  map[graph.NodeID]*sinkRun
	inputs map[graph.NodeID]*collected // by exchange
	out    *Outcome
	// lookups are the tables that are looked up, open.
	lookups map[graph.NodeID]connector.Lookup
	order   int64 // rows handed to keyed stages so far
}

// collected is the rows that reached an exchange.
type collected struct {
	schema    *batch.Schema
	cols      []batch.Vec
	watermark []int64
	position  [][]byte // partition, offset, row index: sortable
	kinds     []batch.Kind
	n         int
}

func newCollected(s *batch.Schema) *collected {
	c := &collected{schema: s, cols: make([]batch.Vec, len(s.Fields))}
	for i := range c.cols {
		c.cols[i].Reset(s.Fields[i].Type, 0)
	}
	return c
}

// add appends a row without a position.
func (c *collected) add(b *batch.Batch, row int32) { c.addAt(b, row, nil) }

func (c *collected) addAt(b *batch.Batch, row int32, position []byte) {
	c.position = append(c.position, position)
	for i := range c.cols {
		c.cols[i].Append(&b.Cols[i], int(row))
	}
	w := batch.NoWatermark
	if b.Watermark != nil {
		w = b.Watermark[row]
	}
	c.watermark = append(c.watermark, w)
	c.kinds = append(c.kinds, b.KindOf(int(row)))
	c.n++
}

func (c *collected) batch() *batch.Batch {
	return &batch.Batch{Schema: c.schema, Cols: c.cols, Len: c.n, Watermark: c.watermark}
}

// source reads a table to its end through the chain behind it.
func (r *run) source(n *graph.Node, op *graph.Source) error {
	src, err := op.Connector.OpenSource(r.ctx, op.Table)
	if err != nil {
		return fmt.Errorf("opening %s: %w", op.Table.Name, err)
	}
	defer src.Close()
	parts, err := src.Partitions(r.ctx)
	if err != nil {
		return err
	}
	starts, err := src.Start(r.ctx, parts)
	if err != nil {
		return err
	}
	ends, err := src.End(r.ctx, parts)
	if err != nil {
		return err
	}
	splits := make([]connector.Split, len(parts))
	for i := range parts {
		splits[i] = connector.Split{Number: int32(i), From: starts[i], End: ends[i]}
	}
	chain, err := operator.NewChain(r.job, n.ID, r.lookups)
	if err != nil {
		return err
	}
	assign, err := watermark.NewAssigner(op.Watermark, n.Schema, len(parts))
	if err != nil {
		return err
	}
	for _, group := range r.groups(splits) {
		reader, err := src.Open(r.ctx, group, op.Columns, func() {})
		if err != nil {
			return err
		}
		if err := r.read(reader, chain, assign, r.job.Batch); err != nil {
			return errors.Join(err, reader.Close())
		}
		if err := reader.Close(); err != nil {
			return err
		}
	}
	return nil
}

// groups reads all splits side by side, or one after the other.
func (r *run) groups(splits []connector.Split) [][]connector.Split {
	if r.o.Parallelism > 1 {
		return [][]connector.Split{splits}
	}
	var out [][]connector.Split
	for _, s := range splits {
		out = append(out, []connector.Split{s})
	}
	return out
}

func (r *run) read(reader connector.Reader, chain *operator.Chain, assign *watermark.Assigner, bounded bool) error {
	var b batch.Batch
	for {
		err := reader.Next(r.ctx, &b, r.o.BatchRows, 1<<20)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		if assign.Declared() && !bounded {
			assign.Advance(r.ec, &b)
		}
		if err := r.push(chain, &b); err != nil {
			return err
		}
		reader.Release()
	}
}

// values evaluates literal rows.
func (r *run) values(n *graph.Node, op *graph.Values) error {
	chain, err := operator.NewChain(r.job, n.ID, r.lookups)
	if err != nil {
		return err
	}
	c := newCollected(n.Schema)
	one := &batch.Batch{Schema: &batch.Schema{}, Len: 1}
	for _, row := range op.Rows {
		p, err := expr.Compile(row, &batch.Schema{}, expr.Options{NoSharing: r.o.NoSharing})
		if err != nil {
			return err
		}
		out := make([]batch.Vec, len(row))
		p.Eval(r.ec, one, nil, out)
		c.add(&batch.Batch{Schema: n.Schema, Cols: out, Len: 1}, 0)
	}
	return r.push(chain, c.batch())
}

// push runs a batch through a chain into sinks and exchanges.
func (r *run) push(chain *operator.Chain, b *batch.Batch) error {
	if err := chain.Eval(r.ec, b, nil); err != nil {
		return err
	}
	for _, id := range chain.Outputs() {
		n := r.job.Nodes[id]
		parts := chain.Result(id, nil)
		if _, ok := n.Op.(*graph.Sink); ok {
			if err := r.sink(n, parts); err != nil {
				return err
			}
			continue
		}
		c := r.inputs[id]
		if c == nil {
			c = newCollected(n.Schema)
			r.inputs[id] = c
		}
		for _, p := range parts {
			if err := r.failed(r.policyBehind(id), n, p.Failed); err != nil {
				return err
			}
			for _, row := range r.rows(p) {
				c.addAt(p.Batch, row, r.position(b, p.Source(row)))
			}
		}
	}
	return nil
}

// position is where a row of a source batch comes from, sortable; rows of
// keyed operators have none, they come in order.
func (r *run) position(b *batch.Batch, row int32) []byte {
	for i := range b.Runs {
		run := &b.Runs[i]
		if row >= run.FirstRow && row < run.FirstRow+run.Rows {
			pos := binary.BigEndian.AppendUint32(nil, uint32(run.Partition))
			pos = binary.BigEndian.AppendUint64(pos, uint64(b.Offset(run, int(row))))
			return binary.BigEndian.AppendUint32(pos, uint32(b.Index(int(row))))
		}
	}
	r.order++
	return binary.BigEndian.AppendUint64(nil, uint64(r.order))
}

func (r *run) rows(p *operator.Rows) batch.Sel {
	if p.Sel != nil {
		return p.Sel
	}
	out := make(batch.Sel, p.Batch.Len)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}
