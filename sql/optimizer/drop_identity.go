package optimizer

import (
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/plan"
)

// dropIdentity takes a projection out that gives its input's columns as they
// are, names included.
func dropIdentity(n plan.Node) plan.Node {
	p, ok := n.(*plan.Project)
	if !ok {
		return n
	}
	in := p.Input.Columns()
	if len(in) != len(p.Cols) {
		return n
	}
	for i, e := range p.Exprs {
		c, ok := e.(*expr.Column)
		if !ok || c.Index != in[i].ID || p.Cols[i].ID != in[i].ID || p.Cols[i].Name != in[i].Name {
			return n
		}
	}
	return p.Input
}
