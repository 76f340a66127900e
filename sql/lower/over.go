package lower

import (
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/plan"
)

// sortKeys are the items of an ORDER BY over a lowered node.
func sortKeys(keys []plan.SortKey, in *lowered) ([]graph.SortKey, error) {
	out := make([]graph.SortKey, len(keys))
	for i, k := range keys {
		at, err := in.ordinal(k.ID)
		if err != nil {
			return nil, err
		}
		out[i] = graph.SortKey{Column: at, Desc: k.Desc, NullsLast: k.NullsLast}
	}
	return out, nil
}

func (l *lowerer) over(n *plan.Over, in *lowered) (*lowered, error) {
	op := &graph.Over{Time: -1, Changes: n.Changes, Late: l.late(l.target)}
	var err error
	if op.Keys, err = ordinals(n.Keys, in); err != nil {
		return nil, err
	}
	if op.Order, err = sortKeys(n.Order, in); err != nil {
		return nil, err
	}
	if n.Time >= 0 {
		if op.Time, err = in.ordinal(n.Time); err != nil {
			return nil, err
		}
	}
	if n.Time >= 0 || n.Changes {
		op.TTL = n.TTL
	}
	first := len(n.Cols) - len(n.Calls)
	for i := range n.Calls {
		c := &n.Calls[i]
		call := graph.OverCall{Name: n.Cols[first+i].Name, Text: c.Text, Func: c.Func, Bound: c.Bound, Default: -1, Filter: -1, Frame: c.Frame, Offset: c.Offset}
		if call.Args, err = ordinals(c.Args, in); err != nil {
			return nil, err
		}
		for _, x := range []struct {
			id int
			to *int
		}{{c.Default, &call.Default}, {c.Filter, &call.Filter}} {
			if x.id >= 0 {
				if *x.to, err = in.ordinal(x.id); err != nil {
					return nil, err
				}
			}
		}
		if !c.Frame.Rows && len(op.Order) > 0 {
			// Distances of intervals are in ms, columns in their own unit.
			if t := in.cols[op.Order[0].Column].Type; t.IsTimestamp() {
				call.Frame.Start.Offset *= t.UnitsPerSecond() / 1000
				call.Frame.End.Offset *= t.UnitsPerSecond() / 1000
			}
		}
		op.Calls = append(op.Calls, call)
	}
	return l.add(op, l.widen(in, n.Cols), l.pathOf(n.StatePath()), l.exchange(in, op.Keys).id), nil
}

// rank lowers the first rows of a key: of a window, by row time, or of all input.
func (l *lowerer) rank(n *plan.Rank, in *lowered) (*lowered, error) {
	keys, err := ordinals(n.Keys, in)
	if err != nil {
		return nil, err
	}
	order, err := sortKeys(n.Order, in)
	if err != nil {
		return nil, err
	}
	ex := l.exchange(in, keys)
	cols := l.widen(in, n.Cols)
	if n.First {
		op := &graph.FirstRow{TTL: n.TTL, Time: order[0].Column, Keys: keys, Number: n.Number, Late: l.late(l.target)}
		return l.add(op, cols, l.pathOf(n.StatePath()), ex.id), nil
	}
	op := &graph.Rank{Keys: keys, Order: order, N: n.N, Number: n.Number, Latest: n.Latest, Late: l.late(l.target)}
	if op.Changes = n.Changes; op.Changes {
		op.Retracts, op.TTL = plan.ChangelogOf(n.Input).By != nil, n.TTL
	}
	if n.Given != nil {
		bounds, err := ordinals([]int{n.Given.Start, n.Given.End}, in)
		if err != nil {
			return nil, err
		}
		op.Window = graph.Window{Kind: graph.Given, Start: bounds[0], End: bounds[1], Zone: l.window(n.Window).Zone}
	}
	return l.add(op, cols, l.pathOf(n.StatePath()), ex.id), nil
}
