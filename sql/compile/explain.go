package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// explainJob describes a job: the plans as bound, as optimized, and the graph.
func explainJob(bound, optimized []*plan.Insert, job *graph.Job) *Explain {
	var b strings.Builder
	b.WriteString("== Bound plan ==\n")
	for _, p := range bound {
		plan.Print(&b, p)
	}
	b.WriteString("\n== Optimized plan ==\n")
	for _, p := range optimized {
		plan.Print(&b, p)
	}
	b.WriteString("\n== Job graph ==\n")
	printGraph(&b, job)
	functions := functionsOf(job)
	if len(functions) > 0 {
		b.WriteString("\n== User functions ==\n")
		for _, f := range functions {
			b.WriteString("  " + f + "\n")
		}
	}
	return &Explain{Text: b.String(), Lanes: lanesOf(job), State: statesOf(job), Graph: graphOf(job), Functions: functions}
}

// functionsOf are the user functions of a job, each once, by name.
func functionsOf(job *graph.Job) []string {
	var out []string
	for _, n := range job.Nodes {
		for _, v := range n.UserFunctions() {
			out = append(out, v.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func printGraph(b *strings.Builder, job *graph.Job) {
	for _, n := range job.Nodes {
		printNode(b, n)
	}
}

func printNode(b *strings.Builder, n *graph.Node) {
	fmt.Fprintf(b, "%3d %s", n.ID, graph.OpName(n.Op))
	switch op := n.Op.(type) {
	case *graph.Source:
		fmt.Fprintf(b, " %s", op.Table.Name)
		if op.Partitions != nil {
			fmt.Fprintf(b, " partitions: %s", op.Partitions)
		}
	case *graph.Sink:
		fmt.Fprintf(b, " %s", op.Table.Name)
	case *graph.Exchange:
		fmt.Fprintf(b, " parallelism=%d", op.Parallelism)
	}
	if len(n.Inputs) > 0 {
		ids := make([]string, len(n.Inputs))
		for i, in := range n.Inputs {
			ids[i] = fmt.Sprint(in)
		}
		fmt.Fprintf(b, " <- %s", strings.Join(ids, ", "))
	}
	b.WriteByte('\n')
}

func lanesOf(job *graph.Job) []Lane {
	var out []Lane
	for _, n := range job.Nodes {
		src, ok := n.Op.(*graph.Source)
		if !ok {
			continue
		}
		l := Lane{Table: src.Table.Name, Connector: src.Connector.Spec().Name, Direct: []string{}, Keyed: []string{}}
		for _, f := range n.Schema.Fields {
			l.Columns = append(l.Columns, f.Name)
		}
		if src.Watermark != nil {
			l.Watermark = src.Watermark.String()
		}
		reached := map[graph.NodeID]bool{n.ID: true}
		for _, m := range job.Nodes[n.ID+1:] {
			for _, in := range m.Inputs {
				if !reached[in] {
					continue
				}
				switch op := m.Op.(type) {
				case *graph.Sink:
					l.Direct = appendNew(l.Direct, op.Table.Name)
				case *graph.Exchange:
					for _, k := range job.Nodes[m.ID+1:] {
						if slices.Contains(k.Inputs, m.ID) {
							l.Keyed = appendNew(l.Keyed, k.Path)
						}
					}
				default:
					reached[m.ID] = true
				}
			}
		}
		out = append(out, l)
	}
	return out
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func statesOf(job *graph.Job) []State {
	out := []State{}
	for _, n := range job.Nodes {
		s := State{Path: n.Path, Kind: graph.OpName(n.Op), Keys: []string{}, Slots: []string{}, Spills: graph.Spills(n.Op)}
		names := func(in graph.NodeID, cols []int) {
			for _, c := range cols {
				s.Keys = append(s.Keys, job.Nodes[in].Schema.Fields[c].Name)
			}
		}
		switch op := n.Op.(type) {
		case *graph.WindowAggregate:
			names(n.Inputs[0], op.Keys)
			s.WindowMs = op.Window.Size
			for _, a := range op.Aggregates {
				s.Slots = append(s.Slots, a.Text)
			}
		case *graph.GroupAggregate:
			names(n.Inputs[0], op.Keys)
			for _, a := range op.Aggregates {
				s.Slots = append(s.Slots, a.Text)
			}
		case *graph.WideMerge:
			names(n.Inputs[0], op.Branches[0].Keys)
			s.WindowMs = op.Window.Size
			for _, c := range op.Columns {
				s.Slots = append(s.Slots, c.Branch+"."+c.Name)
			}
		case *graph.Join:
			names(n.Inputs[0], op.InputKeys(0))
			s.Slots = append(s.Slots, op.Kind.String())
		case *graph.SetOperation:
		case *graph.SessionAssign:
			names(n.Inputs[0], op.Keys)
			s.WindowMs = op.Window.Size
		case *graph.Rank:
			names(n.Inputs[0], op.Keys)
		case *graph.FirstRow:
			names(n.Inputs[0], op.Keys)
		case *graph.Normalize:
			names(n.Inputs[0], op.Keys)
		case *graph.Over:
			names(n.Inputs[0], op.Keys)
			for i := range op.Calls {
				s.Slots = append(s.Slots, op.Calls[i].Text)
			}
		case *graph.Sort:
			names(n.Inputs[0], sortColumns(op))
		default:
			continue
		}
		s.SinkTable = sinkBehind(job, n.ID)
		out = append(out, s)
	}
	return out
}

func sortColumns(op *graph.Sort) []int {
	var cols []int
	for _, k := range op.Keys {
		cols = append(cols, k.Column)
	}
	return cols
}

func sinkBehind(job *graph.Job, id graph.NodeID) string {
	reached := map[graph.NodeID]bool{id: true}
	for _, m := range job.Nodes[id+1:] {
		for _, in := range m.Inputs {
			if reached[in] {
				reached[m.ID] = true
				if s, ok := m.Op.(*graph.Sink); ok {
					return s.Table.Name
				}
			}
		}
	}
	return ""
}

// explain answers EXPLAIN: the plan of its statement.
func (c *compiler) explain(s *syntax.Explain) {
	if s.Stmt == nil {
		c.diags.Errorf(diag.CodeBadArgument, s.Span(), "EXPLAIN PLACEMENT needs a statement").
			WithHelp("EXPLAIN PLACEMENT INSERT INTO ... SELECT ...")
		return
	}
	if f, ok := s.Stmt.(*syntax.ForEach); ok && !s.Placement {
		c.explainLoop(s, f)
		return
	}
	before := c.diags.Count(diag.Error)
	nodes := c.explained(s)
	if c.diags.Count(diag.Error) > before || len(nodes) == 0 {
		return
	}
	if s.Placement {
		c.explainPlacement(s, nodes)
		return
	}
	var b strings.Builder
	if slices.Contains(s.Details, syntax.ExplainJSONPlan) {
		b.WriteString(plan.JSON(nodes))
	} else {
		b.WriteString("== Bound plan ==\n")
		for _, n := range nodes {
			plan.Print(&b, n)
		}
		b.WriteString("\n== Optimized plan ==\n")
		for _, n := range nodes {
			plan.Print(&b, c.optimize(n))
		}
	}
	c.add(Statement{Kind: KindText, AST: s, Result: &Result{Columns: []string{"plan"}, Rows: [][]string{{b.String()}}}})
}

// explained binds the statement of EXPLAIN; none if something was reported.
func (c *compiler) explained(s *syntax.Explain) []plan.Node {
	var nodes []plan.Node
	insert := func(ins *plan.Insert) {
		if ins != nil {
			nodes = append(nodes, ins)
		}
	}
	switch st := s.Stmt.(type) {
	case *syntax.QueryStmt:
		if out := c.binder.Query(st.Query); out != nil {
			nodes = append(nodes, out.Node)
		}
	case *syntax.Insert:
		insert(c.binder.Insert(st))
	case *syntax.StatementSet:
		for _, i := range st.Inserts {
			insert(c.binder.Insert(i))
		}
	case *syntax.CreateWideTable:
		insert(c.explainWide(st))
	case *syntax.CreateTable:
		insert(c.explainTableAs(st))
	default:
		c.diags.Errorf(diag.CodeNotYet, s.Span(), "EXPLAIN of this statement is not supported yet")
	}
	return nodes
}

// explainWide binds EXPLAIN CREATE WIDE TABLE: the table is not declared by it.
func (c *compiler) explainWide(s *syntax.CreateWideTable) *plan.Insert {
	if !c.simpleName(s.Name) {
		return nil
	}
	_, ins := c.binder.WideTable(s, c.builder())
	return ins
}
