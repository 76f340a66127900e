package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
)

// Chain is the stateless operators between a source and its outputs.
type Chain struct {
	job     *graph.Job
	steps   []step
	outputs []graph.NodeID
	inputs  map[graph.NodeID][]graph.NodeID
	results map[graph.NodeID][]*Rows
	source  graph.NodeID
	root    Rows
	lookups []*Lookup
}

// step is a node of the chain; a node behind a union runs once for each of the
// union's parts, with memory for each.
type step struct {
	id    graph.NodeID
	ops   []Operator // one a part; nil for a union
	parts []*Rows
	in    []*Rows
}

// NewChain compiles everything that the source node feeds, up to sinks and
// exchanges. open are the tables that are looked up, by node; they may miss in a
// chain that is never evaluated.
func NewChain(job *graph.Job, source graph.NodeID, open map[graph.NodeID]connector.Lookup) (*Chain, error) {
	c := &Chain{job: job, source: source, results: map[graph.NodeID][]*Rows{}, inputs: map[graph.NodeID][]graph.NodeID{}}
	parts := map[graph.NodeID]int{source: 1}
	for id := source + 1; int(id) < len(job.Nodes); id++ {
		n := job.Nodes[id]
		count := 0
		for _, in := range n.Inputs {
			if parts[in] > 0 {
				count += parts[in]
				c.inputs[id] = append(c.inputs[id], in)
			}
		}
		if count == 0 {
			continue
		}
		switch n.Op.(type) {
		case *graph.Sink, *graph.Exchange:
			c.outputs = append(c.outputs, id)
			continue
		}
		s := step{id: id}
		if _, ok := n.Op.(*graph.Union); !ok {
			for range count {
				op, err := compile(job, n, open[id])
				if err != nil {
					return nil, err
				}
				if l, ok := op.(*Lookup); ok {
					c.lookups = append(c.lookups, l)
				}
				s.ops = append(s.ops, op)
				s.parts = append(s.parts, new(Rows))
			}
		}
		parts[id] = count
		c.steps = append(c.steps, s)
	}
	return c, nil
}

func compile(job *graph.Job, n *graph.Node, open connector.Lookup) (Operator, error) {
	in := job.Nodes[n.Inputs[0]].Schema
	switch op := n.Op.(type) {
	case *graph.Project:
		return NewProject(op.Exprs, in, n.Schema)
	case *graph.Filter:
		return NewFilter(op.Predicate, in)
	case *graph.Unnest:
		return NewUnnest(op, in, n.Schema)
	case *graph.Lookup:
		return NewLookup(op, open, in, n.Schema)
	case *graph.WindowAssign:
		return NewWindowAssign(op.Window, op.Time, in, n.Schema)
	}
	return nil, fmt.Errorf("%s cannot run inside a lane", graph.OpName(n.Op))
}

// Widens reports that a row may become many.
func (c *Chain) Widens() bool {
	return slices.ContainsFunc(c.steps, func(s step) bool {
		return slices.ContainsFunc(s.ops, func(op Operator) bool { _, ok := op.(*Unnest); return ok })
	})
}

// Widest is the most rows that an operator made of the batch last evaluated.
func (c *Chain) Widest() int {
	most := 0
	for i := range c.steps {
		for _, r := range c.steps[i].parts {
			if r.Batch != nil {
				most = max(most, r.Batch.Len)
			}
		}
	}
	return most
}

// Outputs are the sink and exchange nodes that the chain feeds, ascending.
func (c *Chain) Outputs() []graph.NodeID { return c.outputs }

// Wait sets how the chain waits for tables that it looks up: wait calls f, which may
// block until the context that it gets ends, and returns its error. Without it the
// chain waits in Eval, and for ever.
func (c *Chain) Wait(wait func(f func(context.Context) error) error) {
	for _, l := range c.lookups {
		l.wait = wait
	}
}

// Eval computes all results of a source batch over the rows of sel (nil: all). An
// error is of a table that could not be looked up: there are no results then, and
// the same rows are to be tried again.
func (c *Chain) Eval(ctx *expr.Context, b *batch.Batch, sel batch.Sel) error {
	c.root = Rows{Batch: b, Sel: sel}
	c.results[c.source] = append(c.results[c.source][:0], &c.root)
	for i := range c.steps {
		s := &c.steps[i]
		s.in = c.collect(s.id, s.in[:0])
		if s.ops == nil {
			c.results[s.id] = s.in
			continue
		}
		for k, r := range s.in {
			s.ops[k].Eval(ctx, r, s.parts[k])
			if err := s.parts[k].Err; err != nil {
				return err
			}
		}
		c.results[s.id] = s.parts
	}
	return nil
}

// Result is what an output node gets of the batch last evaluated: one part for
// each way there.
func (c *Chain) Result(output graph.NodeID, parts []*Rows) []*Rows { return c.collect(output, parts) }

func (c *Chain) collect(id graph.NodeID, parts []*Rows) []*Rows {
	for _, in := range c.inputs[id] {
		parts = append(parts, c.results[in]...)
	}
	return parts
}
