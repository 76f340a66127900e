package lower

import (
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/plan"
)

// join lowers a join: an exchange for each input, by the keys.
func (l *lowerer) join(n *plan.Join) (*lowered, error) {
	left, err := l.exactly(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := l.exactly(n.Right)
	if err != nil {
		return nil, err
	}
	op := &graph.Join{Kind: n.Kind, NullAware: n.NullAware, Changes: n.Changes}
	if n.Changes {
		for i, in := range n.Inputs() {
			op.Retracts[i], op.TTL[i] = plan.ChangelogOf(in).By != nil, n.TTL[i]
		}
	}
	for _, k := range n.Keys {
		key := graph.JoinKey{NullSafe: k.NullSafe}
		if key.Left, err = left.ordinal(k.Left); err != nil {
			return nil, err
		}
		if key.Right, err = right.ordinal(k.Right); err != nil {
			return nil, err
		}
		op.Keys = append(op.Keys, key)
	}
	if n.Condition != nil {
		pair := &lowered{cols: append(append([]plan.Column(nil), left.cols...), right.cols...)}
		if op.Condition, err = remap(n.Condition, pair); err != nil {
			return nil, err
		}
	}
	if err := l.joinTime(n, op, left, right); err != nil {
		return nil, err
	}
	le, re := l.exchange(left, op.ExchangeKeys(0)), l.exchange(right, op.ExchangeKeys(1))
	return l.add(op, n.Cols, l.pathOf(n.StatePath()), le.id, re.id), nil
}

// joinTime lowers windows, interval and versions.
func (l *lowerer) joinTime(n *plan.Join, op *graph.Join, sides ...*lowered) error {
	op.Late.Table = -1
	if n.Streams() {
		op.Late = l.late(l.target)
	}
	if n.Windows != nil {
		for i, side := range sides {
			bounds, err := ordinals([]int{n.Windows[i].Start, n.Windows[i].End}, side)
			if err != nil {
				return err
			}
			op.Windows = append(op.Windows, graph.Window{Kind: graph.Given, Start: bounds[0], End: bounds[1], Zone: l.window(n.Window).Zone})
		}
	}
	if t := n.Interval; t != nil {
		lt, rt, err := rowTimes(t.LeftTime, t.RightTime, sides)
		if err != nil {
			return err
		}
		op.Interval = &graph.JoinInterval{LeftTime: lt, RightTime: rt, Lower: t.Lower, Upper: t.Upper}
	}
	if t := n.Temporal; t != nil {
		lt, rt, err := rowTimes(t.LeftTime, t.RightTime, sides)
		if err != nil {
			return err
		}
		op.Temporal = &graph.JoinTemporal{LeftTime: lt, RightTime: rt}
		op.Retracts = [2]bool{plan.ChangelogOf(n.Left).By != nil, t.Deletes}
	}
	return nil
}

// rowTimes are the places of the row times of both sides.
func rowTimes(left, right int, sides []*lowered) (l, r int, err error) {
	if l, err = sides[0].ordinal(left); err != nil {
		return 0, 0, err
	}
	r, err = sides[1].ordinal(right)
	return l, r, err
}

// setOperation lowers INTERSECT and EXCEPT: the exchanges are by all columns.
func (l *lowerer) setOperation(n *plan.SetOperation) (*lowered, error) {
	op := &graph.SetOperation{Kind: n.Kind, All: n.All, Changes: n.Changes}
	path := n.StatePath()
	if op.Changes {
		op.TTL, path = n.TTL, l.pathOf(path)
	} else {
		path = l.unique(path)
	}
	var ids [2]graph.NodeID
	for i, in := range n.Inputs() {
		low, err := l.exactly(in)
		if err != nil {
			return nil, err
		}
		keys := make([]int, len(low.cols))
		for k := range keys {
			keys[k] = k
		}
		ids[i] = l.exchange(low, keys).id
	}
	return l.add(op, n.Cols, path, ids[0], ids[1]), nil
}
