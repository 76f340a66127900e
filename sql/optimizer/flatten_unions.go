package optimizer

import "github.com/millrace/millrace/sql/plan"

// flattenUnions lifts the branches of a union that is a branch itself.
func flattenUnions(n plan.Node) plan.Node {
	u, ok := n.(*plan.Union)
	if !ok {
		return n
	}
	var in []plan.Node
	changed := false
	for _, b := range u.In {
		if inner, ok := b.(*plan.Union); ok {
			in = append(in, inner.In...)
			changed = true
			continue
		}
		in = append(in, b)
	}
	if !changed {
		return n
	}
	return &plan.Union{In: in, Cols: u.Cols}
}
