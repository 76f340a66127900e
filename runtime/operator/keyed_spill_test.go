package operator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// keyedCase is an operator with state by key in a stream.
type keyedCase struct {
	name     string
	fresh    func() Keyed
	retracts bool // rows may be taken back; those of one key are equal then
	aging    bool
	timed    bool // the second column is a row time
	sides    bool // there are two inputs
}

// numbered is a schema with a number behind.
func numbered(s *batch.Schema, number bool) *batch.Schema {
	out := &batch.Schema{Fields: slices.Clone(s.Fields)}
	if number {
		out.Fields = append(out.Fields, types.Field{Name: "n", Type: types.NewBigInt()})
	}
	return out
}

// keyedCases are the operators that fetch what they know of a key.
func keyedCases(t *testing.T) []keyedCase {
	var cases []keyedCase
	for _, ttl := range []int64{0, 200} {
		for _, n := range []int64{1, 3} {
			for _, retracts := range []bool{false, true} {
				op := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 1, Desc: n == 1}}, N: n, Changes: true, Retracts: retracts,
					Number: n == 3 && !retracts, Latest: n == 1, TTL: ttl}
				cases = append(cases, keyedCase{name: fmt.Sprintf("first %d, taken back %t, ttl %d", n, retracts, ttl), retracts: retracts, aging: ttl > 0, fresh: func() Keyed {
					k, err := NewTopN(op, pairSchema, numbered(pairSchema, op.Number))
					if err != nil {
						t.Fatal(err)
					}
					return k
				}})
			}
		}
		cases = append(cases, keyedCase{name: fmt.Sprintf("newest row, ttl %d", ttl), retracts: true, aging: ttl > 0, fresh: func() Keyed {
			return NewNormalize(&graph.Normalize{Keys: []int{0}, TTL: ttl}, pairSchema)
		}}, keyedCase{name: fmt.Sprintf("first row, ttl %d", ttl), timed: true, aging: ttl > 0, fresh: func() Keyed {
			k, err := NewFirstRow(&graph.FirstRow{Time: 1, Keys: []int{0}, TTL: ttl}, timedSchema, timedSchema)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}})
	}
	for _, ttl := range []int64{0, 200} {
		for i, op := range []graph.SetOperation{{Kind: graph.Intersect}, {Kind: graph.Except, All: true}} {
			op.Changes, op.TTL = true, ttl
			cases = append(cases, keyedCase{name: fmt.Sprintf("set %d, ttl %d", i, ttl), retracts: true, sides: true, aging: ttl > 0, fresh: func() Keyed { return NewSetChanges(&op, pairSchema) }})
		}
	}
	return append(cases, overCases(t)...)
}

// keyedRun feeds rows by chance.
type keyedRun struct {
	keyedCase
	rng   *rand.Rand
	keys  int64
	there []change
	now   int64
	wm    int64
}

func (r *keyedRun) batch(rows int) *KeyedRows {
	if r.timed {
		var out [][2]int64
		for range rows {
			out = append(out, [2]int64{r.rng.Int64N(r.keys), r.wm + 1 + r.rng.Int64N(100)})
		}
		return timed(out...)
	}
	in := changesOf(drawChanges(r.rng, rows, r.keys, 10, r.retracts, &r.there))
	if r.sides {
		in.Input = r.rng.IntN(2)
	}
	return in
}

// step is a batch, and for row times the watermark behind it.
func (r *keyedRun) step(k Keyed, in *KeyedRows, out *Results) error {
	if a, ok := k.(Aging); ok && r.aging {
		a.Age(r.now)
	}
	ctx := expr.NewContext(nil, 1)
	if err := k.Fold(ctx, in, out); err != nil || !r.timed {
		return err
	}
	return k.Advance(ctx, r.wm, out)
}

// TestSpilledKeysSayTheSame: rows by chance with state on disk, times to live, hashes
// that collide and restarts give what they give in memory.
func TestSpilledKeysSayTheSame(t *testing.T) {
	merged := 0
	for i, c := range keyedCases(t) {
		all := trips{}
		for seed := uint64(1); seed <= 3; seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
			r := &keyedRun{keyedCase: c, rng: rng, keys: []int64{900, 60, 3}[seed-1]}
			s := newSpilled(t, rng, c.fresh)
			for step := range 80 {
				in := r.batch(1 + rng.IntN(60))
				if seed == 2 {
					collide(in)
				}
				r.now += rng.Int64N(40)
				if c.timed {
					r.wm += rng.Int64N(80)
				}
				s.both(func(k Keyed, out *Results) error { return r.step(k, in, out) })
				s.same("%s, seed %d, step %d", c.name, seed, step)
				if rng.IntN(3) > 0 {
					s.spill()
				}
				if d := diskOf(s.disk); len(d.runs) > 0 && d.runs[0].Keys() > int(r.keys)/2 {
					merged++
				}
				if rng.IntN(20) == 0 && seed != 2 {
					s.restart(r.now)
				}
			}
			s.advance(expr.NewContext(nil, 1), batch.MaxWatermark, "%s, seed %d, at the end", c.name, seed)
			all.add(s)
			if err := s.store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if all.moved < 80 || all.parts < 2 {
			t.Errorf("%s: state was on disk %d times, saved in at most %d parts", c.name, all.moved, all.parts)
		}
	}
	if merged < 100 {
		t.Errorf("runs merged %d times", merged)
	}
}

func diskOf(k Spilling) *groupDisk {
	switch k := k.(type) {
	case *TopN:
		return &k.disk
	case *Normalize:
		return &k.disk
	case *Over:
		return &k.disk
	case *SetChanges:
		return &k.disk
	case *OverChanges:
		return &k.disk
	}
	return &k.(*FirstRow).disk
}

// TestSpillingKeysToADiskThatFails: each operation on the disk fails once; that is an
// error with its cause, and never other rows.
func TestSpillingKeysToADiskThatFails(t *testing.T) {
	for i, c := range keyedCases(t) {
		run := func(fs vfs.FS) ([]string, error) {
			rng := rand.New(rand.NewPCG(5, uint64(200+i)))
			r, x := &keyedRun{keyedCase: c, rng: rng, keys: 90}, &spilled{t: t}
			k := c.fresh().(Spilling)
			k.SpillTo(spill.New(fs, "/spill"), 1)
			for range 12 {
				r.now, r.wm = r.now+20, r.wm+30
				if err := r.step(k, r.batch(20), x.results(0)); err != nil {
					return nil, err
				}
				if err := k.Spill(); err != nil {
					return nil, err
				}
			}
			slices.Sort(x.said[0])
			return x.said[0], nil
		}
		want, err := run(vfs.NewMem())
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for n := int64(1); ; n += 1 + n/16 {
			nth := &vfs.Nth{Kinds: vfs.OpsAll &^ (vfs.OpClose | vfs.OpRemove), From: n - 1}
			got, err := run(vfs.NewFault(vfs.NewMem(), nth))
			var e *spill.Error
			switch {
			case err != nil && (!errors.Is(err, syscall.EIO) || !errors.As(err, &e)):
				t.Fatalf("%s, operation %d fails: %v", c.name, n, err)
			case err != nil:
				failed++
			case !slices.Equal(got, want):
				t.Fatalf("%s, operation %d fails: other rows", c.name, n)
			}
			if nth.Fired() == 0 {
				break
			}
		}
		if failed < 10 {
			t.Errorf("%s: %d runs failed", c.name, failed)
		}
	}
}

// rankedSchema is a key, a window and a value.
var rankedSchema = &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}, {Name: "window_start", Type: types.NewTimestamp(3)},
	{Name: "window_end", Type: types.NewTimestamp(3)}, {Name: "v", Type: types.NewBigInt()}}}

// rankedOf makes rows by chance of windows behind a watermark.
func rankedOf(rng *rand.Rand, n int, keys, wm int64) *KeyedRows {
	var rows []change
	for range n {
		rows = append(rows, change{k: rng.Int64N(keys), v: rng.Int64N(1000)})
	}
	in := changesOf(rows)
	b := in.Batch
	b.Schema, b.Kinds, b.Cols = rankedSchema, nil, []batch.Vec{b.Cols[0], {}, {}, b.Cols[1]}
	for c, end := range []int64{0, 100} {
		v := &b.Cols[1+c]
		v.Reset(types.NewTimestamp(3), n)
		for i := range v.I64 {
			v.I64[i] = (wm/100*100 + 100 + end + 100*(rows[i].v%4)) * v.Type.UnitsPerSecond() / 1000
		}
	}
	return in
}

// TestSpilledRanksSayTheSame: the first rows of keys in windows, and of input that ends.
func TestSpilledRanksSayTheSame(t *testing.T) {
	all := trips{}
	for seed := uint64(1); seed <= 12; seed++ {
		rng := rand.New(rand.NewPCG(seed, 61))
		op := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 3, Desc: seed%4 == 0}}, N: []int64{1, 4}[rng.IntN(2)], Number: seed%2 == 0}
		if seed%3 > 0 {
			op.Window = graph.Window{Kind: graph.Given, Start: 1, End: 2}
		}
		s := newSpilled(t, rng, func() Keyed {
			k, err := NewRank(op, rankedSchema, numbered(rankedSchema, op.Number))
			if err != nil {
				t.Fatal(err)
			}
			return k
		})
		keys, ctx, wm := []int64{5, 400}[rng.IntN(2)], expr.NewContext(nil, 1), int64(0)
		for step := range 60 {
			in := rankedOf(rng, 1+rng.IntN(60), keys, wm)
			if seed%5 == 0 {
				collide(in)
			}
			s.fold(ctx, in)
			if rng.IntN(2) == 0 {
				wm += rng.Int64N(120)
				s.advance(ctx, wm, "seed %d, step %d", seed, step)
			}
			if rng.IntN(15) == 0 && seed%5 != 0 {
				s.restart(0)
			}
		}
		s.end(ctx, "seed %d, at the end", seed)
		all.add(s)
	}
	all.atLeast(t, 200, 5)
}

// TestSpillingRanksToADiskThatFails: each operation on the disk fails once, of windows
// and of input that ends; that is an error with its cause, and never other rows.
func TestSpillingRanksToADiskThatFails(t *testing.T) {
	for _, window := range []graph.Window{{}, {Kind: graph.Given, Start: 1, End: 2}} {
		op := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 3}}, N: 2, Number: true, Window: window}
		run := func(fs vfs.FS) ([]string, error) {
			rng, x := rand.New(rand.NewPCG(5, 62)), &spilled{t: t}
			r, err := NewRank(op, rankedSchema, numbered(rankedSchema, true))
			if err != nil {
				t.Fatal(err)
			}
			store := spill.New(fs, "/spill")
			defer store.Close()
			r.SpillTo(store, 1)
			ctx := expr.NewContext(nil, 1)
			for step := range int64(10) {
				if err := r.Fold(ctx, rankedOf(rng, 40, 50, 60*step), x.results(0)); err != nil {
					return nil, err
				}
				if err := r.Spill(); err != nil {
					return nil, err
				}
				if err := r.Advance(ctx, 60*step, x.results(0)); err != nil {
					return nil, err
				}
			}
			if err := r.Advance(ctx, batch.MaxWatermark, x.results(0)); err != nil {
				return nil, err
			}
			slices.Sort(x.said[0])
			return x.said[0], nil
		}
		failEachOperation(t, fmt.Sprint(window.Kind), run)
	}
}
