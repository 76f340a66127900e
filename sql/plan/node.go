package plan

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
)

// Node is an operator of a logical plan.
type Node interface {
	// Columns are the output columns.
	Columns() []Column
	// Inputs are the nodes below.
	Inputs() []Node
	// With is the node over other inputs that give the same columns.
	With(inputs ...Node) Node
}

// Scan reads the physical and metadata columns of a table.
type Scan struct {
	Table *catalog.Table
	Cols  []Column
	// Ordinals are the columns' places among the table's physical and
	// metadata columns (catalog.Table.SourceTable), ascending.
	Ordinals []int
	// Watermark is the WATERMARK expression over Cols, computed columns
	// replaced by their expressions; nil: none.
	Watermark expr.Expr
	// Partitions is a condition on the partition columns among Cols: rows of table
	// partitions for which it is not TRUE are not wanted. nil: all are.
	Partitions expr.Expr
	// Time is the id of the row time column where it is one of Cols, else -1.
	Time int
}

// Project computes columns.
type Project struct {
	Input Node
	Exprs []expr.Expr // over the input's columns
	Cols  []Column
}

// Filter keeps rows for which Predicate is TRUE.
type Filter struct {
	Input     Node
	Predicate expr.Expr
}

// Unnest is CROSS or LEFT JOIN UNNEST. Cols are the input's columns, then the
// element's.
type Unnest struct {
	Input      Node
	Value      expr.Expr
	Outer      bool
	Ordinality bool
	// Condition is that of a LEFT JOIN, over Cols; nil: TRUE.
	Condition expr.Expr
	Cols      []Column
}

// Union is UNION ALL; inputs give the same number and types of columns.
type Union struct {
	In   []Node
	Cols []Column
}

// WindowTable gives each row once for each of its windows, with window_start,
// window_end and window_time. Cols are the input's columns, then these three.
type WindowTable struct {
	Input  Node
	Window *Window
	Time   int // id of the time column
	// Keys are the ids of the columns that have sessions of their own.
	Keys []int
	// OwnKeys: sessions are of the keys of the aggregate above.
	OwnKeys bool
	// CheckOnly: nobody looks at the window's columns, for the aggregate above
	// divides time itself; rows come once, and fail where they have no time.
	CheckOnly bool
	Cols      []Column
	// Path identifies the state, which sessions alone have.
	Path string
	Span diag.Span
}

// AggCall is one aggregate.
type AggCall struct {
	Agg     *fn.Aggregate
	Bound   fn.BoundAggregate
	Options fn.AggOptions
	// Args are columns of the input, of exactly Bound.Params.
	Args []expr.Expr
	// Filter is a BOOLEAN column of the input, nil for none.
	Filter expr.Expr
	// Text is the canonical call, which names the state slot.
	Text string
}

// Aggregate is GROUP BY. With Updates, in streaming mode without a window, it gives
// the changes of its groups. Cols are the keys, the aggregates, and with a Window
// its start, end and time.
type Aggregate struct {
	Input Node
	Keys  []int // ids of input columns
	Aggs  []AggCall
	// Updates: in streaming mode without a window. TTL is how long, in ms, a group is
	// kept then; 0: for good.
	Updates bool
	TTL     int64
	// Window is nil for GROUP BY without a window.
	Window *Window
	// Given are the columns that hold the rows' windows; nil: Time is divided.
	Given *GivenWindow
	// Firing is of windows that give rows more than once; nil: once.
	Firing *Firing
	// Time is the id of the input column that windows divide and that orders
	// rows for FIRST_VALUE and the like; -1: none.
	Time int
	Cols []Column
	// Path identifies the state.
	Path string
	Span diag.Span // GROUP BY
}

// GivenWindow is the ids of window_start and window_end among the input's
// columns.
type GivenWindow struct{ Start, End int }

// SortKey is one item of ORDER BY.
type SortKey struct {
	ID        int
	Desc      bool
	NullsLast bool
}

// Sort is ORDER BY with LIMIT and OFFSET; Limit -1 is none. Without keys it is
// a plain LIMIT.
type Sort struct {
	Input         Node
	Keys          []SortKey
	Offset, Limit int64
	// ByTime: in a stream, by row time first; rows come when the watermark has passed
	// them. Path and Span are its alone.
	ByTime bool
	Path   string
	Span   diag.Span
}

// Values is literal rows.
type Values struct {
	Rows [][]expr.Expr
	Cols []Column
}

// WideBranch is one branch of a wide table. Its input is already projected to
// keys, time, version and values.
type WideBranch struct {
	Label     string
	Input     Node
	Keys      []int // ids
	Time      int   // id
	Version   int   // id, -1: row time
	KeepNulls bool
}

// WideValue is one column of a wide table that comes from a branch.
type WideValue struct {
	// Branch is a number in Branches, or in Offline.
	Branch  int
	Offline bool
	Rule    Rule
	// Input is the id of the branch's column, -1 for COUNT(*).
	Input int
}

// Rule is how a wide table merges a column.
type Rule uint8

// The rules.
const (
	RuleLast Rule = iota
	RuleFirst
	RuleSum
	RuleCount
	RuleMin
	RuleMax
	RuleAvg
	RuleCollect
)

// String is the rule as EXPLAIN prints it.
func (r Rule) String() string {
	return [...]string{"last", "first", "sum", "count", "min", "max", "avg", "collect"}[r]
}

// Wide merges branches into one row per key and window. Cols are the keys,
// window_start, window_end, the values, and the coverage column if there is
// one.
type Wide struct {
	Branches []WideBranch
	Values   []WideValue
	Window   *Window
	Lateness int64 // ms
	// Offline are the branches that are read when a window goes out; OfflineTimeout is
	// how long one waits for them, in ms.
	Offline        []OfflineBranch
	OfflineTimeout int64
	// Correct is the least time, in ms, between two corrections of a window that has
	// gone out; 0: windows go out once.
	Correct  int64
	Coverage bool
	Cols     []Column
	Path     string
	Table    *catalog.Table
}

// Insert writes a table; its input has the table's writable columns, in
// order and of their types.
type Insert struct {
	Input     Node
	Table     *catalog.Table
	Overwrite bool
	// Static is the row of the table that PARTITION (...) fixes, where that is every
	// partition column and Overwrite is set; else nil.
	Static []expr.Expr
	// Late, if not nil: the rows that are late for a window alone.
	Late *LateOf
	Span diag.Span
}

// Columns implements Node.
func (n *Scan) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Project) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Filter) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Unnest) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Union) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *WindowTable) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Aggregate) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Sort) Columns() []Column { return n.Input.Columns() }

// Columns implements Node.
func (n *Values) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Wide) Columns() []Column { return n.Cols }

// Columns implements Node; an Insert gives none.
func (n *Insert) Columns() []Column { return nil }

// Inputs implements Node.
func (n *Scan) Inputs() []Node { return nil }

// Inputs implements Node.
func (n *Project) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Filter) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Unnest) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Union) Inputs() []Node { return n.In }

// Inputs implements Node.
func (n *WindowTable) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Aggregate) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Sort) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Values) Inputs() []Node { return nil }

// Inputs implements Node.
func (n *Wide) Inputs() []Node {
	in := make([]Node, len(n.Branches))
	for i := range n.Branches {
		in[i] = n.Branches[i].Input
	}
	return in
}

// Inputs implements Node.
func (n *Insert) Inputs() []Node { return []Node{n.Input} }

// With implements Node.
func (n *Scan) With(...Node) Node { return n }

// With implements Node.
func (n *Project) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// With implements Node.
func (n *Filter) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// With implements Node.
func (n *Unnest) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// With implements Node.
func (n *Union) With(in ...Node) Node { c := *n; c.In = in; return &c }

// With implements Node.
func (n *WindowTable) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// With implements Node.
func (n *Aggregate) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// With implements Node.
func (n *Sort) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// With implements Node.
func (n *Values) With(...Node) Node { return n }

// With implements Node.
func (n *Wide) With(in ...Node) Node {
	c := *n
	c.Branches = append([]WideBranch(nil), n.Branches...)
	for i := range c.Branches {
		c.Branches[i].Input = in[i]
	}
	return &c
}

// With implements Node.
func (n *Insert) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// Walk calls f for n and what is below it, parents first; f returns false to
// leave the inputs of a node out.
func Walk(n Node, f func(Node) bool) {
	if !f(n) {
		return
	}
	for _, in := range n.Inputs() {
		Walk(in, f)
	}
}

// Scans are the scans of a plan, in order.
func Scans(n Node) []*Scan {
	var out []*Scan
	Walk(n, func(n Node) bool {
		if s, ok := n.(*Scan); ok {
			out = append(out, s)
		}
		return true
	})
	return out
}
