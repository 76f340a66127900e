package operator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// TestEarlyRowsOfEachBatch: with no delay a row goes out with the batch that changes
// it, -U and +U after +I, and nothing where it stays the same; at the end what is out
// stays.
func TestEarlyRowsOfEachBatch(t *testing.T) {
	f := newFires(t, &graph.WindowAggregate{Window: graph.Window{Size: 10}, Firing: graph.Firing{Early: true}})
	f.fold(0, click{k: 1, v: 5, ts: 1}, click{k: 1, v: 7, ts: 2})
	f.want("first", "+I 1 2 12 7 0 10")
	f.fold(0, click{k: 1, v: 3, ts: 3}, click{k: 2, v: 1, ts: 11})
	f.want("second", "-U 1 2 12 7 0 10", "+U 1 3 15 7 0 10", "+I 2 1 1 1 10 20")
	f.advance(9)
	f.want("the end says nothing new")
	if n := len(f.w.panes.open); n != 1 {
		t.Fatalf("%d windows are open", n)
	}
	f.advance(batch.MaxWatermark)
	f.want("the end of the input neither")
}

// TestEarlyRowsByTheClock: a row waits for the delay after it changed, and for
// nothing longer than the window's end; a row that has changed back is not said.
func TestEarlyRowsByTheClock(t *testing.T) {
	f := newFires(t, &graph.WindowAggregate{Window: graph.Window{Size: 10}, Firing: graph.Firing{Early: true, EarlyDelay: 1000}})
	f.due(0)
	f.fold(5_000, click{k: 1, v: 5, ts: 1})
	f.fold(5_500, click{k: 1, v: 7, ts: 2}, click{k: 1, v: 1, ts: 12})
	f.want("nothing yet")
	f.due(6_000)
	f.fire(5_999)
	f.want("still nothing")
	f.fire(6_000)
	f.want("the first window", "+I 1 2 12 7 0 10")
	f.due(6_500)
	f.fold(6_100, click{k: 1, v: 0, ts: 3})
	f.advance(9)
	f.want("the end comes first", "-U 1 2 12 7 0 10", "+U 1 3 12 7 0 10")
	f.due(6_500)
	f.fold(2_000, click{k: 1, v: 1, ts: 13}) // the clock was set back
	f.due(3_000)
	f.fire(3_000)
	f.want("the second window", "+I 1 2 2 1 10 20")
	f.due(0)
}

// TestLateRowsOfAWindow: from its end until the lateness has passed a window gives
// rows again when they change, also of keys that it had not; at once or by the clock,
// and at the latest when it is dropped.
func TestLateRowsOfAWindow(t *testing.T) {
	for _, delay := range []int64{0, 50} {
		f := newFires(t, &graph.WindowAggregate{Window: graph.Window{Size: 10}, Lateness: 100, Firing: graph.Firing{Late: true, LateDelay: delay}})
		f.fold(0, click{k: 1, v: 5, ts: 1})
		f.advance(8)
		f.want("before the end")
		f.advance(9)
		f.want("at the end", "+I 1 1 5 5 0 10")
		f.fold(0, click{k: 1, v: 1, ts: 2}, click{k: 2, v: 2, ts: 3})
		late := []string{"-U 1 1 5 5 0 10", "+U 1 2 6 5 0 10", "+I 2 1 2 2 0 10"}
		if delay > 0 {
			f.want("not yet")
			f.due(50)
			f.fire(50)
		}
		f.want("late rows", late...)
		f.fold(60, click{k: 2, v: 0, ts: 4})
		if delay > 0 {
			f.advance(108)
			f.want("not yet")
			f.advance(109)
		}
		f.want("the last late row", "-U 2 1 2 2 0 10", "+U 2 2 2 2 0 10")
		f.advance(109)
		if len(f.w.panes.open) > 0 {
			t.Fatal("the window is not dropped")
		}
		f.want("no more")
		f.due(0)
	}
}

// TestWindowsBeyondTheirEndAreRefused: with early rows alone the window is dropped at its end,
// and a row that came by then counts.
func TestWindowsBeyondTheirEndAreRefused(t *testing.T) {
	f := newFires(t, &graph.WindowAggregate{Window: graph.Window{Size: 10}, Firing: graph.Firing{Early: true, EarlyDelay: 1000}})
	f.fold(0, click{k: 1, v: 5, ts: 1})
	f.advance(9)
	f.want("at the end", "+I 1 1 5 5 0 10")
	err := f.w.Fold(expr.NewContext(nil, 0), clicksOf([]click{{k: 1, v: 1, ts: 2}}, batch.NoWatermark), f.out.results(t))
	if _, ok := err.(*FiredError); !ok {
		t.Fatalf("a late row: %v", err)
	}
}

// windowsOfClick are the ends of a click's windows of a kind.
func windowsOfClick(w graph.Window, ts int64) [][2]int64 {
	var out [][2]int64
	switch w.Kind {
	case graph.Tumble:
		s := types.FloorDiv(ts, w.Size) * w.Size
		return [][2]int64{{s, s + w.Size}}
	case graph.Hop:
		for s := types.FloorDiv(ts, w.Step) * w.Step; s > ts-w.Size; s -= w.Step {
			out = append(out, [2]int64{s, s + w.Size})
		}
	case graph.Cumulate:
		s := types.FloorDiv(ts, w.Size) * w.Size
		for e := s + w.Step; e <= s+w.Size; e += w.Step {
			if ts < e {
				out = append(out, [2]int64{s, e})
			}
		}
	}
	return out
}

// TestWindowChangesLeaveTheRowsOfAllClicks: whatever fires and whenever, over
// restarts, a window's rows are right when it has fired, and in the end the changes
// leave the rows of all clicks that were not late. No row is taken back that is not
// out.
func TestWindowChangesLeaveTheRowsOfAllClicks(t *testing.T) {
	windows := []graph.Window{{Size: 20}, {Kind: graph.Hop, Step: 10, Size: 30}, {Kind: graph.Cumulate, Step: 10, Size: 40}}
	var kinds [4]int
	for seed := uint64(1); seed <= 60; seed++ {
		r := rand.New(rand.NewPCG(seed, 8))
		op := &graph.WindowAggregate{Window: windows[seed%3], Firing: graph.Firing{Early: r.IntN(3) > 0, EarlyDelay: int64(r.IntN(2)) * 40}}
		if op.Firing.Late = !op.Firing.Early || r.IntN(2) == 0; op.Firing.Late {
			op.Lateness, op.Firing.LateDelay = int64(1+r.IntN(40)), int64(r.IntN(2))*30
		}
		if op.Retracts = r.IntN(2) == 0; op.Retracts && r.IntN(3) == 0 {
			op.Lateness, op.Firing = 0, graph.Firing{}
		}
		out := changesOut(t, op)
		fresh := func() Keyed {
			w, err := NewWindowChanges(op, clickSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		k, x := fresh(), &table{t: t, rows: map[string]int{}}
		var there []click
		wm, now := int64(-100), int64(1_000)
		type group struct {
			n, sum int64
			vs     [3]int64
		}
		groups := map[[3]int64]*group{}
		ctx := expr.NewContext(nil, 0)
		if err := k.Advance(ctx, wm, x.results()); err != nil {
			t.Fatal(err)
		}
		rows := func(shown func(end int64) bool) []string {
			var want []string
			for key, g := range groups {
				if g.n == 0 || !shown(key[2]) {
					continue
				}
				most := 2
				for g.vs[most] == 0 {
					most--
				}
				want = append(want, fmt.Sprintf("%d|%d|%d|%d|%d|%d", key[0], g.n, g.sum, most, key[1]*1000, key[2]*1000))
			}
			slices.Sort(want)
			return want
		}
		for step := range 80 {
			var clicks []click
			for range r.IntN(8) {
				c := click{k: int64(r.IntN(4)), v: int64(r.IntN(3)), ts: wm + int64(r.IntN(120)) - 60}
				if at := r.IntN(len(there) + 1); op.Retracts && at < len(there) && r.IntN(2) == 0 {
					c = there[at]
					if c.back = true; slices.ContainsFunc(windowsOfClick(op.Window, c.ts), func(w [2]int64) bool { return watermark.Late(wm, w[1], op.Lateness) }) {
						continue // it stays: what takes back a row comes while its windows take it
					}
					there = slices.Delete(there, at, at+1)
				}
				taken := false
				for _, w := range windowsOfClick(op.Window, c.ts) {
					if watermark.Late(wm, w[1], op.Lateness) {
						continue
					}
					taken = true
					key := [3]int64{c.k, w[0], w[1]}
					if groups[key] == nil {
						groups[key] = &group{}
					}
					g, sign := groups[key], int64(1)
					if c.back {
						sign = -1
					}
					g.n, g.sum = g.n+sign, g.sum+sign*c.v
					g.vs[c.v] += sign
				}
				if taken {
					clicks = append(clicks, c)
				}
				if taken && !c.back {
					there = append(there, c)
				}
			}
			ctx.Now = now * 1000
			if err := k.Fold(ctx, clicksOf(clicks, wm), x.results()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			now += int64(r.IntN(20))
			if r.IntN(4) == 0 {
				if err := k.(Timed).Fire(now, x.results()); err != nil {
					t.Fatal(err)
				}
			}
			if r.IntN(3) == 0 {
				wm += int64(r.IntN(30))
				if err := k.Advance(ctx, wm, x.results()); err != nil {
					t.Fatal(err)
				}
			}
			if step%7 == 3 {
				k = restart(t, k, fresh)
			}
			if step%5 == 4 {
				if err := k.(Timed).Fire(math.MaxInt64, x.results()); err != nil {
					t.Fatal(err)
				}
				got := x.list()
				if want := rows(func(end int64) bool { return op.Firing.Early || wm >= end-1 }); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, %+v:\n%v\nwant\n%v", seed, step, op.Firing, got, want)
				}
			}
		}
		if err := k.Advance(ctx, batch.MaxWatermark, x.results()); err != nil {
			t.Fatal(err)
		}
		if got, want := x.list(), rows(func(int64) bool { return true }); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v:\n%v\nwant\n%v", seed, op.Firing, got, want)
		}
		for i, n := range x.kinds {
			kinds[i] += n
		}
	}
	if slices.Contains(kinds[:], 0) {
		t.Errorf("kinds %v", kinds)
	}
}

// TestWindowChangesTakeBackWhatTheyGave: over a restart too the row taken back is the
// one that went out, and an aggregate that is new has then the value of no rows.
func TestWindowChangesTakeBackWhatTheyGave(t *testing.T) {
	op := &graph.WindowAggregate{Window: graph.Window{Size: 10}, Firing: graph.Firing{Early: true, EarlyDelay: 100}}
	f := newFires(t, op)
	f.fold(0, click{k: 1, v: 5, ts: 1})
	f.fire(100)
	f.want("out", "+I 1 1 5 5 0 10")
	f.fold(200, click{k: 1, v: 7, ts: 2}, click{k: 2, v: 1, ts: 2})
	saved := f.w.Save()

	wider := *op
	out := changesOut(t, &wider)
	wider.Aggregates = append(wider.Aggregates, aggregateOf(t, "MIN", 1))
	out.Fields = slices.Insert(out.Fields, 4, types.Field{Name: "MIN(1)", Type: wider.Aggregates[3].Bound.Return})
	w, err := NewWindowChanges(&wider, clickSchema, out)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Load(saved, state.Range{From: 0, To: state.Groups}); err != nil {
		t.Fatal(err)
	}
	f.w = w
	f.due(1)
	f.fire(1)
	f.want("after the restart", "-U 1 1 5 5 NULL 0 10", "+U 1 2 12 7 NULL 0 10", "+I 2 1 1 1 NULL 0 10")

	for cut := range saved {
		w, err := NewWindowChanges(op, clickSchema, changesOut(t, op))
		if err != nil {
			t.Fatal(err)
		}
		if w.Load(saved[:cut], state.Range{From: 0, To: state.Groups}) == nil {
			t.Fatalf("%d of %d bytes of state were taken", cut, len(saved))
		}
	}
}
