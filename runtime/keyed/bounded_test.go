package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

func events(vs ...event) *feed { return &feed{name: "a", parts: [][]event{vs}} }

func groupJob(t testing.TB, parallelism int, keys []int, aggs ...graph.Aggregate) (*builder, graph.NodeID) {
	b := newBuilder()
	b.job.Batch = true
	ex := b.exchange(b.source("a"), parallelism, keys...)
	var fields []types.Field
	for _, k := range keys {
		fields = append(fields, eventSchema.Fields[k])
	}
	return b, b.add(&graph.GroupAggregate{Keys: keys, Aggregates: aggs}, outSchema(fields, aggs, false), -1, "out/group", ex)
}

// NULLs form one group; COUNT(v), SUM and AVG skip them; a global aggregate over
// no rows gives one row.
func TestGroupAggregate(t *testing.T) {
	avg := call(t, "AVG(v)", "AVG", eventSchema, 2)
	distinct := call(t, "COUNT(DISTINCT v)", "COUNT", eventSchema, 2)
	lib, _ := fn.NewLibrary(fn.LibraryOptions{})
	f, _ := lib.Aggregate("COUNT")
	bound, err := f.Bind([]fn.Arg{{Type: types.NewBigInt()}}, fn.AggOptions{Distinct: true})
	if err != nil {
		t.Fatal(err)
	}
	distinct.Bound = bound
	aggs := func() []graph.Aggregate {
		return []graph.Aggregate{call(t, "COUNT(*)", "COUNT", eventSchema), call(t, "COUNT(v)", "COUNT", eventSchema, 2),
			call(t, "SUM(v)", "SUM", eventSchema, 2), avg, distinct}
	}
	rows := events(event{nil, 0, num(1), ""}, event{nil, 0, num(2), ""}, event{num(1), 0, nil, ""})
	for _, c := range []struct {
		name string
		feed *feed
		keys []int
		want []string
	}{
		{"NULL keys are one group", rows, []int{0}, []string{"1|1|0|NULL|NULL|0", "NULL|2|2|3|1|2"}},
		{"no keys", rows, nil, []string{"3|2|3|1|2"}},
		{"no keys over no rows", events(), nil, []string{"0|0|NULL|NULL|0"}},
		{"keys over no rows", events(), []int{0}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for p := 1; p <= 3; p++ {
				b, g := groupJob(t, p, c.keys, aggs()...)
				b.sink("out", g)
				s := &scenario{t: t, job: b.job, feeds: []*feed{c.feed}}
				w := s.check(c.want, uint64(p))
				// A finished job that is started again adds nothing.
				if _, err := s.run(w.process(0, false), 7); err != nil {
					t.Fatal(err)
				}
				if got := w.rows("out"); !slices.Equal(got, c.want) {
					t.Fatalf("after a second run:\n%s", diff(got, c.want))
				}
			}
		})
	}
}

// FILTER narrows one call; errors of an argument count only where it lets the
// row through, and elsewhere kill the row for every call.
func TestAggregateFilterAndErrors(t *testing.T) {
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	op := func(name string, args ...expr.Expr) expr.Expr {
		f, ok := lib.Lookup(name)
		if !ok {
			t.Fatalf("no function %s", name)
		}
		e, err := expr.NewCall(f, args...)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	v, uid := expr.NewColumn(eventSchema, 2), expr.NewColumn(eventSchema, 0)
	sum := call(t, "SUM(uid/v)", "SUM", eventSchema, 2)
	sum.Args = []expr.Expr{op("/", uid, v)}
	sum.Filter = op(">", uid, v)
	sum.Text = "SUM(uid / v) FILTER (WHERE uid > v)"
	b, g := groupJob(t, 2, nil, call(t, "COUNT(*)", "COUNT", eventSchema), sum)
	b.sink("out", g)
	s := &scenario{t: t, job: b.job, feeds: []*feed{events(
		event{num(10), 0, num(5), "a"}, // 2
		event{num(1), 0, num(5), "b"},  // filtered
		event{num(-3), 0, num(0), "c"}, // an error behind a filter that is FALSE
		event{num(3), 0, num(0), "d"},  // division by zero
	)}}
	w := s.check([]string{"3|2"}, 1)
	if len(w.dead) != 1 {
		t.Fatalf("%d dead rows, want 1", len(w.dead))
	}
	for _, d := range w.dead {
		if d.Reason != "division_by_zero" || string(d.Raw.Value) != `{"uid":3,"ts":"1970-01-01T00:00:00.000","v":0,"s":"d"}` ||
			len(d.Raw.Headers) != 1 || d.Raw.Headers[0].Key != "stage" || string(d.Raw.Headers[0].Value) != "keyed" {
			t.Fatalf("dead entry %+v, row %s", d, d.Raw.Value)
		}
	}
}

// TestDeadResultsAreNotWrittenTwice: a SUM that overflows is an error above the
// exchange; through crashes its row is one dead letter.
func TestDeadResultsAreNotWrittenTwice(t *testing.T) {
	most := int64(1<<63 - 1)
	f := events(event{num(1), 0, num(most), ""}, event{num(1), 0, num(1), ""}, event{num(2), 0, num(2), ""})
	job := func(p int) *graph.Job {
		b, g := groupJob(t, p, []int{0}, call(t, "SUM(v)", "SUM", eventSchema, 2))
		b.sink("out", g)
		return b.job
	}
	for k := 1; ; k++ {
		s := &scenario{t: t, feeds: []*feed{f}}
		w := newWorld()
		book, ops, crashed := s.lives(w, job, 1, k)
		s.proof(w, book, []string{"2|2"}, fmt.Sprintf("crash at %v", ops))
		if len(w.dead) != 1 {
			t.Fatalf("crash at %v: %d dead rows", ops, len(w.dead))
		}
		tab, _ := book.Table("out")
		if e := book.Emitted(tab.ID); e == nil || e.Dead.Sum() != 1 || e.Dead[0].Code != "overflow" {
			t.Fatalf("emitted %+v", e)
		}
		if !crashed {
			break
		}
	}
}

// TestGroupThenSortThenLimit runs three stages in a row, the second and third
// without an exchange of their own in the graph.
func TestGroupThenSortThenLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	f := randomFeed(rng, "a", 3, 60, 6*minute)
	job := func(p int) *graph.Job {
		b, g := groupJob(t, p, []int{0}, call(t, "COUNT(*)", "COUNT", eventSchema))
		s := b.add(&graph.Sort{Keys: []graph.SortKey{{Column: 0, Desc: true, NullsLast: true}}, Offset: 1, Limit: 3}, b.job.Nodes[g].Schema, -1, "out/sort", g)
		l := b.add(&graph.Limit{N: 2}, b.job.Nodes[g].Schema, -1, "out/limit", s)
		b.sink("out", l)
		return b.job
	}
	counts := map[string]int{}
	for _, p := range f.parts {
		for _, e := range p {
			counts[text(e.uid)]++
		}
	}
	var want []string
	for _, uid := range []string{"3", "2"} { // 4 is skipped; NULL would be last
		want = append(want, fmt.Sprintf("%s|%d", uid, counts[uid]))
	}
	slices.Sort(want)
	for k := 0; k < 30; k += 3 {
		s := &scenario{t: t, feeds: []*feed{f}}
		w := newWorld()
		book, ops, _ := s.lives(w, job, uint64(k), k)
		s.proof(w, book, want, fmt.Sprintf("crash at %d of %v", k, ops))
	}
}

// TestValues: literal rows come once, through restarts too.
func TestValues(t *testing.T) {
	b := newBuilder()
	lit := func(x int64) expr.Expr {
		v := &batchVec{}
		return v.of(x)
	}
	schema := outSchema([]types.Field{{Name: "x", Type: types.NewBigInt()}}, nil, false)
	v := b.add(&graph.Values{Rows: [][]expr.Expr{{lit(1)}, {lit(2)}}}, schema, -1, "")
	b.sink("out", v)
	s := &scenario{t: t, job: b.job}
	w := s.check([]string{"1", "2"}, 1)
	if _, err := s.run(w.process(0, false), 2); err != nil {
		t.Fatal(err)
	}
	if got := w.rows("out"); len(got) != 2 {
		t.Fatalf("after a second run: %v", got)
	}
}
