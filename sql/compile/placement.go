package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/lower"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// explainPlacement answers EXPLAIN PLACEMENT: which parts of a statement's job run in
// lanes, and which in keyed stages of how many tasks.
func (c *compiler) explainPlacement(s *syntax.Explain, nodes []plan.Node) {
	var job *graph.Job
	var err error
	mode := modeOf{c.binder.Batch, c.binder.Zone}
	if _, query := s.Stmt.(*syntax.QueryStmt); query {
		if c.opts.ResultSink == nil {
			c.diags.Errorf(diag.CodeStatementInJob, s.Stmt.Span(), "a query in a job file is placed nowhere: no one reads it").
				WithHelp("EXPLAIN PLACEMENT INSERT INTO ... SELECT ...")
			return
		}
		job, err = c.lowerQuery(nodes[0], mode, c.opts.ResultSink)
	} else {
		inserts := make([]*plan.Insert, len(nodes))
		for i := range nodes {
			inserts[i] = c.optimize(nodes[i]).(*plan.Insert)
		}
		job, err = lower.Job(inserts, c.lowerOptions(mode))
	}
	if err != nil {
		c.lowerError(err, s.Span())
		return
	}
	var b strings.Builder
	b.WriteString("== Placement ==\n")
	printPlacement(&b, job)
	c.add(Statement{Kind: KindText, AST: s, Result: &Result{Columns: []string{"placement"}, Rows: [][]string{{b.String()}}}})
}

// printPlacement writes the nodes of a job by where they run.
func printPlacement(b *strings.Builder, job *graph.Job) {
	inLanes := map[graph.NodeID]bool{}
	for _, n := range job.Nodes {
		var name string
		switch op := n.Op.(type) {
		case *graph.Source:
			name = op.Table.Name
		case *graph.Values:
			name = "VALUES"
		default:
			continue
		}
		fmt.Fprintf(b, "lane %s\n", name)
		// Lanes of one source do not wait for those of another: what several feed is
		// in each of them.
		lane := map[graph.NodeID]bool{n.ID: true}
		for _, m := range job.Nodes[n.ID:] {
			if lane[m.ID] || slices.ContainsFunc(m.Inputs, func(in graph.NodeID) bool { return lane[in] && !isExchange(job.Nodes[in]) }) {
				lane[m.ID], inLanes[m.ID] = true, true
				b.WriteString("  ")
				printNode(b, m)
			}
		}
	}
	for _, stage := range stagesOf(job, inLanes) {
		first := stage[0]
		ex, _ := job.Nodes[first.Inputs[0]].Op.(*graph.Exchange)
		fmt.Fprintf(b, "keyed stage %s: ", stagePath(stage))
		if ex.Parallelism == 1 {
			b.WriteString("1 task")
		} else {
			fmt.Fprintf(b, "%d tasks", ex.Parallelism)
		}
		if len(ex.Keys) > 0 {
			names := make([]string, len(ex.Keys))
			for i, k := range ex.Keys {
				names[i] = job.Nodes[first.Inputs[0]].Schema.Fields[k].Name
			}
			fmt.Fprintf(b, ", by %s", strings.Join(names, ", "))
		}
		if slices.ContainsFunc(stage, func(n *graph.Node) bool { return graph.Spills(n.Op) }) {
			b.WriteString(", to disk beyond slot.state-memory")
		}
		b.WriteByte('\n')
		for _, n := range stage {
			b.WriteString("  ")
			printNode(b, n)
		}
	}
}

func isExchange(n *graph.Node) bool {
	_, ok := n.Op.(*graph.Exchange)
	return ok
}

// stagePath is the state path of a stage's first operator that has one.
func stagePath(stage []*graph.Node) string {
	for _, n := range stage {
		if n.Path != "" {
			return n.Path
		}
	}
	return graph.OpName(stage[0].Op)
}

// stagesOf are the nodes behind exchanges, by stage: what is connected without an
// exchange between is one.
func stagesOf(job *graph.Job, inLanes map[graph.NodeID]bool) [][]*graph.Node {
	of := map[graph.NodeID]int{} // stage of a node
	var stages [][]*graph.Node
	for _, n := range job.Nodes {
		if inLanes[n.ID] {
			continue
		}
		at := -1
		for _, in := range n.Inputs {
			if s, ok := of[in]; ok && !isExchange(job.Nodes[in]) {
				at = s
			}
		}
		switch {
		case at >= 0:
		case len(n.Inputs) > 0 && isExchange(job.Nodes[n.Inputs[0]]):
			at = len(stages)
			stages = append(stages, nil)
		default:
			continue
		}
		of[n.ID], stages[at] = at, append(stages[at], n)
	}
	return stages
}
