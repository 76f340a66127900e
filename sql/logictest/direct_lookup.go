package logictest

import (
	"fmt"

	"github.com/millrace/millrace/runtime/graph"
)

// openLookups opens the tables that are looked up.
func (r *run) openLookups() error {
	for _, n := range r.job.Nodes {
		op, ok := n.Op.(*graph.Lookup)
		if !ok {
			continue
		}
		var keys []int
		for _, k := range op.Keys {
			keys = append(keys, k.Column)
		}
		l, err := op.Connector.OpenLookup(r.ctx, op.Table, keys, op.Columns)
		if err != nil {
			return fmt.Errorf("opening %s: %w", op.Table.Name, err)
		}
		r.lookups[n.ID] = l
	}
	return nil
}

func (r *run) closeLookups() {
	for _, l := range r.lookups {
		l.Close()
	}
}
