package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// profiles is a table with a generation for each window: the age of each user in it.
type profiles struct {
	mu sync.Mutex
	// absent says which generations are not there; nil: all are.
	absent func(start int64) bool
	// failing is how many times more the table cannot be opened, late how many times a
	// table without any rows is.
	failing, late int
	// read lists the generations that were asked for, by Prune.
	read []string
}

const profileUsers = 8

func ageOf(uid, start int64) int64 { return (start/minute+100)*100 + uid }

func (p *profiles) there(start int64) bool {
	return p.absent == nil || !p.absent(start)
}

func (*profiles) Spec() *connector.Spec {
	return &connector.Spec{Name: "profiles", Source: true, Bounded: true}
}

func (p *profiles) OpenSource(context.Context, *connector.Table) (connector.Source, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing > 0 {
		p.failing--
		return nil, errors.New("the table does not answer, as the test wants it")
	}
	s := &profileSource{p: p}
	if s.empty = p.late > 0; s.empty {
		p.late--
	}
	return s, nil
}

// profileSource is a table of one file with the generations from -10 to 20 minutes; some
// rows have no key, and two are of user 3.
type profileSource struct {
	connector.Source
	p      *profiles
	empty  bool
	filter connector.PartitionFilter
}

func (s *profileSource) Prune(f connector.PartitionFilter) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.filter = f
	s.p.read = append(s.p.read, f.String())
}

func (s *profileSource) Partitions(context.Context) ([]connector.Partition, error) {
	return []connector.Partition{{Topic: "profiles"}}, nil
}

func (s *profileSource) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	return []connector.Position{{Partition: parts[0]}}, nil
}

func (s *profileSource) End(context.Context, []connector.Partition) ([]int64, error) {
	return []int64{connector.Unbounded}, nil
}

func (s *profileSource) Close() error { return nil }

func (s *profileSource) Open(_ context.Context, _ []connector.Split, columns []int, _ func()) (connector.Reader, error) {
	if !slices.Equal(columns, []int{0, 1, 2}) {
		return nil, fmt.Errorf("columns %v are read", columns)
	}
	return &profileReader{s: s, minute: -10}, nil
}

type profileReader struct {
	connector.Reader
	s      *profileSource
	minute int64
}

func (r *profileReader) Close() error { return nil }
func (r *profileReader) Release()     {}

// Next gives one generation a batch, the wanted ones and others alike.
func (r *profileReader) Next(_ context.Context, b *batch.Batch, _, _ int) error {
	if r.s.empty || r.minute > 20 {
		return io.EOF
	}
	start := r.minute * minute
	r.minute++
	b.Reset(profileSchema)
	if !r.s.p.there(start) {
		return nil
	}
	b.Len = profileUsers + 2
	for c := range b.Cols {
		b.Cols[c].Reset(profileSchema.Fields[c].Type, b.Len)
	}
	for i := range b.Len {
		uid := int64(i)
		b.Cols[0].I64[i], b.Cols[1].I64[i], b.Cols[2].I64[i] = start*1000, uid, ageOf(uid, start)
		switch i {
		case profileUsers: // the smaller of two rows
			b.Cols[1].I64[i], b.Cols[2].I64[i] = 3, 1
		case profileUsers + 1:
			b.Cols[1].SetNull(i)
		}
	}
	b.Runs = []batch.Run{{Rows: int32(b.Len), EndOffset: int64(b.Len)}}
	return nil
}

var profileSchema = &batch.Schema{Fields: []types.Field{{Name: "g", Type: types.NewTimestamp(3)}, {Name: "uid", Type: types.NewBigInt()}, {Name: "age", Type: types.NewBigInt()}}}

// offlineJob merges likes and visits, and the profiles of the window between them.
func offlineJob(parallelism int, lateness, every int64, p *profiles, creates bool, timeout int64) *graph.Job {
	b := newBuilder()
	op := &graph.WideMerge{Window: graph.Window{Size: minute}, Lateness: lateness, Correct: every, Coverage: true, Late: graph.LateRows{Table: -1}, OfflineTimeout: timeout}
	var in []graph.NodeID
	for _, label := range []string{"likes", "visits"} {
		in = append(in, b.exchange(b.source(label), parallelism, 0))
		op.Branches = append(op.Branches, graph.WideBranch{Label: label, Keys: []int{0}, Time: 1, Version: -1})
	}
	table := &connector.Table{Name: "profiles", PartitionKeys: []int{0}}
	for _, f := range profileSchema.Fields {
		table.Columns = append(table.Columns, connector.Column{Field: f})
	}
	op.Offline = []graph.OfflineBranch{{Label: "profile", At: 1, Table: table, Connector: p, Read: []int{0, 1, 2}, Generation: 0,
		Value:  &expr.Column{Index: 0, Name: "window_start", T: types.NewTimestamp(3)},
		Exprs:  []expr.Expr{expr.NewColumn(profileSchema, 1), expr.NewColumn(profileSchema, 2)},
		Schema: &batch.Schema{Fields: profileSchema.Fields[1:]}, Keys: []int{0}, CreatesRows: creates}}
	big := types.NewBigInt()
	op.Columns = []graph.WideColumn{
		{Name: "likes", Type: big, Branch: "likes", Rule: graph.RuleCount, Input: -1},
		{Name: "age", Type: big, Branch: "profile", Rule: graph.RuleLast, Input: 1},
		{Name: "profiles", Type: big, Branch: "profile", Rule: graph.RuleCount, Input: -1},
		{Name: "visits", Type: big, Branch: "visits", Rule: graph.RuleSum, Input: 2},
	}
	out := outSchema([]types.Field{{Name: "uid", Type: big.NotNull()}}, nil, true)
	out.Fields = out.Fields[:3]
	for _, c := range op.Columns {
		out.Fields = append(out.Fields, types.Field{Name: c.Name, Type: c.Type})
	}
	out.Fields = append(out.Fields, types.Field{Name: "coverage", Type: types.NewArray(types.NewString())})
	sink := b.sink("out", b.add(op, out, -1, "out/wide", in...))
	if every > 0 {
		s := b.job.Nodes[sink].Op.(*graph.Sink)
		s.Connector, s.Replace = wholes{}, true
	}
	return b.job
}

// offlineOracle is the full outer join of likes and visits, left-joined (or, with
// creates, joined fully, in the windows that are there) with the profiles of the window.
func offlineOracle(s *scenario, p *profiles, creates bool) []string {
	type group struct {
		likes, visits int
		sum           *int64
	}
	groups := map[[2]int64]*group{}
	for _, f := range s.feeds {
		for _, rows := range f.parts {
			wm := int64(-1 << 62)
			for _, e := range rows {
				start := types.FloorDiv(e.ts, minute) * minute
				late := !s.job.Batch && wm >= start+minute-1+s.lateness
				if wm = max(wm, e.ts-s.delay); late {
					continue
				}
				k := [2]int64{*e.uid, start}
				if groups[k] == nil {
					groups[k] = &group{}
				}
				if f.name == "likes" {
					groups[k].likes++
					continue
				}
				groups[k].visits++
				if e.v != nil {
					if groups[k].sum == nil {
						groups[k].sum = num(0)
					}
					*groups[k].sum += *e.v
				}
			}
		}
	}
	if creates {
		starts := map[int64]bool{}
		for k := range groups {
			starts[k[1]] = true
		}
		for start := range starts {
			for uid := range int64(profileUsers) {
				if k := [2]int64{uid, start}; p.there(start) && groups[k] == nil {
					groups[k] = &group{}
				}
			}
		}
	}
	var out []string
	for k, g := range groups {
		uid, start := k[0], k[1]
		likes, age, profiles := "NULL", "NULL", "NULL"
		var cover []string
		if g.likes > 0 {
			likes, cover = fmt.Sprint(g.likes), append(cover, "likes")
		}
		if uid < profileUsers && p.there(start) {
			// Of the two rows of user 3 the one of the greater age is taken.
			age, profiles, cover = fmt.Sprint(ageOf(uid, start)), "1", append(cover, "profile")
			if uid == 3 {
				profiles = "2"
			}
		}
		if g.visits > 0 {
			cover = append(cover, "visits")
		}
		out = append(out, strings.Join([]string{fmt.Sprint(uid), ts(start), ts(start + minute), likes, age, profiles, text(g.sum), "[" + strings.Join(cover, ", ") + "]"}, "|"))
	}
	slices.Sort(out)
	return out
}

func offlineFeeds(rng *rand.Rand) []*feed {
	fs := wideFeeds(rng)[:2]
	for _, f := range fs {
		for p := range f.parts {
			for i := range f.parts[p] {
				f.parts[p][i].uid = num(rng.Int64N(profileUsers + 3)) // some have no profile
			}
		}
	}
	return fs
}

const longTime = 3_600_000

// TestOfflineBranch: each row has the values of its window's generation, at any
// parallelism and order of arrival, also where the table fails or the generation comes
// later; a partitioned table is asked for its generations alone.
func TestOfflineBranch(t *testing.T) {
	for seed := uint64(1); seed <= 24; seed++ {
		rng := rand.New(rand.NewPCG(seed, 31))
		p, creates := &profiles{failing: rng.IntN(3), late: rng.IntN(3)}, rng.IntN(2) == 0
		s := &scenario{t: t, delay: int64(rng.IntN(3)) * 8000, lateness: int64(rng.IntN(2)) * 25_000, window: &graph.Window{Size: minute},
			feeds: offlineFeeds(rng), opts: Options{GenerationPoll: time.Millisecond}}
		s.job = offlineJob(1+rng.IntN(4), s.lateness, 0, p, creates, longTime)
		s.job.Batch = seed%5 == 0
		if seed%3 == 0 {
			s.spill = vfs.NewMem()
		}
		s.check(offlineOracle(s, p, creates), seed)
		if len(p.read) == 0 || !strings.HasPrefix(p.read[0], "g = ") {
			t.Errorf("seed %d: the table was asked for %v", seed, p.read)
		}
	}
}

// TestOfflineGap: a window whose generation does not come in time goes out with NULLs,
// and that is said; the others have theirs.
func TestOfflineGap(t *testing.T) {
	for seed := uint64(1); seed <= 12; seed++ {
		rng := rand.New(rand.NewPCG(seed, 32))
		p, creates := &profiles{absent: func(start int64) bool { return start/minute%3 == 1 }}, rng.IntN(2) == 0
		var mu sync.Mutex
		var notices []string
		s := &scenario{t: t, lateness: 0, window: &graph.Window{Size: minute}, feeds: offlineFeeds(rng), opts: Options{GenerationPoll: time.Millisecond},
			notice: func(n string) {
				mu.Lock()
				defer mu.Unlock()
				notices = append(notices, n)
			}}
		s.job = offlineJob(1+rng.IntN(3), 0, 0, p, creates, int64(rng.IntN(2)))
		s.check(offlineOracle(s, p, creates), seed)
		const want = "table out, window 1970-01-01 00:01:00.000 to 1970-01-01 00:02:00.000: branch profile has no generation g = 1970-01-01 00:01:00.000: there are no rows of it; its columns are NULL"
		if !slices.Contains(notices, want) {
			t.Errorf("seed %d: no notice of the window from 00:01, but\n%s", seed, strings.Join(notices, "\n"))
		}
	}
}

// TestOfflineCrashes crashes at each operation of a job with an offline branch, before
// and after its effect, and goes on at another parallelism: each row once, the rows of
// a window with one generation, or all without.
func TestOfflineCrashes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 33))
	p := &profiles{absent: func(start int64) bool { return start/minute%4 == 2 }}
	s := &scenario{t: t, delay: 2000, lateness: 20_000, window: &graph.Window{Size: minute}, every: 2, feeds: offlineFeeds(rng),
		sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", maxRows: 3}}, opts: Options{Retained: 2, GenerationPoll: time.Millisecond}}
	job := func(n int) *graph.Job { return offlineJob(n, s.lateness, 0, p, true, 1) }
	s.job = job(1)
	want := offlineOracle(s, p, true)
	seen := map[string]int{}
	for k := 1; ; k += 1 + k/30 {
		w := newWorld()
		book, ops, crashed := s.lives(w, job, uint64(k), k)
		s.proof(w, book, want, fmt.Sprintf("crash at operation %d (%s)", k, ops[len(ops)-1]))
		if !crashed {
			break
		}
		seen[ops[len(ops)-1]]++
	}
	for _, op := range []string{"ledger", "seal", "manifest", "publish"} {
		if seen[op] == 0 {
			t.Errorf("no crash at %s: %v", op, seen)
		}
	}
}

// TestOfflineCorrections crashes likewise where windows go out when they are over, and
// again with late rows.
func TestOfflineCorrections(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 34))
	p := &profiles{}
	s := &scenario{t: t, delay: 2000, lateness: 40_000, window: &graph.Window{Size: minute}, wrap: replacing, every: 2, feeds: offlineFeeds(rng),
		sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", maxRows: 3}}, opts: Options{Retained: 2, GenerationPoll: time.Millisecond}}
	job := func(n int) *graph.Job { return offlineJob(n, s.lateness, 1, p, true, longTime) }
	s.job = job(1)
	want, again := offlineOracle(s, p, true), 0
	for k := 1; ; k += 1 + k/30 {
		w := newWorld()
		p.mu.Lock()
		p.failing, p.late = k%2, k%3
		p.mu.Unlock()
		if s.spill = nil; k%3 == 0 {
			s.spill = vfs.NewMem()
		}
		book, ops, crashed := s.lives(w, job, uint64(k), k)
		correctedProof(t, w, book, want, fmt.Sprintf("crash at operation %d (%s)", k, ops[len(ops)-1]))
		again += len(w.table("out").replaced) - len(w.content("out"))
		if !crashed {
			break
		}
	}
	if again == 0 {
		t.Errorf("no window was corrected")
	}
}

// TestOfflineGenerationComes: a window that went out without its generation goes out
// again when it is there, also after a restart.
func TestOfflineGenerationComes(t *testing.T) {
	at := func(second, uid int64) event { return event{uid: num(uid), ts: second * 1000, v: num(1), s: "x"} }
	p := &profiles{absent: func(int64) bool { return true }}
	feeds := []*feed{{name: "likes", parts: [][]event{{at(10, 1), at(20, 20), at(70, 3)}}}, {name: "visits", parts: [][]event{{at(70, 3)}}}}
	s := &scenario{t: t, window: &graph.Window{Size: minute}, wrap: replacing, feeds: feeds, hold: true, opts: Options{GenerationPoll: time.Millisecond},
		sinks: map[string]sinkOptions{"out": {partitionBy: "window_start"}}}
	w := newWorld()
	const first = "window_start=1970-01-01 00:00:00.000"
	for life := 0; ; life++ {
		s.job = offlineJob(1+life%3, 0, 1, p, false, 1)
		if _, err := s.run(w.process(0, false), uint64(life)); err != nil {
			t.Fatal(err)
		}
		rows := strings.Join(w.content("out")[first], "\n")
		switch n := len(w.table("out").replaced); {
		case n == 1 && p.absent != nil:
			if !strings.Contains(rows, "|1|NULL|NULL|NULL|[likes]") {
				t.Fatalf("without its generation the window has\n%s", rows)
			}
			p.mu.Lock()
			p.absent = nil
			p.mu.Unlock()
		case n == 2:
			const want = "1|1970-01-01 00:00:00.000|1970-01-01 00:01:00.000|1|10001|1|NULL|[likes, profile]\n20|1970-01-01 00:00:00.000|1970-01-01 00:01:00.000|1|NULL|NULL|NULL|[likes]"
			if rows != want {
				t.Fatalf("with its generation the window has\n%s\nwant\n%s", rows, want)
			}
			return
		case n > 2 || life > 5000:
			t.Fatalf("%d replacements after %d lives: %v", n, life, w.table("out").replaced)
		}
	}
}
