package operator

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// waitingJoins are the joins that give rows when their input has ended.
func waitingJoins() []pairJoin {
	var cases []pairJoin
	for kind := graph.InnerJoin; kind <= graph.SingleJoin; kind++ {
		cases = append(cases, pairJoin{kind: kind}, pairJoin{kind: kind, condition: true}, pairJoin{kind: kind, noKey: true, condition: true})
	}
	return append(cases, pairJoin{kind: graph.MarkJoin, nullAware: true}, pairJoin{kind: graph.AntiJoin, nullAware: true})
}

// insertsOf makes rows; of those of key 0 the key is NULL, v is where it is null.
func insertsOf(input int, rows []change) *KeyedRows {
	in := changesOf(rows)
	in.Input = input
	in.Batch.Kinds = nil
	for i := range in.Batch.Len {
		if in.Batch.Cols[0].I64[i] == 0 {
			in.Batch.Cols[0].NullRow(i)
		}
		if in.Batch.Cols[1].I64[i] == null {
			in.Batch.Cols[1].NullRow(i)
		}
	}
	return in
}

// TestSpilledJoinsSayTheSame: every kind, with rows of either side that come in any
// order, keys that are NULL, state moved to disk and restarts.
func TestSpilledJoinsSayTheSame(t *testing.T) {
	all := trips{}
	for i, c := range waitingJoins() {
		op, out := c.join(t, pairSchema)
		for seed := uint64(1); seed <= 6; seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			s := newSpilled(t, rng, func() Keyed {
				k, err := NewJoin(op, pairSchema, pairSchema, out)
				if err != nil {
					t.Fatal(err)
				}
				return k
			})
			ctx := expr.NewContext(nil, 1)
			keys, steps := []int64{3, 60, 900}[rng.IntN(3)], 20
			if c.noKey {
				steps = 8 // its pairs are many
			}
			for step := range steps {
				var rows []change
				for range 1 + rng.IntN(30) {
					rows = append(rows, change{k: rng.Int64N(keys), v: rng.Int64N(10)})
				}
				in := insertsOf(rng.IntN(2), rows)
				s.fold(ctx, in)
				if rng.IntN(8) == 0 && step < steps-1 {
					s.restart(0)
				}
			}
			s.end(ctx, "%+v, seed %d", c, seed)
			all.add(s)
		}
	}
	all.atLeast(t, 500, 5)
}

// TestSpilledJoinsOfOneKey: where the right rows of one key do not fit into memory,
// they go by in chunks.
func TestSpilledJoinsOfOneKey(t *testing.T) {
	for _, c := range waitingJoins() {
		op, out := c.join(t, pairSchema)
		rng := rand.New(rand.NewPCG(7, 7))
		s := newSpilled(t, rng, func() Keyed {
			k, err := NewJoin(op, pairSchema, pairSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return k
		})
		ctx := expr.NewContext(nil, 1)
		for step := range 10 {
			var right []change
			left := []change{{k: int64(1 + step%2), v: 10 + rng.Int64N(2000)}}
			for i := range 500 {
				right = append(right, change{k: 1, v: 10 + int64(step*500+i)/4})
			}
			for input, rows := range [][]change{left, right} {
				in := insertsOf(input, rows)
				s.both(func(k Keyed, out *Results) error { return k.Fold(ctx, in, out) })
			}
			s.spill()
		}
		s.both(func(k Keyed, out *Results) error { return k.Advance(ctx, batch.MaxWatermark, out) })
		s.same("%+v", c)
	}
}

// TestSpilledSubqueryOfOneKey: the rows of one key of a scalar sub-query have to fit.
func TestSpilledSubqueryOfOneKey(t *testing.T) {
	c := pairJoin{kind: graph.SingleJoin, noKey: true, condition: true}
	op, out := c.join(t, pairSchema)
	k, err := NewJoin(op, pairSchema, pairSchema, out)
	if err != nil {
		t.Fatal(err)
	}
	j := k.(*Join)
	store := spill.New(vfs.NewMem(), "/spill")
	defer store.Close()
	j.SpillTo(store, 1)
	ctx, res := expr.NewContext(nil, 1), quiet()
	var rows []change
	for i := range int64(40_000) {
		rows = append(rows, change{k: 1, v: 10 + i})
	}
	for input, n := range []int{1, len(rows)} {
		if err := j.Fold(ctx, insertsOf(input, rows[:n]), res); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Spill(); err != nil {
		t.Fatal(err)
	}
	var e *KeySizeError
	if err := j.Advance(ctx, batch.MaxWatermark, res); !errors.As(err, &e) || e.Bytes <= e.Limit {
		t.Fatalf("%v", err)
	}
}

// quiet takes results and forgets them.
func quiet() *Results {
	return &Results{Emit: func(*batch.Batch) error { return nil }, Dead: func(*batch.Batch, *batch.ValueError) {}}
}

// paneSchema is clickSchema with windows of 100 ms in place of the time.
var paneSchema = &batch.Schema{Fields: append(slices.Clone(clickSchema.Fields), types.Field{Name: "end", Type: types.NewTimestamp(3)})}

func panesOf(clicks []click, wm int64) *KeyedRows {
	for i := range clicks {
		clicks[i].ts -= clicks[i].ts % 100
	}
	in := clicksOf(clicks, wm)
	in.Batch.Schema, in.Batch.Kinds = paneSchema, nil
	var end batch.Vec
	end.Reset(types.NewTimestamp(3), len(clicks))
	for i := range clicks {
		end.I64[i] = (clicks[i].ts + 100) * 1000
	}
	in.Batch.Cols = append(in.Batch.Cols, end)
	return in
}

// TestSpilledWindowJoinsSayTheSame is of windows that wait for their end.
func TestSpilledWindowJoinsSayTheSame(t *testing.T) {
	all := trips{}
	for _, kind := range []graph.JoinKind{graph.InnerJoin, graph.LeftJoin, graph.FullJoin, graph.AntiJoin} {
		c := pairJoin{kind: kind}
		op, out := c.join(t, paneSchema)
		op.Keys = append(op.Keys, graph.JoinKey{Left: 2, Right: 2}, graph.JoinKey{Left: 3, Right: 3})
		given := graph.Window{Kind: graph.Given, Start: 2, End: 3}
		op.Windows = []graph.Window{given, given}
		for seed := uint64(1); seed <= 4; seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(kind)))
			s := newSpilled(t, rng, func() Keyed {
				k, err := NewJoin(op, paneSchema, paneSchema, out)
				if err != nil {
					t.Fatal(err)
				}
				return k
			})
			ctx := expr.NewContext(nil, 1)
			wm := int64(0)
			for range 60 {
				var rows []click
				for range 1 + rng.IntN(30) {
					rows = append(rows, click{k: rng.Int64N(40), v: rng.Int64N(10), ts: wm + rng.Int64N(300)})
				}
				in := panesOf(rows, wm)
				in.Input = rng.IntN(2)
				s.fold(ctx, in)
				if rng.IntN(2) == 0 {
					wm += rng.Int64N(60)
					s.advance(ctx, wm, "%v, seed %d, at %d", kind, seed, wm)
				}
				if rng.IntN(15) == 0 {
					s.restart(0)
				}
			}
			s.end(ctx, "%v, seed %d, at the end", kind, seed)
			all.add(s)
		}
	}
	all.atLeast(t, 200, 5)
}

// TestSpilledJoinStaysWithinItsBudget: also while it gives its rows.
func TestSpilledJoinStaysWithinItsBudget(t *testing.T) {
	const budget = 512 << 10
	c := pairJoin{kind: graph.FullJoin}
	op, out := c.join(t, pairSchema)
	k, err := NewJoin(op, pairSchema, pairSchema, out)
	if err != nil {
		t.Fatal(err)
	}
	j := k.(*Join)
	store := spill.New(vfs.NewMem(), "/spill")
	defer store.Close()
	j.SpillTo(store, budget)
	ctx := expr.NewContext(nil, 1)
	got := 0
	res := &Results{Dead: func(*batch.Batch, *batch.ValueError) {}, Emit: func(b *batch.Batch) error { got += b.Len; return nil }}
	const rows, keys = 60_000, 40_000
	for at := int64(0); at < rows; at += 500 {
		var in []change
		for i := range int64(500) {
			in = append(in, change{k: 1 + (at+i)%keys, v: 1})
		}
		for input := range 2 {
			if err := j.Fold(ctx, insertsOf(input, in), res); err != nil {
				t.Fatal(err)
			}
		}
		if j.Bytes() > budget {
			if err := j.Spill(); err != nil {
				t.Fatal(err)
			}
			if n := j.Bytes(); n > budget/4 {
				t.Fatalf("%d bytes stay in memory, of %d", n, budget)
			}
		}
	}
	if n := store.Bytes(); n < 2*budget {
		t.Fatalf("%d bytes on disk", n)
	}
	if err := j.Advance(ctx, batch.MaxWatermark, res); err != nil {
		t.Fatal(err)
	}
	// Half of the keys come once on either side, half of them twice.
	if want := keys/2 + keys/2*4; got != want {
		t.Fatalf("%d rows, want %d", got, want)
	}
}

// TestJoinOnADiskThatFails at each operation: the cause comes out, and never rows that
// are not the join's.
func TestJoinOnADiskThatFails(t *testing.T) {
	c := pairJoin{kind: graph.FullJoin, condition: true}
	op, out := c.join(t, pairSchema)
	run := func(fs vfs.FS) (rows int, err error) {
		k, err := NewJoin(op, pairSchema, pairSchema, out)
		if err != nil {
			t.Fatal(err)
		}
		j := k.(*Join)
		store := spill.New(fs, "/spill")
		defer store.Close()
		j.SpillTo(store, 1)
		ctx := expr.NewContext(nil, 1)
		res := &Results{Dead: func(*batch.Batch, *batch.ValueError) {}, Emit: func(b *batch.Batch) error { rows += b.Len; return nil }}
		for step := range int64(6) {
			for input := range 2 {
				var in []change
				for i := range int64(40) {
					in = append(in, change{k: i, v: (step + i) % 8})
				}
				if err := j.Fold(ctx, insertsOf(input, in), res); err != nil {
					return rows, err
				}
			}
			if err := j.Spill(); err != nil {
				return rows, err
			}
		}
		return rows, j.Advance(ctx, batch.MaxWatermark, res)
	}
	failEachOperation(t, "a full join", run)
}
