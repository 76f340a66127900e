package graph

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/types"
)

// OfflineBranch is a branch of a wide table whose rows are those of one generation of a
// table. It is no input of the node: the table is read when a window goes out.
type OfflineBranch struct {
	Label string
	// At is its place among all branches, as declared.
	At        int
	Table     *connector.Table
	Connector connector.SourceConnector
	// Read are the columns that are read, indexes into Table.Columns; Generation is the
	// one of them that says of which generation a row is.
	Read       []int
	Generation int
	// Value is the generation of a window, of the type of that column, over window_start
	// and window_end as TIMESTAMP(3).
	Value expr.Expr
	// Filter, nil: every row, is over the columns read, and so are Exprs, which make the
	// branch's columns. Keys are indexes of these.
	Filter expr.Expr
	Exprs  []expr.Expr
	Schema *batch.Schema
	Keys   []int
	// CreatesRows: its keys are rows of every window that a row of another branch is in;
	// else it adds to rows that are there.
	CreatesRows bool
}

// Order is the branches as they are declared: the number of one in Branches, or -1-i for
// Offline[i].
func (op *WideMerge) Order() []int {
	var out []int
	next := 0
	for at := range len(op.Branches) + len(op.Offline) {
		if i := slices.IndexFunc(op.Offline, func(b OfflineBranch) bool { return b.At == at }); i >= 0 {
			out = append(out, -1-i)
			continue
		}
		out = append(out, next)
		next++
	}
	return out
}

func (v *validator) offline(op *WideMerge, b *OfflineBranch) error {
	if b.Table == nil || b.Connector == nil {
		return v.fault("branch %q has no table or no connector", b.Label)
	}
	read := &batch.Schema{}
	for _, c := range b.Read {
		if c < 0 || c >= len(b.Table.Columns) {
			return v.fault("table %s has no column %d", b.Table.Name, c)
		}
		read.Fields = append(read.Fields, b.Table.Columns[c].Field)
	}
	if !slices.Contains(b.Read, b.Generation) {
		return v.fault("the generation of branch %q is not read", b.Label)
	}
	if l, r := b.Value.Type(), b.Table.Columns[b.Generation].Type; !sameLayout(l, r) && !(l.IsString() && r.IsString()) {
		return v.fault("the generation of branch %q is %s, in the table %s", b.Label, l, r)
	}
	bound := types.Field{Type: types.NewTimestamp(3)}
	if err := v.exprs(&batch.Schema{Fields: []types.Field{bound, bound}}, b.Value); err != nil {
		return err
	}
	if b.Filter != nil {
		if err := v.exprs(read, b.Filter); err != nil {
			return err
		}
	}
	if err := v.exprs(read, b.Exprs...); err != nil {
		return err
	}
	if len(b.Exprs) != len(b.Schema.Fields) || len(b.Keys) != len(op.Branches[0].Keys) {
		return v.fault("branch %q has %d expressions and %d keys", b.Label, len(b.Exprs), len(b.Keys))
	}
	return v.columns(b.Schema, b.Keys...)
}
