package optimizer

import "github.com/millrace/millrace/sql/plan"

// pruneLookup reads no column of the table that nobody needs; the keys themselves
// are compared by the connector.
func pruneLookup(n *plan.Lookup, need idSet) plan.Node {
	below := clone(need)
	below.addExprs(plan.Exprs(n)...)
	var right []plan.Column
	var ordinals []int
	for i, c := range n.Right {
		if below[c.ID] {
			right, ordinals = append(right, c), append(ordinals, n.Ordinals[i])
		}
	}
	return n.Over(prune(n.Input, below), right, ordinals)
}
