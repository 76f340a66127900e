package optimizer

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/plan"
)

// prunePartitions tells a scan of a partitioned table which table partitions the
// filter above it asks for: the conjuncts that need partition columns alone. The
// filter stays. Records of other partitions are not read, so that one among them
// which cannot be read is not met; a table with a watermark is read whole, for
// its rows move the watermark before they are filtered.
func prunePartitions(n plan.Node) plan.Node {
	f, ok := n.(*plan.Filter)
	if !ok {
		return n
	}
	scan, ok := f.Input.(*plan.Scan)
	if !ok || scan.Watermark != nil || scan.Partitions != nil || len(scan.Table.PartitionKeys) == 0 {
		return n
	}
	key := map[int]bool{}
	for i := range scan.Cols {
		if slices.Contains(scan.Table.PartitionKeys, scan.Cols[i].Name) {
			key[scan.Cols[i].ID] = true
		}
	}
	var wanted []expr.Expr
	for _, c := range conjuncts(f.Predicate) {
		ids := expr.Columns(c)
		foreign := slices.ContainsFunc(ids, func(id int) bool { return !key[id] })
		if len(ids) > 0 && !foreign && expr.DeterminismOf(c) == fn.Deterministic {
			wanted = append(wanted, c)
		}
	}
	if len(wanted) == 0 {
		return n
	}
	s := *scan
	s.Partitions = wanted[0]
	if len(wanted) > 1 {
		s.Partitions = expr.NewAnd(wanted...)
	}
	return f.With(&s)
}

func conjuncts(e expr.Expr) []expr.Expr {
	l, ok := e.(*expr.Logic)
	if !ok || l.Op != expr.And {
		return []expr.Expr{e}
	}
	var out []expr.Expr
	for _, a := range l.Args {
		out = append(out, conjuncts(a)...)
	}
	return out
}
