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
	"github.com/millrace/millrace/runtime/types"
)

// pairJoin is a case of a join of two pairSchema inputs by k.
type pairJoin struct {
	kind      graph.JoinKind
	condition bool // l.v < r.v; one of them 9: an unknown
	nullAware bool // the key is v IN, within a group k
	noKey     bool // every row meets every other one
}

// null is the value that stands for NULL in the columns v.
const null = 9

// match is the condition of a pair.
func (c pairJoin) match(l, r change) truth {
	switch {
	case l.k != r.k && !c.noKey:
		return truthFalse
	case c.nullAware && (l.v == null || r.v == null), c.condition && (l.v == null || r.v == null):
		return truthUnknown
	case c.nullAware && l.v != r.v, c.condition && l.v >= r.v:
		return truthFalse
	}
	return truthTrue
}

// want is the join by its definition.
func (c pairJoin) want(left, right []change) []string {
	show := func(x change) string {
		if x.v == null {
			return fmt.Sprintf("%d|NULL", x.k)
		}
		return fmt.Sprintf("%d|%d", x.k, x.v)
	}
	var out []string
	met := make([]bool, len(right))
	for _, l := range left {
		best, found := truthFalse, false
		for i, r := range right {
			t := c.match(l, r)
			best = max(best, t)
			if t == truthTrue {
				met[i], found = true, true
				if c.kind <= graph.FullJoin {
					out = append(out, show(l)+"|"+show(r))
				}
			}
		}
		switch c.kind {
		case graph.LeftJoin, graph.FullJoin:
			if !found {
				out = append(out, show(l)+"|NULL|NULL")
			}
		case graph.SemiJoin:
			if found {
				out = append(out, show(l))
			}
		case graph.AntiJoin:
			if !found {
				out = append(out, show(l))
			}
		case graph.MarkJoin:
			out = append(out, show(l)+"|"+map[truth]string{truthTrue: "1", truthFalse: "0", truthUnknown: "NULL"}[best])
		}
	}
	for i, r := range right {
		if c.kind.KeepsRight() && !met[i] {
			out = append(out, "NULL|NULL|"+show(r))
		}
	}
	slices.Sort(out)
	return out
}

// operator makes joins of streams.
func (c pairJoin) operator(t *testing.T, retracts [2]bool, ttl int64) func() Keyed {
	t.Helper()
	op, out := c.join(t, pairSchema)
	op.Changes, op.Retracts, op.TTL = true, retracts, [2]int64{ttl, ttl}
	return func() Keyed {
		k, err := NewJoin(op, pairSchema, pairSchema, out)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
}

// join is the join of two inputs that begin as pairSchema, and the schema of its rows.
func (c pairJoin) join(t *testing.T, in *batch.Schema) (*graph.Join, *batch.Schema) {
	t.Helper()
	op := &graph.Join{Kind: c.kind, Keys: []graph.JoinKey{{Left: 0, Right: 0}}, NullAware: c.nullAware}
	if c.nullAware {
		op.Keys = append(op.Keys, graph.JoinKey{Left: 1, Right: 1})
	}
	if c.noKey {
		op.Keys = nil
	}
	pair := graph.PairSchema(in, in)
	if c.condition {
		lib, err := fn.NewLibrary(fn.LibraryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		less, _ := lib.Lookup("<")
		if op.Condition, err = expr.NewCall(less, expr.NewColumn(pair, 1), expr.NewColumn(pair, len(in.Fields)+1)); err != nil {
			t.Fatal(err)
		}
	}
	out := pair
	switch c.kind {
	case graph.SemiJoin, graph.AntiJoin:
		out = in
	case graph.MarkJoin:
		out = &batch.Schema{Fields: append(slices.Clone(in.Fields), types.Field{Name: "m", Type: types.NewBoolean()})}
	}
	return op, out
}

// TestStreamJoinOfChanges: after every batch the changes leave the join of the rows
// that are there, of every kind, whatever comes and goes on either side, over
// restarts.
func TestStreamJoinOfChanges(t *testing.T) {
	var cases []pairJoin
	for _, kind := range []graph.JoinKind{graph.InnerJoin, graph.LeftJoin, graph.RightJoin, graph.FullJoin, graph.SemiJoin, graph.AntiJoin, graph.MarkJoin} {
		cases = append(cases, pairJoin{kind: kind}, pairJoin{kind: kind, condition: true},
			pairJoin{kind: kind, noKey: true}, pairJoin{kind: kind, noKey: true, condition: true})
	}
	cases = append(cases, pairJoin{kind: graph.MarkJoin, nullAware: true})
	for seed := uint64(1); seed <= 12; seed++ {
		for _, c := range cases {
			if c.noKey && seed > 3 {
				continue // its pairs are many
			}
			r := rand.New(rand.NewPCG(seed, uint64(c.kind)))
			retracts := [2]bool{r.IntN(3) > 0, r.IntN(3) > 0}
			fresh := c.operator(t, retracts, int64(r.IntN(2))*1000)
			k, x := fresh(), &table{t: t, rows: map[string]int{}}
			var there [2][]change
			for step := range 40 {
				side := r.IntN(2)
				in := changesOf(randomChanges(r, &there[side], retracts[side]))
				in.Input = side
				for i := range in.Batch.Len {
					if in.Batch.Cols[1].I64[i] == null {
						in.Batch.Cols[1].NullRow(i)
					}
				}
				if err := k.Fold(expr.NewContext(nil, 0), in, x.results()); err != nil {
					t.Fatal(err)
				}
				if got, want := x.list(), c.want(there[0], there[1]); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, %+v, retracts %v: over %v\n%v, want\n%v", seed, step, c, retracts, there, got, want)
				}
				switch step % 9 {
				case 4:
					k = restart(t, k, fresh)
				case 7:
					j := k.(*StreamJoin)
					j.side[0].gone = 1 << 20 // compacts now
					if err := j.compact(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
