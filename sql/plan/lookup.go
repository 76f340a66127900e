package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// Lookup joins each row of its input with the rows that a table has for its keys when
// the row is processed. Cols are the input's columns, then Table's, nullable in a
// LEFT join.
type Lookup struct {
	Input Node
	Kind  graph.JoinKind // INNER or LEFT
	// Table gives Right, which are its columns Ordinals as of a Scan.
	Table    *catalog.Table
	Right    []Column
	Ordinals []int
	Keys     []LookupKey
	// Condition is over the columns of both sides; nil: none.
	Condition expr.Expr
	Cols      []Column
	Span      diag.Span
}

// LookupKey is a column of the table, an ordinal as of a Scan, and its value over the
// input's columns.
type LookupKey struct {
	Ordinal int
	Name    string
	Value   expr.Expr
}

// Columns implements Node.
func (n *Lookup) Columns() []Column { return n.Cols }

// Inputs implements Node.
func (n *Lookup) Inputs() []Node { return []Node{n.Input} }

// With implements Node.
func (n *Lookup) With(in ...Node) Node {
	c := *n
	c.Input = in[0]
	c.Cols = c.columnsOver(in[0], n.Right)
	return &c
}

// Over is the node over another input, with some of its own columns of the table.
func (n *Lookup) Over(in Node, right []Column, ordinals []int) *Lookup {
	c := *n
	c.Input, c.Right, c.Ordinals = in, right, ordinals
	c.Cols = c.columnsOver(in, right)
	return &c
}

func (n *Lookup) columnsOver(in Node, right []Column) []Column {
	out := append([]Column(nil), in.Columns()...)
	for _, c := range right {
		if n.Kind == graph.LeftJoin {
			c.Type = c.Type.WithNullable(true)
		}
		out = append(out, c)
	}
	return out
}
