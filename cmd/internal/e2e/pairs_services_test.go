//go:build services

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	githubevents "github.com/millrace/millrace/examples/github-events"
)

// pairRun is a job that writes into two systems at once, killed again and again. Its
// sources are bounded at its first start, so that it ends: the next cycle has new data
// and new tables.
type pairRun struct {
	t      *testing.T
	rng    *rand.Rand
	pair   [2]*pairSink
	source *services.Kafka // nil: the log
	events int
	sql    string
	want   map[string]multiset
	// took is the time of a run that nobody disturbed.
	took time.Duration

	kills, records, rows int
	// struck counts the kills of servers.
	struck map[string]int
}

// world is what one cycle works on.
func (r *pairRun) world(cycle string) (*world, []string) {
	r.t.Helper()
	var w *world
	var args []string
	if r.source == nil {
		w, args = githubWorld(r.t, r.events)
	} else {
		w = newWorld(r.t)
		args = []string{"run", w.file("job.sql", r.sql), "-f", w.ddlOverKafka(r.source), "--set", "BOUNDED=latest-offset", "--progress", "none", "--set"}
	}
	for _, sink := range r.pair {
		sink.prepare(w, cycle)
	}
	w.file("job.sql", intoPair(r.sql, r.pair, cycle))
	return w, append(args, "OUT="+w.outPath())
}

// verify compares what a cycle left in both systems.
func (r *pairRun) verify(w *world, cycle string) {
	r.t.Helper()
	w.run("ledger", "show", "--check").must(r.t, 0)
	for _, sink := range r.pair {
		if sink.arrive != nil {
			sink.arrive(w, cycle)
		}
		for _, table := range slices.Sorted(maps.Keys(r.want)) {
			got := sink.rows(w, cycle, table)
			compare(r.t, table+" in "+sink.name, got, r.want[table])
			r.rows += got.total()
		}
	}
}

// cycle runs the job to its end over at most so many kills.
func (r *pairRun) cycle(cycle string, most int) {
	r.t.Helper()
	w, args := r.world(cycle)
	r.records += r.events
	began := time.Now()
	kills, done := 0, false
	for kills < most && !done {
		p := w.start(args...)
		struck := r.live(p)
		p.kill()
		switch code := p.wait(); {
		case code == -1:
			kills++
		case code == 0:
			done = true
		case code == 3 && struck:
			// A server was away for longer than the job waits: it is started again.
			r.struck["starts that gave up"]++
		default:
			r.t.Fatalf("cycle %s: after %d kills the run ended with %d\n%s", cycle, kills, code, p.stderr.String())
		}
	}
	r.kills += kills
	last := time.Now()
	p := w.start(args...)
	// A machine without time for its servers is slow, not wrong.
	if code := p.waitFor(5 * patience); code != 0 {
		r.t.Fatalf("cycle %s: the last run ended with %d\n%s", cycle, code, p.stderr.String())
	}
	if most == 0 {
		r.took = time.Since(last)
	}
	ran := time.Since(began)
	r.verify(w, cycle)
	r.t.Logf("cycle %s: %d kills in %v, the last run took %v; compared in %v", cycle, kills, ran.Round(time.Millisecond),
		(ran - last.Sub(began)).Round(time.Millisecond), (time.Since(began) - ran).Round(time.Millisecond))
}

// live lets a run live for a random part of the time that a whole one takes, mostly a
// short one so that the next run meets what this one left, and in one of six kills a
// server meanwhile; it reports whether it did.
func (r *pairRun) live(p *process) (struck bool) {
	r.t.Helper()
	longest := r.took / 6
	if r.rng.IntN(5) == 0 {
		longest = r.took / 2
	}
	wait := func() {
		// The moment of a kill is random: what a test waits for here is time itself.
		life := time.NewTimer(time.Duration(r.rng.Int64N(int64(longest))))
		defer life.Stop()
		select {
		case <-life.C:
		case <-p.ended:
		}
	}
	wait()
	if r.rng.IntN(6) > 0 || !p.running() {
		return false
	}
	servers := slices.Concat(r.pair[0].servers, r.pair[1].servers)
	s := servers[r.rng.IntN(len(servers))]
	r.struck[s.name]++
	s.kill()
	if r.rng.IntN(3) == 0 {
		p.kill() // both at once
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := s.start(ctx); err != nil {
		r.t.Fatalf("starting %s again: %v", s.name, err)
	}
	wait()
	return true
}

// undisturbed gives the shipped job, and what it writes into files when nobody
// disturbs it, but for the column that readTable cannot read; the run took so long.
func undisturbed(t *testing.T, events int) (sql string, want map[string]multiset, took time.Duration) {
	t.Helper()
	w, args := githubWorld(t, events)
	b, err := githubevents.Files().ReadFile("job.sql")
	if err != nil {
		t.Fatal(err)
	}
	w.file("job.sql", withoutCoverage(string(b)))
	began := time.Now()
	w.run(append(args, "OUT="+w.lake)...).must(t, 0)
	took = time.Since(began)
	tables, err := os.ReadDir(w.lake)
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]multiset{}
	rows := 0
	for _, d := range tables {
		if m := readTable(t, filepath.Join(w.lake, d.Name())); len(m) > 0 {
			want[d.Name()] = m
			rows += m.total()
		}
	}
	if rows < events || len(want) != len(githubevents.Topics)+2 {
		t.Fatalf("%d rows in %d tables of %d events", rows, len(want), events)
	}
	return string(b), want, took
}

// TestKilledJobIntoPairs runs the shipped job with every table in two real systems at
// once, kills it at random moments, and servers under it: both have the rows of a run
// that nobody disturbed, each once. MILLRACE_TORTURE=1 takes every pair and a hundred
// kills and more, else it is a few kills of one pair; -pair.kills says how many a pair.
func TestKilledJobIntoPairs(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	events, kills := 3_000, 6
	pairs := []struct {
		name string
		make func(t *testing.T) ([2]*pairSink, *services.Kafka)
	}{
		{"Hive on HDFS and ClickHouse", func(t *testing.T) ([2]*pairSink, *services.Kafka) {
			return [2]*pairSink{hdfsSink(t), clickHouseSink(t)}, nil
		}},
		{"Hive on HDFS and Kafka", func(t *testing.T) ([2]*pairSink, *services.Kafka) {
			return [2]*pairSink{hdfsSink(t), kafkaSink(t, kafkaCluster(t))}, nil
		}},
		{"ClickHouse and Kafka from Kafka", func(t *testing.T) ([2]*pairSink, *services.Kafka) {
			k := kafkaCluster(t)
			return [2]*pairSink{clickHouseSink(t), kafkaSink(t, k)}, k
		}},
	}
	if torture() {
		events, kills = 20_000, 40
	} else {
		pairs = pairs[:1]
	}
	if *pairKills > 0 {
		kills = *pairKills
	}
	sql, want, _ := undisturbed(t, events)
	for i, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			began := time.Now()
			r := &pairRun{t: t, rng: rand.New(rand.NewPCG(seed, uint64(i))), events: events, sql: sql, want: want, struck: map[string]int{}}
			r.pair, r.source = pair.make(t)
			if r.source != nil {
				fillKafka(t, r.source, events)
			}
			r.cycle("calm", 0)
			for n := 1; r.kills < kills; n++ {
				if n > 10*kills {
					t.Fatalf("%d kills in %d cycles", r.kills, n)
				}
				r.cycle(fmt.Sprintf("cycle%d", n), min(25, kills-r.kills))
			}
			t.Logf("%d kills, beside them of servers: %v; %d records became %d rows", r.kills, r.struck, r.records, r.rows)
			how := "every row exactly once"
			if t.Failed() {
				how = "FAILED"
			}
			keepOutcome(t, fmt.Sprintf("| %s | %s | %d | %d | %d | %v | %s: %s |", time.Now().UTC().Format("2006-01-02"), commit(), seed,
				r.kills, r.records, time.Since(began).Round(time.Second), pair.name, how))
		})
	}
}
