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
	f, a := e.Fn, e.Args
	switch {
	case f.Infix && len(a) == 2:
		return operand(a[0]) + " " + f.Name + " " + operand(a[1])
	case f.Postfix && len(a) == 1:
		return operand(a[0]) + " " + f.Name
	case f.Syntax != nil && strings.HasPrefix(f.Syntax[0], "CURRENT_"), f.Name == "LOCALTIME", f.Name == "LOCALTIMESTAMP":
		return f.Name
	}
	if s, ok := e.keywordText(); ok {
		return s
	}
	return f.Name + "(" + join(a) + ")"
}

// keywordText spells the functions that SQL writes with keywords.
func (e *Call) keywordText() (string, bool) {
	a := e.Args
	word := func(i int) string { return strings.Trim(a[i].String(), "'") }
	switch e.Fn.Name {
	case "ITEM":
		return operand(a[0]) + "[" + a[1].String() + "]", true
	case "NOT":
		return "NOT " + operand(a[0]), true
	case "NEGATE":
		return "-" + operand(a[0]), true
	case "LIKE":
		return operand(a[0]) + " LIKE " + operand(a[1]) + " ESCAPE " + a[2].String(), true
	case "IS JSON":
		return operand(a[0]) + " IS JSON " + word(1), true
	case "POSITION":
		return "POSITION(" + a[0].String() + " IN " + a[1].String() + ")", true
	case "EXTRACT":
		return "EXTRACT(" + word(0) + " FROM " + a[1].String() + ")", true
	case "TIMESTAMPADD", "TIMESTAMPDIFF":
		return e.Fn.Name + "(" + word(0) + ", " + join(a[1:]) + ")", true
	case "FLOOR", "CEIL":
		if len(a) == 2 {
			return e.Fn.Name + "(" + a[0].String() + " TO " + word(1) + ")", true
		}
	case "JSON_VALUE":
		return e.jsonText(2, 3, 4, 5), len(a) > 2
	case "JSON_QUERY":
		s := e.Fn.Name + "(" + join(a[:2])
		if len(a) > 2 && word(2) == "WITHOUT" {
			s += " WITHOUT ARRAY WRAPPER"
		} else if len(a) > 2 {
			s += " WITH " + word(2) + " ARRAY WRAPPER"
		}
		if len(a) > 3 {
			s += " " + word(3) + " ON EMPTY"
		}
		if len(a) > 4 {
			s += " " + word(4) + " ON ERROR"
		}
		return s + ")", len(a) > 2
	case "JSON_EXISTS":
		if len(a) > 2 {
			return e.Fn.Name + "(" + join(a[:2]) + " " + word(2) + " ON ERROR)", true
		}
	}
	return "", false
}

// jsonText spells the clauses of JSON_VALUE by the places of their arguments.
func (e *Call) jsonText(empty, emptyDefault, failed, failedDefault int) string {
	a := e.Args
	s := e.Fn.Name + "(" + join(a[:2])
	clause := func(how, def int, when string) {
		if how >= len(a) {
			return
		}
		w := strings.Trim(a[how].String(), "'")
		if w == "DEFAULT" && def < len(a) {
			w += " " + a[def].String()
		}
		s += " " + w + " ON " + when
	}
	clause(empty, emptyDefault, "EMPTY")
	clause(failed, failedDefault, "ERROR")
	return s + ")"
}

// operand is the text of an operand of an operator, in parentheses where it
// is an operator itself.
func operand(e Expr) string {
	switch e := e.(type) {
	case *Logic, *In:
		return "(" + e.String() + ")"
	case *Call:
		if e.Fn.Infix || e.Fn.Postfix || e.Fn.Name == "NOT" || e.Fn.Name == "NEGATE" {
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
