package connector

import (
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Table is a table as a connector sees it: its columns without the computed
// ones, and its checked options.
type Table struct {
	Name string
	// Columns are the physical and metadata columns in declared order.
	Columns []Column
	// PrimaryKey and PartitionKeys are indexes into Columns.
	PrimaryKey    []int
	PartitionKeys []int
	Options       Values
	Comment       string
	// Zone is the session zone ('table.local-time-zone').
	Zone *time.Location
}

// Column is a physical or metadata column.
type Column struct {
	types.Field
	// Metadata is the metadata key, "" for a physical column.
	Metadata string
	// Virtual metadata is read only.
	Virtual bool
}

// Schema is the schema of the columns at the given indexes; nil: all.
func (t *Table) Schema(columns []int) *batch.Schema {
	s := &batch.Schema{}
	if columns == nil {
		for _, c := range t.Columns {
			s.Fields = append(s.Fields, c.Field)
		}
		return s
	}
	for _, i := range columns {
		s.Fields = append(s.Fields, t.Columns[i].Field)
	}
	return s
}
