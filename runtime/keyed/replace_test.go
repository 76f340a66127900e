package keyed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
)

// memReplacer is a memSink whose partitions are replaced whole.
type memReplacer struct {
	*memSink
	mode connector.ReplaceMode
}

func (s memReplacer) PartitionOf(b *batch.Batch, row int) (string, error) {
	for i, f := range b.Schema.Fields {
		if f.Name == s.o.partitionBy {
			return f.Name + "=" + b.Cols[i].Text(row), nil
		}
	}
	return "", nil
}

func (s memReplacer) Publish(_ context.Context, as []connector.Artifact) []error {
	return []error{errors.New("published one by one")}
}

func (s memReplacer) Replace(_ context.Context, rs []connector.Replacement) []error {
	errs := make([]error, len(rs))
	for i, x := range rs {
		errs[i] = s.p.op("replace", func() error {
			t := s.p.w.table(s.name)
			if t.versions[x.TablePartition] >= x.Version {
				return nil
			}
			rows := map[connector.ArtifactID][]string{}
			for _, a := range x.Parts {
				r, ok := t.staged[a.Header.ID]
				if !ok {
					return fmt.Errorf("nothing is staged as %s", a.Header.ID)
				}
				rows[a.Header.ID] = r
			}
			for id, tp := range t.parts {
				if tp == x.TablePartition {
					delete(t.published, id)
					delete(t.parts, id)
				}
			}
			for id, r := range rows {
				t.published[id], t.parts[id] = r, x.TablePartition
				delete(t.staged, id)
			}
			t.versions[x.TablePartition] = x.Version
			n := 0
			for _, r := range rows {
				n += len(r)
			}
			t.contents[x.TablePartition] = append(t.contents[x.TablePartition], n)
			t.replaced = append(t.replaced, fmt.Sprintf("%s v%d", x.TablePartition, x.Version&0xffffffff))
			return nil
		})
	}
	return errs
}

func (s memReplacer) ResolveReplace(_ context.Context, rs []connector.Replacement) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(rs))
	err := s.p.op("resolve", func() error {
		t := s.p.w.table(s.name)
		for i, x := range rs {
			out[i] = connector.Sealed
			for _, a := range x.Parts {
				if _, ok := t.staged[a.Header.ID]; !ok {
					out[i] = connector.Absent
				}
			}
			if t.versions[x.TablePartition] >= x.Version {
				out[i] = connector.Published
			}
		}
		return nil
	})
	return out, err
}

// before puts rows of an earlier job into a table partition.
func (w *world) before(table, partition string, rows ...string) {
	t := w.table(table)
	id := connector.ArtifactID{Job: connector.UUID{1}, Sequence: uint64(len(t.published))}
	t.published[id], t.parts[id] = rows, partition
}

// content is the visible rows by table partition, sorted.
func (w *world) content(table string) map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string][]string{}
	t := w.table(table)
	for id, rows := range t.published {
		out[t.parts[id]] = append(out[t.parts[id]], rows...)
	}
	for tp := range out {
		slices.Sort(out[tp])
	}
	return out
}

func eventRow(e event) string {
	return fmt.Sprintf("%s|%s|%s|%s", text(e.uid), ts(e.ts), text(e.v), e.s)
}

// overwriteJob is INSERT OVERWRITE out SELECT * FROM a.
func overwriteJob(parallelism int, edit func(*graph.Sink)) *graph.Job {
	b := newBuilder()
	b.job.Batch = true
	ex := b.exchange(b.source("a"), parallelism, 0)
	sink := b.sink("out", ex)
	op := b.job.Nodes[sink].Op.(*graph.Sink)
	op.Overwrite = true
	if edit != nil {
		edit(op)
	}
	return b.job
}

func replacing(s *memSink) connector.Sink {
	return memReplacer{memSink: s, mode: connector.ReplaceOnRequest}
}

// overwriteFeed is rows of three partitions by s.
func overwriteFeed(n int) *feed {
	f := &feed{name: "a", parts: [][]event{nil, nil}}
	for i := range int64(n) {
		f.parts[i%2] = append(f.parts[i%2], event{uid: num(i % 7), ts: 1000 * i, v: num(i), s: string(rune('x' + i%3))})
	}
	return f
}

// TestOverwriteSurvivesCrashes crashes at each operation of an INSERT OVERWRITE,
// before and after its effect. After each crash a partition shows what it had or
// all that it is to have; in the end the touched partitions have exactly the
// result, and the others what they had.
func TestOverwriteSurvivesCrashes(t *testing.T) {
	f := overwriteFeed(40)
	want := map[string][]string{"s=old": {"kept"}}
	for _, part := range f.parts {
		for _, e := range part {
			want["s="+e.s] = append(want["s="+e.s], eventRow(e))
		}
	}
	for tp := range want {
		slices.Sort(want[tp])
	}
	s := &scenario{t: t, feeds: []*feed{f}, wrap: replacing, every: 6,
		sinks: map[string]sinkOptions{"out": {partitionBy: "s", maxRows: 7}}, opts: Options{Retained: 2}}
	seen := map[string]int{}
	for seed := uint64(0); seed < 2; seed++ {
		for k := 1; ; k++ {
			w := newWorld()
			w.before("out", "s=x", "old 1", "old 2")
			w.before("out", "s=old", "kept")
			var book *ledger.Book
			var ops []string
			crashed := false
			for life, at := range []int{k, 9, 0} {
				p := w.process(at, (seed+uint64(life))%2 == 0)
				s.job = overwriteJob(1+int(seed+uint64(life))%3, nil)
				b, err := s.run(p, seed+uint64(life)*1000)
				if life == 0 {
					ops, crashed = p.names, p.dead
				}
				if !p.dead && err != nil {
					t.Fatalf("seed %d, crash at %d, life %d: %v", seed, k, life, err)
				}
				book = b
				for tp, have := range w.content("out") {
					if old := tp == "s=x" && slices.Equal(have, []string{"old 1", "old 2"}); !old && !slices.Equal(have, want[tp]) {
						t.Fatalf("seed %d, crash at operation %d (%s): partition %s shows a mix: %v", seed, k, p.names[len(p.names)-1], tp, have)
					}
				}
				if !p.dead {
					break
				}
			}
			what := fmt.Sprintf("seed %d, crash at operation %d (%s)", seed, k, ops[len(ops)-1])
			if got := w.content("out"); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s: the table is %v, want %v", what, got, want)
			}
			if v := book.Check(); len(v) > 0 {
				t.Fatalf("%s: the ledger does not hold: %v", what, v)
			}
			if left := book.Intents(func(e *ledger.Entry) bool { return e.Result != ledger.Committed }); len(left) > 0 {
				t.Fatalf("%s: %d artefacts are not committed", what, len(left))
			}
			if !crashed {
				break
			}
			seen[ops[len(ops)-1]]++
		}
	}
	for _, op := range []string{"ledger", "open", "seal", "manifest", "replace"} {
		if seen[op] == 0 {
			t.Errorf("no crash at %s: %v", op, seen)
		}
	}
	t.Logf("crashes: %v", seen)
}

// TestOverwriteIsPublishedAtTheEnd: until all input has ended nothing of the table
// changes, also when the job is stopped and goes on later.
func TestOverwriteIsPublishedAtTheEnd(t *testing.T) {
	s := &scenario{t: t, feeds: []*feed{overwriteFeed(20)}, wrap: replacing, hold: true, sinks: map[string]sinkOptions{"out": {maxRows: 3}}}
	w := newWorld()
	w.before("out", "", "old")
	for seed := range uint64(3) {
		s.job = overwriteJob(2, nil)
		if _, err := s.run(w.process(0, false), seed); err != nil {
			t.Fatal(err)
		}
		if got := w.rows("out"); !slices.Equal(got, []string{"old"}) {
			t.Fatalf("after a stop the table shows %v", got)
		}
	}
	s.hold = false
	if _, err := s.run(w.process(0, false), 9); err != nil {
		t.Fatal(err)
	}
	if got := w.rows("out"); len(got) != 20 || slices.Contains(got, "old") {
		t.Fatalf("the table has %d rows: %v", len(got), got)
	}
	// One action for all of it, though it was sealed in many pieces by several runs.
	if got := w.table("out").replaced; len(got) != 1 {
		t.Fatalf("replaced %v", got)
	}
	// Once more: nothing is done again, and what another job wrote since stays.
	w.before("out", "", "later")
	if _, err := s.run(w.process(0, false), 10); err != nil {
		t.Fatal(err)
	}
	if got := w.rows("out"); len(got) != 21 {
		t.Fatalf("the finished job, run again, left %d rows", len(got))
	}
}

// TestOverwriteByNothing: a query without rows empties an unpartitioned table and
// the partition that PARTITION fixes, and leaves dynamic partitions alone.
func TestOverwriteByNothing(t *testing.T) {
	str := func(s string) expr.Expr { return expr.Text(s) }
	for _, c := range []struct {
		name   string
		by     string
		edit   func(*graph.Sink)
		feed   *feed
		want   string
		closes string
	}{
		{"unpartitioned", "", nil, events(), "map[]", ""},
		{"dynamic", "s", func(op *graph.Sink) { op.Table.PartitionKeys = []int{3} }, events(), "map[s=x:[old] s=y:[kept]]", ""},
		{"static", "s", func(op *graph.Sink) {
			op.Table.PartitionKeys, op.Static = []int{3}, [][]expr.Expr{{null(0), null(1), null(2), str("x")}}
		}, events(), "map[s=y:[kept]]", "s=x: 0 rows"},
		{"static with rows", "s", func(op *graph.Sink) {
			op.Table.PartitionKeys, op.Static = []int{3}, [][]expr.Expr{{null(0), null(1), null(2), str("x")}}
		}, events(event{uid: num(1), ts: 5, s: "x"}), "map[s=x:[1|1970-01-01 00:00:00.005|NULL|x] s=y:[kept]]", "s=x: 1 rows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scenario{t: t, feeds: []*feed{c.feed}, wrap: replacing,
				sinks: map[string]sinkOptions{"out": {partitionBy: c.by, policy: connector.CommitPolicy{Trigger: connector.PartitionTime}}}}
			w := newWorld()
			if c.by == "" {
				w.before("out", "", "old")
			} else {
				w.before("out", "s=x", "old")
				w.before("out", "s=y", "kept")
			}
			for seed := range uint64(2) {
				s.job = overwriteJob(2, c.edit)
				book, err := s.run(w.process(0, false), seed)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.TrimSuffix(fmt.Sprint(w.content("out")), " "); got != c.want {
					t.Fatalf("run %d: the table is %s, want %s", seed, got, c.want)
				}
				var closing []string
				for _, tab := range book.Tables() {
					for _, x := range book.Closes(tab.ID) {
						closing = append(closing, x.TablePartition)
					}
				}
				if want, _, _ := strings.Cut(c.closes, ":"); c.by != "" && strings.Join(closing, ",") != want {
					t.Fatalf("run %d: closing %v, want %q", seed, closing, want)
				}
			}
		})
	}
}

func null(col int) expr.Expr { return expr.Null(eventSchema.Fields[col].Type.WithNullable(true)) }

// TestReplaceIsLookedUp: a replacement whose reply is lost is looked up; one
// without effect is made again.
func TestReplaceIsLookedUp(t *testing.T) {
	for _, apply := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(4, 4))
		s := &scenario{t: t, feeds: []*feed{randomFeed(rng, "a", 1, 30, 5*minute)}, wrap: replacing}
		s.job = overwriteJob(2, nil)
		w := newWorld()
		w.before("out", "", "old")
		p := w.process(0, false)
		n := 0
		p.fault = func(op string) (error, bool) {
			if op == "replace" {
				if n++; n%2 == 1 {
					return errors.New("time-out"), apply
				}
			}
			return nil, true
		}
		book, err := s.run(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.rows("out"); len(got) != 30 {
			t.Fatalf("apply=%v: %d rows", apply, len(got))
		}
		if left := book.Intents(func(e *ledger.Entry) bool { return e.Result != ledger.Committed }); len(left) > 0 {
			t.Fatalf("apply=%v: %d artefacts are not committed", apply, len(left))
		}
	}
}

// wholes is a connector each result of whose tables replaces whole partitions.
type wholes struct{ connector.SinkConnector }

func (wholes) Spec() *connector.Spec { return &connector.Spec{Name: "wholes"} }

func (wholes) ReplaceMode(*connector.Table) (connector.ReplaceMode, string) {
	return connector.ReplaceResults, ""
}

// TestWindowsReplacePartitions crashes at each operation of a job each of whose
// windows is one partition, replaced whole: every row is there once, and a partition
// never shows a part of its window.
func TestWindowsReplacePartitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	s := &scenario{t: t, delay: 5000, lateness: 20_000, window: &graph.Window{Size: minute}, wrap: replacing,
		feeds: []*feed{randomFeed(rng, "a", 2, 25, 5*minute), randomFeed(rng, "b", 1, 20, 5*minute)},
		sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", maxRows: 4}}, opts: Options{Retained: 2}}
	job := func(p int) *graph.Job {
		j := windowJob(t, p, s.lateness, "a", "b")
		j.Nodes[len(j.Nodes)-1].Op.(*graph.Sink).Connector = wholes{}
		return j
	}
	s.job = job(1)
	want := windowOracle(s)
	for k := 1; ; k++ {
		w := newWorld()
		w.before("out", "window_start=1970-01-01 00:00:00.000", "older")
		book, ops, crashed := s.lives(w, job, uint64(k), k)
		what := fmt.Sprintf("crash at operation %d (%s)", k, ops[len(ops)-1])
		s.proof(w, book, want, what)
		if got := w.table("out").replaced; len(got) != len(w.content("out")) {
			t.Fatalf("%s: partitions were replaced more than once: %v", what, got)
		}
		if !crashed {
			break
		}
	}
}
