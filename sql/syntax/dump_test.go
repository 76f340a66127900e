package syntax

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
)

// grouped writes an expression with brackets around every operator, to show how it was grouped.
func grouped(e Expr) string {
	switch e := e.(type) {
	case *Binary:
		return fmt.Sprintf("(%s %s %s)", grouped(e.Left), e.Op, grouped(e.Right))
	case *Unary:
		return fmt.Sprintf("(%s %s)", [...]string{"NOT", "-", "+"}[e.Op], grouped(e.Expr))
	case *Is, *IsDistinct, *Between, *In, *LikeExpr, *Quantified:
		var parts []string
		Children(e, func(c Node) {
			if x, ok := c.(Expr); ok {
				parts = append(parts, grouped(x))
			}
		})
		name := strings.TrimPrefix(reflect.TypeOf(e).Elem().Name(), "*")
		return fmt.Sprintf("%s(%s)", name, strings.Join(parts, ", "))
	}
	return Print(e)
}

// shape dumps a tree without places, quoting and explicit defaults; equal trees have equal shapes.
func shape(n any) string {
	var b strings.Builder
	dumpShape(&b, reflect.ValueOf(n))
	return b.String()
}

func dumpShape(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			b.WriteString("-")
			return
		}
		dumpShape(b, v.Elem())
	case reflect.Slice:
		b.WriteString("[")
		for i := range v.Len() {
			if i > 0 {
				b.WriteString(" ")
			}
			dumpShape(b, v.Index(i))
		}
		b.WriteString("]")
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Loc]() {
			return
		}
		fmt.Fprintf(b, "%s{", v.Type().Name())
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Type == reflect.TypeFor[Loc]() || f.Name == "Quoted" || v.Field(i).IsZero() {
				continue
			}
			fmt.Fprintf(b, "%s:", f.Name)
			dumpShape(b, v.Field(i))
			b.WriteString(" ")
		}
		b.WriteString("}")
	default:
		fmt.Fprintf(b, "%v", v.Interface())
	}
}

// mustParse parses a text that has no errors.
func mustParse(t testing.TB, sql string) *Script {
	t.Helper()
	s, errs := Parse(diag.NewFile("test.sql", sql), Options{})
	if len(errs) > 0 {
		t.Fatalf("parsing %q:\n%s", sql, diag.Renderer{}.String(errs))
	}
	return s
}

func mustParseExpr(t testing.TB, sql string) Expr {
	t.Helper()
	e, errs := ParseExpr(diag.NewFile("test.sql", sql), Options{})
	if len(errs) > 0 {
		t.Fatalf("parsing %q:\n%s", sql, diag.Renderer{}.String(errs))
	}
	return e
}
