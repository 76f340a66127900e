package operator

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// TestStateOfBeforeSpillingIsRead: what operators saved when they could not spill, as files
// that were written then, is read, with the rows that come of it by hand.
func TestStateOfBeforeSpillingIsRead(t *testing.T) {
	ctx, whole := expr.NewContext(nil, 1), state.Range{From: 0, To: state.Groups}
	golden := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile("testdata/" + name + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	var j journal
	none := strings.Repeat(" NULL", 6)
	w := wideOf(t, &graph.WideMerge{Lateness: 100, Coverage: true}, 3, 1)()
	if err := w.Load(golden("wide-before-spilling"), whole); err != nil {
		t.Fatal(err)
	}
	if err := w.Advance(ctx, batch.MaxWatermark, j.results(t)); err != nil {
		t.Fatal(err)
	}
	check("wide table", j.take(), "+I 1 0 100 7 5 12 2 5 7"+none+none+" [b0]", "+I 2 0 100"+none+" 3 3 3 1 3 3"+none+" [b1]")

	for i, c := range sessionCases(t)[:2] {
		k := c.fresh()
		if err := k.Load(golden(fmt.Sprintf("sessions-before-spilling-%d", i)), whole); err != nil {
			t.Fatal(err)
		}
		if err := k.Advance(ctx, batch.MaxWatermark, j.results(t)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			check(c.name, j.take(), "+I 1 1 2 2 300 340", "+I 1 2 12 7 100 160", "+I 2 1 1 1 100 140")
		} else {
			check(c.name, j.take(), "+I 1 2 300 300 340 339", "+I 1 5 100 100 160 159", "+I 1 7 120 100 160 159", "+I 2 1 100 100 140 139")
		}
	}
}
