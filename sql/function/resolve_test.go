package function

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/syntax"
)

func library(t *testing.T) *fn.Library {
	t.Helper()
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// TestUnknownNames: the nearest name, the equivalent of another dialect's, or
// that the function has to wait.
func TestUnknownNames(t *testing.T) {
	lib := library(t)
	for name, want := range map[string]UnknownError{
		"uppr":            {Name: "uppr", Near: "UPPER"},
		"lenghts":         {Name: "lenghts", Use: "CHAR_LENGTH(s)"},
		"CHAR_LENGHT":     {Name: "CHAR_LENGHT", Near: "CHAR_LENGTH"},
		"xyzzy":           {Name: "xyzzy"},
		"TUMBLE_PROCTIME": {Name: "TUMBLE_PROCTIME", Later: true},
	} {
		_, err := Lookup(lib, name)
		var got *UnknownError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("Lookup(%q): %+v, want %+v", name, got, want)
		}
	}
	_, err := Lookup(lib, "nvl")
	var got *UnknownError
	if !errors.As(err, &got) || got.Use == "" {
		t.Errorf("NVL: %v, want its equivalent", err)
	}
	if LaterHelp("tumble_proctime") == "" {
		t.Error("TUMBLE_PROCTIME has no help")
	}
}

// TestLaterFunctionsAreAbsent: a name listed as missing must not exist.
func TestLaterFunctionsAreAbsent(t *testing.T) {
	lib := library(t)
	for name := range later {
		if _, ok := lib.Lookup(name); ok {
			t.Errorf("%s exists and is listed as later", name)
		}
		if _, ok := lib.Aggregate(name); ok {
			t.Errorf("the aggregate %s exists and is listed as later", name)
		}
	}
}

// TestOperatorsExist: every operator of the syntax has a function.
func TestOperatorsExist(t *testing.T) {
	lib := library(t)
	for op := syntax.OpOr; op <= syntax.OpMod; op++ {
		if _, ok := lib.Lookup(Binary(op)); !ok {
			t.Errorf("operator %q is not declared", Binary(op))
		}
	}
	for k := syntax.IsNull; k <= syntax.IsUnknown; k++ {
		for _, not := range []bool{false, true} {
			if _, ok := lib.Lookup(Is(k, not)); !ok {
				t.Errorf("operator %q is not declared", Is(k, not))
			}
		}
	}
	for _, name := range []string{"NEGATE", "NOT", "BETWEEN", "IN", "LIKE", "CASE", "ITEM", "EXTRACT", "FLOOR", "CEIL", "TRIM", "LTRIM", "RTRIM",
		"POSITION", "LOCATE", "SUBSTRING", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "IS JSON", "JSON_VALUE", "JSON_QUERY", "JSON_EXISTS"} {
		if _, ok := lib.Lookup(name); !ok {
			t.Errorf("%s is not declared", name)
		}
	}
	if _, err := Call(lib, "=", expr.Int(expr.Bool(true).Type(), 1), expr.Text("x")); err == nil {
		t.Error("BOOLEAN = STRING binds")
	}
}
