package operator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// pairSchema is two integers; the first one is the key.
var pairSchema = &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}, {Name: "v", Type: types.NewBigInt()}}}

// change is a row that comes or goes.
type change struct {
	k, v int64
	kind batch.Kind
}

// changesOf makes rows for an operator, by key.
func changesOf(changes []change) *KeyedRows {
	b := &batch.Batch{Schema: pairSchema, Cols: make([]batch.Vec, 2), Len: len(changes)}
	in := &KeyedRows{Batch: b, Sel: batch.Sel{}, Hashes: make([]uint64, len(changes))}
	for c := range b.Cols {
		b.Cols[c].Reset(types.NewBigInt(), len(changes))
	}
	var buf []byte
	for i, x := range changes {
		b.Cols[0].I64[i], b.Cols[1].I64[i] = x.k, x.v
		b.Kinds = append(b.Kinds, x.kind)
		in.Sel = append(in.Sel, int32(i))
		in.Hashes[i], buf = batch.HashKey(buf, []*batch.Vec{&b.Cols[0]}, i)
	}
	return in
}

// table is what changes leave of rows as text.
type table struct {
	t    testing.TB
	rows map[string]int
	// kinds are those seen.
	kinds [4]int
}

func (x *table) results() *Results {
	return &Results{Emit: func(b *batch.Batch) error {
		for i := range b.Len {
			var cells []string
			for c := range b.Cols {
				if b.Cols[c].IsNull(i) {
					cells = append(cells, "NULL")
				} else {
					cells = append(cells, cell(&b.Cols[c], i))
				}
			}
			kind := batch.Insert
			if b.Kinds != nil {
				kind = b.Kinds[i]
			}
			x.kinds[kind]++
			row := strings.Join(cells, "|")
			if TakesBack(b, int32(i)) {
				if x.rows[row]--; x.rows[row] < 0 {
					x.t.Fatalf("row %s is taken back, and is not there", row)
				}
			} else {
				x.rows[row]++
			}
		}
		return nil
	}, Dead: func(_ *batch.Batch, e *batch.ValueError) { x.t.Fatalf("a row died: %v", e) }}
}

func (x *table) list() []string {
	var out []string
	for r, n := range x.rows {
		for range n {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return out
}

// restart saves and loads, by two subtasks' key groups.
func restart(t *testing.T, old Keyed, fresh func() Keyed) Keyed {
	t.Helper()
	payload := old.Save()
	k := fresh()
	for _, r := range []state.Range{{From: 0, To: 100}, {From: 100, To: state.Groups}} {
		if err := k.Load(payload, r); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// randomChanges are some rows, and some of those that are there taken back.
func randomChanges(r *rand.Rand, there *[]change, retracts bool) []change {
	var out []change
	for range 1 + r.IntN(12) {
		if n := len(*there); retracts && n > 0 && r.IntN(3) == 0 {
			i := r.IntN(n)
			x := (*there)[i]
			*there = slices.Delete(*there, i, i+1)
			x.kind = []batch.Kind{batch.UpdateBefore, batch.Delete}[r.IntN(2)]
			out = append(out, x)
			continue
		}
		x := change{int64(r.IntN(4)), int64(r.IntN(10)), []batch.Kind{batch.Insert, batch.UpdateAfter}[r.IntN(2)]}
		*there = append(*there, x)
		out = append(out, x)
	}
	return out
}

// topOf is the first n rows of each key.
func topOf(there []change, n int, number bool) []string {
	all := slices.Clone(there)
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.k, b.k), cmp.Compare(b.v, a.v)) })
	var out []string
	count := map[int64]int{}
	for _, x := range all {
		if count[x.k]++; count[x.k] > n {
			continue
		}
		row := fmt.Sprintf("%d|%d", x.k, x.v)
		if number {
			row += fmt.Sprintf("|%d", count[x.k])
		}
		out = append(out, row)
	}
	slices.Sort(out)
	return out
}

// TestTopNOfChanges: after every batch the changes leave the first rows of those
// that are there, whatever comes and goes, over restarts.
func TestTopNOfChanges(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		r := rand.New(rand.NewPCG(seed, 5))
		op := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 1, Desc: true, NullsLast: true}}, N: []int64{1, 2, 5}[r.IntN(3)],
			Number: r.IntN(2) == 0, Changes: true, Retracts: r.IntN(3) > 0, TTL: int64(r.IntN(2)) * 1000}
		out := &batch.Schema{Fields: slices.Clone(pairSchema.Fields)}
		if op.Number {
			out.Fields = append(out.Fields, types.Field{Name: "n", Type: types.NewBigInt()})
		}
		fresh := func() Keyed {
			k, err := NewTopN(op, pairSchema, out)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		k, x := fresh(), &table{t: t, rows: map[string]int{}}
		var there []change
		for step := range 60 {
			if err := k.Fold(expr.NewContext(nil, 0), changesOf(randomChanges(r, &there, op.Retracts)), x.results()); err != nil {
				t.Fatal(err)
			}
			if got, want := x.list(), topOf(there, int(op.N), op.Number); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d, %+v: %v, want %v", seed, step, op, got, want)
			}
			if step%7 == 3 {
				k = restart(t, k, fresh)
			}
			if step%11 == 5 {
				k.(*TopN).tidy()
			}
		}
		if op.N == 1 && !op.Retracts && x.kinds[batch.Delete] > 0 || op.N > 1 && !op.Number && x.kinds[batch.UpdateBefore] > 0 {
			t.Errorf("seed %d: kinds %v of %+v", seed, x.kinds, op)
		}
	}
}

// TestGroupsOfChanges is TestTopNOfChanges of an aggregate.
func TestGroupsOfChanges(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		r := rand.New(rand.NewPCG(seed, 6))
		op := &graph.GroupAggregate{Keys: []int{0}, Updates: true, Retracts: true, TTL: int64(r.IntN(2)) * 1000,
			Aggregates: []graph.Aggregate{aggregateOf(t, "COUNT"), aggregateOf(t, "SUM", 1), aggregateOf(t, "MAX", 1)}}
		out := &batch.Schema{Fields: []types.Field{{Type: types.NewBigInt()}, {Type: types.NewBigInt()}, {Type: types.NewBigInt()}, {Type: types.NewBigInt()}}}
		fresh := func() Keyed {
			k, err := NewGroupAggregate(op, pairSchema, out, 0)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		k, x := fresh(), &table{t: t, rows: map[string]int{}}
		var there []change
		for step := range 60 {
			if err := k.Fold(expr.NewContext(nil, 0), changesOf(randomChanges(r, &there, true)), x.results()); err != nil {
				t.Fatal(err)
			}
			var want []string
			for key := range int64(4) {
				n, sum, most := 0, int64(0), int64(-1)
				for _, c := range there {
					if c.k == key {
						n, sum, most = n+1, sum+c.v, max(most, c.v)
					}
				}
				if n > 0 {
					want = append(want, fmt.Sprintf("%d|%d|%d|%d", key, n, sum, most))
				}
			}
			if got := x.list(); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: %v, want %v", seed, step, got, want)
			}
			if step%7 == 3 {
				k = restart(t, k, fresh)
			}
		}
	}
}

// aggregateOf is a call over columns of pairSchema.
func aggregateOf(t testing.TB, name string, cols ...int) graph.Aggregate {
	t.Helper()
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, _ := lib.Aggregate(name)
	a := graph.Aggregate{Name: name, Text: name}
	var args []fn.Arg
	for _, c := range cols {
		col := expr.NewColumn(pairSchema, c)
		a.Args, args = append(a.Args, col), append(args, fn.Arg{Type: col.T})
	}
	if a.Bound, err = f.Bind(args, fn.AggOptions{}); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTimeToLive: what was not written for its time is forgotten without a word, on
// access and in memory; ages count on over a restart, whatever the clock says then.
func TestTimeToLive(t *testing.T) {
	count := &graph.GroupAggregate{Keys: []int{0}, Updates: true, TTL: 100, Aggregates: []graph.Aggregate{aggregateOf(t, "COUNT")}}
	latest := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 1, Desc: true}}, N: 1, Changes: true, TTL: 100}
	for name, c := range map[string]struct {
		fresh func() (Aging, error)
		// again is what the third row of key 1 gives after its state has gone, and
		// still what it gives where it has not.
		again, still [4]int
	}{
		"aggregate": {func() (Aging, error) {
			return NewGroupAggregate(count, pairSchema, &batch.Schema{Fields: slices.Clone(pairSchema.Fields)}, 0)
		}, [4]int{batch.Insert: 1}, [4]int{batch.UpdateBefore: 1, batch.UpdateAfter: 1}},
		"last row": {func() (Aging, error) { return NewTopN(latest, pairSchema, pairSchema) },
			[4]int{batch.Insert: 1}, [4]int{batch.UpdateBefore: 1, batch.UpdateAfter: 1}},
	} {
		fresh := func() Aging {
			k, err := c.fresh()
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		fold := func(k Keyed, key, v int64) [4]int {
			x := &table{t: t, rows: map[string]int{}}
			res := x.results()
			emit := res.Emit
			res.Emit = func(b *batch.Batch) error {
				for i := range b.Len { // what is taken back came before
					if TakesBack(b, int32(i)) {
						x.rows[fmt.Sprintf("%d|%d", b.Cols[0].Int64(i), b.Cols[1].Int64(i))]++
					}
				}
				return emit(b)
			}
			if err := k.Fold(expr.NewContext(nil, 0), changesOf([]change{{key, v, batch.Insert}}), res); err != nil {
				t.Fatal(err)
			}
			return x.kinds
		}
		k := fresh()
		k.Age(1000)
		fold(k, 1, 1)
		if n := k.Age(1050); n != 0 {
			t.Errorf("%s: %d entries gone half-way", name, n)
		}
		fold(k, 2, 1)
		if got := fold(k, 1, 2); got != c.still {
			t.Errorf("%s: within its time: kinds %v, want %v", name, got, c.still)
		}
		if n := k.Age(1149); n != 0 {
			t.Errorf("%s: %d entries gone a millisecond early", name, n)
		}
		if n := k.Age(1150); n != 2 {
			t.Errorf("%s: %d entries gone, want 2", name, n)
		}
		if got := fold(k, 1, 3); got != c.again {
			t.Errorf("%s: after its time: kinds %v, want %v", name, got, c.again)
		}
		// 60 ms old when saved; the clock of the next process starts elsewhere.
		k.Age(1210)
		payload := k.Save()
		next := fresh()
		next.Age(7)
		if err := next.Load(payload, state.Range{From: 0, To: state.Groups}); err != nil {
			t.Fatal(err)
		}
		if n := next.Age(46); n != 0 {
			t.Errorf("%s: %d entries gone early after a restart", name, n)
		}
		if n := next.Age(47); n != 1 {
			t.Errorf("%s: %d entries gone after a restart, want 1", name, n)
		}
	}
}

func cell(v *batch.Vec, i int) string {
	if v.Type.Kind == types.Boolean {
		if v.Bool(i) {
			return "1"
		}
		return "0"
	}
	if v.Type.IsNested() {
		return v.Text(i)
	}
	return fmt.Sprint(v.Int64(i))
}
