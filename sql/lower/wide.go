package lower

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/plan"
)

var wideRules = map[plan.Rule]graph.Rule{
	plan.RuleLast: graph.RuleLast, plan.RuleFirst: graph.RuleFirst, plan.RuleSum: graph.RuleSum,
	plan.RuleCount: graph.RuleCount, plan.RuleMin: graph.RuleMin, plan.RuleMax: graph.RuleMax,
	plan.RuleAvg: graph.RuleAvg, plan.RuleCollect: graph.RuleCollect,
}

func (l *lowerer) wide(n *plan.Wide) (*lowered, error) {
	op := &graph.WideMerge{Window: l.window(n.Window), Lateness: n.Lateness, Coverage: n.Coverage, Late: l.late(n.Table)}
	if !l.o.Batch && l.o.SinkInstead == nil {
		op.Correct = n.Correct // else all rows are there when it goes out, or it is only shown
	}
	op.OfflineTimeout, op.OfflineNow = n.OfflineTimeout, l.o.Batch || l.o.SinkInstead != nil
	var inputs []graph.NodeID
	lows := make([]*lowered, len(n.Branches))
	for i := range n.Branches {
		b := &n.Branches[i]
		in, err := l.exactly(b.Input)
		if err != nil {
			return nil, err
		}
		keys, err := ordinals(b.Keys, in)
		if err != nil {
			return nil, err
		}
		wb := graph.WideBranch{Label: b.Label, Keys: keys, Version: -1, KeepNulls: b.KeepNulls}
		if wb.Time, err = in.ordinal(b.Time); err != nil {
			return nil, err
		}
		if b.Version >= 0 {
			if wb.Version, err = in.ordinal(b.Version); err != nil {
				return nil, err
			}
		}
		op.Branches = append(op.Branches, wb)
		inputs = append(inputs, l.exchange(in, keys).id)
		lows[i] = in
	}
	var offline []*lowered
	for i := range n.Offline {
		b, err := l.offline(&n.Offline[i])
		if err != nil {
			return nil, err
		}
		op.Offline = append(op.Offline, b)
		offline = append(offline, &lowered{cols: n.Offline[i].Cols})
	}
	head := len(n.Branches[0].Keys) + 2
	for i, v := range n.Values {
		c := n.Cols[head+i]
		wc := graph.WideColumn{Name: c.Name, Type: c.Type, Rule: wideRules[v.Rule], Input: -1}
		label, from := "", (*lowered)(nil)
		if v.Offline {
			label, from = n.Offline[v.Branch].Label, offline[v.Branch]
		} else {
			label, from = n.Branches[v.Branch].Label, lows[v.Branch]
		}
		wc.Branch = label
		if v.Input >= 0 {
			at, err := from.ordinal(v.Input)
			if err != nil {
				return nil, err
			}
			wc.Input = at
		}
		op.Columns = append(op.Columns, wc)
	}
	return l.add(op, n.Cols, n.Path, inputs...), nil
}

// offline lowers an offline branch: the columns of its table that it needs are read.
func (l *lowerer) offline(b *plan.OfflineBranch) (graph.OfflineBranch, error) {
	t := b.Scan.Table
	c, ok := t.Connector.(connector.SourceConnector)
	if !ok {
		return graph.OfflineBranch{}, fmt.Errorf("connector %q of table %q says it is a source and is none", t.Spec.Name, t.Name)
	}
	out := graph.OfflineBranch{Label: b.Label, At: b.At, Table: t.SourceTable(l.zone.Location()), Connector: c, CreatesRows: b.CreatesRows,
		Schema: plan.SchemaOf(b.Cols)}
	used := []int{b.Generation}
	for _, e := range b.Exprs {
		used = append(used, expr.Columns(e)...)
	}
	if b.Filter != nil {
		used = append(used, expr.Columns(b.Filter)...)
	}
	read := &lowered{}
	for i, c := range b.Scan.Cols {
		if !slices.Contains(used, c.ID) {
			continue
		}
		read.cols, out.Read = append(read.cols, c), append(out.Read, b.Scan.Ordinals[i])
		if c.ID == b.Generation {
			out.Generation = b.Scan.Ordinals[i]
		}
	}
	var err error
	if out.Exprs, err = remapAll(b.Exprs, read); err != nil {
		return out, err
	}
	if b.Filter != nil {
		if out.Filter, err = remap(b.Filter, read); err != nil {
			return out, err
		}
	}
	bounds := &lowered{cols: []plan.Column{{ID: b.Bounds[0]}, {ID: b.Bounds[1]}}}
	if out.Value, err = remap(b.Value, bounds); err != nil {
		return out, err
	}
	out.Keys, err = ordinals(b.Keys, &lowered{cols: b.Cols})
	return out, err
}
