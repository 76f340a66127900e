package graph

import "fmt"

// OpName is the operator's name for EXPLAIN and messages.
func OpName(op Op) string {
	switch op.(type) {
	case *Source:
		return "Source"
	case *Project:
		return "Project"
	case *Filter:
		return "Filter"
	case *Unnest:
		return "Unnest"
	case *Lookup:
		return "Lookup"
	case *Union:
		return "Union"
	case *WindowAssign:
		return "WindowAssign"
	case *Exchange:
		return "Exchange"
	case *WindowAggregate:
		return "WindowAggregate"
	case *SessionAssign:
		return "SessionAssign"
	case *Rank:
		return "Rank"
	case *FirstRow:
		return "FirstRow"
	case *Normalize:
		return "Normalize"
	case *Over:
		if o := op.(*Over); len(o.Calls) == 0 {
			return "Sort"
		}
		return "Over"
	case *GroupAggregate:
		return "GroupAggregate"
	case *WideMerge:
		return "WideMerge"
	case *Join:
		return "Join"
	case *SetOperation:
		return "SetOperation"
	case *Sort:
		return "Sort"
	case *Limit:
		return "Limit"
	case *Values:
		return "Values"
	case *Sink:
		return "Sink"
	}
	return fmt.Sprintf("%T", op)
}

// Spills reports an operator whose state goes to disk beyond its memory.
func Spills(op Op) bool {
	switch op := op.(type) {
	case *GroupAggregate, *SetOperation, *Sort, *Rank, *FirstRow, *Normalize, *WideMerge, *SessionAssign:
		return true
	case *WindowAggregate:
		return !op.Firing.On() && !op.Retracts
	case *Over:
		return len(op.Keys) > 0
	case *Join:
		streams := op.Changes && (op.NullAware || len(op.Keys) == 0)
		timed := (op.Interval != nil || op.Temporal != nil) && len(op.Keys) == 0
		return !timed && !streams
	}
	return false
}

// Stateful reports an operator that lives in a keyed stage.
func Stateful(op Op) bool {
	switch op.(type) {
	case *WindowAggregate, *GroupAggregate, *WideMerge, *Join, *SetOperation, *Sort, *Limit, *SessionAssign, *Rank, *FirstRow, *Normalize, *Over:
		return true
	}
	return false
}
