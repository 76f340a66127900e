package graph

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
)

// UserFunctions are the user functions whose values reach a node: its own and
// those of everything that it gets rows from, each once, by name.
func (j *Job) UserFunctions(id NodeID) []fn.Version {
	var out []fn.Version
	above := make([]bool, len(j.Nodes))
	above[id] = true
	for i := id; i >= 0; i-- { // inputs have lower ids
		if !above[i] {
			continue
		}
		n := j.Nodes[i]
		for _, in := range n.Inputs {
			above[in] = true
		}
		for _, v := range n.UserFunctions() {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	slices.SortFunc(out, func(a, b fn.Version) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// UserFunctions are the user functions that the node itself calls.
func (n *Node) UserFunctions() []fn.Version {
	var out []fn.Version
	for _, e := range Exprs(n.Op) {
		out = append(out, expr.UserFunctions(e)...)
	}
	for _, b := range bound(n.Op) {
		if b.User != nil {
			out = append(out, *b.User)
		}
	}
	return out
}

// Exprs are the expressions that an operator evaluates.
func Exprs(op Op) []expr.Expr {
	var out []expr.Expr
	some := func(es ...expr.Expr) {
		for _, e := range es {
			if e != nil {
				out = append(out, e)
			}
		}
	}
	calls := func(as []Aggregate) {
		for i := range as {
			some(as[i].Args...)
			some(as[i].Filter)
		}
	}
	switch op := op.(type) {
	case *Source:
		some(op.Watermark, op.Partitions)
	case *Project:
		some(op.Exprs...)
	case *Filter:
		some(op.Predicate)
	case *Unnest:
		some(op.Value, op.Condition)
	case *Lookup:
		some(op.Condition)
		for _, k := range op.Keys {
			some(k.Value)
		}
	case *Join:
		some(op.Condition)
	case *WindowAggregate:
		calls(op.Aggregates)
	case *GroupAggregate:
		calls(op.Aggregates)
	case *WideMerge:
		for i := range op.Offline {
			some(op.Offline[i].Value, op.Offline[i].Filter)
			some(op.Offline[i].Exprs...)
		}
	case *Values:
		for _, row := range op.Rows {
			some(row...)
		}
	}
	return out
}

// bound are the aggregates of an operator.
func bound(op Op) []*fn.BoundAggregate {
	var out []*fn.BoundAggregate
	calls := func(as []Aggregate) {
		for i := range as {
			out = append(out, &as[i].Bound)
		}
	}
	switch op := op.(type) {
	case *WindowAggregate:
		calls(op.Aggregates)
	case *GroupAggregate:
		calls(op.Aggregates)
	case *Over:
		for i := range op.Calls {
			out = append(out, &op.Calls[i].Bound)
		}
	}
	return out
}
