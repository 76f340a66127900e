package graph

import (
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
)

// NodeID is a node's index in Job.Nodes.
type NodeID int

// Job is a whole job.
type Job struct {
	Name string
	// Nodes in topological order: inputs have lower ids.
	Nodes []*Node
	// Bounded: every source ends by itself.
	Bounded bool
	// Batch: 'execution.runtime-mode'='batch': nothing is late, GROUP BY
	// without a window emits final rows.
	Batch bool
	// Zone is the session zone.
	Zone *time.Location
	// Options are the job-wide SET keys, checked by the front end
	// (checkpoint interval, slot.*, lane.*, dead.*, ledger.*).
	Options map[string]string
}

// Node is one operator with its inputs and output columns.
type Node struct {
	ID     NodeID
	Op     Op
	Inputs []NodeID
	Schema *batch.Schema
	// Path identifies the operator for EXPLAIN and for state: sink table or
	// wide branch label, clause path, operator kind. Unique among stateful
	// nodes of a job.
	Path string
	// TimeColumn is the output column that carries row time, -1 when none.
	TimeColumn int
}

// Op is one of the operator types of this package.
type Op interface{ op() }

// ErrorPolicy says what happens to a row that fails after decoding
// ('lane.on-error'), or to a late row.
type ErrorPolicy uint8

const (
	DeadLetter ErrorPolicy = iota
	Drop
	Fail
)

// Source reads a table. Its output is Table.Columns[Columns...].
type Source struct {
	Table     *connector.Table
	Connector connector.SourceConnector
	// Columns are the needed columns, indexes into Table.Columns.
	Columns []int
	// Watermark is the WATERMARK expression over the node's output columns,
	// a timestamp; nil: none. It is evaluated for every row in offset order,
	// before any filter.
	Watermark expr.Expr
	// Partitions is a condition on the columns Table.PartitionKeys, in their order:
	// rows of table partitions for which it is not TRUE need not be read. nil: none.
	Partitions expr.Expr
	// IdleTimeout is after how long a partition at its log's end no longer
	// holds windows back; 0: never.
	IdleTimeout time.Duration
}

// Project computes the output columns from the input's.
type Project struct{ Exprs []expr.Expr }

// Filter keeps the rows for which Predicate is TRUE.
type Filter struct{ Predicate expr.Expr }

// Unnest is CROSS (or LEFT) JOIN UNNEST: for each input row one output row
// per element of the ARRAY or MAP that Value gives. Output columns are the
// input's, then the element's: a ROW's fields spread, (key, value) of a MAP.
type Unnest struct {
	Value expr.Expr
	// Outer keeps rows without elements, with NULLs.
	Outer bool
	// Ordinality appends a BIGINT column counting from 1.
	Ordinality bool
	// Condition, over the output's columns, says which elements count; nil: all. It is
	// of Outer alone, where a row of which none does keeps NULLs.
	Condition expr.Expr
}

// Union is UNION ALL; inputs have equal schemas.
type Union struct{}

// WindowAssign gives each row once for every window (Tumble, Hop, Cumulate)
// that its time falls into, with window_start, window_end and window_time added.
type WindowAssign struct {
	Window Window
	Time   int
}

// Exchange hands rows to a keyed stage, by the hash of the key columns; no
// keys: all to subtask 0.
type Exchange struct {
	Keys []int
	// Parallelism is the number of subtasks behind it.
	Parallelism int
}

// Aggregate is one aggregate call.
type Aggregate struct {
	// Name is the output column.
	Name string
	// Text is the canonical text of the call, e.g. "SUM(x) FILTER (WHERE y)".
	// Calls of equal text share one slot of state; it identifies the state.
	Text string
	// Bound is the aggregate overload.
	Bound fn.BoundAggregate
	// Args are over the input's columns, of exactly Bound.Params.
	Args []expr.Expr
	// Filter is the FILTER clause, a BOOLEAN over the input's columns, or nil.
	Filter expr.Expr
	// Order are the input columns that order the rows where Bound.Ordered
	// (row time or version, branch label, topic, partition, offset, row
	// index), most significant first; empty: row time, then the positions of
	// the hand-over, then the canonical encoding of the row.
	Order []int
}

// WindowAggregate is GROUP BY keys, window_start, window_end. Output columns:
// keys, aggregates, window_start, window_end, window_time.
type WindowAggregate struct {
	Window Window
	// Time is the row time column; -1: none, which Given windows allow.
	Time       int
	Keys       []int
	Aggregates []Aggregate
	// Lateness is how long, in ms, after its end a window still takes rows.
	Lateness int64
	Firing   Firing
	// Retracts: rows of the input may take earlier ones back. A key that has no rows
	// left has no row; one that is out is taken back (-D).
	Retracts bool
	Late     LateRows
}

// Firing is when a window gives rows other than once, when it is over and no row can
// come any more. A row that it has given is then taken back (-U) before the next one
// of its key (+U).
type Firing struct {
	// Early: rows go out before the window's end, EarlyDelay ms after they changed at
	// most, by the clock; 0: with each batch of input. At the end all are out.
	Early      bool
	EarlyDelay int64
	// Late: the window gives its rows at its end, not when the lateness is over, and
	// again LateDelay ms after late rows at most.
	Late      bool
	LateDelay int64
}

// On reports windows that give rows more than once.
func (f Firing) On() bool { return f.Early || f.Late }

// HoldMillis is how long after a window's end its rows can still come, so that
// results are held back. Of Session it is the lateness and the gap: a row is
// late when its own window, from it to the gap behind it, has ended, and may
// until then belong to a session that ends with it. Rows of processing time come in
// its order.
func (w *WindowAggregate) HoldMillis() int64 {
	if w.Window.Kind == Session && !w.Window.Processing {
		return w.Lateness + w.Window.Size
	}
	return w.Lateness
}

// SessionAssign gives the rows of each session of the keys with its window_start,
// window_end and window_time, once it is over. Output columns: the input's, then
// these three.
type SessionAssign struct {
	Window   Window
	Time     int
	Keys     []int
	Lateness int64
	Late     LateRows
}

// HoldMillis is as of a WindowAggregate.
func (s *SessionAssign) HoldMillis() int64 { return s.Lateness + s.Window.Size }

// Rank gives the first N rows of each key by Order: of every window, when it is
// over, where Window is Given; else of bounded input. Output columns: the input's,
// then, with Number, the row's number from 1 (BIGINT). With Changes, without windows,
// it gives them from the first row on, and takes back what comes to stand behind.
type Rank struct {
	// Window is Given; of kind Tumble with no size: there is none.
	Window Window
	Keys   []int
	Order  []SortKey
	N      int64
	Number bool
	// Latest: of rows that are equal by Order the last one comes first.
	Latest  bool
	Changes bool
	// Retracts: rows of the input may take earlier ones back.
	Retracts bool
	// TTL is how long, in ms, a row is kept; 0: for good.
	TTL  int64
	Late LateRows
}

// FirstRow gives the first row of each key by row time, when no earlier one can
// come. Output as of Rank.
type FirstRow struct {
	Time   int
	Keys   []int
	Number bool
	// TTL is how long, in ms, a key is remembered; 0: for good.
	TTL  int64
	Late LateRows
}

// Normalize keeps the last row of each key: input rows say what the row of their key is
// from now on, or with -D that it is gone. Output: the changes that they make, with the
// columns of the input.
type Normalize struct {
	Keys []int
	// TTL is how long, in ms, a row is kept; 0: for good.
	TTL int64
}

// LateRows is 'window.late-rows'.
type LateRows struct {
	Policy ErrorPolicy
	// Table is the node of the side table's sink when rows go to one, else -1.
	Table NodeID
}

// LateRowsOf is the policy of an operator that can have late rows, nil for others.
func LateRowsOf(op Op) *LateRows {
	switch op := op.(type) {
	case *WindowAggregate:
		return &op.Late
	case *SessionAssign:
		return &op.Late
	case *Rank:
		return &op.Late
	case *FirstRow:
		return &op.Late
	case *Over:
		return &op.Late
	case *WideMerge:
		return &op.Late
	case *Join:
		return &op.Late
	}
	return nil
}

// GroupAggregate is GROUP BY without a window. Output: keys, aggregates. Over input
// that ends it gives final rows, with Updates each change of a group as it comes:
// +I, then -U and +U. With Retracts, which goes with Updates, rows of the input may
// take earlier ones back; a group that has no rows left goes (-D).
type GroupAggregate struct {
	Updates  bool
	Retracts bool
	// TTL is how long, in ms, a group is kept after its last row; 0: for good.
	TTL        int64
	Keys       []int
	Aggregates []Aggregate
}

// SortKey is one ORDER BY item.
type SortKey struct {
	Column    int
	Desc      bool
	NullsLast bool
}

// Sort orders bounded input. Limit -1: all rows.
type Sort struct {
	Keys          []SortKey
	Offset, Limit int64
}

// Limit passes at most N rows after skipping Offset; bounded input.
type Limit struct{ Offset, N int64 }

// Values emits literal rows once.
type Values struct{ Rows [][]expr.Expr }

func (*Source) op()          {}
func (*Project) op()         {}
func (*Filter) op()          {}
func (*Unnest) op()          {}
func (*Union) op()           {}
func (*WindowAssign) op()    {}
func (*Exchange) op()        {}
func (*WindowAggregate) op() {}
func (*GroupAggregate) op()  {}
func (*Rank) op()            {}
func (*FirstRow) op()        {}
func (*Normalize) op()       {}
func (*Over) op()            {}
func (*SessionAssign) op()   {}
func (*Sort) op()            {}
func (*Limit) op()           {}
func (*Values) op()          {}
