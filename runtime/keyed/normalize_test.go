package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/types"
)

// TestNewestRowsSurviveCrashes crashes at each operation and goes on at another
// parallelism: what the changes leave is the last row of each key that is not deleted,
// and no row is taken back that never came.
func TestNewestRowsSurviveCrashes(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	f := randomFeed(rng, "a", 2, 24, 5*minute)
	// The rows of a key lie in one partition.
	last := map[string]string{}
	for p, events := range f.parts {
		for i := range events {
			e := &f.parts[p][i]
			e.uid = num(int64(2*rng.IntN(4) + p))
			if e.s = "row"; rng.IntN(4) == 0 {
				e.s = "gone"
			}
			last[text(e.uid)] = fmt.Sprintf("%s|%s", text(e.uid), text(e.v))
			if e.s == "gone" {
				delete(last, text(e.uid))
			}
		}
	}
	var want []string
	for _, row := range last {
		want = append(want, row)
	}
	slices.Sort(want)
	s := &scenario{t: t, feeds: []*feed{f}, sinks: map[string]sinkOptions{"out": {maxRows: 6}}, opts: Options{Retained: 2}}
	s.kindOf = func(e event) batch.Kind {
		if e.s == "gone" {
			return batch.Delete
		}
		return batch.UpdateAfter
	}
	job := func(p int) *graph.Job {
		b := newBuilder()
		ex := b.exchange(b.source("a"), p, 0)
		n := b.add(&graph.Normalize{Keys: []int{0}}, eventSchema, -1, "a.normalize", ex)
		schema := &batch.Schema{Fields: []types.Field{eventSchema.Fields[0], eventSchema.Fields[2]}}
		exprs := make([]expr.Expr, 2)
		for i, at := range []int{0, 2} {
			exprs[i] = &expr.Column{Index: at, Name: schema.Fields[i].Name, T: schema.Fields[i].Type}
		}
		b.sink("out", b.add(&graph.Project{Exprs: exprs}, schema, -1, "", n))
		return b.job
	}
	for k := 1; ; k++ {
		w := newWorld()
		book, ops, crashed := s.lives(w, job, uint64(k%2), k)
		if got := left(t, w.rows("out")); !slices.Equal(got, want) {
			t.Fatalf("crash at operation %d (%s):\n%s", k, ops[len(ops)-1], diff(got, want))
		}
		if v := book.Check(); len(v) > 0 {
			t.Fatalf("crash at operation %d: the ledger does not hold: %v", k, v)
		}
		if open := book.Intents(func(e *ledger.Entry) bool { return e.Result != ledger.Committed }); len(open) > 0 {
			t.Fatalf("crash at operation %d: %d artefacts are not committed", k, len(open))
		}
		if !crashed {
			break
		}
	}
}
