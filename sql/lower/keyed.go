package lower

import (
	"fmt"
	"strconv"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/plan"
)

// exchange hands a node's rows to a keyed stage.
func (l *lowerer) exchange(in *lowered, keys []int) *lowered {
	p := l.o.Parallelism
	if len(keys) == 0 {
		p = 1
	}
	return l.add(&graph.Exchange{Keys: keys, Parallelism: p}, in.cols, "", in.id)
}

func (l *lowerer) aggregate(n *plan.Aggregate, in *lowered) (*lowered, error) {
	keys, err := ordinals(n.Keys, in)
	if err != nil {
		return nil, err
	}
	aggs := make([]graph.Aggregate, len(n.Aggs))
	for i, a := range n.Aggs {
		args, err := remapAll(a.Args, in)
		if err != nil {
			return nil, err
		}
		aggs[i] = graph.Aggregate{Name: n.Cols[len(n.Keys)+i].Name, Text: a.Text, Bound: a.Bound, Args: args}
		if a.Filter != nil {
			if aggs[i].Filter, err = remap(a.Filter, in); err != nil {
				return nil, err
			}
		}
	}
	timeAt := -1
	if n.Time >= 0 {
		if timeAt, err = in.ordinal(n.Time); err != nil {
			return nil, err
		}
	}
	for i := range aggs {
		// A window aggregate orders by its time anyway.
		if n.Window == nil && timeAt >= 0 && aggs[i].Bound.Ordered {
			aggs[i].Order = []int{timeAt}
		}
	}
	ex := l.exchange(in, keys)
	if n.Window == nil {
		op := &graph.GroupAggregate{Updates: n.Updates, Retracts: n.Updates && plan.ChangelogOf(n.Input).By != nil, Keys: keys, Aggregates: aggs}
		if n.Updates {
			op.TTL = n.TTL
		}
		return l.add(op, n.Cols, l.statePath(n), ex.id), nil
	}
	op := &graph.WindowAggregate{Window: l.window(n.Window), Time: timeAt, Keys: keys, Aggregates: aggs, Late: l.late(l.target)}
	op.Retracts = plan.ChangelogOf(n.Input).By != nil
	if f := n.Firing; f != nil {
		op.Firing, op.Lateness = f.Firing, f.Lateness
	}
	if n.Given != nil {
		bounds, err := ordinals([]int{n.Given.Start, n.Given.End}, in)
		if err != nil {
			return nil, err
		}
		op.Window = graph.Window{Kind: graph.Given, Start: bounds[0], End: bounds[1], Zone: op.Window.Zone}
	}
	return l.add(op, n.Cols, l.statePath(n), ex.id), nil
}

// windowTable assigns windows to each row by itself. Of a node that only checks
// the time any window will do that comes once.
func (l *lowerer) windowTable(n *plan.WindowTable, in *lowered) (*lowered, error) {
	at, err := in.ordinal(n.Time)
	if err != nil {
		return nil, err
	}
	w := l.window(n.Window)
	switch {
	case n.CheckOnly:
		w = graph.Window{Size: n.Window.Size, Zone: w.Zone}
	case w.Kind == graph.Session && w.Processing:
		return nil, &graph.NotYetError{Feature: "SESSION over processing time without GROUP BY window_start, window_end"}
	case w.Kind == graph.Session:
		keys, err := ordinals(n.Keys, in)
		if err != nil {
			return nil, err
		}
		op := &graph.SessionAssign{Window: w, Time: at, Keys: keys, Late: l.late(l.target)}
		return l.add(op, l.widen(in, n.Cols), l.pathOf(n.StatePath()), l.exchange(in, keys).id), nil
	}
	w.Processing = false // rows get the time at which they are read
	return l.add(&graph.WindowAssign{Window: w, Time: at}, l.widen(in, n.Cols), "", in.id), nil
}

func (l *lowerer) sort(n *plan.Sort, in *lowered) (*lowered, error) {
	ex := l.exchange(in, nil)
	if n.ByTime {
		keys, err := sortKeys(n.Keys, in)
		if err != nil {
			return nil, err
		}
		return l.add(&graph.Over{Time: keys[0].Column, Order: keys, Late: l.late(l.target)}, in.cols, l.pathOf(n.StatePath()), ex.id), nil
	}
	if len(n.Keys) == 0 {
		limit := n.Limit
		if limit < 0 {
			limit = 1<<63 - 1
		}
		return l.add(&graph.Limit{Offset: n.Offset, N: limit}, in.cols, l.unique("limit"), ex.id), nil
	}
	op := &graph.Sort{Offset: n.Offset, Limit: n.Limit}
	for _, k := range n.Keys {
		at, err := in.ordinal(k.ID)
		if err != nil {
			return nil, err
		}
		op.Keys = append(op.Keys, graph.SortKey{Column: at, Desc: k.Desc, NullsLast: k.NullsLast})
	}
	return l.add(op, in.cols, l.unique("sort"), ex.id), nil
}

// statePath is the path of an aggregate.
func (l *lowerer) statePath(n *plan.Aggregate) string { return l.pathOf(n.StatePath()) }

// pathOf is a state path as it is. In batch jobs, whose state no edit has to find
// again, equal ones are numbered.
func (l *lowerer) pathOf(path string) string {
	if l.o.Batch || l.once {
		return l.unique(path)
	}
	return path
}

func (l *lowerer) unique(path string) string {
	l.paths[path]++
	if k := l.paths[path]; k > 1 {
		return path + "#" + strconv.Itoa(k)
	}
	return path
}

// late is 'window.late-rows' of a table, else of the job.
func (l *lowerer) late(t *catalog.Table) graph.LateRows {
	policy := t.LateRows(l.o.Settings)
	out := graph.LateRows{Table: -1}
	switch policy {
	case "drop":
		out.Policy = graph.Drop
	case "dead-letter":
	default:
		// The sinks come last; see sides.
		l.sideNames = append(l.sideNames, policy)
		out.Table = graph.NodeID(-1 - len(l.sideNames))
	}
	return out
}

// normalize makes changes of a table's newest rows, once for all who read it.
func (l *lowerer) normalize(n *plan.Normalize) (*lowered, error) {
	scan, ok := n.Input.(*plan.Scan)
	if !ok {
		return nil, fmt.Errorf("BUG: %T between a table and its changes", n.Input)
	}
	in, err := l.scan(scan)
	if err != nil {
		return nil, err
	}
	src := l.tables[scan.Table.Name]
	if src.normalized == nil {
		keys, err := ordinals(n.Keys, in)
		if err != nil {
			return nil, err
		}
		src.normalized = l.add(&graph.Normalize{Keys: keys, TTL: n.TTL}, in.cols, n.StatePath(), l.exchange(in, keys).id)
	}
	// Who reads it under a longer time to live gets that.
	op := l.job.Nodes[src.normalized.id].Op.(*graph.Normalize)
	if n.TTL == 0 || op.TTL != 0 && n.TTL > op.TTL {
		op.TTL = n.TTL
	}
	return &lowered{id: src.normalized.id, cols: in.cols}, nil
}
