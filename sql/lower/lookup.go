package lower

import (
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/plan"
)

// lookup lowers a lookup join.
func (l *lowerer) lookup(n *plan.Lookup, in *lowered) (*lowered, error) {
	table := n.Table.SourceTable(l.zone.Location())
	c, ok := n.Table.Connector.(connector.LookupConnector)
	if !ok {
		return nil, fmt.Errorf("connector %q of table %q says that it can be looked up and cannot", n.Table.Spec.Name, table.Name)
	}
	op := &graph.Lookup{Table: table, Connector: c, Columns: n.Ordinals, Outer: n.Kind == graph.LeftJoin}
	for _, k := range n.Keys {
		v, err := remap(k.Value, in)
		if err != nil {
			return nil, err
		}
		op.Keys = append(op.Keys, graph.LookupKey{Column: k.Ordinal, Value: v})
	}
	cols := l.widen(in, n.Cols)
	if n.Condition != nil {
		var err error
		if op.Condition, err = remap(n.Condition, &lowered{cols: cols}); err != nil {
			return nil, err
		}
	}
	return l.add(op, cols, "", in.id), nil
}
