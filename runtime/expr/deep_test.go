package expr_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// deep is UPPER(UPPER(...a || 'x'...)) of n levels.
func deep(tb testing.TB, n int) (expr.Expr, *batch.Schema) {
	tb.Helper()
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	s := &batch.Schema{Fields: []types.Field{{Name: "a", Type: types.NewString()}}}
	var e expr.Expr = expr.NewColumn(s, 0)
	for i := range n {
		name, args := "UPPER", []expr.Expr{e}
		if i%2 == 1 {
			name, args = "||", append(args, expr.Text("x"))
		}
		f, _ := lib.Lookup(name)
		if e, err = expr.NewCall(f, args...); err != nil {
			tb.Fatal(err)
		}
	}
	return e, s
}

// TestDeepExpressionCostsItsLength: text and program of a tree of twice the
// depth take about twice the memory, not four times.
func TestDeepExpressionCostsItsLength(t *testing.T) {
	bytes := func(n int) int64 {
		e, s := deep(t, n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := expr.Compile([]expr.Expr{e}, s, expr.Options{}); err != nil {
			t.Fatal(err)
		}
		text := e.String()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(text)
		return int64(after.TotalAlloc - before.TotalAlloc)
	}
	if small, large := bytes(200), bytes(800); large > 6*small {
		t.Errorf("%d bytes at 200 levels, %d at 800", small, large)
	}
	e, _ := deep(t, 4)
	if got, want := e.String(), "UPPER(UPPER(a) || 'x') || 'x'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if e, _ := deep(t, 400); strings.Count(e.String(), "UPPER") != 200 {
		t.Error("the text lacks calls")
	}
}

func BenchmarkCompileDeep(b *testing.B) {
	for _, n := range []int{50, 400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e, s := deep(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := expr.Compile([]expr.Expr{e}, s, expr.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
