package fn_test

import (
	"testing"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
)

func library(t testing.TB) *fn.Library {
	t.Helper()
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// exampleNow is 2024-05-01 12:34:56.789 UTC.
const exampleNow = 1714566896789000

func evalText(t testing.TB, lib *fn.Library, ctx *expr.Context, sql string) string {
	t.Helper()
	e, err := exprtext.Parse(lib, nil, sql)
	if err != nil {
		return "bind: " + err.Error()
	}
	return exprtext.Eval(ctx, e, exprtext.OneRow(), 0)
}

func TestEveryExampleOfTheDeclarations(t *testing.T) {
	lib := library(t)
	for _, f := range lib.Functions() {
		if len(f.Examples) == 0 || f.Doc == "" || f.Category == "" || len(f.Syntax) == 0 {
			t.Errorf("%s lacks doc, category, syntax or example", f.Name)
		}
		for _, ex := range f.Examples {
			ctx := expr.NewContext(nil, 1)
			ctx.Now = exampleNow
			if got := evalText(t, lib, ctx, ex.SQL); got != ex.Want {
				t.Errorf("%s: %s = %s, want %s", f.Name, ex.SQL, got, ex.Want)
			}
		}
	}
}
