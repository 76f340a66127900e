package plan

import "github.com/millrace/millrace/sql/diag"

// CheckStateNames reports keyed operators of one name: an edited job could not
// tell their states apart.
func CheckStateNames(inserts []*Insert, diags *diag.List) {
	first := map[string]diag.Span{}
	for _, ins := range inserts {
		Walk(ins.Input, func(n Node) bool {
			name, what, span := stateOf(n)
			if name == "" {
				return true
			}
			if old, dup := first[name]; dup {
				diags.Errorf(diag.CodeStateName, span, "two %s have the state name %q", what, name).
					WithNote(old, "the other one is here").
					WithHelp("name one: SELECT /*+ STATE_ID('name') */ ...")
				return true
			}
			first[name] = span
			return true
		})
	}
}

// stateOf names the state of a node and what it is; "" for nodes without.
func stateOf(n Node) (name, what string, span diag.Span) {
	switch n := n.(type) {
	case *Aggregate:
		return n.StatePath(), "aggregates", n.Span
	case *Join:
		return n.StatePath(), "joins", n.Span
	case *Over:
		return n.StatePath(), "functions with OVER", n.Span
	case *Rank:
		return n.StatePath(), "rankings", n.Span
	case *WindowTable:
		if n.Window.Kind == SessionWindow && !n.CheckOnly {
			return n.StatePath(), "tables of sessions", n.Span
		}
	}
	return "", "", diag.Span{}
}
