package graph

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/types"
)

// Lookup joins each row with the rows of a table that have its key at the time when
// the row is processed. It runs inside lanes and has no state. Output columns: the
// input's, then Table.Columns[Columns...], which are nullable where Outer.
type Lookup struct {
	Table     *connector.Table
	Connector connector.LookupConnector
	// Columns are the columns that are given, indexes into Table.Columns.
	Columns []int
	Keys    []LookupKey
	// Condition decides about pairs of equal keys, over the output columns; nil:
	// every pair matches.
	Condition expr.Expr
	// Outer keeps rows without a match, with NULLs.
	Outer bool
}

// LookupKey is a column of the table, an index into its Columns, and what it has to
// be equal to: over the input's columns, of the column's type. NULL and NaN equal
// nothing.
type LookupKey struct {
	Column int
	Value  expr.Expr
}

func (*Lookup) op() {}

// TableColumns are the columns that the table gives.
func (op *Lookup) TableColumns() *batch.Schema { return op.Table.Schema(op.Columns) }

func (v *validator) lookup(id NodeID, op *Lookup) error {
	if op.Table == nil || op.Connector == nil {
		return v.fault("table or connector is missing")
	}
	if v.keyed[id] {
		return v.fault("a lookup runs inside lanes")
	}
	if len(op.Keys) == 0 {
		return v.fault("it has no key")
	}
	in := v.input(0).Schema
	for _, k := range op.Keys {
		if k.Column < 0 || k.Column >= len(op.Table.Columns) {
			return v.fault("table %s has no column %d", op.Table.Name, k.Column)
		}
		if l, r := k.Value.Type(), op.Table.Columns[k.Column].Type; !sameLayout(l, r) && !(l.IsString() && r.IsString()) {
			return v.fault("a key is %s on the left and %s in table %s", l, r, op.Table.Name)
		}
		if err := v.exprs(in, k.Value); err != nil {
			return err
		}
	}
	want := &batch.Schema{Fields: append([]types.Field(nil), in.Fields...)}
	for _, c := range op.Columns {
		if c < 0 || c >= len(op.Table.Columns) {
			return v.fault("table %s has no column %d", op.Table.Name, c)
		}
		want.Fields = append(want.Fields, op.Table.Columns[c].Field)
	}
	if err := v.same(want, v.n.Schema); err != nil {
		return err
	}
	if op.Condition == nil {
		return nil
	}
	if op.Condition.Type().Kind != types.Boolean {
		return v.fault("condition %s is %s", op.Condition, op.Condition.Type())
	}
	return v.exprs(v.n.Schema, op.Condition)
}
