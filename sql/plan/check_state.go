package plan

import "github.com/millrace/millrace/sql/diag"

// CheckStateNames reports keyed operators of one name: an edited job could not
// tell their states apart.
func CheckStateNames(inserts []*Insert, diags *diag.List) {
	first := map[string]diag.Span{}
	for _, ins := range inserts {
		Walk(ins.Input, func(n Node) bool {
			a, ok := n.(*Aggregate)
			if !ok {
				return true
			}
			name := a.StatePath()
			if old, dup := first[name]; dup {
				diags.Errorf(diag.CodeStateName, a.Span, "two aggregates have the state name %q", name).
					WithNote(old, "the other one is here").
					WithHelp("name one: SELECT /*+ STATE_ID('name') */ ...")
				return true
			}
			first[name] = a.Span
			return true
		})
	}
}
