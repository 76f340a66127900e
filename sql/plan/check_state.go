package plan

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/sql/diag"
)

// NameStates makes sure that the keyed operators of a job have names of their own.
// Those of one name that compute the same of the same are numbered: whichever of
// their states an edited job finds, it is the right one. Others are reported, since
// such a job could not tell their states apart.
func NameStates(inserts []*Insert, diags *diag.List) {
	type named struct {
		span  diag.Span
		text  string
		count int
	}
	first := map[string]*named{}
	for _, ins := range inserts {
		Walk(ins.Input, func(n Node) bool {
			path, what, span := stateOf(n)
			if path == nil {
				return true
			}
			name, text := stateName(n), planText(n)
			old := first[name]
			switch {
			case old == nil:
				first[name] = &named{span, text, 1}
			case old.text == text:
				old.count++
				*path += "#" + strconv.Itoa(old.count)
			default:
				diags.Errorf(diag.CodeStateName, span, "two %s have the state name %q", what, name).
					WithNote(old.span, "the other one is here").
					WithHelp("name one: SELECT /*+ STATE_ID('name') */ ...")
			}
			return true
		})
	}
}

func planText(n Node) string {
	var b strings.Builder
	Print(&b, n)
	return b.String()
}

// stateOf is where the path of a node's state is and what the node is; nil for
// nodes without.
func stateOf(n Node) (path *string, what string, span diag.Span) {
	switch n := n.(type) {
	case *Aggregate:
		return &n.Path, "aggregates", n.Span
	case *Join:
		return &n.Path, "joins", n.Span
	case *Over:
		return &n.Path, "functions with OVER", n.Span
	case *Rank:
		return &n.Path, "rankings", n.Span
	case *Sort:
		if n.ByTime {
			return &n.Path, "ORDER BY", n.Span
		}
	case *SetOperation:
		if n.Changes {
			return &n.Path, "set operations", n.Span
		}
	case *WindowTable:
		if n.Window.Kind == SessionWindow && !n.CheckOnly {
			return &n.Path, "tables of sessions", n.Span
		}
	}
	return nil, "", diag.Span{}
}

// stateName is the whole name of a node's state.
func stateName(n Node) string {
	if s, ok := n.(interface{ StatePath() string }); ok {
		return s.StatePath()
	}
	return ""
}
