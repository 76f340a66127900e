package expr

import (
	"strconv"
	"strings"
)

// writeKey writes what an expression is but for its operands: texts are equal
// exactly for nodes that mean the same over equal operands and one schema.
// Columns count by ordinal, literals with their types.
func writeKey(b *strings.Builder, e Expr) {
	switch n := e.(type) {
	case *Column:
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n.Index))
		return
	case *Literal:
		b.WriteString(n.Value.Type.String())
		b.WriteByte(' ')
		b.WriteString(n.String())
		return
	case *Call:
		b.WriteString(n.Fn.Name)
		b.WriteByte(':')
		b.WriteString(n.Bound.Return.String())
	case *Logic:
		b.WriteString([...]string{"AND", "OR"}[n.Op])
	case *Case:
		b.WriteString("CASE:")
		b.WriteString(n.T.String())
		if n.Else != nil {
			b.WriteString(":ELSE")
		}
	case *Coalesce:
		b.WriteString("COALESCE:")
		b.WriteString(n.T.String())
	case *In:
		b.WriteString("IN:")
		for _, l := range n.List {
			writeKey(b, l)
			b.WriteByte(',')
		}
	case *Cast:
		if n.Try {
			b.WriteString("TRY_")
		}
		b.WriteString("CAST:")
		b.WriteString(n.To.String())
	case *Field:
		b.WriteString("FIELD:")
		b.WriteString(strconv.Itoa(n.Index))
	case *RowOf:
		b.WriteString("ROW:")
		b.WriteString(n.T.String())
	case *ArrayOf:
		b.WriteString("ARRAY:")
		b.WriteString(n.T.String())
	case *MapOf:
		b.WriteString("MAP:")
		b.WriteString(n.T.String())
	}
}
