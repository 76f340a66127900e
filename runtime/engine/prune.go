package engine

import (
	"fmt"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
)

// partitionFilter is a source's condition on table partitions.
type partitionFilter struct {
	filter *expr.Filter

	mu     sync.Mutex
	ctx    *expr.Context
	sel    batch.Sel
	failed []batch.ValueError
}

var _ connector.PartitionFilter = (*partitionFilter)(nil)

// prunePartitions lets a source leave out table partitions that the job does not ask for.
func (r *Run) prunePartitions(op *graph.Source, src connector.Source) error {
	p, ok := src.(connector.PartitionPruner)
	if !ok || op.Partitions == nil {
		return nil
	}
	// Nodes of one table share a source: each would have its own condition.
	for _, n := range r.job.Nodes {
		if other, ok := n.Op.(*graph.Source); ok && other != op && other.Table.Name == op.Table.Name {
			return nil
		}
	}
	f, err := expr.CompileFilter(op.Partitions, op.Table.Schema(op.Table.PartitionKeys), expr.Options{})
	if err != nil {
		return fmt.Errorf("compiling the condition on partitions of table %s: %w", op.Table.Name, err)
	}
	p.Prune(&partitionFilter{filter: f, ctx: expr.NewContext(r.zone, 0)})
	return nil
}

// Wanted implements connector.PartitionFilter. Where the condition cannot be
// evaluated the rows are wanted: the job's filter says what becomes of them.
func (f *partitionFilter) Wanted(b *batch.Batch) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sel, f.failed = f.filter.Eval(f.ctx, b, nil, f.sel[:0], f.failed[:0])
	return len(f.sel)+len(f.failed) > 0
}

// String implements connector.PartitionFilter.
func (f *partitionFilter) String() string { return f.filter.String() }
