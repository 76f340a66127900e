package operator

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// wideOf makes a wide table of branches of clicks by their key, each with a column for
// each rule, that many times; of every third branch the latest row counts whole.
func wideOf(t testing.TB, op *graph.WideMerge, branches, times int) func() *WideMerge {
	big := types.NewBigInt()
	op.Window = graph.Window{Size: 100}
	out := &batch.Schema{Fields: []types.Field{{Name: "k", Type: big}, {Name: "s", Type: types.NewTimestamp(3)}, {Name: "e", Type: types.NewTimestamp(3)}}}
	for b := range branches {
		label := fmt.Sprintf("b%d", b)
		op.Branches = append(op.Branches, graph.WideBranch{Label: label, Keys: []int{0}, Time: 2, Version: -1, KeepNulls: b%3 == 2})
		for i := range times {
			for rule := graph.RuleLast; rule <= graph.RuleMax; rule++ {
				c := graph.WideColumn{Name: fmt.Sprintf("%s_%d_%d", label, rule, i), Type: big, Branch: label, Rule: rule, Input: 1}
				op.Columns, out.Fields = append(op.Columns, c), append(out.Fields, types.Field{Name: c.Name, Type: big})
			}
		}
	}
	for _, b := range op.Offline {
		c := graph.WideColumn{Name: b.Label + "_v", Type: big, Branch: b.Label, Rule: graph.RuleLast, Input: 1}
		op.Columns, out.Fields = append(op.Columns, c), append(out.Fields, types.Field{Name: c.Name, Type: big})
	}
	if op.Coverage {
		out.Fields = append(out.Fields, types.Field{Name: "coverage", Type: types.NewArray(types.NewString())})
	}
	in := slices.Repeat([]*batch.Schema{clickSchema}, branches)
	return func() *WideMerge {
		w, err := NewWideMerge(op, in, out)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// TestSpilledWideTablesSayTheSame: rows of branches by chance, windows that go out once, or
// again with late rows, hashes that collide, restarts.
func TestSpilledWideTablesSayTheSame(t *testing.T) {
	all, again := trips{}, 0
	for seed := uint64(1); seed <= 12; seed++ {
		rng := rand.New(rand.NewPCG(seed, 71))
		op := &graph.WideMerge{Lateness: []int64{0, 150}[seed%2], Coverage: seed%3 > 0}
		if op.Lateness > 0 && seed%4 == 1 {
			op.Correct = 1
		}
		fresh := wideOf(t, op, 3, 1)
		s := newSpilled(t, rng, func() Keyed { return fresh() })
		ctx, keys, wm := expr.NewContext(nil, 1), []int64{5, 400}[rng.IntN(2)], int64(0)
		// barrier lets windows go out, those with late rows by chance.
		barrier := func(everything bool, what string) bool {
			t.Helper()
			if op.Correct == 0 {
				return false
			}
			pending := s.memory.(*WideMerge).Pending()
			if other := s.disk.(*WideMerge).Pending(); !slices.Equal(pending, other) {
				t.Fatalf("%s: %v are pending, in memory %v", what, other, pending)
			}
			var give []Span
			for _, p := range pending {
				if p.Final || everything || rng.IntN(2) == 0 {
					give, again = append(give, p.Span), again+1
				}
			}
			s.both(func(k Keyed, out *Results) error { return k.(*WideMerge).Barrier(&Release{Windows: give}, out) })
			s.same("%s", what)
			return len(pending) > 0
		}
		for step := range 70 {
			what := fmt.Sprintf("seed %d, step %d", seed, step)
			var rows []click
			for range 1 + rng.IntN(50) {
				rows = append(rows, click{k: rng.Int64N(keys), v: rng.Int64N(10), ts: wm - op.Lateness + 1 + rng.Int64N(300+op.Lateness)})
			}
			in := clicksOf(rows, wm)
			in.Input = rng.IntN(3)
			if seed%5 == 0 {
				collide(in)
			}
			s.fold(ctx, in)
			if rng.IntN(2) == 0 {
				wm += rng.Int64N(60)
				s.advance(ctx, wm, "%s", what)
			}
			if rng.IntN(8) == 0 {
				barrier(false, what)
				if rng.IntN(2) == 0 && seed%5 != 0 {
					s.restart(0)
				}
			}
		}
		s.advance(ctx, batch.MaxWatermark, "seed %d, at the end", seed)
		barrier(true, "the last windows")
		for barrier(true, "at the end") {
		}
		if n := s.store.Bytes(); n != 0 {
			t.Fatalf("seed %d: %d bytes are on disk after the end", seed, n)
		}
		all.add(s)
	}
	all.atLeast(t, 300, 5)
	if again < 10 {
		t.Errorf("%d windows went out again", again)
	}
}

// TestSpillingWideTablesToADiskThatFails: each operation on the disk fails once, of windows
// that go out once and again.
func TestSpillingWideTablesToADiskThatFails(t *testing.T) {
	for _, correct := range []int64{0, 1} {
		op := &graph.WideMerge{Lateness: 100, Correct: correct}
		fresh := wideOf(t, op, 2, 1)
		failEachOperation(t, fmt.Sprintf("corrected %d", correct), func(fs vfs.FS) ([]string, error) {
			rng, x, w := rand.New(rand.NewPCG(5, 72)), &spilled{t: t}, fresh()
			store := spill.New(fs, "/spill")
			defer store.Close()
			w.SpillTo(store, 1)
			ctx := expr.NewContext(nil, 1)
			for step := range int64(8) {
				var rows []click
				for range 30 {
					rows = append(rows, click{k: rng.Int64N(20), v: rng.Int64N(10), ts: 40*step + rng.Int64N(100)})
				}
				in := clicksOf(rows, 0)
				in.Input = int(step) % 2
				if err := w.Fold(ctx, in, x.results(0)); err != nil {
					return nil, err
				}
				if err := w.Spill(); err != nil {
					return nil, err
				}
				if err := w.Advance(ctx, 40*step, x.results(0)); err != nil {
					return nil, err
				}
				if correct > 0 {
					if err := w.Barrier(&Release{Windows: spansOf(w.Pending())}, x.results(0)); err != nil {
						return nil, err
					}
				}
			}
			if err := w.Advance(ctx, batch.MaxWatermark, x.results(0)); err != nil {
				return nil, err
			}
			for range 2 * correct {
				if err := w.Barrier(&Release{Windows: spansOf(w.Pending())}, x.results(0)); err != nil {
					return nil, err
				}
			}
			slices.Sort(x.said[0])
			return x.said[0], nil
		})
	}
}

func spansOf(windows []Pending) []Span {
	var out []Span
	for _, w := range windows {
		out = append(out, w.Span)
	}
	return out
}

// partsOf are the parts of a payload, which is released.
func partsOf(t testing.TB, p *state.Payload) [][]byte {
	t.Helper()
	var parts [][]byte
	for i := range p.Parts() {
		var b bytes.Buffer
		if _, err := p.WritePart(&b, i, nil); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, bytes.Clone(b.Bytes()))
	}
	p.Release()
	return parts
}

// heapInUse is the heap that is in use; what is pooled goes with the second collection.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestWideTablesStayWithinTheirBudget measures the heap of a table of many columns, most of
// them of branches that a key has no row of: while rows come, while its window goes out, and
// while it is loaded.
func TestWideTablesStayWithinTheirBudget(t *testing.T) {
	const branches, times, keys, budget = 20, 2, 800, 512 << 10
	op := &graph.WideMerge{}
	fresh := wideOf(t, op, branches, times)
	w, ctx, rng := fresh(), expr.NewContext(nil, 1), rand.New(rand.NewPCG(7, 73))
	want := map[int64][branches]int64{} // rows by key and branch
	got, gone := 0, map[int64]bool{}
	var base, most int64
	calls := 0
	weigh := func(every int) {
		if calls++; calls%every == 0 {
			most = max(most, heapInUse()-base)
		}
	}
	out := &Results{Emit: func(b *batch.Batch) error {
		weigh(16)
		for i := range b.Len {
			k := b.Cols[0].I64[i]
			for br := range branches {
				count := &b.Cols[3+(br*times)*6+int(graph.RuleCount)]
				if n := want[k][br]; count.IsNull(i) != (n == 0) || n > 0 && count.I64[i] != n {
					t.Fatalf("key %d: %s rows of branch %d, want %d", k, count.Text(i), br, n)
				}
			}
			got, gone[k] = got+1, true
		}
		return nil
	}, Dead: func(_ *batch.Batch, e *batch.ValueError) { t.Fatal(e) }}
	feed := func(w *WideMerge, batches int) {
		for range batches {
			var rows []click
			branch := rng.IntN(branches)
			for range 200 {
				k := rng.Int64N(keys)
				rows = append(rows, click{k: k, v: rng.Int64N(1000), ts: 5})
				by := want[k]
				by[branch]++
				want[k] = by
			}
			in := clicksOf(rows, 0)
			in.Input = branch
			if err := w.Fold(ctx, in, out); err != nil {
				t.Fatal(err)
			}
			weigh(8)
			if w.Bytes() > budget {
				if err := w.Spill(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	feed(fresh(), 1) // what there is once
	clear(want)
	disk := t.TempDir()
	store := spill.New(vfs.NewOS(), disk+"/first")
	base = heapInUse()
	w.SpillTo(store, budget)
	feed(w, 30)
	p := new(state.Payload)
	if err := w.SaveTo(p); err != nil {
		t.Fatal(err)
	}
	parts := partsOf(t, p)
	limit := int64(budget*5/4 + 2<<20)
	if most > limit {
		t.Errorf("%d bytes were held while rows came, at most %d may be", most, limit)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	w, most, base = nil, 0, heapInUse()
	next := fresh()
	store = spill.New(vfs.NewOS(), disk+"/next")
	defer store.Close()
	next.SpillTo(store, budget)
	for i, b := range parts {
		if err := next.Load(b, state.Range{From: 0, To: state.Groups}); err != nil {
			t.Fatalf("part %d of %d: %v", i, len(parts), err)
		}
		weigh(2)
	}
	if most > limit {
		t.Errorf("%d bytes were held by the restart, at most %d may be", most, limit)
	}
	most = 0
	feed(next, 10)
	// What is read of a window at a time is so much in memory, not on disk.
	next.panes.spiller.budget = 8 << 20
	table := next.panes.open[0].aggTable
	at := next.panes.spiller.mergeBytes(len(table.runs) + 1)
	if err := next.panes.spiller.each([]*aggTable{table}, func(part *aggTable) error { most = max(most, part.held()); return nil }); err != nil {
		t.Fatal(err)
	}
	if most > 2*at {
		t.Errorf("a part of a window has %d bytes in memory, should have about %d", most, at)
	}
	next.panes.spiller.budget = budget
	parts, most = nil, 0
	base = heapInUse() - next.Bytes()
	if err := next.Advance(ctx, batch.MaxWatermark, out); err != nil {
		t.Fatal(err)
	}
	if most == 0 || most > limit {
		t.Errorf("%d bytes were held while the window went out, at most %d may be", most, limit)
	}
	if got != len(want) || len(gone) != got || got < keys*9/10 {
		t.Fatalf("%d rows of %d keys, want %d", got, len(gone), len(want))
	}
	if n := store.Written(); n < 2*budget {
		t.Errorf("%d bytes were written to disk", n)
	}
}
