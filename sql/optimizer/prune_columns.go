package optimizer

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/plan"
)

type idSet map[int]bool

func (s idSet) addExprs(es ...expr.Expr) {
	for _, id := range expr.Columns(es...) {
		s[id] = true
	}
}

// pruneColumns lets every node give only the columns that are needed above
// it; scans read no others.
func pruneColumns(n plan.Node) plan.Node { return prune(n, allOf(n)) }

func allOf(n plan.Node) idSet {
	s := idSet{}
	for _, c := range n.Columns() {
		s[c.ID] = true
	}
	return s
}

func prune(n plan.Node, need idSet) plan.Node {
	switch n := n.(type) {
	case *plan.Scan:
		return pruneScan(n, need)
	case *plan.Project:
		return pruneProject(n, need)
	case *plan.Filter:
		below := clone(need)
		below.addExprs(n.Predicate)
		return n.With(prune(n.Input, below))
	case *plan.Unnest:
		below := clone(need)
		below.addExprs(n.Value)
		if n.Condition != nil {
			below.addExprs(n.Condition)
		}
		c := *n
		elems := n.Cols[len(n.Input.Columns()):]
		c.Input = prune(n.Input, below)
		c.Cols = append(slices.Clone(c.Input.Columns()), elems...)
		return &c
	case *plan.Union:
		return pruneUnion(n, need)
	case *plan.WindowTable:
		below := clone(need)
		below[n.Time] = true
		for _, k := range n.Keys {
			below[k] = true
		}
		c := *n
		win := n.Cols[len(n.Cols)-3:]
		c.Input = prune(n.Input, below)
		c.Cols = nil
		for _, col := range c.Input.Columns() {
			old, _ := plan.ColumnByID(n.Cols, col.ID)
			c.Cols = append(c.Cols, *old)
		}
		c.Cols = append(c.Cols, win...)
		return &c
	case *plan.Aggregate:
		return pruneAggregate(n)
	case *plan.Sort:
		below := clone(need)
		for _, k := range n.Keys {
			below[k.ID] = true
		}
		return n.With(prune(n.Input, below))
	case *plan.Lookup:
		return pruneLookup(n, need)
	case *plan.Join:
		return pruneJoin(n, need)
	case *plan.Over:
		return pruneOver(n, need)
	case *plan.Rank:
		return pruneRank(n, need)
	case *plan.Normalize:
		below := clone(need)
		addRanked(below, n.Keys, nil)
		return n.With(prune(n.Input, below))
	case *plan.Values:
		return n
	}
	// Wide, SetOperation, Insert: every column of the inputs is used.
	in := n.Inputs()
	out := make([]plan.Node, len(in))
	for i := range in {
		out[i] = exactly(prune(in[i], allOf(in[i])), in[i].Columns())
	}
	return n.With(out...)
}

func clone(s idSet) idSet {
	out := make(idSet, len(s))
	for k := range s {
		out[k] = true
	}
	return out
}

func pruneScan(n *plan.Scan, need idSet) plan.Node {
	need = clone(need)
	if n.Watermark != nil {
		need.addExprs(n.Watermark)
	}
	c := *n
	c.Cols, c.Ordinals = nil, nil
	for i, col := range n.Cols {
		if need[col.ID] {
			c.Cols, c.Ordinals = append(c.Cols, col), append(c.Ordinals, n.Ordinals[i])
		}
	}
	if len(c.Cols) == 0 {
		// Rows alone are counted: one cheap column stands for them.
		at := slices.IndexFunc(n.Cols, func(c plan.Column) bool { return !c.Type.IsNested() && c.Type.Physical() != rt.PhysBytes })
		at = max(at, 0)
		c.Cols, c.Ordinals = []plan.Column{n.Cols[at]}, []int{n.Ordinals[at]}
	}
	if _, ok := plan.ColumnByID(c.Cols, c.Time); !ok {
		c.Time = -1
	}
	return &c
}

func pruneProject(n *plan.Project, need idSet) plan.Node {
	c := &plan.Project{}
	for i, col := range n.Cols {
		if need[col.ID] {
			c.Exprs, c.Cols = append(c.Exprs, n.Exprs[i]), append(c.Cols, col)
		}
	}
	if len(c.Cols) == 0 {
		c.Exprs, c.Cols = n.Exprs[:1], n.Cols[:1]
	}
	below := idSet{}
	below.addExprs(c.Exprs...)
	c.Input = prune(n.Input, below)
	return c
}

func pruneUnion(n *plan.Union, need idSet) plan.Node {
	var keep []int
	for i, col := range n.Cols {
		if need[col.ID] {
			keep = append(keep, i)
		}
	}
	if len(keep) == 0 {
		keep = []int{0}
	}
	u := &plan.Union{}
	for _, i := range keep {
		u.Cols = append(u.Cols, n.Cols[i])
	}
	for _, b := range n.In {
		cols := b.Columns()
		wanted := make([]plan.Column, len(keep))
		below := idSet{}
		for j, i := range keep {
			wanted[j] = cols[i]
			below[cols[i].ID] = true
		}
		u.In = append(u.In, exactly(prune(b, below), wanted))
	}
	return u
}

// pruneAggregate keeps keys and aggregates: a row whose argument is an error
// is dead, used or not. A window's columns below it go when the aggregate
// alone divides time.
func pruneAggregate(n *plan.Aggregate) plan.Node {
	below := idSet{}
	for _, k := range n.Keys {
		below[k] = true
	}
	for _, a := range n.Aggs {
		below.addExprs(a.Args...)
		if a.Filter != nil {
			below.addExprs(a.Filter)
		}
	}
	if n.Time >= 0 {
		below[n.Time] = true
	}
	if n.Given != nil {
		below[n.Given.Start], below[n.Given.End] = true, true
	}
	return n.With(dropWindow(prune(n.Input, below), n, below))
}

// dropWindow takes a WindowTable out that lies directly below an aggregate (a
// projection may be between) over the same time, if its columns are not used.
// The aggregate fails the same rows.
func dropWindow(n plan.Node, a *plan.Aggregate, need idSet) plan.Node {
	if a.Window == nil || a.Given != nil {
		return n
	}
	switch n := n.(type) {
	case *plan.Project:
		below := idSet{}
		below.addExprs(n.Exprs...)
		in := dropWindow(n.Input, a, below)
		if in == n.Input {
			return n
		}
		return mergeProjects(n.With(in))
	case *plan.WindowTable:
		if n.Time != a.Time || n.Window != a.Window || n.Window.Kind != plan.TumbleWindow && !n.CheckOnly {
			return n
		}
		for _, c := range n.Cols[len(n.Cols)-3:] {
			if need[c.ID] {
				return n
			}
		}
		return n.Input
	}
	return n
}

// pruneOver keeps the calls: a row whose argument is an error is dead, used or not.
func pruneOver(n *plan.Over, need idSet) plan.Node {
	below := clone(need)
	addRanked(below, n.Keys, n.Order)
	for i := range n.Calls {
		call := &n.Calls[i]
		for _, id := range append([]int{call.Filter, call.Default}, call.Args...) {
			below[id] = true
		}
	}
	c := *n
	c.Input = prune(n.Input, below)
	c.Cols = append(slices.Clone(c.Input.Columns()), n.Cols[len(n.Cols)-len(n.Calls):]...)
	return &c
}

func pruneRank(n *plan.Rank, need idSet) plan.Node {
	below := clone(need)
	addRanked(below, n.Keys, n.Order)
	if n.Given != nil {
		below[n.Given.Start], below[n.Given.End] = true, true
	}
	c := *n
	c.Input = prune(n.Input, below)
	c.Cols = nil
	for _, col := range c.Input.Columns() {
		old, _ := plan.ColumnByID(n.Cols, col.ID)
		c.Cols = append(c.Cols, *old)
	}
	if n.Number {
		number := n.Cols[len(n.Cols)-1]
		if c.Number = need[number.ID]; c.Number {
			c.Cols = append(c.Cols, number)
		}
	}
	return &c
}

func addRanked(s idSet, keys []int, order []plan.SortKey) {
	for _, k := range keys {
		s[k] = true
	}
	for _, k := range order {
		s[k.ID] = true
	}
}

// exactly makes n give the given columns in this order.
func exactly(n plan.Node, cols []plan.Column) plan.Node {
	have := n.Columns()
	same := len(have) == len(cols)
	for i := 0; same && i < len(cols); i++ {
		same = have[i].ID == cols[i].ID
	}
	if same {
		return n
	}
	p := &plan.Project{Input: n, Cols: cols}
	for i := range cols {
		p.Exprs = append(p.Exprs, cols[i].Ref())
	}
	return mergeProjects(p)
}
