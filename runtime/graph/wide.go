package graph

import "github.com/millrace/millrace/runtime/types"

// Rule is how a wide table merges the values of one column.
type Rule uint8

const (
	RuleLast Rule = iota
	RuleFirst
	RuleSum
	RuleCount
	RuleMin
	RuleMax
	RuleAvg
	RuleCollect // all values, in order
)

// WideColumn is a value column of a wide table.
type WideColumn struct {
	Name string
	Type types.Type
	// Branch is the label of the branch that the column comes from.
	Branch string
	Rule   Rule
	// Input is the column of the branch's input that holds the value; for
	// RuleCount -1 counts rows.
	Input int
}

// WideBranch is one branch of a wide table: one input of the WideMerge node.
type WideBranch struct {
	Label string
	// Keys, Time and Version are columns of the branch's input. Version -1:
	// row time orders.
	Keys      []int
	Time      int
	Version   int
	KeepNulls bool
}

// WideMerge builds a wide table. Inputs are the branches' exchanges, in the
// order of Branches. Output: keys, window_start, window_end, then Columns, then
// coverage (ARRAY<STRING>) when asked for.
type WideMerge struct {
	Window   Window
	Lateness int64
	Branches []WideBranch
	Columns  []WideColumn
	Coverage bool
	Late     LateRows
	// Correct is above zero where windows go out whole when they are over, and again
	// with the rows that come late, at most once in so many ms of the clock.
	Correct int64
	// Offline are the branches whose rows are read when a window goes out. A window that
	// is over waits for its generations, OfflineTimeout ms at most; with OfflineNow it
	// does not wait for one that is not there, only for a table that cannot be read.
	Offline        []OfflineBranch
	OfflineTimeout int64
	OfflineNow     bool
}

func (*WideMerge) op() {}

func (v *validator) wide(op *WideMerge) error {
	if op.Correct < 0 || op.Correct > 0 && op.Lateness <= 0 && len(op.Offline) == 0 {
		return v.fault("corrections every %d ms of windows that take rows for %d ms after their end", op.Correct, op.Lateness)
	}
	labels := map[string]bool{}
	for i := range op.Branches {
		b := &op.Branches[i]
		if labels[b.Label] {
			return v.fault("branch label %q twice", b.Label)
		}
		labels[b.Label] = true
		if err := v.behindExchange(i); err != nil {
			return err
		}
		if op.Window.Kind != Tumble {
			return v.fault("a wide table has tumbling windows")
		}
		in := v.input(i).Schema
		if err := v.window(op.Window, b.Time, in); err != nil {
			return err
		}
		if err := v.columns(in, b.Keys...); err != nil {
			return err
		}
		if b.Version >= 0 {
			if err := v.columns(in, b.Version); err != nil {
				return err
			}
		}
	}
	for i := range op.Offline {
		b := &op.Offline[i]
		if labels[b.Label] {
			return v.fault("branch label %q twice", b.Label)
		}
		labels[b.Label] = true
		if err := v.offline(op, b); err != nil {
			return err
		}
	}
	for i := range op.Columns {
		if !labels[op.Columns[i].Branch] {
			return v.fault("column %q is of no branch", op.Columns[i].Name)
		}
	}
	return nil
}
