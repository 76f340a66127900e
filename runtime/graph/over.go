package graph

import (
	"github.com/millrace/millrace/runtime/expr/fn"
)

// OverFunc is a function over the rows of a partition.
type OverFunc uint8

const (
	// OverAggregate is any aggregate, over a frame of rows. ROW_NUMBER is COUNT(*).
	OverAggregate OverFunc = iota
	OverRank
	OverDenseRank
	OverPercentRank
	OverCumeDist
	// OverNtile divides a partition into Offset parts.
	OverNtile
	// OverLag and OverLead give the argument of the row Offset before or behind.
	OverLag
	OverLead
)

// BoundKind is a kind of frame bound.
type BoundKind uint8

const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// FrameBound is one end of a frame. Offset is of rows, or of a RANGE in the unit of
// the order column.
type FrameBound struct {
	Kind   BoundKind
	Offset int64
}

// Frame is which rows around a row an aggregate takes: by number (Rows), or by the
// value that orders them, where equal ones go together.
type Frame struct {
	Rows       bool
	Start, End FrameBound
}

// OverCall is one function of an Over.
type OverCall struct {
	// Name is the output column, Text the canonical call, as of an Aggregate.
	Name, Text string
	Func       OverFunc
	// Bound is the aggregate; Args are columns of the input, of exactly its
	// parameters, or the argument of OverLag and OverLead, Default the column with
	// what stands where there is no such row, -1: NULL.
	Bound   fn.BoundAggregate
	Args    []int
	Default int
	// Filter is a BOOLEAN column of the input, -1: none.
	Filter int
	Frame  Frame
	Offset int64
}

// Over adds to each row the results of functions over the rows of its key, which
// Order puts in order. Output columns: the input's, then one a call.
//
// With Time, which then is what Order goes by, rows come when the watermark has
// passed them, and frames end with the row; without, at the end of bounded input.
// Without calls it is ORDER BY of a stream: Time is the first item of Order then.
//
// With Changes, in a stream without Time, rows come at once, and again (-U, +U) when
// others come in front of them or go; calls are aggregates of the rows from the first
// to the current one then.
type Over struct {
	Time  int // -1: none
	Keys  []int
	Order []SortKey
	Calls []OverCall
	// Changes: results change, and rows of the input may be taken back.
	Changes bool
	// TTL is how long, in ms, what is known of a key is kept after its last row; 0: for
	// good.
	TTL  int64
	Late LateRows
}
