package expr

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// String implements Expr.
func (e *Column) String() string {
	for i, r := range e.Name {
		if !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9') {
			return types.QuoteIdent(e.Name)
		}
	}
	if e.Name == "" {
		return fmt.Sprintf("$%d", e.Index)
	}
	return e.Name
}

// String implements Expr.
func (e *Literal) String() string { return literalText(e.Value) }

func literalText(v *batch.Vec) string {
	t := v.Type
	if v.IsNull(0) {
		if t.Kind == types.Null {
			return "NULL"
		}
		return fmt.Sprintf("CAST(NULL AS %s)", t.WithNullable(true))
	}
	switch {
	case t.IsString():
		return "'" + strings.ReplaceAll(string(v.Bytes(0)), "'", "''") + "'"
	case t.IsBinary():
		return fmt.Sprintf("x'%X'", v.Bytes(0))
	case t.Kind == types.Boolean:
		return strings.ToUpper(v.Text(0))
	case t.IsInteger(), t.Kind == types.Decimal, t.Kind == types.Double && !strings.ContainsAny(v.Text(0), "NI"):
		return v.Text(0)
	case t.Kind == types.Date, t.Kind == types.Time, t.Kind == types.Timestamp:
		return fmt.Sprintf("%s '%s'", t.Kind, v.Text(0))
	case t.Kind == types.IntervalYearMonth, t.Kind == types.IntervalDaySecond:
		return fmt.Sprintf("INTERVAL '%s' %s", v.Text(0), strings.TrimPrefix(t.Kind.String(), "INTERVAL "))
	}
	return fmt.Sprintf("CAST('%s' AS %s)", v.Text(0), t.WithNullable(true))
}

// String implements Expr.
func (e *Call) String() string {
	f := e.Fn
	switch {
	case f.Infix && len(e.Args) == 2:
		return operand(e.Args[0]) + " " + f.Name + " " + operand(e.Args[1])
	case f.Postfix && len(e.Args) == 1:
		return operand(e.Args[0]) + " " + f.Name
	case f.Name == "ITEM":
		return operand(e.Args[0]) + "[" + e.Args[1].String() + "]"
	}
	return f.Name + "(" + join(e.Args) + ")"
}

// operand is the text of an operand of an operator, in parentheses where it
// is an operator itself.
func operand(e Expr) string {
	switch e := e.(type) {
	case *Logic, *In:
		return "(" + e.String() + ")"
	case *Call:
		if e.Fn.Infix && len(e.Args) == 2 || e.Fn.Postfix {
			return "(" + e.String() + ")"
		}
	}
	return e.String()
}

func join(args []Expr) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	return b.String()
}

// String implements Expr.
func (e *Logic) String() string {
	op := " AND "
	if e.Op == Or {
		op = " OR "
	}
	parts := make([]string, len(e.Args))
	for i, a := range e.Args {
		parts[i] = operand(a)
	}
	return strings.Join(parts, op)
}

// String implements Expr.
func (e *Case) String() string {
	var b strings.Builder
	b.WriteString("CASE")
	for i := range e.Conds {
		fmt.Fprintf(&b, " WHEN %s THEN %s", e.Conds[i], e.Thens[i])
	}
	if e.Else != nil {
		fmt.Fprintf(&b, " ELSE %s", e.Else)
	}
	b.WriteString(" END")
	return b.String()
}

// String implements Expr.
func (e *Coalesce) String() string { return "COALESCE(" + join(e.Args) + ")" }

// String implements Expr.
func (e *In) String() string {
	parts := make([]string, len(e.List))
	for i, l := range e.List {
		parts[i] = l.String()
	}
	return operand(e.Arg) + " IN (" + strings.Join(parts, ", ") + ")"
}

// String implements Expr.
func (e *Cast) String() string {
	name := "CAST"
	if e.Try {
		name = "TRY_CAST"
	}
	return fmt.Sprintf("%s(%s AS %s)", name, e.Arg, e.To.WithNullable(true))
}

// String implements Expr.
func (e *Field) String() string {
	c := Column{Name: e.Arg.Type().Fields[e.Index].Name, Index: e.Index}
	return operand(e.Arg) + "." + c.String()
}

// String implements Expr.
func (e *RowOf) String() string { return "ROW(" + join(e.Args) + ")" }

// String implements Expr.
func (e *ArrayOf) String() string { return "ARRAY[" + join(e.Args) + "]" }

// String implements Expr.
func (e *MapOf) String() string { return "MAP[" + join(Children(e)) + "]" }
