package lower

import (
	"slices"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/plan"
)

// sink is a table being written, by one or more INSERTs.
type sink struct {
	op     *graph.Sink
	inputs []graph.NodeID
	time   int
	path   string
}

// addToSink adds a lowered query to its table's sink.
func (l *lowerer) addToSink(ins *plan.Insert, in *lowered) {
	s := l.byTable[ins.Table.Name]
	if s == nil {
		s = &sink{op: l.sinkOf(ins), path: ins.Table.Name, time: in.time()}
		l.byTable[ins.Table.Name] = s
		l.sinks = append(l.sinks, s)
	}
	s.inputs = append(s.inputs, in.id)
	if f := ins.Late; f != nil {
		s.op.Late = &graph.LateFilter{Window: l.window(f.Window), Time: f.Time, Lateness: f.Lateness}
	}
	if s.op.Overwrite && ins.Static != nil && len(s.op.Table.PartitionKeys) > 0 {
		s.op.Static = append(s.op.Static, ins.Static)
	}
	if s.time != in.time() {
		s.time = -1
	}
}

func (l *lowerer) sinkOf(ins *plan.Insert) *graph.Sink {
	t := ins.Table
	op := &graph.Sink{Table: t.SinkTable(l.zone.Location()), Overwrite: ins.Overwrite && l.o.SinkInstead == nil,
		Replace: t.Runtime.Has(catalog.CorrectionKey)}
	op.Connector, _ = t.Connector.(connector.SinkConnector)
	if l.o.SinkInstead != nil {
		op.Connector = l.o.SinkInstead
	}
	policy := l.o.Settings.String("lane.on-error")
	if t.Runtime.Has("lane.on-error") {
		policy = t.Runtime.String("lane.on-error")
	}
	op.OnError = map[string]graph.ErrorPolicy{"dead-letter": graph.DeadLetter, "drop": graph.Drop, "fail": graph.Fail}[policy]
	op.NotNull = op.OnError
	switch l.o.Settings.String("table.exec.sink.not-null-enforcer") {
	case "ERROR":
		op.NotNull = graph.Fail
	case "DROP":
		op.NotNull = graph.Drop
	}
	return op
}

// sides puts the nodes of the tables of late rows into the operators that lose them.
func (l *lowerer) sides() {
	nodes := map[string]graph.NodeID{}
	for _, n := range l.job.Nodes {
		if s, ok := n.Op.(*graph.Sink); ok {
			nodes[s.Table.Name] = n.ID
		}
	}
	for _, n := range l.job.Nodes {
		late := graph.LateRowsOf(n.Op)
		if late == nil || late.Table >= -1 {
			continue
		}
		// In batch mode nothing is late, and no such table is written.
		id, ok := nodes[l.sideNames[-2-late.Table]]
		if late.Table = id; !ok {
			late.Table = -1
		}
	}
}

// behindExchange gives the inputs of a sink that replaces table partitions their
// exchange: lanes commit apart, and what is replaced whole is published at once.
func (l *lowerer) behindExchange(s *sink) {
	if !replaced(s.op) {
		return
	}
	lanes, _ := l.ways()
	var direct, rest []graph.NodeID
	for _, id := range s.inputs {
		if lanes[id] {
			direct = append(direct, id)
		} else {
			rest = append(rest, id)
		}
	}
	if len(direct) == 0 {
		return
	}
	in := l.job.Nodes[direct[0]]
	if len(direct) > 1 {
		in = l.append(&graph.Union{}, in, direct...)
	}
	ex := &graph.Exchange{Keys: exchangeKeys(s.op), Parallelism: l.o.Parallelism}
	if len(ex.Keys) == 0 {
		ex.Parallelism = 1
	}
	s.inputs = append(rest, l.append(ex, in, in.ID).ID)
}

// replaced reports a sink whose table partitions are replaced whole.
func replaced(s *graph.Sink) bool {
	return s.Overwrite || s.ReplaceMode() == connector.ReplaceResults
}

// legs gives the inputs of a UNION ALL their exchange where some have one already:
// else lanes would write beside the stage, into a table that is replaced whole.
func (l *lowerer) legs(ids []graph.NodeID) {
	lanes, keyed := l.ways()
	if !slices.ContainsFunc(ids, func(id graph.NodeID) bool { return keyed[id] }) {
		return
	}
	for i, id := range ids {
		if !lanes[id] {
			continue
		}
		in := l.job.Nodes[id]
		ex := &graph.Exchange{Parallelism: 1}
		if k := slices.IndexFunc(in.Schema.Fields, func(f types.Field) bool { return !f.Type.IsNested() }); k >= 0 {
			ex.Keys, ex.Parallelism = []int{k}, l.o.Parallelism
		}
		ids[i] = l.append(ex, in, id).ID
	}
}

// append adds a node of the schema of another.
func (l *lowerer) append(op graph.Op, like *graph.Node, inputs ...graph.NodeID) *graph.Node {
	n := &graph.Node{ID: graph.NodeID(len(l.job.Nodes)), Op: op, Inputs: inputs, Schema: like.Schema, TimeColumn: like.TimeColumn}
	l.job.Nodes = append(l.job.Nodes, n)
	return n
}

// ways says of each node whether rows of lanes reach it without an exchange, and
// whether rows of a keyed stage do.
func (l *lowerer) ways() (lanes, keyed []bool) {
	lanes, keyed = make([]bool, len(l.job.Nodes)), make([]bool, len(l.job.Nodes))
	for id, n := range l.job.Nodes {
		for _, in := range n.Inputs {
			lanes[id], keyed[id] = lanes[id] || lanes[in], keyed[id] || keyed[in]
		}
		switch n.Op.(type) {
		case *graph.Source:
			lanes[id] = true
		case *graph.Exchange:
			lanes[id], keyed[id] = false, true
		case *graph.Values:
			keyed[id] = true
		}
	}
	return lanes, keyed
}

// exchangeKeys spreads rows so that one table partition is written by few tasks:
// by the partition columns that the rows choose, else by the first column that
// can be a key.
func exchangeKeys(op *graph.Sink) []int {
	if len(op.Table.PartitionKeys) > 0 && len(op.Static) == 0 {
		return slices.Clone(op.Table.PartitionKeys)
	}
	for i, c := range op.Table.Columns {
		if !c.Type.IsNested() && !slices.Contains(op.Table.PartitionKeys, i) {
			return []int{i}
		}
	}
	return nil
}
