package operator

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
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
// exchanges.
func NewChain(job *graph.Job, source graph.NodeID) (*Chain, error) {
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
				op, err := compile(job, n)
				if err != nil {
					return nil, err
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

func compile(job *graph.Job, n *graph.Node) (Operator, error) {
	in := job.Nodes[n.Inputs[0]].Schema
	switch op := n.Op.(type) {
	case *graph.Project:
		return NewProject(op.Exprs, in, n.Schema)
	case *graph.Filter:
		return NewFilter(op.Predicate, in)
	case *graph.Unnest:
		return NewUnnest(op.Value, op.Outer, op.Ordinality, in, n.Schema)
	case *graph.WindowAssign:
		return NewWindowAssign(op.Window, op.Time, in, n.Schema)
	}
	return nil, fmt.Errorf("%s cannot run inside a lane", graph.OpName(n.Op))
}

// Outputs are the sink and exchange nodes that the chain feeds, ascending.
func (c *Chain) Outputs() []graph.NodeID { return c.outputs }

// Eval computes all results of a source batch over the rows of sel (nil: all).
func (c *Chain) Eval(ctx *expr.Context, b *batch.Batch, sel batch.Sel) {
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
		}
		c.results[s.id] = s.parts
	}
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
