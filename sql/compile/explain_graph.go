package compile

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/graph"
)

// graphOf describes every node of a job.
func graphOf(job *graph.Job) []GraphNode {
	out := make([]GraphNode, 0, len(job.Nodes))
	for _, n := range job.Nodes {
		g := GraphNode{ID: int(n.ID), Op: graph.OpName(n.Op), Text: textOf(job, n), Inputs: []int{}}
		for _, in := range n.Inputs {
			g.Inputs = append(g.Inputs, int(in))
		}
		g.Lane = laneOf(n, out)
		if graph.Stateful(n.Op) {
			g.State = n.Path
		}
		out = append(out, g)
	}
	return out
}

// laneOf is the source table in whose lane a node runs: that of its inputs, if they have
// one in common and no exchange is between. A table that is written is in no lane.
func laneOf(n *graph.Node, before []GraphNode) string {
	switch op := n.Op.(type) {
	case *graph.Source:
		return op.Table.Name
	case *graph.Exchange, *graph.Sink:
		return ""
	}
	lane := ""
	for i, in := range n.Inputs {
		if i > 0 && before[in].Lane != lane {
			return ""
		}
		lane = before[in].Lane
	}
	return lane
}

// textOf says what a node does.
func textOf(job *graph.Job, n *graph.Node) string {
	inputs := func(side int, cols []int) string {
		var names []string
		for _, c := range cols {
			names = append(names, job.Nodes[n.Inputs[side]].Schema.Fields[c].Name)
		}
		return strings.Join(names, ", ")
	}
	by := func(keys []int, aggregates []graph.Aggregate) string {
		var parts []string
		if len(keys) > 0 {
			parts = append(parts, "by "+inputs(0, keys))
		}
		for i := range aggregates {
			parts = append(parts, aggregates[i].Text)
		}
		return strings.Join(parts, "\n")
	}
	switch op := n.Op.(type) {
	case *graph.Source:
		return op.Table.Name
	case *graph.Sink:
		return op.Table.Name
	case *graph.Filter:
		return op.Predicate.String()
	case *graph.Project:
		var parts []string
		for i, e := range op.Exprs {
			text := e.String()
			if name := n.Schema.Fields[i].Name; name != text {
				text += " AS " + name
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, "\n")
	case *graph.Exchange:
		if len(op.Keys) == 0 {
			return "all to one task"
		}
		return fmt.Sprintf("by %s, parallelism %d", inputs(0, op.Keys), op.Parallelism)
	case *graph.Unnest:
		return op.Value.String()
	case *graph.WindowAssign:
		return windowText(op.Window)
	case *graph.WindowAggregate:
		return strings.TrimRight(windowText(op.Window)+"\n"+by(op.Keys, op.Aggregates), "\n")
	case *graph.GroupAggregate:
		return by(op.Keys, op.Aggregates)
	case *graph.SessionAssign:
		return strings.TrimRight(windowText(op.Window)+"\n"+by(op.Keys, nil), "\n")
	case *graph.Rank:
		return by(op.Keys, nil)
	case *graph.FirstRow:
		return by(op.Keys, nil)
	case *graph.Normalize:
		return by(op.Keys, nil)
	case *graph.Over:
		return by(op.Keys, nil)
	case *graph.Join:
		left, right := inputs(0, op.InputKeys(0)), inputs(1, op.InputKeys(1))
		if left == "" {
			return op.Kind.String()
		}
		return fmt.Sprintf("%s, %s = %s", op.Kind, left, right)
	}
	return ""
}

var windowNames = map[graph.WindowKind]string{graph.Tumble: "TUMBLE", graph.Hop: "HOP", graph.Cumulate: "CUMULATE", graph.Session: "SESSION"}

// windowText is a window's kind with its lengths; "" of rows that have their window.
func windowText(w graph.Window) string {
	name, ok := windowNames[w.Kind]
	if !ok {
		return ""
	}
	size := time.Duration(w.Size) * time.Millisecond
	if w.Step > 0 {
		return fmt.Sprintf("%s %v every %v", name, size, time.Duration(w.Step)*time.Millisecond)
	}
	return fmt.Sprintf("%s %v", name, size)
}
