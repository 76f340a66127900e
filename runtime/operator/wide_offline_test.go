package operator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// profileSchema is a table of profiles: the generation, the key and a value.
var profileSchema = &batch.Schema{Fields: []types.Field{{Name: "g", Type: types.NewTimestamp(3)}, {Name: "k", Type: types.NewBigInt()}, {Name: "v", Type: types.NewBigInt()}}}

// profilesOf is an offline branch that creates rows.
func profilesOf() graph.OfflineBranch {
	table := &connector.Table{Name: "profiles"}
	for _, f := range profileSchema.Fields {
		table.Columns = append(table.Columns, connector.Column{Field: f})
	}
	return graph.OfflineBranch{Label: "profile", At: 2, Table: table, Read: []int{0, 1, 2}, CreatesRows: true,
		Value:  &expr.Column{Index: 0, Name: "window_start", T: types.NewTimestamp(3)},
		Exprs:  []expr.Expr{expr.NewColumn(profileSchema, 1), expr.NewColumn(profileSchema, 2)},
		Schema: &batch.Schema{Fields: profileSchema.Fields[1:]}, Keys: []int{0}}
}

// TestRowsOfGenerationsStayWithinTheirBudget: the keys of a generation take the place of a row
// in a table of many columns; those that do not fit are on disk. A window that goes out again
// with another generation has the rows of that one.
func TestRowsOfGenerationsStayWithinTheirBudget(t *testing.T) {
	const keys, budget = 4000, 256 << 10
	op := &graph.WideMerge{Lateness: 100, Correct: 1, Offline: []graph.OfflineBranch{profilesOf()}}
	fresh := wideOf(t, op, 2, 3)
	w, ctx := fresh(), expr.NewContext(nil, 1)
	store := spill.New(vfs.NewMem(), "/spill")
	defer store.Close()
	w.SpillTo(store, budget)
	offline, err := NewOffline(op, 0, w.schema)
	if err != nil {
		t.Fatal(err)
	}
	span := Span{Start: 0, End: 100, EndTime: 100}
	generation := func(n int, more int64) *Generation {
		b := &batch.Batch{}
		b.Reset(profileSchema)
		b.Len = n
		for c := range b.Cols {
			b.Cols[c].Reset(profileSchema.Fields[c].Type, n)
		}
		sel := batch.Sel{}
		for i := range n {
			b.Cols[1].I64[i], b.Cols[2].I64[i] = int64(i), int64(i)+more
			sel = append(sel, int32(i))
		}
		build := offline.Build(ctx, offline.Value(ctx, span))
		if err := build.Add(b, sel); err != nil {
			t.Fatal(err)
		}
		return build.Generation()
	}
	var got []string
	var most int64
	out := &Results{Emit: func(b *batch.Batch) error {
		most = max(most, w.Bytes())
		for i := range b.Len {
			got = append(got, fmt.Sprint(b.Cols[0].Text(i), " ", b.Cols[3].Text(i), " ", b.Cols[len(b.Cols)-1].Text(i)))
		}
		return nil
	}, Dead: func(_ *batch.Batch, e *batch.ValueError) { t.Fatal(e) }}
	// Of these keys one is in the generations, the other one is not.
	if err := w.Fold(ctx, clicksOf([]click{{k: 7, v: 5, ts: 10}, {k: keys + 1, v: 6, ts: 20}}, 0), out); err != nil {
		t.Fatal(err)
	}
	if err := w.Advance(ctx, 120, out); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 91))
	for round, n := range []int{keys, keys / 4, 0, keys / 2} {
		var g *Generation
		want := []string{fmt.Sprint(keys+1, " 6 NULL")}
		if n == 0 {
			want = append(want, "7 5 NULL")
		} else {
			more := rng.Int64N(1000)
			g = generation(n, more)
			for k := range int64(n) {
				first := "NULL"
				if k == 7 {
					first = "5"
				}
				want = append(want, fmt.Sprint(k, " ", first, " ", k+more))
			}
		}
		got = nil
		if err := w.Barrier(&Release{Windows: []Span{span}, Generations: map[Span][]*Generation{span: {g}}}, out); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %d rows, want %d; the first are %v, want %v", round, len(got), len(want), got[:min(3, len(got))], want[:3%len(want)])
		}
	}
	if most > 2*budget {
		t.Errorf("%d bytes of state were in memory, about %d may be", most, budget)
	}
}
