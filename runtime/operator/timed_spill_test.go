package operator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// timedCase is a join in which the watermark decides about rows.
type timedCase struct {
	name string
	op   *graph.Join
}

// operator is a join of rows of timedSchema.
func (c timedCase) operator(t testing.TB) func() Keyed {
	pair := graph.PairSchema(timedSchema, timedSchema)
	return func() Keyed {
		k, err := NewJoin(c.op, timedSchema, timedSchema, pair)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
}

// differ is a condition: the times do.
func differ(t testing.TB) expr.Expr {
	t.Helper()
	pair := graph.PairSchema(timedSchema, timedSchema)
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, _ := lib.Lookup("<>")
	e, err := expr.NewCall(f, expr.NewColumn(pair, 1), expr.NewColumn(pair, 3))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func intervalCases(t testing.TB) (out []timedCase) {
	for _, bounds := range [][2]int64{{-30, 30}, {0, 80}, {-90, -20}, {20, 60}} {
		for kind := graph.InnerJoin; kind <= graph.FullJoin; kind++ {
			op := &graph.Join{Kind: kind, Keys: []graph.JoinKey{{}}, Interval: &graph.JoinInterval{LeftTime: 1, RightTime: 1, Lower: bounds[0], Upper: bounds[1]}}
			if bounds[0] < 0 {
				op.Condition = differ(t)
			}
			out = append(out, timedCase{name: fmt.Sprintf("interval %v, %v", kind, bounds), op: op})
		}
	}
	return out
}

// timedRun draws rows of both sides, none of them late, but for versions of left rows that
// may be taken back.
type timedRun struct {
	timedCase
	rng   *rand.Rand
	keys  int64
	wm    int64
	there []change // left rows
}

// batch is of rows of a side; of key 0 it is NULL.
func (r *timedRun) batch(rows int) *KeyedRows {
	side := r.rng.IntN(2)
	var out []change
	for range rows {
		if n := len(r.there); side == 0 && r.op.Retracts[0] && n > 0 && r.rng.IntN(2) == 0 {
			i := r.rng.IntN(n)
			x := r.there[i]
			r.there = slices.Delete(r.there, i, i+1)
			x.kind = batch.Delete
			out = append(out, x)
			continue
		}
		x := change{r.rng.Int64N(r.keys), r.wm + 1 + r.rng.Int64N(100), batch.Insert}
		switch {
		case side == 0:
			r.there = append(r.there, x)
		case r.op.Retracts[0]:
			x.v -= r.rng.Int64N(60)
		}
		if side == 1 && r.op.Retracts[1] && r.rng.IntN(4) == 0 {
			x.kind = batch.Delete
		}
		out = append(out, x)
	}
	return timedSide(side, out)
}

// timedSide makes rows of a side, v is their time in ms.
func timedSide(side int, changes []change) *KeyedRows {
	in := versionRows(side, changes)
	for i, c := range changes {
		if c.k == 0 {
			in.Batch.Cols[0].NullRow(i)
		}
	}
	return in
}

// TestSpilledIntervalJoinsSayTheSame: rows of either side by chance, with keys that are
// NULL, state moved to disk, watermarks and restarts.
func TestSpilledIntervalJoinsSayTheSame(t *testing.T) {
	spilledTimedJoins(t, intervalCases(t))
}

func spilledTimedJoins(t *testing.T, cases []timedCase) {
	all, merged := trips{}, 0
	for i, c := range cases {
		for seed := uint64(1); seed <= 4; seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			r := &timedRun{timedCase: c, rng: rng, keys: []int64{3, 40, 300}[rng.IntN(3)]}
			s := newSpilled(t, rng, c.operator(t))
			ctx := expr.NewContext(nil, 1)
			for step := range 60 {
				s.fold(ctx, r.batch(1+rng.IntN(25)))
				s.same("%s, seed %d, step %d", c.name, seed, step)
				if rng.IntN(2) == 0 {
					r.wm += rng.Int64N(50)
					s.advance(ctx, r.wm, "%s, seed %d, step %d, watermark %d", c.name, seed, step, r.wm)
				}
				if d := s.disk.(interface{ groups() *groupDisk }).groups(); len(d.runs) > 0 && d.runs[0].Keys() > int(r.keys)/2 {
					merged++
				}
				if rng.IntN(15) == 0 {
					s.restart(0)
				}
			}
			s.advance(ctx, batch.MaxWatermark, "%s, seed %d, at the end", c.name, seed)
			all.add(s)
			if err := s.store.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all.atLeast(t, 30*len(cases), 5); merged == 0 {
		t.Error("no runs were merged")
	}
}

func (t *timedTable) groups() *groupDisk { return &t.disk }

// TestSpilledIntervalJoinStaysWithinItsBudget: beyond memory only indexes stay, and what
// the watermark has passed leaves the disk.
func TestSpilledIntervalJoinStaysWithinItsBudget(t *testing.T) {
	const budget, keys, wait = 256 << 10, 20_000, 60_000
	for _, kind := range []graph.JoinKind{graph.InnerJoin, graph.FullJoin} {
		c := timedCase{op: &graph.Join{Kind: kind, Keys: []graph.JoinKey{{}}, Interval: &graph.JoinInterval{LeftTime: 1, RightTime: 1, Lower: -wait, Upper: wait}}}
		k := c.operator(t)().(Spilling)
		store := spill.New(vfs.NewMem(), "/spill")
		k.SpillTo(store, budget)
		ctx, rng := expr.NewContext(nil, 1), rand.New(rand.NewPCG(5, 5))
		rows, want := 0, 0
		res := &Results{Emit: func(b *batch.Batch) error { rows += b.Len; return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
		var count [2][keys + 1]int
		var most, last int64
		feed := func(from int64, steps int) {
			for step := range steps {
				var in []change
				for i := range int64(500) {
					x := change{k: 1 + rng.Int64N(keys), v: from + int64(step)*100 + i%100}
					count[step%2][x.k]++
					in = append(in, x)
				}
				if err := k.Fold(ctx, timedSide(step%2, in), res); err != nil {
					t.Fatal(err)
				}
				if k.Bytes() > budget {
					if err := k.Spill(); err != nil {
						t.Fatal(err)
					}
					if n := k.Bytes(); n > budget*3/4 {
						t.Fatalf("%d bytes stay in memory, of %d", n, budget)
					}
				}
				if most = max(most, store.Bytes()); step%10 == 9 {
					if err := k.Advance(ctx, from+int64(step-9)*100-1, res); err != nil {
						t.Fatal(err)
					}
				}
			}
			for key := range count[0] {
				l, r := count[0][key], count[1][key]
				if want += l * r; kind == graph.FullJoin && l*r == 0 {
					want += l + r
				}
			}
			count = [2][keys + 1]int{}
			if err := k.Advance(ctx, from+int64(steps)*100+wait, res); err != nil {
				t.Fatal(err)
			}
			if n := k.Bytes(); n > budget*5/4 {
				t.Fatalf("%d bytes are in memory behind the watermark, of %d", n, budget)
			}
			last = store.Bytes()
		}
		feed(0, 80)
		if most < 2*budget {
			t.Fatalf("%d bytes on disk", most)
		}
		feed(1_000_000, 10)
		if rows != want {
			t.Errorf("%v: %d rows, want %d", kind, rows, want)
		}
		if last > most/4 {
			t.Errorf("%v: %d bytes are on disk, of %d before the watermark passed them", kind, last, most)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWatermarksWakeManyKeys: more keys than are woken at once have rows to be padded or
// given, with state going to disk in between, and watermarks that come again.
func TestWatermarksWakeManyKeys(t *testing.T) {
	woken := 0
	for i, c := range append(intervalCases(t), temporalCases(t)...) {
		if c.op.Kind == graph.InnerJoin && c.op.Interval != nil {
			continue // it has nothing to pad
		}
		rng := rand.New(rand.NewPCG(1, uint64(1000+i)))
		r := &timedRun{timedCase: c, rng: rng, keys: 1000}
		s := newSpilled(t, rng, c.operator(t))
		ctx := expr.NewContext(nil, 1)
		for step := range 3 {
			for range 3 {
				s.fold(ctx, r.batch(250))
			}
			s.spill()
			s.same("%s, step %d", c.name, step)
			r.wm += rng.Int64N(120)
			keys := 0
			for _, w := range s.disk.(interface{ groups() *groupDisk }).groups().wakes {
				keys += wakeBlock * w.Blocks()
			}
			if keys > 2*wakeBlock {
				woken++
			}
			s.advance(ctx, r.wm, "%s, step %d, watermark %d", c.name, step, r.wm)
			if step == 1 {
				s.restart(0)
			}
			s.advance(ctx, r.wm, "%s, step %d, watermark %d again", c.name, step, r.wm)
		}
		s.advance(ctx, batch.MaxWatermark, "%s, at the end", c.name)
		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if woken < 30 {
		t.Errorf("%d watermarks had many keys to wake", woken)
	}
}

// TestIntervalJoinOnADiskThatFails at each operation: the cause comes out.
func TestIntervalJoinOnADiskThatFails(t *testing.T) {
	c := timedCase{op: &graph.Join{Kind: graph.FullJoin, Keys: []graph.JoinKey{{}}, Interval: &graph.JoinInterval{LeftTime: 1, RightTime: 1, Lower: -50, Upper: 50}}}
	timedJoinFails(t, "an interval join", c)
}

func timedJoinFails(t *testing.T, what string, c timedCase) {
	run := func(fs vfs.FS) (rows int, err error) {
		k := c.operator(t)().(Spilling)
		store := spill.New(fs, "/spill")
		defer store.Close()
		k.SpillTo(store, 1)
		ctx := expr.NewContext(nil, 1)
		res := &Results{Dead: func(*batch.Batch, *batch.ValueError) {}, Emit: func(b *batch.Batch) error { rows += b.Len; return nil }}
		for step := range int64(8) {
			var in []change
			for i := range int64(30) {
				in = append(in, change{k: 1 + (i+step)%60, v: 10*step + i%10})
			}
			if err := k.Fold(ctx, timedSide(int(step%2), in), res); err != nil {
				return rows, err
			}
			if err := k.Spill(); err != nil {
				return rows, err
			}
			if err := k.Advance(ctx, 10*step-20, res); err != nil {
				return rows, err
			}
		}
		return rows, k.Advance(ctx, batch.MaxWatermark, res)
	}
	failEachOperation(t, what, run)
}
