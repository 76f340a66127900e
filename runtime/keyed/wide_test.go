package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// wideJob merges three branches by uid and minute: likes with COUNT, SUM and
// LAST, visits whose latest row wins whole, firsts with FIRST, MIN and MAX.
func wideJob(parallelism int, lateness int64) *graph.Job {
	b := newBuilder()
	op := &graph.WideMerge{Window: graph.Window{Size: minute}, Lateness: lateness, Coverage: true, Late: graph.LateRows{Table: -1}}
	var in []graph.NodeID
	for _, label := range []string{"likes", "visits", "firsts"} {
		in = append(in, b.exchange(b.source(label), parallelism, 0))
		op.Branches = append(op.Branches, graph.WideBranch{Label: label, Keys: []int{0}, Time: 1, Version: -1, KeepNulls: label == "visits"})
	}
	big, str := types.NewBigInt(), types.NewString()
	op.Columns = []graph.WideColumn{
		{Name: "like_cnt", Type: big, Branch: "likes", Rule: graph.RuleCount, Input: -1},
		{Name: "like_sum", Type: big, Branch: "likes", Rule: graph.RuleSum, Input: 2},
		{Name: "last_s", Type: str, Branch: "likes", Rule: graph.RuleLast, Input: 3},
		{Name: "visit_v", Type: big, Branch: "visits", Rule: graph.RuleLast, Input: 2},
		{Name: "visit_s", Type: str, Branch: "visits", Rule: graph.RuleLast, Input: 3},
		{Name: "first_s", Type: str, Branch: "firsts", Rule: graph.RuleFirst, Input: 3},
		{Name: "min_v", Type: big, Branch: "firsts", Rule: graph.RuleMin, Input: 2},
		{Name: "max_v", Type: big, Branch: "firsts", Rule: graph.RuleMax, Input: 2},
	}
	out := outSchema([]types.Field{{Name: "uid", Type: big.NotNull()}}, nil, true)
	out.Fields = out.Fields[:3]
	for _, c := range op.Columns {
		out.Fields = append(out.Fields, types.Field{Name: c.Name, Type: c.Type})
	}
	out.Fields = append(out.Fields, types.Field{Name: "coverage", Type: types.NewArray(str)})
	b.sink("out", b.add(op, out, -1, "out/wide", in...))
	return b.job
}

// wideOracle is the full outer join of the three branches, computed slowly from
// the rows that are not late, in the order (time, partition, offset).
func wideOracle(s *scenario) []string {
	type versioned struct {
		order string
		event
	}
	type group struct{ by map[string][]versioned }
	groups := map[windowKey]*group{}
	for _, f := range s.feeds {
		for p, rows := range f.parts {
			wm := int64(-1 << 62)
			for off, e := range rows {
				start := types.FloorDiv(e.ts, minute) * minute
				late := wm >= start+minute-1+s.lateness
				wm = max(wm, e.ts-s.delay)
				if late {
					continue
				}
				k := windowKey{text(e.uid), start, 0}
				if groups[k] == nil {
					groups[k] = &group{by: map[string][]versioned{}}
				}
				groups[k].by[f.name] = append(groups[k].by[f.name], versioned{fmt.Sprintf("%020d %05d %010d", e.ts+1<<40, p, off), e})
			}
		}
	}
	str := func(s string) string {
		if s == "" {
			return "NULL"
		}
		return s
	}
	var out []string
	for k, g := range groups {
		cells := []string{k.uid, ts(k.start), ts(k.start + minute)}
		var cover []string
		for _, label := range []string{"likes", "visits", "firsts"} {
			rows := g.by[label]
			slices.SortFunc(rows, func(a, b versioned) int { return strings.Compare(a.order, b.order) })
			if len(rows) > 0 {
				cover = append(cover, label)
			}
			var sum, least, most *int64
			first, last := "", ""
			for _, r := range rows {
				if r.s != "" {
					last = r.s
					if first == "" {
						first = r.s
					}
				}
				if r.v == nil {
					continue
				}
				x := *r.v
				if sum == nil {
					sum, least, most = num(0), num(x), num(x)
				}
				*sum += x
				*least, *most = min(*least, x), max(*most, x)
			}
			switch {
			case label == "likes" && len(rows) == 0:
				cells = append(cells, "NULL", "NULL", "NULL")
			case label == "likes":
				cells = append(cells, fmt.Sprint(len(rows)), text(sum), str(last))
			case label == "visits" && len(rows) == 0:
				cells = append(cells, "NULL", "NULL")
			case label == "visits":
				r := rows[len(rows)-1] // whole, its NULLs too
				cells = append(cells, text(r.v), str(r.s))
			default:
				cells = append(cells, str(first), text(least), text(most))
			}
		}
		out = append(out, strings.Join(append(cells, "["+strings.Join(cover, ", ")+"]"), "|"))
	}
	slices.Sort(out)
	return out
}

func wideFeeds(rng *rand.Rand) []*feed {
	var out []*feed
	for i, name := range []string{"likes", "visits", "firsts"} {
		f := randomFeed(rng, name, 1+rng.IntN(2), 10+20*i, 5*minute)
		for p := range f.parts {
			for k := range f.parts[p] {
				e := &f.parts[p][k]
				e.uid = num(rng.Int64N(6)) // NULL keys never come this far
				e.ts -= e.ts % 500         // many equal versions
			}
		}
		out = append(out, f)
	}
	return out
}

func TestWideMergeEqualsTheFullOuterJoin(t *testing.T) {
	for seed := uint64(1); seed <= 24; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := &scenario{t: t, delay: int64(rng.IntN(3)) * 8000, lateness: int64(rng.IntN(2)) * 25_000, window: &graph.Window{Size: minute}, feeds: wideFeeds(rng)}
		s.job = wideJob(1+rng.IntN(4), s.lateness)
		s.check(wideOracle(s), seed)
	}
}

func TestWideMergeCrashes(t *testing.T) { wideMergeSurvivesCrashes(t, nil) }

func wideMergeSurvivesCrashes(t *testing.T, spill vfs.FS) {
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 6))
		s := &scenario{t: t, delay: 5000, lateness: 25_000, window: &graph.Window{Size: minute}, feeds: wideFeeds(rng),
			sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", maxRows: 3}}, spill: spill}
		job := func(p int) *graph.Job { return wideJob(p, s.lateness) }
		s.job = job(1)
		want := wideOracle(s)
		crashes := []int{10 + rng.IntN(40), 10 + rng.IntN(40)}
		w := newWorld()
		book, _, _ := s.lives(w, job, seed, crashes...)
		s.proof(w, book, want, fmt.Sprintf("seed %d, crashes at %v", seed, crashes))
		if spill != nil && s.spilled == 0 {
			t.Error("nothing went to disk")
		}
	}
}
