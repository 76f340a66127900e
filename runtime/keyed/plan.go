package keyed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/graph"
)

// plan is the graph behind the exchanges, cut into stages.
type plan struct {
	job    *graph.Job
	stages []*stagePlan
}

// stagePlan is one stage: what runs in each of its tasks.
type stagePlan struct {
	id          int
	name        string
	parallelism int
	nodes       []graph.NodeID // ascending
	inputs      []inputPlan
	// local are, by node, its consumers in the same stage.
	local map[graph.NodeID][]consumer
	// away are, by node, the inputs of other stages that it feeds.
	away map[graph.NodeID][]awayEdge
	// upstream are the stages that feed it, each with one channel a task.
	upstream []int
	lateness int64
}

// consumer is a node with the number of its input.
type consumer struct {
	node  graph.NodeID
	input int
}

// inputPlan is where rows enter a stage: an exchange node, which passes them to
// its consumers, or straight an operator that had to be cut off.
type inputPlan struct {
	to   consumer
	pass bool // to.node is an exchange
	keys []int
	// lanes: lanes hand over here; sources are the tables they read.
	lanes   bool
	sources []string
}

type awayEdge struct{ stage, input int }

// cut reports an edge that crosses stages, with the keys by which it does.
func cut(job *graph.Job, from, to graph.NodeID) (keys []int, crossing bool) {
	switch op := job.Nodes[to].Op.(type) {
	case *graph.Exchange:
		return op.Keys, true
	case *graph.Sort, *graph.Limit:
		ex, ok := job.Nodes[from].Op.(*graph.Exchange)
		return nil, !ok || len(ex.Keys) > 0 || ex.Parallelism > 1
	case *graph.WindowAggregate:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.Keys, !ok
	case *graph.SessionAssign:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.Keys, !ok
	case *graph.Rank:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.Keys, !ok
	case *graph.FirstRow:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.Keys, !ok
	case *graph.Normalize:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.Keys, !ok
	case *graph.Over:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.Keys, !ok
	case *graph.GroupAggregate:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.Keys, !ok
	case *graph.Join:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.ExchangeKeys(slices.Index(job.Nodes[to].Inputs, from)), !ok
	case *graph.SetOperation:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return nil, !ok
	case *graph.WideMerge:
		_, ok := job.Nodes[from].Op.(*graph.Exchange)
		return op.Branches[slices.Index(job.Nodes[to].Inputs, from)].Keys, !ok
	}
	return nil, false
}

// newPlan cuts the graph; a plan without stages is one without keyed nodes.
func newPlan(job *graph.Job) (*plan, error) {
	n := len(job.Nodes)
	keyed := make([]bool, n)
	sources := make([][]string, n) // tables that reach a node without an exchange between
	root := make([]int, n)
	for id, node := range job.Nodes {
		root[id] = id
		switch op := node.Op.(type) {
		case *graph.Source:
			sources[id] = []string{op.Table.Name}
		case *graph.Values, *graph.Exchange:
			keyed[id] = true
		}
		for _, in := range node.Inputs {
			keyed[id] = keyed[id] || keyed[in]
			if _, ex := job.Nodes[in].Op.(*graph.Exchange); !ex && !graph.Stateful(job.Nodes[in].Op) {
				sources[id] = append(sources[id], sources[in]...)
			}
		}
		slices.Sort(sources[id])
		sources[id] = slices.Compact(sources[id])
	}
	find := func(x int) int {
		for root[x] != x {
			x = root[x]
		}
		return x
	}
	for id, node := range job.Nodes {
		for _, in := range node.Inputs {
			if _, crossing := cut(job, in, graph.NodeID(id)); keyed[in] && !crossing {
				root[find(id)] = find(int(in))
			}
		}
	}
	p := &plan{job: job}
	of := map[int]*stagePlan{}
	at := func(id graph.NodeID) *stagePlan { return of[find(int(id))] }
	for id := range job.Nodes {
		if !keyed[id] {
			continue
		}
		s := at(graph.NodeID(id))
		if s == nil {
			s = &stagePlan{id: len(p.stages), local: map[graph.NodeID][]consumer{}, away: map[graph.NodeID][]awayEdge{}}
			of[find(id)] = s
			p.stages = append(p.stages, s)
		}
		s.nodes = append(s.nodes, graph.NodeID(id))
	}
	for id, node := range job.Nodes {
		if keyed[id] {
			p.connect(graph.NodeID(id), node, keyed, sources, at)
		}
	}
	for _, s := range p.stages {
		if err := p.finish(s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// connect adds the edges into a node.
func (p *plan) connect(id graph.NodeID, node *graph.Node, keyed []bool, sources [][]string, at func(graph.NodeID) *stagePlan) {
	s := at(id)
	_, exchange := node.Op.(*graph.Exchange)
	input := -1
	if exchange {
		input = len(s.inputs)
		s.inputs = append(s.inputs, inputPlan{to: consumer{id, 0}, pass: true, keys: node.Op.(*graph.Exchange).Keys,
			lanes: len(sources[id]) > 0, sources: sources[id]})
	}
	for k, in := range node.Inputs {
		if !keyed[in] {
			continue // a lane's part of a union or a sink
		}
		keys, crossing := cut(p.job, in, id)
		if !crossing {
			s.local[in] = append(s.local[in], consumer{id, k})
			continue
		}
		to := input
		if !exchange {
			to = len(s.inputs)
			s.inputs = append(s.inputs, inputPlan{to: consumer{id, k}, keys: keys})
		}
		from := at(in)
		from.away[in] = append(from.away[in], awayEdge{s.id, to})
		if !slices.Contains(s.upstream, from.id) {
			s.upstream = append(s.upstream, from.id)
		}
	}
}

// finish settles name, parallelism and lateness.
func (p *plan) finish(s *stagePlan) error {
	var paths []string
	single := false
	for _, id := range s.nodes {
		n := p.job.Nodes[id]
		switch op := n.Op.(type) {
		case *graph.Exchange:
			switch {
			case len(op.Keys) == 0 || single:
				// Rows without a key meet in one task. Where they join those of a keyed
				// exchange, as in a UNION ALL of the two, that one runs in the same task.
				single, s.parallelism = true, 1
			case s.parallelism != 0 && s.parallelism != op.Parallelism:
				return &graph.Error{Node: id, Op: "Exchange", Text: fmt.Sprintf("parallelism %d, another exchange of the stage has %d", op.Parallelism, s.parallelism)}
			default:
				s.parallelism = op.Parallelism
			}
		case *graph.WindowAggregate:
			s.lateness = max(s.lateness, op.HoldMillis())
		case *graph.SessionAssign:
			s.lateness = max(s.lateness, op.HoldMillis())
		case *graph.WideMerge:
			if op.Correct == 0 { // else its windows go out when they are over
				s.lateness = max(s.lateness, op.Lateness)
			}
		case *graph.Join:
			s.lateness = max(s.lateness, op.HoldMillis())
			if op.Streams() && op.Late.Table >= 0 && op.Late.Policy == graph.DeadLetter {
				return &graph.NotYetError{Feature: "window.late-rows into a table"}
			}
			if !p.job.Bounded && !op.Streams() && !op.Changes {
				return &graph.NotYetError{Feature: graph.OpName(n.Op) + " over unbounded input"}
			}
		case *graph.GroupAggregate:
			if !p.job.Bounded && !op.Updates {
				return &graph.NotYetError{Feature: graph.OpName(n.Op) + " over unbounded input"}
			}
		case *graph.SetOperation:
			if !p.job.Bounded && !op.Changes {
				return &graph.NotYetError{Feature: graph.OpName(n.Op) + " over unbounded input"}
			}
		case *graph.Sort, *graph.Limit:
			if !p.job.Bounded {
				return &graph.NotYetError{Feature: graph.OpName(n.Op) + " over unbounded input"}
			}
		}
		if graph.Stateful(n.Op) {
			paths = append(paths, n.Path)
		}
		if sink, ok := n.Op.(*graph.Sink); ok && len(paths) == 0 {
			paths = append(paths, sink.Table.Name)
		}
	}
	if s.parallelism == 0 {
		// Cut off without an exchange: as many tasks as in front of it, or one.
		s.parallelism = 1
		for _, in := range s.inputs {
			if len(in.keys) > 0 && len(s.upstream) > 0 {
				s.parallelism = max(s.parallelism, p.stages[s.upstream[0]].parallelism)
			}
		}
	}
	if len(paths) == 0 {
		paths = append(paths, fmt.Sprintf("stage %d", s.id))
	}
	s.name = strings.Join(paths, "+")
	for k := 2; slices.ContainsFunc(p.stages[:s.id], func(o *stagePlan) bool { return o.name == s.name }); k++ {
		s.name = fmt.Sprintf("%s #%d", strings.Join(paths, "+"), k)
	}
	return nil
}

// statePath identifies an operator's saved state.
func (p *plan) statePath(id graph.NodeID) string {
	if _, ok := p.job.Nodes[id].Op.(*graph.Values); !ok {
		return p.job.Nodes[id].Path
	}
	k := 0
	for _, n := range p.job.Nodes[:id] {
		if _, ok := n.Op.(*graph.Values); ok {
			k++
		}
	}
	return fmt.Sprintf("values %d", k)
}

// sinkBehind is the first sink that a node's rows reach, nil: none.
func (p *plan) sinkBehind(id graph.NodeID) *graph.Node {
	reach := map[graph.NodeID]bool{id: true}
	for k := id; int(k) < len(p.job.Nodes); k++ {
		n := p.job.Nodes[k]
		for _, in := range n.Inputs {
			reach[k] = reach[k] || reach[in]
		}
		if _, ok := n.Op.(*graph.Sink); ok && reach[k] {
			return n
		}
	}
	return nil
}
