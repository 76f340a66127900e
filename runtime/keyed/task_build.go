package keyed

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/exchange"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/state"
)

// newTask makes a subtask with its operators, without state.
func newTask(r *Stages, st *stagePlan, number, subtask int, inbox *exchange.Inbox) (*task, error) {
	t := &task{r: r, st: st, number: number, subtask: subtask, inbox: inbox,
		ectx:   expr.NewContext(r.zone, uint64(number)),
		states: map[graph.NodeID]operator.Keyed{}, results: map[graph.NodeID]*operator.Results{},
		plain: map[graph.NodeID]operator.Operator{}, rows: map[graph.NodeID]*operator.Rows{},
		sinks: map[graph.NodeID]*sinkPart{}, senders: map[graph.NodeID][]*exchange.Sender{},
		counts: map[connector.UUID]*emitted{}, watermark: batch.NoWatermark}
	t.fired.Store(batch.NoWatermark)
	t.spill = r.spillStore(number)
	for _, id := range st.nodes {
		if err := t.add(id); err != nil {
			return nil, fmt.Errorf("%s: %w", st.name, err)
		}
	}
	return t, nil
}

// add makes the operator of a node.
func (t *task) add(id graph.NodeID) error {
	job := t.r.job
	n := job.Nodes[id]
	var in *batch.Schema
	if len(n.Inputs) > 0 {
		in = job.Nodes[n.Inputs[0]].Schema
	}
	var err error
	var k operator.Keyed
	var p operator.Operator
	switch op := n.Op.(type) {
	case *graph.Project:
		p, err = operator.NewProject(op.Exprs, in, n.Schema)
	case *graph.Filter:
		p, err = operator.NewFilter(op.Predicate, in)
	case *graph.Unnest:
		p, err = operator.NewUnnest(op, in, n.Schema)
	case *graph.WindowAssign:
		p, err = operator.NewWindowAssign(op.Window, op.Time, in, n.Schema)
	case *graph.WindowAggregate:
		k, err = operator.NewAggregateOver(op, in, n.Schema)
	case *graph.SessionAssign:
		k, err = operator.NewSessionAssign(op, in, n.Schema)
	case *graph.Rank:
		if op.Changes {
			k, err = operator.NewTopN(op, in, n.Schema)
		} else {
			k, err = operator.NewRank(op, in, n.Schema)
		}
	case *graph.FirstRow:
		k, err = operator.NewFirstRow(op, in, n.Schema)
	case *graph.Normalize:
		k = operator.NewNormalize(op, in)
	case *graph.Over:
		if op.Changes {
			k, err = operator.NewOverChanges(op, in, n.Schema)
		} else {
			k, err = operator.NewOver(op, in, n.Schema)
		}
	case *graph.GroupAggregate:
		k, err = operator.NewGroupAggregate(op, in, n.Schema, t.subtask)
	case *graph.WideMerge:
		var schemas []*batch.Schema
		for _, i := range n.Inputs {
			schemas = append(schemas, job.Nodes[i].Schema)
		}
		var w *operator.WideMerge
		if w, err = operator.NewWideMerge(op, schemas, n.Schema); err == nil {
			w.Own(state.RangeOf(t.subtask, t.st.parallelism))
			k = w
		}
	case *graph.Join:
		k, err = operator.NewJoin(op, in, job.Nodes[n.Inputs[1]].Schema, n.Schema)
	case *graph.SetOperation:
		if op.Changes {
			k = operator.NewSetChanges(op, n.Schema)
		} else {
			k = operator.NewSetOperation(op, n.Schema)
		}
	case *graph.Sort:
		k = operator.NewSort(op, in)
	case *graph.Limit:
		k = operator.NewLimit(op)
	case *graph.Values:
		if t.subtask == 0 {
			k, err = operator.NewValues(op, n.Schema)
		}
	case *graph.Sink:
		return t.addSink(id, n)
	}
	if err != nil {
		return err
	}
	if p != nil {
		t.plain[id], t.rows[id] = p, new(operator.Rows)
	}
	if k != nil {
		t.addState(id, k)
	}
	return nil
}

func (t *task) addState(id graph.NodeID, k operator.Keyed) {
	t.states[id] = k
	if s, ok := k.(operator.Spilling); ok && t.spill != nil {
		s.SpillTo(t.spill, t.r.opts.SpillBytes)
	}
	t.order = append(t.order, id)
	t.clocked.add(id, t.r.job.Nodes[id].Op, k)
	if c, ok := k.(operator.Corrected); ok && t.r.corrections.decides(id) {
		t.corrected = append(t.corrected, correctedOp{id, c})
	}
	if a, ok := k.(operator.Aging); ok && hasTTL(t.r.job.Nodes[id].Op) {
		t.aging = append(t.aging, a)
	}
	var rows operator.Rows
	t.results[id] = &operator.Results{
		Emit: func(b *batch.Batch) error {
			rows = operator.Rows{Batch: b}
			return t.deliver(id, &rows, b)
		},
		Dead: func(b *batch.Batch, e *batch.ValueError) {
			// What is taken back died when it came.
			if !operator.TakesBack(b, e.Row) {
				t.lose(id, b, e)
			}
		},
	}
}

// hasTTL reports an operator whose state has a time to live.
func hasTTL(op graph.Op) bool {
	switch op := op.(type) {
	case *graph.GroupAggregate:
		return op.TTL > 0
	case *graph.Join:
		return op.TTL[0] > 0 || op.TTL[1] > 0
	case *graph.Rank:
		return op.TTL > 0
	case *graph.FirstRow:
		return op.TTL > 0
	case *graph.Normalize:
		return op.TTL > 0
	case *graph.Over:
		return op.TTL > 0
	case *graph.SetOperation:
		return op.TTL > 0
	}
	return false
}

func (t *task) addSink(id graph.NodeID, n *graph.Node) error {
	h, ok := t.r.env.Sinks[id]
	if !ok {
		return fmt.Errorf("BUG: the sink of table %s is not open", n.Op.(*graph.Sink).Table.Name)
	}
	scope := t.r.env.Book.Scope()
	aid := connector.ArtifactID{Job: scope.Job, Generation: scope.Generation, Table: h.Table.ID, Keyed: true,
		Subtask: t.r.writers[h.Table.ID], Epoch: t.r.env.JobEpoch}
	t.r.writers[h.Table.ID]++
	t.sinks[id] = newSinkPart(t, n, h, aid)
	return nil
}
