package graph

import (
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
)

// Sink writes a table. Its inputs have the table's columns, in order.
type Sink struct {
	Table     *connector.Table
	Connector connector.SinkConnector
	// OnError is 'lane.on-error' for rows that cannot be written, NotNull the
	// policy for NULL in a NOT NULL column.
	OnError, NotNull ErrorPolicy
	// Overwrite is INSERT OVERWRITE: what the job gives a table partition replaces
	// what is there, when all input has ended. Inputs are behind exchanges.
	Overwrite bool
	// Replace: the results replace table partitions whole also where the connector
	// does so on request alone, since they come again.
	Replace bool
	// Static are, where PARTITION (...) fixes every partition column, rows of the
	// table with these values, NULL elsewhere: these partitions are replaced also
	// when nothing comes for them.
	Static [][]expr.Expr
	// Late, if not nil: the table takes the late rows of a window alone. Its inputs
	// come from lanes.
	Late *LateFilter
}

// LateFilter passes the rows that are late for a window operator, by the watermark
// of their own partition.
type LateFilter struct {
	Window Window
	// Time is the row time among the table's columns.
	Time int
	// Lateness is as of the operator, in ms.
	Lateness int64
}

// ReplaceMode is how the sink's table is written; of a connector that cannot
// replace it is ReplaceNever.
func (s *Sink) ReplaceMode() connector.ReplaceMode {
	c, ok := s.Connector.(connector.ReplacingConnector)
	if !ok {
		return connector.ReplaceNever
	}
	mode, _ := c.ReplaceMode(s.Table)
	if s.Replace && mode == connector.ReplaceOnRequest {
		return connector.ReplaceResults
	}
	return mode
}

func (*Sink) op() {}

func (v *validator) sink(op *Sink) error {
	if op.Table == nil || op.Connector == nil {
		return v.fault("table or connector is missing")
	}
	if err := v.replaces(op); err != nil {
		return err
	}
	if op.Late != nil {
		if op.Late.Time < 0 || op.Late.Time >= len(v.n.Schema.Fields) {
			return v.fault("row time column %d of late rows", op.Late.Time)
		}
		if err := v.window(op.Late.Window, op.Late.Time, v.n.Schema); err != nil {
			return err
		}
		for _, in := range v.n.Inputs {
			if v.keyed[in] {
				return v.fault("late rows come from lanes, node %d is behind an exchange", in)
			}
		}
	}
	if len(v.n.Schema.Fields) != len(op.Table.Columns) {
		return v.fault("%d columns for a table of %d", len(v.n.Schema.Fields), len(op.Table.Columns))
	}
	for i := range v.n.Inputs {
		if err := v.same(v.input(i).Schema, v.n.Schema); err != nil {
			return err
		}
	}
	return nil
}

// replaces checks a sink that replaces table partitions: one that lanes write, each
// at its own pace, has no moment at which its content is whole.
func (v *validator) replaces(op *Sink) error {
	mode := op.ReplaceMode()
	if op.Overwrite && (!v.job.Bounded || !v.job.Batch) {
		return v.fault("overwriting needs a batch job")
	}
	if op.Overwrite && mode == connector.ReplaceNever {
		return v.fault("table %s cannot be overwritten", op.Table.Name)
	}
	for _, row := range op.Static {
		if len(row) != len(op.Table.Columns) {
			return v.fault("a static row of %d columns for a table of %d", len(row), len(op.Table.Columns))
		}
	}
	if !op.Overwrite && mode != connector.ReplaceResults {
		return nil
	}
	for _, in := range v.n.Inputs {
		if v.lanes[in] {
			return v.fault("table %s is replaced whole, and rows reach it through node %d without an exchange", op.Table.Name, in)
		}
	}
	return nil
}
