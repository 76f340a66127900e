package expr

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// text is what String gives; nodes write into one buffer, so that the text of a
// deep expression costs what it is long.
func text(e Expr) string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}

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

func (e *Column) write(b *strings.Builder) { b.WriteString(e.String()) }

// String implements Expr.
func (e *Literal) String() string { return literalText(e.Value) }

func (e *Literal) write(b *strings.Builder) { b.WriteString(e.String()) }

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
func (e *Call) String() string { return text(e) }

func (e *Call) write(b *strings.Builder) {
	f, a := e.Fn, e.Args
	switch {
	case f.Infix && len(a) == 2:
		put(b, group{a[0]}, " ", f.Name, " ", group{a[1]})
	case f.Postfix && len(a) == 1:
		put(b, group{a[0]}, " ", f.Name)
	case f.Syntax != nil && strings.HasPrefix(f.Syntax[0], "CURRENT_"), f.Name == "LOCALTIME", f.Name == "LOCALTIMESTAMP":
		b.WriteString(f.Name)
	case e.keywordText(b):
	default:
		put(b, f.Name, "(", a, ")")
	}
}

// group is an operand of an operator, in parentheses where it is an operator
// itself.
type group struct{ e Expr }

// put writes strings, expressions, operands and lists of expressions.
func put(b *strings.Builder, parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b.WriteString(p)
		case Expr:
			p.write(b)
		case []Expr:
			for i, e := range p {
				if i > 0 {
					b.WriteString(", ")
				}
				e.write(b)
			}
		case group:
			operand(b, p.e)
		}
	}
}

func operand(b *strings.Builder, e Expr) {
	bracket := false
	switch e := e.(type) {
	case *Logic, *In:
		bracket = true
	case *Call:
		bracket = e.Fn.Infix || e.Fn.Postfix || e.Fn.Name == "NOT" || e.Fn.Name == "NEGATE"
	}
	if bracket {
		put(b, "(", e, ")")
		return
	}
	e.write(b)
}

// word is argument i, which is a keyword as a string literal.
func (e *Call) word(i int) string { return strings.Trim(e.Args[i].String(), "'") }

// keywordText spells the functions that SQL writes with keywords; false if it
// wrote nothing.
func (e *Call) keywordText(b *strings.Builder) bool {
	a, name := e.Args, e.Fn.Name
	switch {
	case name == "ITEM":
		put(b, group{a[0]}, "[", a[1], "]")
	case name == "NOT":
		put(b, "NOT ", group{a[0]})
	case name == "NEGATE":
		put(b, "-", group{a[0]})
	case name == "LIKE", name == "SIMILAR TO":
		put(b, group{a[0]}, " ", name, " ", group{a[1]}, " ESCAPE ", a[2])
	case name == "IS JSON":
		put(b, group{a[0]}, " IS JSON ", e.word(1))
	case name == "POSITION":
		put(b, "POSITION(", a[0], " IN ", a[1], ")")
	case name == "EXTRACT":
		put(b, "EXTRACT(", e.word(0), " FROM ", a[1], ")")
	case name == "TIMESTAMPADD", name == "TIMESTAMPDIFF":
		put(b, name, "(", e.word(0), ", ", a[1:], ")")
	case (name == "FLOOR" || name == "CEIL") && len(a) == 2:
		put(b, name, "(", a[0], " TO ", e.word(1), ")")
	case strings.HasPrefix(name, "JSON_") && len(a) > 2:
		return e.jsonText(b)
	default:
		return false
	}
	return true
}

// jsonText spells the clauses of the functions with a path, by the places of
// their arguments.
func (e *Call) jsonText(b *strings.Builder) bool {
	a, name := e.Args, e.Fn.Name
	switch name {
	case "JSON_VALUE":
		put(b, name, "(", a[:2])
		for _, c := range []struct {
			how  int
			when string
		}{{2, "EMPTY"}, {4, "ERROR"}} {
			if c.how >= len(a) {
				continue
			}
			w := e.word(c.how)
			put(b, " ", w)
			if w == "DEFAULT" && c.how+1 < len(a) {
				put(b, " ", a[c.how+1])
			}
			put(b, " ON ", c.when)
		}
		put(b, ")")
	case "JSON_QUERY":
		put(b, name, "(", a[:2])
		if w := e.word(2); w == "WITHOUT" {
			put(b, " WITHOUT ARRAY WRAPPER")
		} else {
			put(b, " WITH ", w, " ARRAY WRAPPER")
		}
		if len(a) > 3 {
			put(b, " ", e.word(3), " ON EMPTY")
		}
		if len(a) > 4 {
			put(b, " ", e.word(4), " ON ERROR")
		}
		put(b, ")")
	case "JSON_EXISTS":
		put(b, name, "(", a[:2], " ", e.word(2), " ON ERROR)")
	default:
		return false
	}
	return true
}

// String implements Expr.
func (e *Logic) String() string { return text(e) }

func (e *Logic) write(b *strings.Builder) {
	for i, a := range e.Args {
		if i > 0 {
			put(b, [...]string{" AND ", " OR "}[e.Op])
		}
		operand(b, a)
	}
}

// String implements Expr.
func (e *Case) String() string { return text(e) }

func (e *Case) write(b *strings.Builder) {
	b.WriteString("CASE")
	for i := range e.Conds {
		put(b, " WHEN ", e.Conds[i], " THEN ", e.Thens[i])
	}
	if e.Else != nil {
		put(b, " ELSE ", e.Else)
	}
	b.WriteString(" END")
}

// String implements Expr.
func (e *Coalesce) String() string { return text(e) }

func (e *Coalesce) write(b *strings.Builder) { put(b, "COALESCE(", e.Args, ")") }

// String implements Expr.
func (e *In) String() string { return text(e) }

func (e *In) write(b *strings.Builder) {
	put(b, group{e.Arg}, " IN (")
	for i, l := range e.List {
		if i > 0 {
			b.WriteString(", ")
		}
		l.write(b)
	}
	b.WriteByte(')')
}

// String implements Expr.
func (e *Cast) String() string { return text(e) }

func (e *Cast) write(b *strings.Builder) {
	name := "CAST("
	if e.Try {
		name = "TRY_CAST("
	}
	put(b, name, e.Arg, " AS ", e.To.WithNullable(true).String(), ")")
}

// String implements Expr.
func (e *Field) String() string { return text(e) }

func (e *Field) write(b *strings.Builder) {
	c := Column{Name: e.Arg.Type().Fields[e.Index].Name, Index: e.Index}
	put(b, group{e.Arg}, ".", c.String())
}

// String implements Expr.
func (e *RowOf) String() string { return text(e) }

func (e *RowOf) write(b *strings.Builder) { put(b, "ROW(", e.Args, ")") }

// String implements Expr.
func (e *ArrayOf) String() string { return text(e) }

func (e *ArrayOf) write(b *strings.Builder) { put(b, "ARRAY[", e.Args, "]") }

// String implements Expr.
func (e *MapOf) String() string { return text(e) }

func (e *MapOf) write(b *strings.Builder) { put(b, "MAP[", Children(e), "]") }
