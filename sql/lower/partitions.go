package lower

import (
	"slices"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/plan"
)

// partitionsOf is the condition on a table's partitions that covers all its scans,
// nil when one of them needs all.
func partitionsOf(table *connector.Table, scans []*plan.Scan) expr.Expr {
	var any []expr.Expr
	for _, s := range scans {
		if s.Partitions == nil {
			return nil
		}
		any = append(any, expr.Rewrite(s.Partitions, func(n expr.Expr) expr.Expr {
			c, ok := n.(*expr.Column)
			if !ok {
				return n
			}
			at := slices.IndexFunc(s.Cols, func(p plan.Column) bool { return p.ID == c.Index })
			return &expr.Column{Index: slices.Index(table.PartitionKeys, s.Ordinals[at]), Name: c.Name, T: c.T}
		}))
	}
	if len(any) == 1 {
		return any[0]
	}
	return expr.NewOr(any...)
}
