package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// joinCase is a join of feeds a and b by uid, perhaps with a.v < b.v.
type joinCase struct {
	kind      graph.JoinKind
	condition bool
	nullAware bool // IN over v, within equal uid
	keyless   bool
	changes   bool // of streams
}

func (c joinCase) schema() *batch.Schema {
	pair := graph.PairSchema(eventSchema, eventSchema)
	switch c.kind {
	case graph.SemiJoin, graph.AntiJoin:
		return eventSchema
	case graph.MarkJoin:
		return &batch.Schema{Fields: append(slices.Clone(eventSchema.Fields), types.Field{Name: "mark", Type: types.NewBoolean()})}
	}
	return pair
}

func (c joinCase) job(t testing.TB, parallelism int) *graph.Job {
	op := &graph.Join{Kind: c.kind, NullAware: c.nullAware, Changes: c.changes}
	if !c.keyless {
		op.Keys = append(op.Keys, graph.JoinKey{})
	}
	if c.nullAware {
		op.Keys = append(op.Keys, graph.JoinKey{Left: 2, Right: 2})
	}
	if c.condition {
		lib, err := fn.NewLibrary(fn.LibraryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		less, _ := lib.Lookup("<")
		pair := graph.PairSchema(eventSchema, eventSchema)
		if op.Condition, err = expr.NewCall(less, expr.NewColumn(pair, 2), expr.NewColumn(pair, 6)); err != nil {
			t.Fatal(err)
		}
	}
	b := newBuilder()
	b.job.Batch = !c.changes
	left := b.exchange(b.source("a"), parallelism, op.ExchangeKeys(0)...)
	right := b.exchange(b.source("b"), parallelism, op.ExchangeKeys(1)...)
	b.sink("out", b.add(op, c.schema(), -1, "out/join", left, right))
	return b.job
}

func cells(e event) string {
	if e.s == "" {
		e.s = "NULL" // as fill writes it
	}
	return strings.Join([]string{text(e.uid), ts(e.ts), text(e.v), e.s}, "|")
}

const nulls = "NULL|NULL|NULL|NULL"

// match is what the definition says of a pair: TRUE, NULL or FALSE.
func (c joinCase) match(l, r event) string {
	if !c.keyless && (l.uid == nil || r.uid == nil || *l.uid != *r.uid) {
		return "FALSE"
	}
	if !c.nullAware && !c.condition {
		return "TRUE"
	}
	switch {
	case l.v == nil || r.v == nil:
		return "NULL"
	case c.nullAware && *l.v == *r.v, c.condition && *l.v < *r.v:
		return "TRUE"
	}
	return "FALSE"
}

// oracle joins by looking at every pair.
func (c joinCase) oracle(left, right []event) []string {
	var out []string
	seen := make([]bool, len(right))
	for _, l := range left {
		mark, matches := "FALSE", 0
		var partner string
		for i, r := range right {
			m := c.match(l, r)
			if m == "NULL" && mark == "FALSE" {
				mark = "NULL"
			}
			if m != "TRUE" {
				continue
			}
			mark, seen[i], partner = "TRUE", true, cells(r)
			if matches++; c.kind <= graph.FullJoin {
				out = append(out, cells(l)+"|"+partner)
			}
		}
		switch {
		case c.kind == graph.MarkJoin:
			out = append(out, cells(l)+"|"+mark)
		case c.kind == graph.SemiJoin && matches > 0, c.kind == graph.AntiJoin && matches == 0:
			out = append(out, cells(l))
		case c.kind == graph.SingleJoin && matches == 1:
			out = append(out, cells(l)+"|"+partner)
		case matches == 0 && (c.kind == graph.LeftJoin || c.kind == graph.FullJoin || c.kind == graph.SingleJoin):
			out = append(out, cells(l)+"|"+nulls)
		}
	}
	for i, r := range right {
		if !seen[i] && c.kind.KeepsRight() {
			out = append(out, nulls+"|"+cells(r))
		}
	}
	slices.Sort(out)
	return out
}

func (f *feed) all() []event { return slices.Concat(f.parts...) }

// TestJoinEqualsEveryPair: every kind, with and without a condition, whatever the
// parallelism, the order of arrival and the batch sizes.
func TestJoinEqualsEveryPair(t *testing.T) {
	var cases []joinCase
	for k := graph.InnerJoin; k <= graph.SingleJoin; k++ {
		cases = append(cases, joinCase{kind: k}, joinCase{kind: k, condition: true})
	}
	cases = append(cases, joinCase{kind: graph.MarkJoin, nullAware: true}, joinCase{kind: graph.MarkJoin, nullAware: true, keyless: true},
		joinCase{kind: graph.InnerJoin, keyless: true}, joinCase{kind: graph.FullJoin, keyless: true, condition: true})
	for i, c := range cases {
		for seed := uint64(1); seed <= 3; seed++ {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			a, b := randomFeed(rng, "a", 2, 12, 5*minute), randomFeed(rng, "b", 1, 15, 5*minute)
			for _, f := range []*feed{a, b} {
				for _, p := range f.parts {
					for k := range p {
						if p[k].v != nil {
							p[k].v = num(*p[k].v % 7)
						}
					}
				}
			}
			if c.kind == graph.SingleJoin {
				b.parts[0] = onePerUID(b.parts[0])
			}
			parallelism := 1 + rng.IntN(4)
			if c.keyless {
				parallelism = 1
			}
			s := &scenario{t: t, job: c.job(t, parallelism), feeds: []*feed{a, b}}
			t.Logf("%+v seed %d", c, seed)
			s.check(c.oracle(a.all(), b.all()), seed)
		}
	}
}

func onePerUID(events []event) []event {
	seen := map[int64]bool{}
	return slices.DeleteFunc(events, func(e event) bool {
		if e.uid == nil || seen[*e.uid] {
			return e.uid != nil
		}
		seen[*e.uid] = true
		return false
	})
}

// TestSingleJoinRefusesSeveralRows: more than one match is an error of the row.
func TestSingleJoinRefusesSeveralRows(t *testing.T) {
	c := joinCase{kind: graph.SingleJoin}
	a := &feed{name: "a", parts: [][]event{{{num(1), 0, nil, "x"}, {num(2), 0, nil, "y"}}}}
	b := &feed{name: "b", parts: [][]event{{{num(1), 0, nil, "p"}, {num(1), 0, nil, "q"}, {num(2), 0, nil, "r"}}}}
	s := &scenario{t: t, job: c.job(t, 2), feeds: []*feed{a, b}}
	w := s.check([]string{cells(a.parts[0][1]) + "|" + cells(b.parts[0][2])}, 1)
	if len(w.dead) != 1 {
		t.Fatalf("%d dead rows, want 1", len(w.dead))
	}
	for _, d := range w.dead {
		if d.Reason != "subquery_rows" {
			t.Fatalf("reason %s", d.Reason)
		}
	}
}

// TestJoinSurvivesCrashes crashes at each operation and goes on at another
// parallelism: state of both sides is restored, results come once.
func TestJoinSurvivesCrashes(t *testing.T) { joinSurvivesCrashes(t, nil) }

func joinSurvivesCrashes(t *testing.T, spill vfs.FS) {
	for i, c := range []joinCase{{kind: graph.FullJoin, condition: true}, {kind: graph.MarkJoin, nullAware: true}} {
		rng := rand.New(rand.NewPCG(5, uint64(i)))
		s := &scenario{t: t, feeds: []*feed{randomFeed(rng, "a", 2, 10, 5*minute), randomFeed(rng, "b", 1, 12, 5*minute)},
			sinks: map[string]sinkOptions{"out": {maxRows: 4}}, opts: Options{Retained: 2}, spill: spill}
		job := func(p int) *graph.Job { return c.job(t, p) }
		s.job = job(1)
		want := c.oracle(s.feeds[0].all(), s.feeds[1].all())
		for k := 1; ; k++ {
			w := newWorld()
			book, ops, crashed := s.lives(w, job, 0, k)
			s.proof(w, book, want, fmt.Sprintf("%+v, crash at operation %d (%s)", c, k, ops[len(ops)-1]))
			if !crashed {
				break
			}
		}
		if spill != nil && s.spilled == 0 {
			t.Errorf("%+v: nothing went to disk", c)
		}
	}
}

// TestSetOperationCountsCopies through crashes at each operation.
func TestSetOperationCountsCopies(t *testing.T) { setOperationCountsCopies(t, nil) }

func setOperationCountsCopies(t *testing.T, spill vfs.FS) {
	a := &feed{name: "a", parts: [][]event{{{num(1), 0, nil, ""}, {num(1), 0, nil, ""}, {nil, 0, nil, ""}, {num(2), 0, nil, ""}}}}
	b := &feed{name: "b", parts: [][]event{{{num(1), 0, nil, ""}, {nil, 0, nil, ""}, {num(3), 0, nil, ""}}}}
	one, none, two := cells(a.parts[0][0]), cells(a.parts[0][2]), cells(a.parts[0][3])
	for _, c := range []struct {
		op   graph.SetOperation
		want []string
	}{
		{graph.SetOperation{Kind: graph.Intersect}, []string{one, none}},
		{graph.SetOperation{Kind: graph.Intersect, All: true}, []string{one, none}},
		{graph.SetOperation{Kind: graph.Except}, []string{two}},
		{graph.SetOperation{Kind: graph.Except, All: true}, []string{one, two}},
	} {
		job := func(p int) *graph.Job {
			g := newBuilder()
			g.job.Batch = true
			op := c.op
			left, right := g.exchange(g.source("a"), p, 0, 1, 2, 3), g.exchange(g.source("b"), p, 0, 1, 2, 3)
			g.sink("out", g.add(&op, eventSchema, -1, "out/set", left, right))
			return g.job
		}
		s := &scenario{t: t, spill: spill, feeds: []*feed{a, b}, job: job(1)}
		for k := 1; ; k++ {
			w := newWorld()
			book, _, crashed := s.lives(w, job, 1, k)
			s.proof(w, book, c.want, fmt.Sprintf("%+v, crash at operation %d", c.op, k))
			if !crashed {
				break
			}
		}
		if spill != nil && s.spilled == 0 {
			t.Errorf("%+v: nothing went to disk", c.op)
		}
	}
}
