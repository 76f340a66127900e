package plan

import (
	"sort"
	"strings"
)

// StatePath identifies the operator's state: the path of its clause, its kind,
// its keys and window. Names of outputs, formatting and the order of columns
// are no part of it.
func (n *Aggregate) StatePath() string {
	keys := keyTexts(n.Input, n.Keys)
	sort.Strings(keys)
	s := n.Path + "[" + strings.Join(keys, ", ")
	if n.Window != nil {
		s += "; " + n.Window.String()
	}
	if n.Given != nil {
		s += ", given"
	}
	return s + "]"
}

// StatePath identifies the state of an ORDER BY in a stream.
func (n *Sort) StatePath() string { return rankedPath(n.Path, n.Input, nil, n.Keys, nil) }

// StatePath identifies the state of sessions.
func (n *WindowTable) StatePath() string {
	keys := keyTexts(n.Input, n.Keys)
	sort.Strings(keys)
	return n.Path + "[" + strings.Join(keys, ", ") + "; " + n.Window.String() + "]"
}

// keyText is the expression behind a key column, so that an alias below does
// not change it.
func keyText(in Node, c *Column) string {
	if p, ok := in.(*Project); ok {
		for i := range p.Cols {
			if p.Cols[i].ID == c.ID {
				return p.Exprs[i].String()
			}
		}
	}
	return c.Name
}
