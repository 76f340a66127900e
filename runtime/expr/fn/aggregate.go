package fn

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// AggOptions are the clauses of an aggregate call.
type AggOptions struct {
	// Distinct: each distinct value (tuple of values) counts once a group.
	Distinct bool
	// KeepNulls: FIRST_VALUE and LAST_VALUE take NULLs as values.
	KeepNulls bool
	// IgnoreNulls: ARRAY_AGG leaves NULLs out.
	IgnoreNulls bool
}

// BoundAggregate is an aggregate bound to argument types.
type BoundAggregate struct {
	// Params are the types to which the caller casts the arguments.
	Params []types.Type
	// Return is the result type.
	Return types.Type
	// Ordered: Update needs the order column (FIRST_VALUE, LAST_VALUE,
	// LISTAGG, ARRAY_AGG).
	Ordered bool
	// User is which user function it is, nil for a built-in one.
	User *Version
	// New makes an empty accumulator.
	New func() Accumulator
}

// Aggregate is the one declaration of an aggregate function.
type Aggregate struct {
	Name     string
	Aliases  []string
	Syntax   []string
	Doc      string
	Examples []AggExample
	// User is set for a program's own aggregate, nil for a built-in one.
	User *User
	// Bind checks count and types of the arguments. COUNT(*) has none.
	Bind func(args []Arg, opts AggOptions) (BoundAggregate, error)
}

// AggExample is a call over one column of values that docs print and a test
// runs.
type AggExample struct {
	// SQL is the call over a column x, e.g. "SUM(x)".
	SQL string
	// Type is the SQL type of x as docs print it; the test knows INT, BIGINT,
	// DOUBLE, STRING, DECIMAL(10, 2).
	Type string
	// Rows are the values of x in version order; "NULL" for NULL.
	Rows []string
	// Want as in Example.
	Want string
}

// Accumulator holds one aggregate for many groups. Its result depends on the
// set of rows (and their order keys), never on the order of the calls, nor on
// how rows are split between accumulators that are merged.
//
// Groups are dense numbers from 0, given by the caller. It belongs to one
// goroutine.
type Accumulator interface {
	// Resize makes groups 0..n-1 exist; new ones are empty.
	Resize(n int)
	// Update folds the rows of sel (nil: all) in: groups[row] is the group of
	// a row, args are as BoundAggregate.Params (any encoding); order is a
	// BYTES column of order keys (batch.AppendOrderValue and
	// AppendOrderPosition) and may be nil when the
	// aggregate is not Ordered. FILTER is a narrower sel. A row whose argument
	// is an error must not be in sel: the operator has dealt with it.
	Update(groups []int32, args []batch.Vec, order *batch.Vec, sel batch.Sel)
	// Merge folds group g of o, an accumulator made by the same New, into
	// group into[g]; into[g] < 0 skips it.
	Merge(o Accumulator, into []int32)
	// AppendState appends the serialised state of a group. It is versioned by
	// its first byte and equal for equal sets of rows.
	AppendState(dst []byte, group int) []byte
	// MergeState folds a serialised state into a group.
	MergeState(group int, state []byte) error
	// Emit writes the results of groups into out (Reset by Emit to the return
	// type). A result out of range is an error value with where as its place.
	Emit(groups []int32, where string, out *batch.Vec)
	// Clear makes a group empty again, so that its number can be used anew.
	Clear(group int)
	// Bytes estimates the memory held.
	Bytes() int64
}

// mergeGroups merges each group of from into the one of to that into names; -1
// leaves it out.
func mergeGroups[T any, P interface {
	*T
	merge(*T)
}](to, from []T, into []int32) {
	for g, k := range into {
		if g < len(from) && k >= 0 {
			P(&to[k]).merge(&from[g])
		}
	}
}
