package optimizer

import "github.com/millrace/millrace/sql/plan"

// pruneJoin keeps what is needed above and what the join compares.
func pruneJoin(n *plan.Join, need idSet) plan.Node {
	below := clone(need)
	for _, k := range n.Keys {
		below[k.Left], below[k.Right] = true, true
	}
	if n.Windows != nil {
		for _, w := range n.Windows {
			below[w.Start], below[w.End] = true, true
		}
	}
	if n.Interval != nil {
		below[n.Interval.LeftTime], below[n.Interval.RightTime] = true, true
	}
	if n.Temporal != nil {
		below[n.Temporal.LeftTime], below[n.Temporal.RightTime] = true, true
	}
	if n.Condition != nil {
		below.addExprs(n.Condition)
	}
	return n.With(prune(n.Left, below), prune(n.Right, below))
}
