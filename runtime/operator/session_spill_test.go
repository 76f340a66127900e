package operator

import (
	"fmt"
	"math/rand/v2"
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

// sessionCase is an operator of sessions of clicks by their key.
type sessionCase struct {
	name     string
	gap      int64
	lateness int64
	fresh    func() Keyed
}

// sessionCases are the aggregates and the rows of sessions, with a lateness and without.
func sessionCases(t testing.TB) []sessionCase {
	const gap = 40
	var cases []sessionCase
	for _, lateness := range []int64{0, 60} {
		window := graph.Window{Kind: graph.Session, Size: gap}
		sums := &graph.WindowAggregate{Window: window, Lateness: lateness}
		out := changesOut(t, sums)
		rows := &graph.SessionAssign{Window: window, Lateness: lateness, Keys: []int{0}, Time: 2}
		wide := &batch.Schema{Fields: slices.Clone(clickSchema.Fields)}
		for _, name := range []string{"s", "e", "t"} {
			wide.Fields = append(wide.Fields, types.Field{Name: name, Type: types.NewTimestamp(3)})
		}
		cases = append(cases, sessionCase{fmt.Sprintf("aggregates, lateness %d", lateness), gap, lateness, func() Keyed {
			k, err := NewAggregateOver(sums, clickSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}}, sessionCase{fmt.Sprintf("rows, lateness %d", lateness), gap, lateness, func() Keyed {
			k, err := NewSessionAssign(rows, clickSchema, wide)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}})
	}
	return cases
}

// draw makes rows by chance that are not late.
func (c *sessionCase) draw(rng *rand.Rand, n int, keys, wm int64) *KeyedRows {
	var rows []click
	for range n {
		rows = append(rows, click{k: rng.Int64N(keys), v: rng.Int64N(10), ts: wm - c.gap - c.lateness + 2 + rng.Int64N(200+c.lateness)})
	}
	in := clicksOf(rows, wm)
	in.Batch.Kinds = nil
	return in
}

func sessionsOf(k Keyed) *sessions {
	if a, ok := k.(*SessionAssign); ok {
		return a.sessions
	}
	return k.(*SessionAggregate).sessions
}

// earliest is the first end of a session that is in memory.
func earliest(a *sessions) (at int64, ok bool) {
	for _, list := range a.byKey {
		for _, s := range list {
			if !ok || s.end < at {
				at, ok = s.end, true
			}
		}
	}
	return at, ok
}

// TestSpilledSessionsSayTheSame: rows by chance that begin sessions, make them longer and one
// of several, hashes that collide, restarts; each watermark gives what it gives in memory.
func TestSpilledSessionsSayTheSame(t *testing.T) {
	for i, c := range sessionCases(t) {
		all, asked, ranges, let := trips{}, 0, 0, 0
		for seed := uint64(1); seed <= 4; seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(80+i)))
			s := newSpilled(t, rng, c.fresh)
			ctx, keys, wm := expr.NewContext(nil, 1), []int64{4, 60, 900, 8000}[seed%4], int64(0)
			for step := range 100 {
				in := c.draw(rng, 1+rng.IntN(60), keys, wm)
				if seed == 1 {
					collide(in)
				}
				s.fold(ctx, in)
				if x := sessionsOf(s.disk); rng.IntN(3) == 0 {
					if wm += rng.Int64N(50); rng.IntN(15) == 0 {
						wm += 500 // all sessions end
						let++
					}
					runs := len(x.disk.runs)
					if at, ok := x.later.first(); ok && runs > 0 && x.over(wm, at) {
						asked++
					}
					s.advance(ctx, wm, "%s, seed %d, step %d", c.name, seed, step)
					at, ok := earliest(sessionsOf(s.memory))
					if other, there := x.next(); ok && (!there || other > at) {
						t.Fatalf("%s, seed %d, step %d: a session ends at %d, the next one is said to end at %d (%t)", c.name, seed, step, at, other, there)
					}
				}
				if rng.IntN(20) == 0 && seed != 1 {
					s.restart(0)
				}
				ranges = max(ranges, len(sessionsOf(s.disk).later.runs))
			}
			if n := s.store.Bytes(); keys > 4 && n == 0 && s.disk.Spilled() {
				t.Fatal("nothing is on disk")
			}
			s.end(ctx, "%s, seed %d, at the end", c.name, seed)
			all.add(s)
		}
		all.atLeast(t, 150, 3)
		if asked < 20 || ranges < 2 || let < 4 {
			t.Errorf("%s: sessions on disk ended %d times, their ends were in %d runs, all sessions ended %d times", c.name, asked, ranges, let)
		}
	}
}

// TestManySessionsEndAtOnce, of more keys than are looked for one by one, some of them in
// memory; what has ended goes from the disk, without an end of the input.
func TestManySessionsEndAtOnce(t *testing.T) {
	for i, c := range sessionCases(t) {
		rng := rand.New(rand.NewPCG(uint64(i), 81))
		s, ctx := newSpilled(t, rng, c.fresh), expr.NewContext(nil, 1)
		for n := range 30 {
			in := c.draw(rng, 300, 1<<40, 0)
			s.both(func(k Keyed, out *Results) error { return k.Fold(ctx, in, out) })
			if n < 29 {
				s.spill()
			}
		}
		s.advance(ctx, 100, "%s, the first ones", c.name)
		s.advance(ctx, 2000, "%s, all of them", c.name)
		if n := s.store.Bytes(); n != 0 || s.disk.Spilled() {
			t.Errorf("%s: %d bytes are on disk when all sessions have ended", c.name, n)
		}
	}
}

// TestSpillingSessionsToADiskThatFails: each operation on the disk fails once.
func TestSpillingSessionsToADiskThatFails(t *testing.T) {
	for i, c := range sessionCases(t) {
		failEachOperation(t, c.name, func(fs vfs.FS) ([]string, error) {
			rng, x := rand.New(rand.NewPCG(5, uint64(82+i))), &spilled{t: t}
			k, ctx := c.fresh().(Spilling), expr.NewContext(nil, 1)
			store := spill.New(fs, "/spill")
			defer store.Close()
			k.SpillTo(store, 1)
			for step := range int64(8) {
				if err := k.Fold(ctx, c.draw(rng, 20, 30, 40*step), x.results(0)); err != nil {
					return nil, err
				}
				if err := k.Spill(); err != nil {
					return nil, err
				}
				if err := k.Advance(ctx, 40*step, x.results(0)); err != nil {
					return nil, err
				}
			}
			if err := k.Advance(ctx, batch.MaxWatermark, x.results(0)); err != nil {
				return nil, err
			}
			slices.Sort(x.said[0])
			return x.said[0], nil
		})
	}
}

// TestSessionsOfTasksAtOtherTimes: by the clock tasks have come to other times when a
// checkpoint is taken. What one had given is not given again, and what another one had not
// is.
func TestSessionsOfTasksAtOtherTimes(t *testing.T) {
	c := sessionCases(t)[0]
	ctx := expr.NewContext(nil, 1)
	for n, times := range [][]int64{{220, 190}, {190, 220}, {220, 190}, {190, 220}} {
		x, budget := &spilled{t: t}, []int64{1, 1 << 40}[n/2]
		var saved [][][]byte
		for task, wm := range times {
			s := newSpilled(t, rand.New(rand.NewPCG(9, uint64(task))), c.fresh)
			var rows []click
			for k := range int64(40) {
				rows = append(rows, click{k: 2*k + int64(task), v: 1, ts: 100 + 10*(k%10)})
			}
			if err := s.disk.Fold(ctx, clicksOf(rows, 0), x.results(0)); err != nil {
				t.Fatal(err)
			}
			s.spill()
			if err := s.disk.Advance(ctx, wm, x.results(0)); err != nil {
				t.Fatal(err)
			}
			saved = append(saved, s.save())
		}
		// They become one, in memory or on disk, which is saved again before its time goes on.
		next := &spilled{t: t, fresh: c.fresh, fs: vfs.NewMem()}
		next.disk = next.spilling(budget)
		whole := state.Range{From: 0, To: state.Groups}
		for _, parts := range saved {
			loadParts(t, next.disk, parts, whole)
		}
		again := [][]byte{next.disk.Save()}
		if next.disk.Spilled() {
			p := new(state.Payload)
			if err := next.disk.SaveTo(p); err != nil {
				t.Fatal(err)
			}
			again = partsOf(t, p)
		}
		last := &spilled{t: t, fresh: c.fresh, fs: vfs.NewMem()}
		last.disk = last.spilling(1)
		loadParts(t, last.disk, again, whole)
		last.spill()
		if !last.disk.Spilled() {
			t.Fatal("nothing is on disk")
		}
		if err := last.disk.Advance(ctx, batch.MaxWatermark, x.results(0)); err != nil {
			t.Fatal(err)
		}
		slices.Sort(x.said[0])
		if n, once := len(x.said[0]), len(slices.Compact(slices.Clone(x.said[0]))); n != 80 || once != 80 {
			t.Errorf("at %v, budget %d: %d sessions were given, %d of them once, want 80", times, budget, n, once)
		}
	}
}

// TestSessionsStayWithinTheirBudget measures the heap: while rows come, sessions end, and
// saved state is loaded. Each session is given once, with all its rows.
func TestSessionsStayWithinTheirBudget(t *testing.T) {
	const keys, budget = 40_000, 1 << 20
	for _, c := range []sessionCase{sessionCases(t)[0], sessionCases(t)[1]} {
		ctx := expr.NewContext(nil, 1)
		store := spill.New(vfs.NewOS(), t.TempDir()+"/spill")
		k := c.fresh().(Spilling)
		k.SpillTo(store, budget)
		rows, bounds := make([]uint8, keys), 0
		var base, most int64
		calls := 0
		weigh := func() {
			if calls++; calls%10 == 0 {
				most = max(most, heapInUse()-base)
			}
		}
		out := &Results{Emit: func(b *batch.Batch) error {
			weigh()
			for i := range b.Len {
				n := uint8(1)
				if _, ok := k.(*SessionAggregate); ok {
					n = uint8(b.Cols[1].I64[i])
				}
				rows[b.Cols[0].I64[i]] += n
				bounds++
			}
			return nil
		}, Dead: func(_ *batch.Batch, e *batch.ValueError) { t.Fatal(e) }}
		// Each key has three rows in one session.
		feed := func(from, to int64) {
			var in []click
			for k := from; k < to; k++ {
				in = append(in, click{k: k, ts: 100 + k/400})
			}
			for n := range 3 {
				for i := range in {
					in[i].ts += int64(n) * 5
				}
				if err := k.Fold(ctx, clicksOf(in, 0), out); err != nil {
					t.Fatal(err)
				}
				if k.Bytes() > budget {
					if err := k.Spill(); err != nil {
						t.Fatal(err)
					}
				}
			}
			weigh()
		}
		base = heapInUse()
		for from := int64(0); from < keys; from += 500 {
			feed(from, from+500)
		}
		limit := int64(budget*5/4 + 2<<20)
		if most > limit {
			t.Errorf("%s: %d bytes were held while rows came, at most %d may be", c.name, most, limit)
		}
		if n := store.Bytes(); n < budget {
			t.Fatalf("%s: %d bytes are on disk", c.name, n)
		}
		p := new(state.Payload)
		if err := k.SaveTo(p); err != nil {
			t.Fatal(err)
		}
		parts := partsOf(t, p)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		k, most, base = nil, 0, heapInUse()
		k = c.fresh().(Spilling)
		store = spill.New(vfs.NewOS(), t.TempDir()+"/spill")
		k.SpillTo(store, budget)
		for _, b := range parts {
			if err := k.Load(b, state.Range{From: 0, To: state.Groups}); err != nil {
				t.Fatal(err)
			}
			weigh()
		}
		if most > limit {
			t.Errorf("%s: %d bytes were held by the restart, at most %d may be", c.name, most, limit)
		}
		for wm := int64(100); wm < 200; wm += 20 {
			if err := k.Advance(ctx, wm+c.gap, out); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Advance(ctx, batch.MaxWatermark, out); err != nil {
			t.Fatal(err)
		}
		if most > limit {
			t.Errorf("%s: %d bytes were held when sessions ended, at most %d may be", c.name, most, limit)
		}
		for key, n := range rows {
			if n != 3 {
				t.Fatalf("%s: key %d has %d rows, want 3", c.name, key, n)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
