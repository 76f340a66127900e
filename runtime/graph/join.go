package graph

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/types"
)

// JoinKind says which rows a Join gives.
type JoinKind uint8

// The kinds. Inner to Full give the left columns, then the right ones; Semi and
// Anti the left columns alone.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	// SemiJoin gives left rows that have a match, once; AntiJoin those that have
	// none.
	SemiJoin
	AntiJoin
	// MarkJoin gives every left row once, with a BOOLEAN: TRUE if some pair's
	// condition is TRUE, else NULL if one is unknown, else FALSE. EXISTS and IN
	// are read off it wherever they stand.
	MarkJoin
	// SingleJoin gives every left row once, with the columns of its match, or
	// NULLs. More than one match is the value error subquery_rows.
	SingleJoin
)

var joinNames = [...]string{"INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "MARK", "SINGLE"}

// String is the kind as EXPLAIN prints it.
func (k JoinKind) String() string { return joinNames[k] }

// KeepsLeft reports a kind that gives left rows without a match.
func (k JoinKind) KeepsLeft() bool {
	switch k {
	case LeftJoin, FullJoin, AntiJoin, MarkJoin, SingleJoin:
		return true
	}
	return false
}

// KeepsRight reports a kind that gives right rows without a match.
func (k JoinKind) KeepsRight() bool { return k == RightJoin || k == FullJoin }

// JoinKey is a pair of columns that have to be equal. NULL and NaN equal nothing,
// but with NullSafe NULL equals NULL.
type JoinKey struct {
	Left, Right int
	NullSafe    bool
}

// JoinInterval bounds how far apart the row times of a pair lie: right minus left is
// from Lower to Upper, in ms, or the condition is not TRUE.
type JoinInterval struct {
	// LeftTime and RightTime are row time columns of the inputs.
	LeftTime, RightTime int
	Lower, Upper        int64
}

// JoinTemporal are the row times of a temporal join: of the left rows, and from when
// on each right row is the version of its key.
type JoinTemporal struct {
	LeftTime, RightTime int
}

// Join joins two inputs, each an exchange by the keys. Its rows come when both
// have ended; of a window join when the window has, and of an interval join a pair
// as soon as both rows are there, and a padded row when no partner can come any
// more; of a temporal join a left row when the watermark has come to its time.
type Join struct {
	Kind JoinKind
	Keys []JoinKey
	// Condition decides about pairs of equal keys, over the left columns followed
	// by the right ones; nil: every pair matches.
	Condition expr.Expr
	// NullAware is of a MarkJoin without a Condition: the last key is the operand
	// of IN, whose comparison may be unknown. The exchanges are by the others.
	NullAware bool
	// Windows are the Given windows of the two inputs, whose bounds are keys, too:
	// a window join; nil: none.
	Windows []Window
	// Interval makes an interval join, of the kinds INNER to FULL; nil: none.
	Interval *JoinInterval
	// Temporal makes a temporal join, of the kinds INNER and LEFT: a left row is
	// paired with the right row of its key that has the greatest time up to its own;
	// of equal times with the one that came last; nil: none. The condition decides
	// about that pair. With Retracts left rows may take earlier ones back, of any time:
	// their results go (-D), and all versions stay; and a right row that is a deletion
	// says that its key has no version from its time on.
	Temporal *JoinTemporal
	// Changes makes a join of streams without a bound in time, of the kinds INNER to
	// MARK: a pair comes as soon as both rows are there, a padded row is taken back
	// (-D) when its first partner comes. Retracts says of which inputs rows may take
	// earlier ones back, TTL how long, in ms, rows of each are kept; 0: for good.
	Changes  bool
	Retracts [2]bool
	TTL      [2]int64
	// Late is of window, interval and temporal joins.
	Late LateRows
}

// Streams reports a join that needs no end of its inputs.
func (j *Join) Streams() bool { return j.Windows != nil || j.Interval != nil || j.Temporal != nil }

// TimeColumn is the row time column of an input of an interval or temporal join; -1
// of another one.
func (j *Join) TimeColumn(input int) int {
	var t [2]int
	switch {
	case j.Interval != nil:
		t = [2]int{j.Interval.LeftTime, j.Interval.RightTime}
	case j.Temporal != nil:
		t = [2]int{j.Temporal.LeftTime, j.Temporal.RightTime}
	default:
		return -1
	}
	return t[input]
}

// HoldMillis is how far the row times of results lie behind the watermark at most.
func (j *Join) HoldMillis() int64 {
	if j.Interval == nil {
		return 0
	}
	return max(j.Interval.Upper, -j.Interval.Lower, 0)
}

// ExchangeKeys are the key columns of one input by which its exchange goes.
func (j *Join) ExchangeKeys(input int) []int {
	keys := j.Keys
	if j.NullAware {
		keys = keys[:len(keys)-1]
	}
	return sideKeys(keys, input)
}

// InputKeys are all key columns of one input.
func (j *Join) InputKeys(input int) []int { return sideKeys(j.Keys, input) }

func sideKeys(keys []JoinKey, input int) []int {
	out := make([]int, len(keys))
	for i, k := range keys {
		if out[i] = k.Left; input == 1 {
			out[i] = k.Right
		}
	}
	return out
}

// PairSchema is the left columns followed by the right ones.
func PairSchema(left, right *batch.Schema) *batch.Schema {
	return &batch.Schema{Fields: append(append([]types.Field(nil), left.Fields...), right.Fields...)}
}

// SetKind is a set operation.
type SetKind uint8

// The kinds.
const (
	Intersect SetKind = iota
	Except
)

// SetOperation is INTERSECT or EXCEPT of two inputs of equal schemas, each an
// exchange by all columns. NULL equals NULL. Over input that ends it gives its rows
// then, with Changes each as it comes (+I) and goes (-D), and takes rows back.
type SetOperation struct {
	Kind SetKind
	// All keeps copies: the lesser of the two numbers, or their difference.
	All     bool
	Changes bool
	// TTL is how long, in ms, a row is known after it came or went last; 0: for good.
	TTL int64
}

func (*Join) op()         {}
func (*SetOperation) op() {}

func (v *validator) join(op *Join) error {
	for i := range 2 {
		if err := v.behindExchange(i); err != nil {
			return err
		}
	}
	left, right := v.input(0).Schema, v.input(1).Schema
	for _, k := range op.Keys {
		if err := v.columns(left, k.Left); err != nil {
			return err
		}
		if err := v.columns(right, k.Right); err != nil {
			return err
		}
		if l, r := left.Fields[k.Left].Type, right.Fields[k.Right].Type; !sameLayout(l, r) {
			return v.fault("a key is %s on the left and %s on the right", l, r)
		}
	}
	if op.NullAware && (op.Kind != MarkJoin || len(op.Keys) == 0 || op.Condition != nil) {
		return v.fault("only a mark join by keys alone can be null-aware")
	}
	if err := v.streamJoin(op, left, right); err != nil {
		return err
	}
	want := PairSchema(left, right)
	switch op.Kind {
	case SemiJoin, AntiJoin:
		want = left
	case MarkJoin:
		want = &batch.Schema{Fields: append(append([]types.Field(nil), left.Fields...), types.Field{Type: types.NewBoolean()})}
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
	return v.exprs(PairSchema(left, right), op.Condition)
}

// streamJoin checks windows, interval and versions.
func (v *validator) streamJoin(op *Join, left, right *batch.Schema) error {
	sides := []*batch.Schema{left, right}
	if op.Windows != nil && (len(op.Windows) != 2 || op.Interval != nil) {
		return v.fault("a window join has a window for each input, and no interval")
	}
	for i, w := range op.Windows {
		if w.Kind != Given {
			return v.fault("the windows of input %d are not given", i)
		}
		if err := v.window(w, w.End, sides[i]); err != nil {
			return err
		}
	}
	if op.Changes && (op.Kind > MarkJoin || op.Streams()) {
		return v.fault("a %s join cannot give changes", op.Kind)
	}
	if t := op.Interval; t != nil && (op.Kind > FullJoin || t.Lower > t.Upper) {
		return v.fault("interval of a %s join from %d to %d ms", op.Kind, t.Lower, t.Upper)
	}
	if op.Temporal != nil && (op.Kind > LeftJoin || op.Windows != nil || op.Interval != nil || len(op.Keys) == 0) {
		return v.fault("a temporal join is INNER or LEFT and has keys, and no windows or interval")
	}
	for i, side := range sides {
		if c := op.TimeColumn(i); c >= 0 {
			if err := v.window(Window{Size: 1}, c, side); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *validator) setOperation() error {
	for i := range 2 {
		if err := v.behindExchange(i); err != nil {
			return err
		}
		if err := v.same(v.input(i).Schema, v.n.Schema); err != nil {
			return err
		}
	}
	return nil
}

// InputLabel names an input of an operator that has several: a wide table's
// branch, "left" and "right"; "" for an operator with one.
func InputLabel(op Op, input int) string {
	switch op := op.(type) {
	case *WideMerge:
		return op.Branches[input].Label
	case *Join, *SetOperation:
		return [...]string{"left", "right"}[input]
	}
	return ""
}
